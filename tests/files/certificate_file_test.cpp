// SPDX-License-Identifier: MIT
// The certificate file: its text, what comes back from it, and everything that is wrong with a
// damaged one, line by line.
#include "history/certificate/certificate_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/files/temporary_folder.h"
#include "support/text/diagnostic.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

Certificate by_hand() {
  Certificate certificate;
  certificate.environment = {.kind = "cuda",
                             .gpu = "NVIDIA H200",
                             .uuid = "GPU-1",
                             .driver = "580.159.04",
                             .cuda_runtime = "13.0",
                             .compute_capability = "9.0",
                             .memory_mib = "143771",
                             .power_limit = "700 W",
                             .pcie = "5 x16",
                             .cpu = "a \"quoted\" CPU"};
  certificate.scenario = "small";
  certificate.fingerprint = 0xfedcba9876543210;
  certificate.variant = "fix";
  certificate.overrides = {"model.kernels=11"};
  certificate.bottleneck = "device_spin";
  certificate.date = "2026-11-21T10:15:00Z";
  certificate.version = "0.1.0";
  certificate.seed = 42;
  certificate.margin = 0.005;
  certificate.alpha = 0.01;
  certificate.beta = 0.05;
  certificate.round_seconds = 0.0123456789;
  certificate.trials = {{.name = std::string(identical_trial),
                         .injected = 0,
                         .seen = -1.0 / 3000,
                         .gates = 300,
                         .refuted = 1,
                         .held = 290,
                         .refuted_rate = {.low = 0.0001, .high = 0.0157},
                         .estimate = -0.0001,
                         .spread = 0.0025,
                         .spread_by_rounds = 0.0015,
                         .rounds_mean = 6.55,
                         .gpu_seconds_mean = 0.292355},
                        {.name = "one more wait", .gates = 1, .refuted = 1}};
  return certificate;
}

class CertificateFile : public testing::Test {
 protected:
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  std::string refusal(const std::string& text) const {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    std::string said;
    for (const bool writing : {false, true}) {
      try {
        if (writing) {
          write_certificate(file, by_hand());
        } else {
          (void)read_certificate(file, "small", "fix");
        }
        return "accepted";
      } catch (const RequestError& error) {
        const std::string words = error.what();
        EXPECT_TRUE(said.empty() || said == words) << words;
        said = words;
      }
    }
    EXPECT_EQ(content(), text) << "what cannot be read must not be overwritten";
    for (auto at = said.find(file.string()); at != std::string::npos; at = said.find(file.string()))
      said.replace(at, file.string().size(), "F");
    return said;
  }

  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path() / "f";  // not there at first
  const std::filesystem::path file = folder / "certificates" / "small.fix.toml";
};

TEST_F(CertificateFile, IsReadableInADiff) {
  expect_golden(
      std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden" / "certificate.toml",
      certificate_text(by_hand()));
}

TEST_F(CertificateFile, ComesBackAsItWasWritten) {
  write_certificate(file, by_hand());
  const Certificate read = read_certificate(file, "small", "fix");
  EXPECT_EQ(certificate_text(read), content());
  EXPECT_EQ(read.environment, by_hand().environment);
  EXPECT_EQ(read.fingerprint, by_hand().fingerprint);
  EXPECT_EQ(read.overrides, by_hand().overrides);
  EXPECT_NEAR(read.round_seconds, by_hand().round_seconds, 1e-7);
  ASSERT_EQ(read.trials.size(), 2U);
  EXPECT_NEAR(read.trials[0].seen.value(), -1.0 / 3000, 1e-8);
  EXPECT_FALSE(read.trials[1].seen);
  EXPECT_EQ(read.trials[0].refuted, 1);
  EXPECT_DOUBLE_EQ(read.trials[0].refuted_rate.low, 0.0001);
  EXPECT_DOUBLE_EQ(read.trials[0].refuted_rate.high, 0.0157);
  EXPECT_DOUBLE_EQ(between_processes(read.trials[0]).value(), 0.002);
  EXPECT_FALSE(between_processes(read.trials[1])) << "one process does not differ";
  EXPECT_TRUE(is_granted(read));
}

TEST_F(CertificateFile, GivesWayToALaterOneOfTheSameVariant) {
  write_certificate(file, by_hand());
  Certificate later = by_hand();
  later.date = "2026-11-22T10:15:00Z";
  write_certificate(file, later);
  EXPECT_EQ(content(), certificate_text(later));
}

