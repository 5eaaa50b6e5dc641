// SPDX-License-Identifier: MIT
// Tests `stepgate run --ledger` from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

class LedgerOption : public CommandLine {
 protected:
  static std::vector<std::string> words(std::vector<std::string> more,
                                        const std::string& ledger = "l") {
    more.insert(more.begin(), {"--baselines", STEPGATE_SOURCE_DIR "/tests/baselines", "run"});
    more.insert(more.end(), {"--device", "simulated:round-numbers", "-v", "--ledger", ledger});
    return more;
  }
  Finished run(const std::vector<std::string>& more) const { return stepgate(words(more)); }

  // The file of a scenario in the ledger.
  static std::string file_of(const std::string& scenario) {
    return "l/simulated/gpu-of-round-numbers/" + scenario + ".toml";
  }
  // Returns the whole content of the ledger.
  std::string content() const {
    std::ostringstream text;
    std::error_code none;
    for (const auto& file : std::filesystem::recursive_directory_iterator(place() / "l", none)) {
      if (file.path().extension() == ".toml") text << std::ifstream(file.path()).rdbuf();
    }
    return text.str();
  }
  // Also ends after a timeout; the following checks then fail.
  static void wait_until(const std::function<bool()>& is_true) {
    for (int tries = 0; tries < 1000 && !is_true(); ++tries) std::this_thread::sleep_for(20ms);
  }
  int count(const std::string& what) const {
    const std::string text = content();
    int found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }
};

TEST_F(LedgerOption, MakesAFailedScenarioStayFailed) {
  write("failed.toml", fails);
  const Finished first = run({"failed.toml"});
  EXPECT_EQ(first.exit_code, 1) << first.err;
  EXPECT_FALSE(contains(first.out, "earlier")) << first.out;
  const std::string before = content();
  for (int again = 0; again < 3; ++again) {
    const Finished run_again = run({"failed.toml"});
    EXPECT_EQ(run_again.exit_code, 1);
    EXPECT_TRUE(contains(run_again.out,
                         "failed: fails by 7 rounds of 1 earlier run, which "
                         "stays; nothing was measured\n"))
        << run_again.out;
  }
  EXPECT_EQ(content(), before);
}

// The rounds are stored with their total times.
TEST_F(LedgerOption, KeepsWhatHeldBefore) {
  write("holding.toml", holding);
  ASSERT_EQ(run({"holding.toml"}).exit_code, 0);
  const Finished again = run({"holding.toml", "--json", "report.json"});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_TRUE(contains(again.out,
                       "holding: passes by 5 rounds of 1 earlier run, which stays; nothing was "
                       "measured\n"))
      << again.out;
  EXPECT_EQ(count("[[run]]"), 1);
}

TEST_F(LedgerOption, ContinuesWhatIsUndecided) {
  write("undecided.toml", undecided);
  ASSERT_EQ(run({"undecided.toml", "--seed", "1"}).exit_code, 77);
  const Finished second = run({"undecided.toml", "--seed", "2", "--json", "report.json"});
  EXPECT_TRUE(contains(second.out, ", continues 12 rounds of 1 earlier run; ")) << second.out;
  EXPECT_TRUE(contains(second.out, " over 24 rounds; ")) << second.out;
  EXPECT_EQ(count("\n[[run]]\n"), 2);
  EXPECT_EQ(count("\nafter = "), 1);
  std::ifstream file(place() / "report.json");
  const auto report = nlohmann::json::parse(file);
  EXPECT_EQ(report["earlier"]["runs"], 1);
  EXPECT_EQ(report["earlier"]["rounds"], 12);
  EXPECT_EQ(report["expect"][0]["timed"]["earlier_rounds"], 12);
  EXPECT_EQ(report["expect"][0]["timed"]["contrasts"].size(), 24U);
}

TEST_F(LedgerOption, StartsAnewForAnotherSubjectOrScenario) {
  write("undecided.toml", undecided);
  ASSERT_EQ(run({"undecided.toml", "--subject", "0123abc", "--seed", "1"}).exit_code, 77);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"undecided.toml", "--subject", "4567def", "--seed", "1"},
        {"undecided.toml", "--subject", "0123abc", "--seed", "1", "--set", "model.kernels=11"},
        {"undecided.toml", "--seed", "1"}}) {
    const Finished anew = run(other);
    EXPECT_EQ(anew.exit_code, 77) << anew.err;
    EXPECT_FALSE(contains(anew.out, "earlier")) << anew.out;
  }
  EXPECT_EQ(count("\n[[run]]\n"), 4);
  EXPECT_EQ(count("\nafter = "), 0);
  EXPECT_EQ(count("\nsubject = \"0123abc\"\n"), 2);
  EXPECT_EQ(count("\nsubject = \"build 0x"), 1);
}

