// SPDX-License-Identifier: MIT
// `stepgate certify` from outside: what it writes, what it refuses, and what a later run says of
// it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/command_line.h"

namespace stepgate {
namespace {

const std::string equal =
    "claim = \"a variant is as fast as itself\"\n"
    "model = { kind = \"spin\", kernels = 10 }\n"
    "[variant.baseline]\n[variant.fix]\n"
    "[expect]\nline = \"fix.samples_per_s >= 0.9 * baseline.samples_per_s\"\n";

class CertifyVerb : public CommandLine {
 protected:
  CertifyVerb() {
    std::filesystem::create_directories(place() / "b");
    std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers",
                          place() / "b/round-numbers", std::filesystem::copy_options::recursive);
    write("small.toml", equal);
  }

  Finished verb(const std::string& name, std::vector<std::string> words = {}) const {
    words.insert(words.begin(), {"--baselines", "b", name});
    words.insert(words.end(), {"--device", "simulated:round-numbers", "--seed", "1"});
    if (name == "certify") words.insert(words.end(), {"--gates", "20", "--trial-gates", "3"});
    return stepgate(words);
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
  EXPECT_TRUE(contains(run.out, "\ngate: certified 2026-11-21 with variant 'fix': 0 of "))
      << run.out;
  EXPECT_TRUE(contains(run.out, "(" + certificate + ")\n")) << run.out;
  std::ifstream file(place() / "report.json");
  const auto cited = nlohmann::json::parse(file)["certificates"];
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0]["file"], certificate);
  EXPECT_EQ(cited[0]["variant"], "fix");
  EXPECT_TRUE(cited[0]["reason_against"].is_null());
  EXPECT_GE(cited[0]["gates"], 20);
}

TEST_F(CertifyVerb, CertifiesForTheTextOfTheScenarioAlone) {
  ASSERT_EQ(verb("certify", {"small.toml", "--date", "2026-11-21"}).exit_code, 0);
  const Finished run = verb("run", {"small.toml", "--set", "model.kernels=11"});
  EXPECT_TRUE(contains(run.out,
                       "\ngate: certified for the scenario as it read on 2026-11-21, it has "
                       "changed since (" +
                           certificate + ")\n"))
      << run.out;
  EXPECT_FALSE(contains(run.out, "wrongly refuted (a rate")) << run.out;
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

}  // namespace
}  // namespace stepgate
