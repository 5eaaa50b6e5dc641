// SPDX-License-Identifier: MIT
// `stepgate certify` from outside: what it writes, what it refuses, and what a later run says of
// it.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/cli/command_line.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

const std::string equal =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 10 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 0.9 * baseline.samples_per_s\"\n";

// So much to compute that a gate of it takes a few seconds.
const std::string large =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 10000 }\nmeasure = { steps = 1000 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 0.9 * baseline.samples_per_s\"\n";

// Processes of identical code, and of everything else.
struct Size {
  int gates = 20;
  int trial_gates = 2;
};

class CertifyVerb : public CommandLine {
 protected:
  CertifyVerb() {
    std::filesystem::create_directories(place() / "b");
    std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers",
                          place() / "b/round-numbers", std::filesystem::copy_options::recursive);
    std::string profile = content("b/round-numbers/device.toml");
    const std::string key = "between_processes = ";
    profile.replace(profile.find(key), key.size() + 1, key + "0.003");
    write("b/moody/device.toml", profile);
    write("small.toml", equal);
    write("large.toml", large);
  }

  static std::vector<std::string> certifying(const std::string& file, const std::string& profile,
                                             Size size) {
    return {"--baselines",   "b",
            "certify",       file,
            "--device",      "simulated:" + profile,
            "--seed",        "1",
            "--gates",       std::to_string(size.gates),
            "--trial-gates", std::to_string(size.trial_gates)};
  }
  static std::vector<std::string> certifying_large() {
    return certifying("large.toml", "round-numbers", {});
  }
  Finished verb(const std::string& name, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"--baselines", "b", name});
    words.insert(words.end(), {"--device", "simulated:round-numbers", "--seed", "1"});
    if (name == "certify") words.insert(words.end(), {"--gates", "20", "--trial-gates", "3"});
    if (name == "run") words.emplace_back("-v");
    return stepgate(words);
  }
  // "moody" is a machine whose processes differ by a planted 0.3 % a step, "round-numbers" is the
  // same without.
  Finished certify(const std::string& profile, const std::vector<std::string>& more,
                   Size size = {}) const {
    std::vector<std::string> words = certifying("small.toml", profile, size);
    words.insert(words.end(), more.begin(), more.end());
    return stepgate(words);
  }

  // Gates of the test that is running: nobody else works in its folder.
  std::vector<int> gates_running() const {
    std::vector<int> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::error_code gone;
      if (std::filesystem::read_symlink(entry.path() / "cwd", gone) != place()) continue;
      std::ostringstream command;
      command << std::ifstream(entry.path() / "cmdline").rdbuf();
      const std::string words = command.str();
      if (words.find(std::string("\0trial-gate\0", 12)) != std::string::npos)
        found.push_back(std::stoi(name));
    }
    return found;
  }
  bool a_gate_runs() const {
    for (int look = 0; look < 1000; ++look) {
      if (!gates_running().empty()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  const std::string certificate = "b/simulated/gpu-of-round-numbers/certificates/small.fix.toml";

  std::string content(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(place() / file).rdbuf();
    return text.str();
  }
};

TEST_F(CertifyVerb, WritesAFileThatLaterRunsName) {
  const Finished before = verb("run", {"small.toml"});
  EXPECT_FALSE(contains(before.out, "certified")) << before.out;
  const Finished certified = verb("certify", {"small.toml", "--date", "2026-11-21"});
  EXPECT_EQ(certified.exit_code, 0) << certified.out << certified.err;
  EXPECT_TRUE(contains(certified.out, "\nwritten to " + certificate + "\n")) << certified.out;
  const Finished run = verb("run", {"small.toml", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(
      contains(run.out,
               "\ngate: certified 2026-11-21 with variant 'fix': identical code refuted in 0 of "
               "20 processes (a rate below 14 % with 95 % confidence), 1 % slower (seen "))
      << run.out;
  EXPECT_TRUE(contains(run.out, "(" + certificate + ")\n")) << run.out;
  std::ifstream file(place() / "report.json");
  const auto cited = nlohmann::json::parse(file)["certificates"];
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0]["file"], certificate);
  EXPECT_EQ(cited[0]["variant"], "fix");
  EXPECT_TRUE(cited[0]["reason_against"].is_null());
  EXPECT_EQ(cited[0]["processes"], 20);
  EXPECT_EQ(cited[0]["wrongly_refuted"], 0);
  EXPECT_EQ(cited[0]["granted"], true);
}

// The same gates, each carried out by two processes that it starts.
TEST_F(CertifyVerb, StartsTheRanksOfEveryGate) {
  write("two.toml",
        "claim = \"a variant is as fast as itself\"\n"
        "model = { kind = \"mlp\", layers = 2, hidden = 64 }\nranks.count = 2\n"
        "[variant.baseline]\n[variant.fix]\n"
        "[expect]\nline = \"fix.samples_per_s >= 0.9 * baseline.samples_per_s\"\n");
  const auto certified = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words =
        certifying("two.toml", "round-numbers", {.gates = 20, .trial_gates = 1});
    words.insert(words.end(), {"--date", "2026-11-21", "--out", "two.certificate"});
    words.insert(words.end(), more.begin(), more.end());
    std::filesystem::remove(place() / "two.certificate");
    return stepgate(words);
  };
  const Finished alone = certified({});
  EXPECT_EQ(alone.exit_code, 0) << alone.out << alone.err;
  const std::string expected = content("two.certificate");
  const Finished ranks = certified({"--ranks", "2"});
  EXPECT_EQ(ranks.exit_code, 0) << ranks.out << ranks.err;
  EXPECT_EQ(content("two.certificate"), expected);
  const Finished died = certified({"--ranks", "2", "--rank-fault", "1:run:KILL"});
  EXPECT_EQ(died.exit_code, 3) << died.out;
  EXPECT_TRUE(contains(died.err, "rank 1 (process ")) << died.err;
  EXPECT_FALSE(exists("two.certificate"));
}

TEST_F(CertifyVerb, CertifiesForTheTextOfTheScenarioAlone) {
  ASSERT_EQ(verb("certify", {"small.toml", "--date", "2026-11-21"}).exit_code, 0);
  const Finished run = verb("run", {"small.toml", "--set", "model.kernels=11"});
  EXPECT_TRUE(contains(run.out,
                       "\ngate: certified for the scenario as it read on 2026-11-21, it has "
                       "changed since (" +
                           certificate + ")\n"))
      << run.out;
  EXPECT_FALSE(contains(run.out, "identical code refuted")) << run.out;
}

TEST_F(CertifyVerb, WritesWhereItIsToldTo) {
  EXPECT_EQ(
      verb("certify", {"small.toml", "--variant", "baseline", "--out", "sub/c.toml"}).exit_code, 0);
  EXPECT_TRUE(exists("sub/c.toml"));
  EXPECT_FALSE(exists(certificate));
  EXPECT_TRUE(contains(content("sub/c.toml"), "\nvariant = \"baseline\"\n"));
}

TEST_F(CertifyVerb, RefusesBeforeItMeasuresWhatItCouldNotWrite) {
  write("two.toml", equal);
  const Finished two = verb("certify", {"small.toml", "two.toml", "--out", "c.toml"});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_EQ(two.out, "");
  EXPECT_EQ(two.err,
            "--out names one file, and there is more than one scenario; leave it out, or certify "
            "one scenario after the other\n");
  std::filesystem::create_directories(place() / "folder");
  EXPECT_EQ(verb("certify", {"small.toml", "--out", "folder"}).exit_code, 2);
  write("scenario.toml", equal);
  const Finished scenario = verb("certify", {"small.toml", "--out", "scenario.toml"});
  EXPECT_EQ(scenario.exit_code, 2);
  EXPECT_TRUE(contains(scenario.err, "scenario.toml: 'format' is missing in a certificate; "))
      << scenario.err;
  EXPECT_EQ(content("scenario.toml"), equal);
}

TEST_F(CertifyVerb, NeitherReadsNorOverwritesADamagedCertificate) {
  ASSERT_EQ(verb("certify", {"small.toml"}).exit_code, 0);
  const std::string good = content(certificate);
  for (const std::string& damaged :
       {good.substr(0, good.size() / 2), "\xff" + good, good + "more = 1\n"}) {
    write(certificate, damaged);
    for (const Finished& refused : {verb("certify", {"small.toml"}), verb("run", {"small.toml"})}) {
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_EQ(refused.err.find(certificate + ":"), 0U) << refused.err;
      EXPECT_EQ(refused.out, "");
    }
    EXPECT_EQ(content(certificate), damaged);
  }
}

// One process would never show this: it deals its gates one and the same effect.
TEST_F(CertifyVerb, GrantsNoCertificateWhereProcessesDifferByMoreThanTheMargin) {
  STEPGATE_RATES_AS_RELEASED();
  const Finished steady = certify("round-numbers", {"--margin", "0.2%"}, {.gates = 40});
  EXPECT_EQ(steady.exit_code, 0) << steady.out << steady.err;
  const Finished moody = certify("moody", {"--margin", "0.2%"}, {.gates = 40});
  EXPECT_EQ(moody.exit_code, 1) << moody.out << moody.err;
  EXPECT_TRUE(contains(moody.out, "\nno certificate is granted: identical code is refuted in "))
      << moody.out;
  EXPECT_TRUE(contains(moody.out, "How processes differ explains it: a margin of less than "))
      << moody.out;
  const Finished run =
      stepgate({"--baselines", "b", "run", "-v", "small.toml", "--device", "simulated:moody"});
  EXPECT_TRUE(contains(run.out, "\ngate: not certified ")) << run.out;
  // The way out that it names.
  const Finished wider = certify("moody", {"--margin", "1.5%"});
  EXPECT_EQ(wider.exit_code, 0) << wider.out << wider.err;
}

// Two variants, each with a factor of its own: 0.3 % times the square root of two.
TEST_F(CertifyVerb, FindsHowMuchProcessesDiffer) {
  STEPGATE_RATES_AS_RELEASED();
  ASSERT_EQ(certify("moody", {"--margin", "5%"}, {100, 1}).exit_code, 0);
  ASSERT_EQ(stepgate({"--baselines", "b", "run", "-v", "small.toml", "--device", "simulated:moody",
                      "--json", "report.json"})
                .exit_code,
            0);
  std::ifstream file(place() / "report.json");
  const auto cited = nlohmann::json::parse(file)["certificates"];
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0]["processes"], 100);
  // A standard deviation of 100 draws is known to 7 %: three of these.
  EXPECT_NEAR(cited[0]["between_processes"].get<double>(), 0.00424, 0.0009);
}