TEST_F(LedgerOption, RefusesTheSameSeedTwiceBeforeItMeasures) {
  write("undecided.toml", undecided);
  ASSERT_EQ(run({"undecided.toml", "--seed", "1"}).exit_code, 77);
  const std::string before = content();
  const Finished twice = run({"undecided.toml", "--seed", "1"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_EQ(twice.out, "");
  EXPECT_EQ(twice.err,
            "l/simulated/gpu-of-round-numbers/undecided.toml: a run of 'undecided' with seed "
            "0x0000000000000001 is in it already; leave out "
            "--seed: the same orders and contents twice are not new evidence\n");
  EXPECT_EQ(content(), before);
}

TEST_F(LedgerOption, RefusesWhatMakesNoSense) {
  write("undecided.toml", undecided);
  EXPECT_EQ(stepgate({"run", "undecided.toml", "--subject", "0123abc"}).exit_code, 2);
  EXPECT_EQ(run({"undecided.toml", "undecided.toml"}).err,
            "scenario 'undecided' is named twice; with --ledger, name it once\n");
  EXPECT_EQ(run({"undecided.toml", "--subject", "caf\xc3\xa9"}).exit_code, 2);
  EXPECT_EQ(run({"undecided.toml", "--json", "l/r.json"}).err,
            "--ledger and --json name the same file, l; give each a file of its own\n");
  EXPECT_EQ(content(), "");
}

// Only `accept` writes stored runs, whichever name leads to their folder.
TEST_F(LedgerOption, RefusesToLieAmongStoredRuns) {
  write("undecided.toml", undecided);
  write("b/simulated/gpu-of-round-numbers/x", "");
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers",
                        place() / "b/round-numbers");
  std::filesystem::create_directories(place() / "l");
  std::filesystem::create_symlink("../b/simulated", place() / "l/simulated");
  for (const char* ledger : {"b", "b/mine", "l"}) {
    const Finished refused = stepgate({"--baselines", "b", "run", "undecided.toml", "--device",
                                       "simulated:round-numbers", "--ledger", ledger});
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_TRUE(contains(refused.err, " lies among the stored runs in b, which only `accept`"))
        << refused.err;
  }
  EXPECT_FALSE(exists("b/simulated/gpu-of-round-numbers/undecided.toml"));
  // Without an option that names it, a folder of stored runs is recognised by its content.
  std::filesystem::create_directories(place() / "c/gpu");
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/golden/baseline.toml",
                        place() / "c/gpu/small.toml");
  for (const char* ledger : {"c", "c/gpu"}) {
    const Finished refused = stepgate(words({"undecided.toml"}, ledger));
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_EQ(refused.err, "--ledger " + std::string(ledger) +
                               " has stored runs in c/gpu/small.toml, which only `accept` "
                               "writes; name another folder\n");
  }
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/golden/ledger.toml",
                        place() / "c/gpu/small.toml",
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(stepgate(words({"undecided.toml", "--seed", "1"}, "c")).exit_code, 77);
}

TEST_F(LedgerOption, SaysWhatIsInThePlaceOfItsFolder) {
  write("undecided.toml", undecided);
  write("file", "");
  std::filesystem::create_symlink("nowhere", place() / "link");
  write("l/simulated", "");
  const std::string out =
      ", and a ledger is a folder of folders; name another folder, or move "
      "that away\n";
  EXPECT_EQ(stepgate(words({"undecided.toml"}, "file")).err, "--ledger file: is a file" + out);
  EXPECT_EQ(stepgate(words({"undecided.toml"}, "link")).err,
            "--ledger link: is a link to nowhere, which is not there" + out);
  EXPECT_EQ(run({"undecided.toml"}).err, "--ledger l: l/simulated is a file" + out);
  EXPECT_EQ(stepgate({"history", "undecided.toml", "--ledger", "nope"}).err,
            "there is no folder of a ledger 'nope'; name one: --ledger DIR, where `stepgate run "
            "--ledger` keeps runs\n");
}