// Format 1 had other keys, and all gates in one process.
const std::string of_format_1 =
    "format = 1\ndigest = \"0xe80a74562076ff11\"\nscenario = \"small\"\n"
    "variant = \"fix\"\ndate = \"2026-11-20T10:15:00Z\"\nstepgate = \"0.0.9\"\n"
    "smallest_in_five_seconds = 0.00872893\n";

TEST_F(CertificateFile, OfAnEarlierFormatIsOutdatedAndGivesWay) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << of_format_1;
  const Certificate read = read_certificate(file, "small", "fix");
  EXPECT_TRUE(read.outdated);
  EXPECT_FALSE(is_granted(read));
  check_certificate_file(file, "small", "fix");
  write_certificate(file, by_hand());
  EXPECT_EQ(content(), certificate_text(by_hand()));
}

TEST_F(CertificateFile, OfAnEarlierFormatAndOfSomethingElseIsRefused) {
  std::string other = of_format_1;
  other.replace(other.find("small"), 5, "large");
  EXPECT_EQ(refusal(other),
            "F:3:12: the certificate of scenario 'large', not of 'small'; give the file back its "
            "name, or name another with --out");
  EXPECT_EQ(refusal("format = 1\nscenario = \"small\"\n"),
            "F: 'variant' is missing in a certificate; restore the file from version control, or "
            "move it away and certify anew\n"
            "F: 'date' is missing in a certificate; restore the file from version control, or move "
            "it away and certify anew\n"
            "F: 'stepgate' is missing in a certificate; restore the file from version control, or "
            "move it away and certify anew");
}

struct Damage {
  std::string from;
  std::string to;
  std::string refusal;
};

TEST_F(CertificateFile, IsRefusedWhenDamagedAndNeverOverwritten) {
  const std::string restore =
      "restore the file from version control, or move it away and certify anew";
  const std::string anew = "use a newer stepgate, or move the file away and certify anew";
  const std::string renamed = "give the file back its name, or name another with --out";
  const std::string good = certificate_text(by_hand());
  const Damage damages[] = {
      {"format = 2", "format = 3",
       "F:4:10: certificate format 3 is newer than 2, the newest that this stepgate knows; " +
           anew},
      {"format = 2", "format = \"2\"",
       "F:4:10: 'format' must be a whole number of at least 1; " + restore},
      {"format = 2\n", "", "F: 'format' is missing in a certificate; " + restore},
      {"refuted = 1\n", "refuted = 0\n",
       "F:5:10: the certificate was changed after it was written: its digest does not fit; " +
           restore},
      {"alpha = 0.01", "alpha = 0.0100001",
       "F:5:10: the certificate was changed after it was written: its digest does not fit; " +
           restore},
      {"NVIDIA H200", "NVIDIA H100",
       "F:5:10: the certificate was changed after it was written: its digest does not fit; " +
           restore},
      {"gates = 300", "gates = 3",
       "F:31:1: 3 gates cannot be refuted 1 times and hold 290 times; " + restore},
      {"gates = 300", "gates = -300",
       "F:35:9: 'gates' must be a whole number of at least 0; " + restore},
      {"refuted = 1\n", "refuted = 1.5\n",
       "F:36:11: 'refuted' must be a whole number of at least 0; " + restore},
      {"spread = 0.0025", "spread = -0.0025",
       "F:41:10: 'spread' must be a number from 0 to 14; " + restore},
      {"spread = 0.0025\n", "",
       "F:5:10: the certificate was changed after it was written: its digest does not fit; " +
           restore},
      {"refuted_rate_low = 0.0001", "refuted_rate_low = 1.5",
       "F:38:20: 'refuted_rate_low' must be a number from 0 to 1; " + restore},
      {"margin = 0.005", "margin = nan",
       "F:14:10: 'margin' must be a number from 0 to 1; " + restore},
      {"alpha = 0.01", "alpha = \"0.01\"",
       "F:15:9: 'alpha' must be a number from 0 to 1; " + restore},
      {"seed = \"0x000000000000002a\"", "seed = 42",
       "F:13:8: 'seed' must be a string of 0x and 16 hexadecimal digits; " + restore},
      {"round_seconds", "round_second",
       "F: 'round_seconds' is missing in a certificate; " + restore +
           "\nF:17:1: unknown key 'round_second' in a certificate; did you mean 'round_seconds'?"},
      {"overrides = [\"model.kernels=11\"]", "overrides = [11]",
       "F:9:13: 'overrides' must be a list of strings; " + restore},
      {"[environment]", "[surroundings]",
       "F: 'environment' is missing in a certificate; " + restore +
           "\nF:19:2: unknown key 'surroundings' in a certificate; " + restore},
      {"cpu =", "cpus =",
       "F:19:2: 'cpu' is missing in an environment; " + restore +
           "\nF:29:1: unknown key 'cpus' in an environment; did you mean 'cpu'?"},
  };
  for (const Damage& damage : damages) {
    std::string text = good;
    const std::size_t at = text.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from;
    text.replace(at, damage.from.size(), damage.to);
    EXPECT_EQ(refusal(text), damage.refusal);
  }
  Certificate other = by_hand();
  other.scenario = "large";
  EXPECT_EQ(refusal(certificate_text(other)),
            "F:6:12: the certificate of scenario 'large', not of 'small'; " + renamed);
  other = by_hand();
  other.variant = "baseline";
  EXPECT_EQ(refusal(certificate_text(other)),
            "F:8:11: the certificate of variant 'baseline', not of 'fix'; " + renamed);
}