TEST_F(CertifyVerb, GivesEveryGateASeedThatTheGivenOneDecides) {
  for (const char* file : {"one.toml", "two.toml"}) {
    const Finished run =
        certify("moody", {"--margin", "1.5%", "--date", "2026-11-21", "--out", file});
    ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  }
  EXPECT_EQ(content("one.toml"), content("two.toml"));
}

TEST_F(CertifyVerb, TakesAtLeastTwentyProcesses) {
  const Finished few = certify("round-numbers", {}, {.gates = 19});
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_EQ(few.out, "");
  EXPECT_EQ(few.err,
            "--gates 19: what differs between processes takes at least 20 of them to see; say "
            "--gates 20 or more\n");
}

TEST_F(CertifyVerb, RefusesADeviceThatIsNotThereOrHasNoTimeAsARequest) {
  const Finished none = certify("nobody", {});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err,
            "there is no device profile 'nobody' in b; profiles there: moody, round-numbers\n");
  const Finished reference =
      stepgate({"--baselines", "b", "certify", "small.toml", "--device", "reference"});
  EXPECT_EQ(reference.exit_code, 2);
  EXPECT_EQ(reference.err,
            "nothing can be certified on a device without time; say --device cuda or simulated\n");
}

TEST_F(CertifyVerb, NamesTheGateThatWasKilledAndWritesNothing) {
  ChildProcess certify(STEPGATE_PROGRAM, certifying_large(), place());
  ASSERT_TRUE(certify.says("large, variant fix", std::chrono::seconds(60)));
  ASSERT_TRUE(a_gate_runs());
  for (const int gate : gates_running()) ::kill(gate, SIGKILL);
  const Finished finished = certify.wait();
  EXPECT_EQ(finished.exit_code, 3) << finished.out;
  EXPECT_EQ(finished.err.find("a worker failed: gate "), 0U) << finished.err;
  EXPECT_TRUE(contains(finished.err, " of 20 of 'identical', `")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "was ended by signal 9 (Killed)")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "\nnothing was written for this scenario; certify it again\n"))
      << finished.err;
  EXPECT_FALSE(exists("b/simulated/gpu-of-round-numbers/certificates/large.fix.toml"));
}

TEST_F(CertifyVerb, EndsItsGateAndItselfWithinTwoSecondsOfASignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    ChildProcess certify(STEPGATE_PROGRAM, certifying_large(), place());
    ASSERT_TRUE(certify.says("large, variant fix", std::chrono::seconds(60)));
    ASSERT_TRUE(a_gate_runs());
    certify.send(signal);
    EXPECT_TRUE(certify.ends(std::chrono::seconds(2)));
    const Finished finished = certify.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal) << finished.out;
    EXPECT_EQ(finished.err, "interrupted: nothing was written for this scenario\n");
    EXPECT_TRUE(gates_running().empty());
    EXPECT_FALSE(exists("b/simulated/gpu-of-round-numbers/certificates/large.fix.toml"));
  }
}

}  // namespace
}  // namespace stepgate
