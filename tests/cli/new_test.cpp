// SPDX-License-Identifier: MIT
// Tests what `stepgate new` writes; tests/scripts/cli/new.txt tests what it refuses. Every scenario
// of scenarios/start is strict, passes on the simulated device, is short, and covers all five parts
// of a step.
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

const std::filesystem::path scenarios = STEPGATE_SOURCE_DIR "/scenarios";

// Lists the starters by their files; the first tests check that the program has the same ones.
std::vector<std::string> words() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(scenarios / "start"))
    found.push_back(entry.path().stem().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::string starter(const std::string& word) {
  return text_of(scenarios / "start" / (word + ".toml"));
}

using New = CommandLine;

TEST_F(New, WritesEveryStarterByteForByteAndSaysWhatToDoNext) {
  for (const std::string& word : words()) {
    const std::string file = "steps/" + word + ".toml";
    const Finished written = stepgate({"new", "--like", word, file});
    EXPECT_EQ(written.exit_code, 0) << written.err;
    const std::string schema = "steps/scenario.schema.json";
    EXPECT_EQ(written.out,
              (word == words().front() ? schema + ": editors complete and check scenarios with it\n"
                                       : std::string()) +
                  file +
                  ": change what its comments speak of, then `stepgate check "
                  "--strict " +
                  file + "` and `stepgate run " + file + "`\n");
    EXPECT_EQ(text_of(place() / file), "#:schema scenario.schema.json\n" + starter(word));
    EXPECT_EQ(text_of(place() / schema), text_of(scenarios / "scenario.schema.json"));
    const Finished shown = stepgate({"new", "--like", word, "-"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(shown.out, starter(word));
  }
}

// The suggested commands can be pasted into a shell and run nothing else.
TEST_F(New, SaysCommandsThatAShellRunsWhateverTheNameIs) {
  const std::string path = std::filesystem::path(STEPGATE_PROGRAM).parent_path().string();
  const EnvironmentVariable found("PATH", path + ":/usr/bin:/bin");
  for (const std::string name :
       {"my step.toml", "it's.toml", "$(touch run).toml", "`touch run`.toml", "a;touch run;.toml",
        "-v.toml", "~a.toml", "*.toml", "a\\b\"c.toml", "\xc3\xbc.toml"}) {
    const Finished written = stepgate({"new", "--like", "sync", "--", name});
    ASSERT_EQ(written.exit_code, 0) << name << ": " << written.err;
    const std::string first = "then `", second = "` and `";
    const std::size_t begin = written.out.find(first) + first.size();
    const std::size_t middle = written.out.rfind(second);
    const std::string check = written.out.substr(begin, middle - begin);
    const std::string run = written.out.substr(middle + second.size());
    EXPECT_TRUE(run.starts_with("stepgate run ") && run.ends_with("`\n")) << written.out;
    const Finished checked = ChildProcess("/bin/sh", {"-c", check}, place()).wait();
    EXPECT_EQ(checked.exit_code, 0) << check << ": " << checked.err;
    EXPECT_TRUE(contains(checked.out, ": 2 variants, ")) << checked.out;
    EXPECT_FALSE(exists("run")) << check;
  }
}

// Lines of a check that begin with "note:" say how far a limit is.
std::string without_notes(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("note: ", 0) != 0) kept += line + '\n';
  }
  return kept;
}

class Starters : public CommandLine {
 protected:
  Finished strictly(const std::string& text) const {
    write("a.toml", text);
    return stepgate(
        {"--baselines", STEPGATE_SOURCE_DIR "/baselines", "check", "--strict", "a.toml"});
  }
};

TEST_F(Starters, AreStrict) {
  for (const std::string& word : words()) {
    const Finished checked = strictly(starter(word));
    EXPECT_EQ(checked.exit_code, 0) << word << ": " << checked.err;
    EXPECT_EQ(checked.out.find('\n') + 1, without_notes(checked.out).size())
        << word << ": " << checked.out;
  }
}

TEST_F(Starters, WouldBeRefusedWithAnAssertionThatCannotFailOrAnOverrideForNothing) {
  for (const std::string& word : words()) {
    const std::string text = starter(word);
    const Finished vacuous = strictly(text + "nothing = \"fix.launches_per_step <= 1000000\"\n");
    EXPECT_EQ(vacuous.exit_code, 2) << word;
    EXPECT_TRUE(contains(vacuous.err, "'nothing' cannot fail")) << word << ": " << vacuous.err;
    const std::string fix = "[variant.fix]";
    std::string idle = text;
    idle.replace(idle.find(fix), fix.size(), fix + "\nmemory.zero_grad = \"memset\" #");
    const Finished unneeded = strictly(idle);
    EXPECT_EQ(unneeded.exit_code, 2) << word;
    EXPECT_TRUE(contains(unneeded.err, "'memory.zero_grad' of variant 'fix' could be removed"))
        << word << ": " << unneeded.err;
  }
}

// No starter is skipped, since each is far within its regime.
TEST_F(Starters, HoldOnTheSimulatedDevice) {
  for (const std::string& word : words()) {
    const std::string file = (scenarios / "start" / (word + ".toml")).string();
    for (const char* seed : {"1", "2", "3"}) {
      const Finished run = stepgate({"--baselines", STEPGATE_SOURCE_DIR "/baselines", "run", file,
                                     "--device", "simulated", "--seed", seed});
      EXPECT_EQ(run.exit_code, 0) << word << ": " << run.out << run.err;
      EXPECT_TRUE(contains(run.out, "SIMULATED 1 scenario, 1 passes\n")) << run.out;
    }
  }
}

// On a GPU with a guessed profile it may be skipped, with its regime as the reason.
TEST_F(Starters, FailOnNoGuessedGpu) {
  for (const std::string& word : words()) {
    const std::string file = (scenarios / "start" / (word + ".toml")).string();
    for (const char* gpu : {"a100", "l4", "rtx4090", "rtx5060"}) {
      const Finished run =
          stepgate({"--baselines", STEPGATE_SOURCE_DIR "/tests/profiles", "run", file, "--device",
                    std::string("simulated:") + gpu, "--seed", "1"});
      EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 77) << word << ": " << run.out << run.err;
    }
  }
}

// The starters state how much, why and when in few lines, and refer to no file of another folder.
TEST_F(Starters, AreWholeAndShortAndSayEachOfTheFiveThings) {
  for (const std::string& word : words()) {
    const std::string text = starter(word);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    EXPECT_GE(lines, 25) << word;
    EXPECT_LE(lines, 45) << word;
    for (const std::string& thing : words())
      EXPECT_TRUE(contains(text, "\n[" + thing + "]\n") || contains(text, "\n" + thing + "."))
          << word << " does not say " << thing;
    for (const char* part : {"\n[variant.baseline]", "\n[variant.fix]", "\n[regime]", "\n[expect]",
                             ".samples_per_s >= "})
      EXPECT_TRUE(contains(text, part)) << word << " has no " << part;
    EXPECT_FALSE(contains(text, "extends")) << word;
    EXPECT_TRUE(contains(text, "`stepgate fields " + word + "`")) << word;
    EXPECT_EQ(stepgate({"fields", word}).exit_code, 0);
  }
}

}  // namespace
}  // namespace stepgate