TEST_F(CertificateFile, IsRefusedWhereverItIsCutOff) {
  const std::string good = certificate_text(by_hand());
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    EXPECT_NE(refusal(good.substr(0, size)), "accepted") << size << " bytes";
    if (HasFailure()) return;
  }
}

Scenario scenario_of_fix() {
  Scenario scenario;
  scenario.name = "small";
  scenario.fingerprint = by_hand().fingerprint;
  scenario.variants.emplace_back().name = "fix";
  return scenario;
}

DeviceIdentity h200(const std::string& driver = "580.159.04") {
  return {.kind = DeviceKind::cuda,
          .name = "NVIDIA H200",
          .driver = driver,
          .runtime = "13.0",
          .compute_capability = 9,
          .memory_bytes = std::int64_t{143771} << 20,
          .uuid = "GPU-2"};
}

TEST_F(CertificateFile, IsCitedByLaterRunsOnSuchADevice) {
  EXPECT_TRUE(cited_certificates(folder, h200(), scenario_of_fix()).empty());
  write_certificate(certificate_path(folder, h200(), "small", "fix"), by_hand());
  const auto cited = cited_certificates(folder, h200("580.200"), scenario_of_fix());
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0].file, (folder / "nvidia-h200/certificates/small.fix.toml").generic_string());
  EXPECT_EQ(cited[0].certificate.trials.size(), 2U);
  EXPECT_FALSE(cited[0].reason_against) << *cited[0].reason_against;
}

TEST_F(CertificateFile, SaysNothingAboutAnotherDriverOrAnotherTextOfTheScenario) {
  Certificate as_written = by_hand();
  as_written.overrides.clear();
  write_certificate(certificate_path(folder, h200(), "small", "fix"), as_written);
  const auto driver = cited_certificates(folder, h200("590.1"), scenario_of_fix());
  ASSERT_EQ(driver.size(), 1U);
  EXPECT_EQ(driver[0].reason_against, "certified for another driver branch, 580, this is 590");
  Scenario changed = scenario_of_fix();
  changed.fingerprint = 1;
  const auto text = cited_certificates(folder, h200(), changed);
  ASSERT_EQ(text.size(), 1U);
  EXPECT_EQ(text[0].reason_against,
            "certified for the scenario as it read on 2026-11-21, it has changed since");
}

TEST_F(CertificateFile, OfAnEarlierFormatSaysNothingAboutARun) {
  const auto path = certificate_path(folder, h200(), "small", "fix");
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << of_format_1;
  const auto cited = cited_certificates(folder, h200(), scenario_of_fix());
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0].reason_against,
            "certified on 2026-11-20 by stepgate 0.0.9 in one process, which says nothing about "
            "another one; `stepgate certify` does it in many");
}

// Whatever their format: a run on such a device must not fail on one.
TEST_F(CertificateFile, OfTheRepositoryCanBeRead) {
  const auto measured =
      std::filesystem::path(STEPGATE_SOURCE_DIR) / "baselines/nvidia-h200/certificates";
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(measured)) {
    const std::string scenario = entry.path().stem().stem();
    const std::string variant = entry.path().stem().extension().string().substr(1);
    EXPECT_EQ(read_certificate(entry.path(), scenario, variant).variant, variant);
    ++read;
  }
  EXPECT_GT(read, 0);
}

TEST_F(CertificateFile, SaysNothingAboutAScenarioWithoutTheOverridesOfTheCertificate) {
  write_certificate(certificate_path(folder, h200(), "small", "fix"), by_hand());
  Scenario without = scenario_of_fix();
  without.fingerprint = 1;
  const auto cited = cited_certificates(folder, h200(), without);
  ASSERT_EQ(cited.size(), 1U);
  EXPECT_EQ(cited[0].reason_against,
            "certified with --set model.kernels=11, which is another step");
}

}  // namespace
}  // namespace stepgate