// A scenario without stored comparisons has no anchors, but its times are stored too.
TEST_F(LedgerOption, ShowsTheStepTimesOfEveryTimedScenario) {
  write("failed.toml", fails);
  const auto history = [&] {
    return stepgate({"history", "failed.toml", "--ledger", "l", "--json", "h.json"});
  };
  for (const char* subject : {"a", "b"})
    ASSERT_EQ(run({"failed.toml", "--subject", subject}).exit_code, 1);
  EXPECT_EQ(count("\n[run.step_us]\n"), 2);
  EXPECT_TRUE(
      contains(history().out, "failed/fix on a simulated GPU of round numbers: 2 runs since "))
      << history().out << history().err;
  std::ifstream file(place() / "h.json");
  std::string line;
  std::getline(file, line);
  EXPECT_NEAR(std::exp(nlohmann::json::parse(line)["runs"][0]["raw"].get<double>()), 0.00025,
              0.0002);
}

TEST_F(LedgerOption, NeitherReadsNorOverwritesADamagedFile) {
  write("undecided.toml", undecided);
  ASSERT_EQ(run({"undecided.toml", "--seed", "1"}).exit_code, 77);
  const std::string good = content();
  for (const std::string& damaged :
       {good.substr(0, good.size() / 2), std::string(), "\xff" + good, undecided}) {
    write(file_of("undecided"), damaged);
    const Finished refused = run({"undecided.toml"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err.find(file_of("undecided") + ":"), 0U) << refused.err;
    EXPECT_EQ(content(), damaged);
  }
}

TEST_F(LedgerOption, LosesNoRunWhenManyRunAtOnce) {
  constexpr int processes = 8;
  write("undecided.toml", undecided);
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int child = 0; child < processes; ++child) {
    const std::filesystem::path folder = place() / std::to_string(child);
    std::filesystem::create_directories(folder);
    children.push_back(std::make_unique<ChildProcess>(
        STEPGATE_PROGRAM, words({"../undecided.toml", "--undecided", "pass"}, "../l"), folder));
  }
  std::vector<std::string> measured;
  for (const auto& child : children) {
    const Finished finished = child->wait();
    EXPECT_NE(finished.exit_code, 2) << finished.err;
    if (!contains(finished.out, "nothing was measured")) measured.push_back(finished.out);
  }
  // The runs took turns: each continued from one more earlier run.
  for (std::size_t before = 1; before < measured.size(); ++before) {
    const std::string words = " of " + std::to_string(before) + " earlier run";
    EXPECT_EQ(std::count_if(measured.begin(), measured.end(),
                            [&](const std::string& out) { return contains(out, words); }),
              1)
        << words;
  }
  EXPECT_EQ(count("\n[[run]]\n"), std::ssize(measured));
  EXPECT_EQ(count("\nafter = "), std::ssize(measured) - 1);
}

// Ending a run with any signal does not remove its bad rounds from the ledger.
TEST_F(LedgerOption, KeepsTheRoundsOfARunThatIsEnded) {
  write("endless.toml", endless);
  int runs = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    // Uses a seed, since a tie may be decided by chance before the signal arrives.
    ChildProcess child(STEPGATE_PROGRAM,
                       words({"endless.toml", "--seed", std::to_string(runs + 1)}), place());
    wait_until([&] { return count("[run.expect]\n") > runs; });
    child.send(signal);
    const Finished finished = child.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal) << finished.out;
    EXPECT_EQ(count("[[run]]"), ++runs);
  }
  EXPECT_EQ(count("\nafter = "), runs - 1);
  const Finished next = run({"endless.toml", "--seed", "4", "--set", "measure.max_seconds=0.5"});
  EXPECT_TRUE(contains(next.out, "of 3 earlier runs")) << next.out;
}

// A run without results is recorded too.
TEST_F(LedgerOption, HasARunBeforeItsFirstRound) {
  write("endless.toml", endless);
  ChildProcess child(STEPGATE_PROGRAM,
                     words({"endless.toml", "--seed", "1", "--set", "measure.warmup=1000000"}),
                     place());
  wait_until([&] { return count("[[run]]") == 1; });
  child.send(SIGKILL);
  (void)child.wait();
  EXPECT_EQ(count("[[run]]"), 1);
  EXPECT_EQ(count("\"line\""), 0);
  EXPECT_TRUE(contains(run({"endless.toml", "--seed", "1", "--set", "measure.max_seconds=1"}).err,
                       "is in it already"));
  const Finished next = run({"endless.toml", "--seed", "2", "--set", "measure.max_seconds=2"});
  EXPECT_TRUE(contains(next.out, ", after 1 earlier run that left no round to continue; "))
      << next.out;
}

