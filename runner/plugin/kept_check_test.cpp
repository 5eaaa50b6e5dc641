// SPDX-License-Identifier: MIT
// Tests that verdicts on libraries are kept beside them, by their bytes.
#include "plugin/kept_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/files/temporary_folder.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr const char* bytes = "libmine.so 1f0a33c2e0d94b55";

KeptCheck verdict(std::vector<std::string> faults = {}) {
  return {.library = bytes,
          .kernel = "layer_norm",
          .function = "norm",
          .trials = 137,
          .faults = std::move(faults)};
}

class KeptChecks : public testing::Test {
 protected:
  std::optional<KeptCheck> kept(const std::string& of = bytes,
                                const std::string& kernel = "layer_norm",
                                const std::string& function = "norm") const {
    return kept_check(library_, of, kernel, function);
  }

  TemporaryFolder folder_;
  std::filesystem::path library_ = folder_.path() / "libmine.so";
};

TEST_F(KeptChecks, AreFoundByTheBytesTheKernelAndTheFunction) {
  EXPECT_EQ(kept(), std::nullopt);
  keep_check(library_, verdict());
  EXPECT_EQ(kept(), verdict());
  EXPECT_EQ(kept("libmine.so 0000000000000000"), std::nullopt) << "other bytes";
  EXPECT_EQ(kept(bytes, "rms_norm"), std::nullopt);
  EXPECT_EQ(kept(bytes, "layer_norm", "fast"), std::nullopt);
}

TEST_F(KeptChecks, AreThoseOfTheNewest) {
  keep_check(library_, verdict());
  keep_check(library_, verdict({"numbers"}));
  EXPECT_EQ(kept()->faults, (std::vector<std::string>{"numbers"}));
}

TEST_F(KeptChecks, PassOverLinesThatAreNoVerdict) {
  keep_check(library_, verdict());
  std::ofstream(file_of_checks(library_), std::ios::app) << "{\"library\":3}\nhalf a li";
  EXPECT_EQ(kept(), verdict());
}

// A reader or writer of a pipe would wait for the other.
TEST_F(KeptChecks, AreInNoPipe) {
  ASSERT_EQ(::mkfifo(file_of_checks(library_).c_str(), 0600), 0);
  EXPECT_EQ(kept(), std::nullopt);
  EXPECT_THROW(keep_check(library_, verdict()), RequestError);
}

TEST_F(KeptChecks, ThatCannotBeWrittenAreTold) {
  EXPECT_THROW(keep_check(folder_.path() / "nowhere" / "libmine.so", verdict()), RequestError);
}

}  // namespace
}  // namespace stepgate
