// SPDX-License-Identifier: MIT
// Tests `stepgate kernel` from outside, with libraries that end the process that has them open.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plugin/testing/small_cubin.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

class KernelVerb : public CommandLine {
 protected:
  Finished check(const std::string& end) const {
    const EnvironmentVariable how("END", end);
    const EnvironmentVariable preload("LD_PRELOAD", STEPGATE_END_IN_CHECK);
    return stepgate({"kernel", "check", STEPGATE_FAKE_KERNELS, "layer_norm", "--json", "k.json",
                     "--seed", "7"});
  }
};

// Whatever a library ends the process with, 0 among it, it is no kernel.
TEST_F(KernelVerb, ALibraryThatEndsTheProcessIsRefused) {
  for (const auto& [end, words] : {std::pair{"0", "with code 0"}, std::pair{"1", "with code 1"},
                                   std::pair{"3", "with code 3"}, std::pair{"255", "with code 255"},
                                   std::pair{"signal", "by signal 11 (Segmentation fault)"}}) {
    const Finished ended = check(end);
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    EXPECT_TRUE(contains(ended.out, std::string("crash: it ended its process ") + words +
                                        ", before the first trial\n"))
        << ended.out;
    EXPECT_TRUE(contains(ended.out, " is NOT layer_norm: crash; seed 7\n")) << ended.out;
    const auto line = nlohmann::json::parse(text_of(place() / "k.json"));
    EXPECT_EQ(line["is_it"], false);
    EXPECT_EQ(line["faults"][0]["check"], "crash");
  }
}

// A request that cannot be carried out is told by the process itself and is no fault of the
// library.
TEST_F(KernelVerb, WithoutAGpuNothingIsSaidOfTheLibrary) {
#ifdef STEPGATE_WITH_CUDA
  constexpr const char* words = "there is no GPU 0 to try the kernel on";
#else
  constexpr const char* words = "this build of stepgate has no CUDA";
#endif
  const EnvironmentVariable none("CUDA_VISIBLE_DEVICES", "");
  const Finished ended =
      stepgate({"kernel", "check", STEPGATE_FAKE_KERNELS, "layer_norm", "--json", "k.json"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(contains(ended.err, words)) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(place() / "k.json"));
}

// A table is read, and held against its cubin, before anybody looks for a GPU.
TEST_F(KernelVerb, ATableOfACubinIsHeldAgainstIt) {
  std::filesystem::create_directory(place() / "my");
  const auto check_with = [&](const std::string& entry) {
    const std::vector<std::byte> bytes = bytes_of(SmallCubin{});
    std::ofstream(place() / "my/ln.cubin", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    std::ofstream(place() / "my/ln.toml")
        << "cubin = \"ln.cubin\"\nentry = \"" << entry << "\"\ngrid = \"rows\"\nblock = 128\n"
        << "arguments = [\"x\", \"weight\", \"bias\", \"y\", \"statistics\", \"columns:i32\", "
           "\"epsilon:f32\"]\n";
    const EnvironmentVariable none("CUDA_VISIBLE_DEVICES", "");
    return stepgate({"kernel", "check", "my/ln.toml", "layer_norm"});
  };
  const Finished wrong = check_with("ln_bwd");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "'my/ln.cubin' has no kernel 'ln_bwd'; did you mean 'ln_fwd'?"))
      << wrong.err;
  const Finished right = check_with("ln_fwd");
  EXPECT_EQ(right.exit_code, 2);
  EXPECT_TRUE(contains(right.err, "CUDA") || contains(right.err, "there is no GPU 0")) << right.err;
  const std::string before = text_of(place() / "my/ln.cubin");
  const Finished over =
      stepgate({"kernel", "check", "my/ln.toml", "layer_norm", "--json", "my/ln.cubin"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_TRUE(contains(over.err, "my/ln.cubin")) << over.err;
  EXPECT_EQ(text_of(place() / "my/ln.cubin"), before);
  const Finished described = stepgate({"kernel", "describe", "my/ln.toml"});
  EXPECT_TRUE(contains(described.out, "  ln_fwd: parameters of 8, 8, 8, 8, 8, 4, 4 bytes\n"))
      << described.out;
}

TEST_F(KernelVerb, TheLibraryIsNoOutput) {
  std::filesystem::copy_file(STEPGATE_FAKE_KERNELS, place() / "mine.so");
  const std::string before = text_of(place() / "mine.so");
  const Finished ended =
      stepgate({"kernel", "check", "mine.so", "layer_norm", "--json", "mine.so"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(text_of(place() / "mine.so"), before);
}

TEST_F(KernelVerb, NothingThatIsThereIsWrittenOver) {
  ASSERT_EQ(stepgate({"kernel", "new", "layer_norm", "--in", "my"}).exit_code, 0);
  const Finished second = stepgate({"kernel", "new", "add", "--in", "my"});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.out, "");
  EXPECT_FALSE(std::filesystem::exists(place() / "my/add.cu"));
  std::filesystem::create_symlink("elsewhere", place() / "gelu.cu");
  EXPECT_EQ(stepgate({"kernel", "new", "gelu"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(place() / "elsewhere"));
}

}  // namespace
}  // namespace stepgate
