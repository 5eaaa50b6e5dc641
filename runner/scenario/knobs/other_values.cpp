// SPDX-License-Identifier: MIT
#include "scenario/knobs/other_values.h"

#include <algorithm>
#include <cmath>

#include "base/text/units.h"

namespace stepgate {
namespace {

// A replacement for a number that is not set, large enough to change the step.
double small_amount(const FieldValues& values) {
  if (values.kind == FieldKind::bytes || values.kind == FieldKind::capacity)
    return static_cast<double>(mebibyte);
  return values.kind == FieldKind::integer ? 1 : std::min(100.0, values.most);
}

// The list with one element more and with one less, within its allowed lengths
// (read_field_value.cpp).
std::vector<std::vector<std::int64_t>> other_lists(const FieldValues& values,
                                                   const FieldValue& now) {
  constexpr std::size_t fewest = 2;
  constexpr std::size_t most = 64;
  const auto small = static_cast<std::int64_t>(values.least);
  const auto* given = std::get_if<std::vector<std::int64_t>>(&now);
  std::vector<std::vector<std::int64_t>> others;
  std::vector<std::int64_t> longer = given ? *given : std::vector<std::int64_t>{2 * small};
  longer.push_back(std::max(longer.back() / 2, small));
  if (longer.size() <= most) others.push_back(std::move(longer));
  if (given && given->size() > fewest) others.emplace_back(given->begin(), given->end() - 1);
  return others;
}

}  // namespace

std::vector<FieldValue> other_values(const Field& field, const FieldValue& now) {
  const FieldValues& values = field.values;
  std::vector<FieldValue> others;
  const auto add = [&](FieldValue value) {
    if (value != now && std::find(others.begin(), others.end(), value) == others.end())
      others.push_back(std::move(value));
  };
  if (const auto* truth = std::get_if<bool>(&now)) {
    add(!*truth);
  } else if (values.kind == FieldKind::choice) {
    for (const Choice& choice : values.choices) {
      if (choice.value) add(*choice.value);
    }
  } else if (values.kind == FieldKind::capacity) {
    add(MemoryCap{CapOf::need, 1.05});
    add(MemoryCap{CapOf::need, 1.01});
    add(MemoryCap{CapOf::need, 0.9});
    add(std::monostate());
  } else if (values.kind == FieldKind::integers) {
    for (std::vector<std::int64_t>& other : other_lists(values, now)) add(std::move(other));
    if (!values.word.empty()) add(std::monostate());
  } else if (values.kind == FieldKind::text) {
    add("other");
    add(std::monostate());
  } else if (values.kind == FieldKind::words) {
    ProgramWords longer =
        std::holds_alternative<ProgramWords>(now) ? std::get<ProgramWords>(now) : ProgramWords();
    longer.emplace_back("other");
    add(std::move(longer));
    add(std::monostate());
  } else if (values.kind == FieldKind::kernels) {
    add(std::monostate());
  } else if (values.kind == FieldKind::variables) {
    add(ProgramVariables{{"OTHER", "1"}});
    add(std::monostate());
  } else {
    const auto* whole = std::get_if<std::int64_t>(&now);
    const auto* real = std::get_if<double>(&now);
    const double number = whole ? static_cast<double>(*whole) : real ? *real : 0;
    const bool is_whole = values.kind == FieldKind::integer || values.kind == FieldKind::bytes;
    const double some = number == 0 ? small_amount(values) : number;
    for (const double factor : {number == 0 ? 1.0 : 2.0, 0.5, 16.0, 1.0 / 16}) {
      const double wanted = factor * some;
      const double other = std::clamp(wanted, values.least, values.most);
      if (!is_whole) {
        add(other);
        continue;
      }
      const auto unit = static_cast<double>(values.multiple_of);
      const double whole_units = std::max(std::floor(other / unit), 1.0) * unit;
      if (whole_units <= values.most) add(static_cast<std::int64_t>(whole_units));
    }
    if (values.least == 0 && number != 0)
      add(is_whole ? FieldValue(std::int64_t{0}) : FieldValue(0.0));
    if (!values.word.empty()) add(std::monostate());
  }
  return others;
}

}  // namespace stepgate
