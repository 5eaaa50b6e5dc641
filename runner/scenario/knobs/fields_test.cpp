// SPDX-License-Identifier: MIT
#include "scenario/knobs/fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scenario/knobs/field_value.h"
#include "scenario/knobs/other_values.h"

namespace stepgate {
namespace {

// Makes the TOML value that a file would contain for the field.
TomlValue written(const Field& field, const std::string& text) {
  return toml_of_argument(field, text, {"a.toml", 1, 1});
}

TEST(Fields, HaveDifferentNamesOfKnownGroups) {
  std::set<std::string_view> names;
  for (const Field& field : field_table()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(std::any_of(field_groups().begin(), field_groups().end(),
                            [&](const FieldGroup& group) { return group.name == group_of(field); }))
        << field.name;
  }
}

TEST(Fields, AreBuiltWholeOrNotAtAll) {
  for (const Field& field : field_table()) {
    EXPECT_EQ(field.get == nullptr, field.set == nullptr) << field.name;
    EXPECT_EQ(is_built(field), !field.meaning.empty()) << field.name;
  }
}

TEST(Fields, ReadTheirOwnDefaultsBack) {
  for (const Field& field : field_table()) {
    if (!is_built(field)) continue;
    std::vector<Diagnostic> diagnostics;
    const std::string text = field_value_text(field, default_of(field));
    const auto value = read_field_value(field, written(field, text), diagnostics);
    ASSERT_TRUE(value) << field.name << ' ' << text << ' ' << to_string(diagnostics.front());
    EXPECT_EQ(*value, default_of(field)) << field.name;
  }
}

TEST(Fields, WriteTheMemberThatTheyRead) {
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.values.kind == FieldKind::boolean) continue;
    Settings settings;
    FieldValue other;
    if (field.values.kind == FieldKind::choice) {
      other = field.values.choices[1].value.value_or(-1);
    } else if (field.values.kind == FieldKind::number || field.values.kind == FieldKind::version ||
               field.values.kind == FieldKind::percent) {
      other = field.values.least;
    } else if (field.values.kind == FieldKind::capacity) {
      other = MemoryCap{CapOf::need, 1.5};
    } else if (field.values.kind == FieldKind::integers) {
      other = std::vector<std::int64_t>{3, 4};
    } else if (field.values.kind == FieldKind::text) {
      other = "train_step";
    } else if (field.values.kind == FieldKind::words) {
      other = ProgramWords{"python3", "a \"b\".py"};
    } else if (field.values.kind == FieldKind::variables) {
      other = ProgramVariables{{"A", "1"}};
    } else if (field.values.kind == FieldKind::kernels) {
      other = ReplacedKernels{{"layer_norm", {"m.so", "norm"}}};
    } else {
      other = static_cast<std::int64_t>(field.values.most);
    }
    field.set(settings, other);
    EXPECT_EQ(field.get(settings), other) << field.name;
    for (const Field& unrelated : field_table()) {
      if (!is_built(unrelated) || unrelated.name == field.name) continue;
      EXPECT_EQ(unrelated.get(settings), default_of(unrelated))
          << field.name << " changed " << unrelated.name;
    }
  }
}

// The words of a condition (only_for) must agree with what it checks.
TEST(Fields, AreRefusedBesideEveryModelAndAllocatorThatTheyAreNotOnlyFor) {
  int refused = 0;
  for (const Field& field : field_table()) {
    if (field.condition == nullptr || field.condition->only_for.empty()) continue;
    const std::string listed = fmt::format(", {},", field.condition->only_for);
    const auto is_listed = [&](const Choice& choice) {
      return listed.find(fmt::format(" {},", choice.name)) != std::string::npos;
    };
    const Field& kind = *field_named("model.kind");
    const bool of_a_model = std::ranges::any_of(kind.values.choices, is_listed);
    const Field& chosen = of_a_model ? kind : *field_named("alloc.with");
    for (const Choice& choice : chosen.values.choices) {
      if (!choice.value) continue;
      Settings settings;
      chosen.set(settings, *choice.value);
      EXPECT_EQ(field.condition->holds(settings.knobs), is_listed(choice))
          << field.name << " beside " << choice.name;
      if (!is_listed(choice)) ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST(Fields, AllowTheirLimitsAndNothingBeyond) {
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.values.kind != FieldKind::integer) continue;
    const auto least = static_cast<std::int64_t>(field.values.least);
    const auto most = static_cast<std::int64_t>(field.values.most);
    std::vector<Diagnostic> diagnostics;
    EXPECT_TRUE(read_field_value(field, written(field, std::to_string(least)), diagnostics));
    EXPECT_TRUE(read_field_value(field, written(field, std::to_string(most)), diagnostics));
    EXPECT_TRUE(diagnostics.empty());
    EXPECT_FALSE(read_field_value(field, written(field, std::to_string(least - 1)), diagnostics));
    EXPECT_FALSE(read_field_value(field, written(field, std::to_string(most + 1)), diagnostics));
    EXPECT_EQ(diagnostics.size(), 2U);
  }
}

TEST(OtherValues, AreSomeForEveryFieldAndAllCanBeWritten) {
  for (const Field& field : field_table()) {
    if (!is_built(field) || field.scope != FieldScope::variant) continue;
    const bool names_libraries = field.values.kind == FieldKind::kernels;  // there is no other one
    const FieldValue now =
        names_libraries ? ReplacedKernels{{"layer_norm", {"m.so", "norm"}}} : default_of(field);
    const std::vector<FieldValue> others = other_values(field, now);
    EXPECT_FALSE(others.empty()) << field.name;
    for (const FieldValue& other : others) {
      EXPECT_NE(other, now) << field.name;
      const std::string text = field_value_text(field, other);
      std::vector<Diagnostic> diagnostics;
      const auto read = read_field_value(field, written(field, text), diagnostics);
      ASSERT_TRUE(read) << text << ' ' << to_string(diagnostics.front());
      EXPECT_EQ(*read, other) << field.name << ' ' << text;
    }
  }
}

TEST(OtherValues, AreAllOthersOfAChoiceAndLargerAndSmallerNumbers) {
  const auto of = [](std::string_view name) {
    const Field& field = *field_named(name);
    std::vector<std::string> texts;
    for (const FieldValue& other : other_values(field, default_of(field)))
      texts.push_back(field_value_text(field, other));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(of("sync.wait"), (Texts{"yield", "block"}));
  EXPECT_EQ(of("transfer.blocking"), (Texts{"true"}));
  EXPECT_EQ(of("sync.every"), (Texts{"2", "16"})) << "none below its least, none twice";
  EXPECT_EQ(of("batch.size"), (Texts{"128", "32", "1024", "4"}));
  using Sizes = std::vector<std::int64_t>;
  const Field& sizes = *field_named("batch.sizes");
  const FieldValue none;
  EXPECT_EQ(other_values(sizes, Sizes{64, 32}), (std::vector<FieldValue>{Sizes{64, 32, 16}, none}));
  EXPECT_EQ(other_values(sizes, Sizes{64, 32, 16}),
            (std::vector<FieldValue>{Sizes{64, 32, 16, 8}, Sizes{64, 32}, none}));
  EXPECT_EQ(of("alloc.leak_bytes"), (Texts{"1 MiB", "512 KiB", "16 MiB", "64 KiB"}));
}

}  // namespace
}  // namespace stepgate
