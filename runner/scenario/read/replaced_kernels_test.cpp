// SPDX-License-Identifier: MIT
// Tests that [variant.x.kernels] and --set kernels.NAME name libraries, and that what cannot be
// one is refused with a place and a way out.
#include <gtest/gtest.h>

#include "scenario/knobs/field_documents.h"
#include "scenario/knobs/fingerprint.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

std::string file_with_kernels(const std::string& kernels) {
  return "claim = \"mine is no slower\"\nmodel.kind = \"transformer\"\n[variant.ours]\n"
         "[variant.mine]\n" +
         kernels + "\n[expect]\nsame = \"mine.launches_per_step == ours.launches_per_step\"\n";
}

Scenario read_with(const std::string& kernels, const std::vector<std::string>& overrides = {}) {
  return parse_scenario(file_with_kernels(kernels), "s.toml", no_base, overrides);
}

std::string fault_of_kernels(const std::string& kernels,
                             const std::vector<std::string>& overrides = {}) {
  try {
    (void)read_with(kernels, overrides);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

const ReplacedKernels& of_mine(const Scenario& scenario) {
  return scenario.variants.at(1).knobs.kernels;
}

TEST(ReplacedKernels, AreAPathWithTheKernelsNameAsFunction) {
  const Scenario scenario = read_with("kernels.layer_norm = \"build/libmine.so\"");
  EXPECT_TRUE(scenario.variants.at(0).knobs.kernels.empty());
  EXPECT_EQ(of_mine(scenario),
            (ReplacedKernels{{"layer_norm", {"build/libmine.so", "layer_norm"}}}));
  EXPECT_TRUE(launches_libraries(scenario));
  EXPECT_FALSE(launches_libraries(read_with("")));
}

TEST(ReplacedKernels, MayNameAFunctionBehindAColon) {
  EXPECT_EQ(of_mine(read_with("kernels.layer_norm = \"a:b/libmine.so:fast\"")).at("layer_norm"),
            (KernelReplacement{"a:b/libmine.so", "fast"}));
  EXPECT_EQ(of_mine(read_with("kernels.layer_norm = \"libmine.so:fast\"")).at("layer_norm"),
            (KernelReplacement{"libmine.so", "fast"}));
}

TEST(ReplacedKernels, SayLaunchesWorkspaceAndTimeInATable) {
  const KernelReplacement all{"m.so", "norm", 2, 4 << 20, 8.5};
  EXPECT_EQ(of_mine(read_with("kernels.layer_norm = { library = \"m.so\", function = \"norm\", "
                              "launches = 2, workspace = \"4 MiB\", time_us = 8.5 }"))
                .at("layer_norm"),
            all);
}

TEST(ReplacedKernels, SayWhoLaunchesWhatTheLibraryDoesNotSupport) {
  const auto otherwise = [](const std::string& key) {
    return of_mine(read_with("kernels.layer_norm = { library = \"m.so\"" + key + " }"))
        .at("layer_norm")
        .otherwise;
  };
  EXPECT_EQ(otherwise(""), Otherwise::refuse);
  EXPECT_EQ(otherwise(", otherwise = \"refuse\""), Otherwise::refuse);
  EXPECT_EQ(otherwise(", otherwise = \"ours\", launches = 1, time_us = 8"), Otherwise::ours);
  const Scenario scenario =
      read_with("kernels.layer_norm = { library = \"m.so\", otherwise = \"ours\" }");
  EXPECT_EQ(scenario.overrides.front().value,
            "{ library = \"m.so:layer_norm\", otherwise = \"ours\" }");
}

TEST(ReplacedKernels, OfTheBaseAreOursAgainWhereAVariantSaysSo) {
  const std::string text =
      "claim = \"x\"\nmodel.kind = \"transformer\"\n"
      "[kernels]\nlayer_norm = \"m.so\"\nadd = \"m.so\"\n"
      "[variant.mine]\n[variant.ours]\nkernels.layer_norm = \"ours\"\n"
      "[variant.also]\nlike = \"ours\"\nkernels.gelu = \"m.so\"\n"
      "[expect]\nsame = \"mine.launches_per_step == ours.launches_per_step\"\n";
  const Scenario scenario = parse_scenario(text, "s.toml", no_base, {});
  const auto names = [&](std::size_t variant) {
    std::vector<std::string> all;
    for (const auto& [name, with] : scenario.variants.at(variant).knobs.kernels)
      all.push_back(name);
    return all;
  };
  EXPECT_EQ(names(0), (std::vector<std::string>{"add", "layer_norm"}));
  EXPECT_EQ(names(1), (std::vector<std::string>{"add"}));
  EXPECT_EQ(names(2), (std::vector<std::string>{"add", "gelu"}));
}

TEST(ReplacedKernels, AreSetInEveryVariantOnTheCommandLine) {
  const Scenario scenario =
      read_with("kernels.layer_norm = \"old.so\"", {"kernels.layer_norm=new.so:norm"});
  for (const Variant& variant : scenario.variants)
    EXPECT_EQ(variant.knobs.kernels.at("layer_norm"), (KernelReplacement{"new.so", "norm"}));
}

TEST(ReplacedKernels, ComeFromAnotherLibraryWhereTheCommandLineNamesOne) {
  const Scenario scenario = read_with(
      "kernels.layer_norm = { library = \"old.so:norm\", launches = 2 }", {"kernels=new.so"});
  EXPECT_TRUE(scenario.variants.at(0).knobs.kernels.empty());
  EXPECT_EQ(of_mine(scenario).at("layer_norm"), (KernelReplacement{"new.so", "norm", 2}));
}

TEST(ReplacedKernels, HaveThePlaceOfTheirOwnKeys) {
  const std::string text =
      "claim = \"x\"\n[kernels]\nlayer_norm = \"m.so\"\n[variant.mine]\n"
      "[variant.also.kernels]\nadd = \"m.so\"\n  gelu = \"m.so\"\n"
      "[variant.third]\nlike = \"also\"\nkernels.layer_norm = \"n.so\"\n"
      "[expect]\nsame = \"mine.launches_per_step == also.launches_per_step\"\n";
  const auto places = [&](const std::vector<std::string>& overrides) {
    const Scenario scenario = parse_scenario(text, "s.toml", no_base, overrides);
    std::vector<std::string> all;
    for (const Variant& variant : scenario.variants)
      for (const auto& [name, with] : variant.knobs.kernels)
        all.push_back(to_string({place_of_kernel(variant, name), name, ""}));
    return all;
  };
  EXPECT_EQ(places({}), (std::vector<std::string>{"s.toml:3:1: layer_norm", "s.toml:6:1: add",
                                                  "s.toml:7:3: gelu", "s.toml:3:1: layer_norm",
                                                  "s.toml:6:1: add", "s.toml:7:3: gelu",
                                                  "s.toml:10:9: layer_norm"}));
  const std::string set = "--set kernels.layer_norm=new.so: layer_norm";
  EXPECT_EQ(places({"kernels.layer_norm=new.so"}),
            (std::vector<std::string>{set, "s.toml:6:1: add", "s.toml:7:3: gelu", set,
                                      "s.toml:6:1: add", "s.toml:7:3: gelu", set}));
  EXPECT_EQ(places({"kernels=new.so"}).at(1), "--set kernels=new.so: add");
  EXPECT_EQ(places({"kernels=none"}), std::vector<std::string>());
}

TEST(ReplacedKernels, HaveAFunctionBehindTheLastColonUnlessAKeyNamesIt) {
  const auto read = [](const std::string& value) {
    return of_mine(read_with("kernels.layer_norm = " + value)).at("layer_norm");
  };
  EXPECT_EQ(read("\"b:c/a:b.so:norm\""), (KernelReplacement{"b:c/a:b.so", "norm"}));
  EXPECT_EQ(read("\"b:c/a.so\""), (KernelReplacement{"b:c/a.so", "layer_norm"}));
  EXPECT_EQ(read("{ library = \"a:b.so\", function = \"norm\" }"),
            (KernelReplacement{"a:b.so", "norm"}));
}

TEST(ReplacedKernels, AreOverridesOneByOne) {
  const std::string two = "kernels.layer_norm = \"m.so\"\nkernels.add = \"m.so\"";
  std::vector<std::string> knobs;
  for (const VariantOverride& own : read_with(two).overrides) knobs.push_back(own.knob);
  EXPECT_EQ(knobs, (std::vector<std::string>{"kernels.layer_norm", "kernels.add"}));
  EXPECT_EQ(read_with(two).overrides.front().value, "\"m.so:layer_norm\"");
  const VariantChange without{"mine", "kernels.add", std::nullopt};
  const Scenario scenario = parse_scenario(file_with_kernels(two), "s.toml", no_base, {}, &without);
  EXPECT_EQ(of_mine(scenario).size(), 1U);
  EXPECT_TRUE(of_mine(scenario).contains("layer_norm"));
}

TEST(ReplacedKernels, ChangeTheFingerprintAndTheirPathsDoNot) {
  const auto of = [](const std::string& kernels) { return read_with(kernels).fingerprint; };
  const auto one = of("kernels.layer_norm = \"a.so\"");
  EXPECT_NE(one, of(""));
  EXPECT_EQ(one, of("kernels.layer_norm = \"build/other/b.so\""));
  EXPECT_NE(one, of("kernels.layer_norm = \"a.so:norm\""));
  EXPECT_NE(one, of("kernels.add = \"a.so\""));
  EXPECT_NE(one, of("kernels.layer_norm = { library = \"a.so\", launches = 2 }"));
  EXPECT_NE(one, of("kernels.layer_norm = { library = \"a.so\", workspace = \"1 MiB\" }"));
  EXPECT_EQ(one, of("kernels.layer_norm = { library = \"a.so\", time_us = 3 }"));
  EXPECT_EQ(one, of("kernels.layer_norm = { library = \"a.so\", otherwise = \"refuse\" }"));
  EXPECT_NE(one, of("kernels.layer_norm = { library = \"a.so\", otherwise = \"ours\" }"));
}

struct Refused {
  std::string kernels;
  std::string fact;
  std::string way_out;
};

TEST(ReplacedKernels, RefuseWhatIsNone) {
  const std::vector<Refused> all{
      {"kernels.layernorm = \"m.so\"", "5:9: no kernel is named 'layernorm'",
       "did you mean 'layer_norm'?"},
      {"kernels.layer_norm = 3", "5:22: 'kernels.layer_norm' must be a string or a table",
       "write kernels.layer_norm = \"build/libmine.so\""},
      {"kernels.layer_norm = \"\"", "names no library and function", "write kernels.layer_norm"},
      {"kernels.layer_norm = \"m.so:\"", "'m.so:' names no library and function", "write"},
      {"kernels.layer_norm = { function = \"f\" }", "'kernels.layer_norm' names no library",
       "write"},
      {"kernels.layer_norm = { library = \"m.so\", launch = 2 }",
       "unknown key 'kernels.layer_norm.launch'", "did you mean 'launches'?"},
      {"kernels.layer_norm = { library = \"m.so\", launches = 0 }",
       "'kernels.layer_norm.launches' must be a whole number from 1 to 1000", "how many kernels"},
      {"kernels.layer_norm = { library = \"m.so\", workspace = 4 }",
       "'kernels.layer_norm.workspace' must be a size as a string", "write workspace = \"4 MiB\""},
      {"kernels.layer_norm = { library = \"m.so\", time_us = -1 }",
       "'kernels.layer_norm.time_us' must be a number above 0", "microseconds"},
      {"kernels.layer_norm = { library = \"m.so\", otherwise = \"our\" }",
       "5:54: 'kernels.layer_norm.otherwise' must be \"refuse\" or \"ours\"",
       "did you mean 'ours'?"},
      {"kernels.layer_norm = { library = \"m.so\", otherwise = 1 }",
       "'kernels.layer_norm.otherwise' must be \"refuse\" or \"ours\", but is a whole number",
       "say who launches what the library does not support"},
      {"kernels.layer_norm = { library = \"m.so\", otherwise = \"ours\", launches = 2 }",
       "5:54: 'kernels.layer_norm.otherwise' cannot be \"ours\": a call of the library launches 2 "
       "kernels, and stepgate's own one",
       "leave it out"},
      {"kernels.layer_norm = { library = \"m.so\", otherwise = \"ours\", workspace = \"1 MiB\" }",
       "stepgate's own kernel does not use the workspace", "leave it out"},
      {"kernels.matmul = { library = \"m.so\", otherwise = \"ours\" }",
       "stepgate's own matmul is a library's, with workspace of its own", "leave it out"},
      {"kernels.layer_norm = { library = \"m.so\", otherwis = \"ours\" }",
       "unknown key 'kernels.layer_norm.otherwis'", "did you mean 'otherwise'?"},
      {"kernels = \"m.so\"", "'kernels' must be a table", "write [kernels]"}};
  for (const Refused& one : all) {
    const std::string words = fault_of_kernels(one.kernels);
    EXPECT_NE(words.find(one.fact), std::string::npos) << one.kernels << '\n' << words;
    EXPECT_NE(words.find(one.way_out), std::string::npos) << one.kernels << '\n' << words;
  }
  EXPECT_NE(fault_of_kernels("", {"kernels.layernorm=m.so"}).find("did you mean 'layer_norm'?"),
            std::string::npos);
  EXPECT_NE(
      fault_of_kernels("", {"kernels=m.so"}).find("no variant launches a kernel of a library"),
      std::string::npos);
}

TEST(ReplacedKernels, AreInTheSchemaByName) {
  const std::string schema = fields_json_schema();
  EXPECT_NE(schema.find("\"layer_norm\""), std::string::npos);
  EXPECT_NE(schema.find("\"otherwise\""), std::string::npos);
}

}  // namespace
}  // namespace stepgate