TEST_F(LedgerOption, GoesOnWhateverEndsTheMeasuringOrIsPrinted) {
  write("undecided.toml", undecided);
  // Uses a seed, since a tie may be decided by chance in any run.
  ASSERT_EQ(run({"undecided.toml", "--seed", "1"}).exit_code, 77);
  int runs = 1;
  for (const char* knob : {"measure.rounds=11", "measure.max_seconds=29", "measure.warmup=7",
                           "measure.confidence=0.94"}) {
    const Finished next =
        run({"undecided.toml", "--set", knob, "--seed", std::to_string(runs + 1)});
    if (contains(next.out, "nothing was measured")) break;  // a tie is decided at last
    EXPECT_EQ(count("[[run]]"), ++runs) << knob;
  }
  EXPECT_EQ(count("\nafter = "), runs - 1) << content();
  EXPECT_GE(runs, 2);
}

// Any change that makes it another pair starts without evidence, and the report says so.
TEST_F(LedgerOption, NamesWhatElseTheFileKnowsOfTheScenario) {
  write("failed.toml", fails);
  ASSERT_EQ(run({"failed.toml", "--subject", "a"}).exit_code, 1);
  const std::string known = "note: starts from nothing, but " + file_of("failed") +
                            " has other runs of this scenario on this device: 'a' (7 rounds";
  write("renamed.toml", fails);
  write("other.toml", undecided);
  struct Way {
    std::vector<std::string> words;
    std::string told;
  };
  for (const Way& way :
       {Way{{"failed.toml", "--subject", "b"}, known + ", failed)\n"},
        Way{{"renamed.toml", "--subject", "a"},
            ": 'b' (7 rounds, failed), 'a' (7 rounds, failed)\n"},
        Way{{"failed.toml", "--subject", "a", "--set", "measure.steps=49"}, ", of another text)"},
        Way{{"failed.toml", "--subject", "a", "--set", "model.kernel_us=21"},
            "'a' (7 rounds, of another text), 'b' (7 rounds, of another text), "}}) {
    const Finished other = run(way.words);
    EXPECT_TRUE(contains(other.out, way.told)) << other.out;
  }
  EXPECT_FALSE(contains(run({"other.toml"}).out, "starts from nothing"));
}

// A user who changes a name, a side or a number wants to see the effect in a passing run too.
TEST_F(LedgerOption, NamesWhatElseTheFileKnowsWhereEverythingPasses) {
  write("tied.toml", undecided);
  ASSERT_EQ(run({"tied.toml", "--seed", "1"}).exit_code, 77);
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::string looser = two_variants("fix.samples_per_s >= 0.5 * baseline.samples_per_s");
  struct Way {
    const char* file;
    std::string text;
    std::vector<std::string> words;
  };
  for (const Way& way :
       {Way{"tied.toml", looser, {}}, Way{"tied.toml", replaced(looser, "line =", "renamed ="), {}},
        Way{"tied.toml", two_variants("0.5 * baseline.samples_per_s <= fix.samples_per_s"), {}},
        Way{"tied.toml", looser, {"--set", "measure.steps=51"}},
        Way{"tied.toml", looser, {"--subject", "another"}}}) {
    write(way.file, way.text);
    std::vector<std::string> words{way.file, "--seed", "2"};
    words.insert(words.end(), way.words.begin(), way.words.end());
    const Finished other = run(words);
    EXPECT_EQ(other.exit_code, 0) << other.out;
    EXPECT_TRUE(contains(other.out, "note: starts from nothing, but l/")) << other.out;
  }
}

TEST_F(LedgerOption, HasNothingToKeepWhereNoAssertionIsTimed) {
  write("counted.toml", two_variants("fix.launches_per_step <= baseline.launches_per_step"));
  EXPECT_EQ(run({"counted.toml"}).exit_code, 0);
  EXPECT_EQ(run({"counted.toml"}).exit_code, 0);
  EXPECT_FALSE(exists("l"));
}

}  // namespace
}  // namespace stepgate
