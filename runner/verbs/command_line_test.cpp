// SPDX-License-Identifier: MIT
#include "verbs/command_line.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "verbs/arguments.h"

namespace stepgate {
namespace {

// Options that have no default, and what their absence means instead.
const std::map<std::string, std::string> without_default{
    {"--match", "all scenarios"},
    {"--tag", "all scenarios"},
    {"--exclude-tag", "all scenarios"},
    {"--workload", "all workloads"},
    {"--variant", "all variants"},
    {"filter", "all knobs"},
    {"file", "the list of starters"},
    {"--like", "the list of starters"},
    {"--set", "scenarios as they are"},
    {"--reset", "runs are compared with earlier ones"},
    {"--ledger", "every run begins anew"},
    {"--pass-env", "no more variables"},
    {"--base-env", "no more variables"},
    {"--head-env", "no more variables"},
    {"--env", "no more variables"},
    {"--expect", "nothing is asserted"},
    {"--against", "nothing is asserted"},
    {"--accepted", "nothing is accepted"},
    {"--base", "nothing to compare with"},
    {"--head", "nothing to compare with"},
    {"--base-command", "--base"},
    {"--head-command", "--head"},
    {"--base-kernels", "libraries as scenarios name them"},
    {"--head-kernels", "libraries as scenarios name them"},
    {"--head-files", "the files of BASE"},
    {"--program", "scenarios of composed steps"},
    {"--cwd", "the folder of the caller"},
    {"--step-kernel", "steps have another mark"},
    {"--step-call", "steps have another mark"},
    {"--json", "nothing is written"},
    {"--junit", "nothing is written"},
    {"--summary", "nothing is written"},
    {"--report", "nothing is written"},
    {"--trace", "nothing is written"},
    {"--picture", "nothing is written"},
    {"--plot", "nothing is written"},
    {"--accept", "nothing is written"},
    {"--as-scenario", "nothing is written"},
    {"--measure", "nothing is measured"},
};

std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name(true) : "--" + option.get_lnames().front();
}

bool says_what_is_otherwise(const CLI::Option& option) {
  const std::string& words = option.get_description();
  return words.find("[default: ") != std::string::npos ||
         words.find("left out") != std::string::npos;
}

// Options that take a value, and do not say what holds without one. Erases those that need not from
// `unseen`.
std::vector<std::string> silent_options(const CLI::App& app, std::set<std::string>& unseen) {
  std::vector<std::string> silent;
  const auto look_at = [&](const CLI::App& verb) {
    for (const CLI::Option* option : verb.get_options()) {
      if (option->get_group().empty() || option->get_required() ||
          option->get_items_expected_max() == 0 || says_what_is_otherwise(*option))
        continue;
      unseen.erase(name_of(*option));
      if (!without_default.contains(name_of(*option)))
        silent.push_back(verb.get_name() + " " + name_of(*option));
    }
  };
  look_at(app);
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    look_at(*verb);
  return silent;
}

struct Declared {
  CLI::App app;
  Arguments arguments;
  Verb chosen = nullptr;

  Declared() { declare_verbs(app, arguments, chosen); }
};

TEST(CommandLine, SaysTheDefaultOfEveryOption) {
  const Declared declared;
  std::set<std::string> unseen;
  for (const auto& [name, otherwise] : without_default) unseen.insert(name);
  EXPECT_EQ(silent_options(declared.app, unseen), std::vector<std::string>{});
  EXPECT_EQ(unseen, std::set<std::string>{}) << "the list names options that there are not";
}

TEST(CommandLine, AnOptionThatDoesNotSayItsDefaultIsFound) {
  Declared declared;
  int planted = 3;
  declared.app.get_subcommand("gate")->add_option("--planted", planted, "so many of them");
  std::set<std::string> unseen;
  EXPECT_EQ(silent_options(declared.app, unseen), std::vector<std::string>{"gate --planted"});
}

TEST(CommandLine, SaysWhatAMistypedVerbMayMean) {
  const Declared declared;
  const auto said = [&](std::vector<std::string_view> typed) {
    return suggestion_for(declared.app, typed);
  };
  EXPECT_EQ(said({"rn", "a.toml"}), "did you mean 'run'?");
  EXPECT_EQ(said({"a.toml"}), "say what to do with it: stepgate run a.toml");
  EXPECT_EQ(said({"memory", "a.toml"}), "'memory' is no verb; `stepgate --help` lists them");
  EXPECT_EQ(said({"run", "a.toml"}), "");
}

// The program's own checks refuse a default that the help makes up.
TEST(CommandLine, TakesEveryDefaultThatIsOneWord) {
  int tried = 0;
  const Declared listed;
  for (const CLI::App* verb : listed.app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : verb->get_options()) {
      const std::string& words = option->get_description();
      const std::size_t begin = words.find("[default: ");
      if (begin == std::string::npos || option->get_lnames().empty()) continue;
      const std::string value = words.substr(begin + 10, words.find(']', begin) - begin - 10);
      if (value.find(' ') != std::string::npos) continue;
      std::vector<std::string> typed{value, name_of(*option)};
      for (const CLI::Option* needed : option->get_needs()) typed.push_back(name_of(*needed));
      if (verb->get_name() == "attach" || verb->get_name() == "read")
        typed.insert(typed.begin(), "x");
      typed.push_back(verb->get_name());
      Declared declared;
      EXPECT_NO_THROW(declared.app.parse(typed)) << verb->get_name() << ' ' << name_of(*option);
      ++tried;
    }
  }
  EXPECT_GT(tried, 15);
}

}  // namespace
}  // namespace stepgate
