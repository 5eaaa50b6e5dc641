// SPDX-License-Identifier: MIT
#include "report/text/print_kernels.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/catalogue.h"
#include "kernels/kernel_words.h"

namespace stepgate {
namespace {

std::string printed(const KernelCheck& check) {
  std::ostringstream out;
  print_kernel_check(out, check);
  return out.str();
}

TEST(PrintKernels, TheLastLineIsTheVerdict) {
  KernelCheck check{.kernel = "layer_norm", .library = "libmine.so 1f", .trials = 137, .seed = 7};
  EXPECT_EQ(printed(check), "layer_norm of libmine.so 1f is layer_norm: 137 trials; seed 7\n");
  check.faults = {{.check = "numbers", .first = "'y': off (layer_norm 1x1 fp32)", .trials = 3},
                  {.check = "launches", .first = "two", .trials = 1}};
  EXPECT_EQ(printed(check),
            "numbers: 'y': off (layer_norm 1x1 fp32), and in 2 more trials\n"
            "launches: two\n"
            "layer_norm of libmine.so 1f is NOT layer_norm: numbers, launches; seed 7\n");
  const KernelCheck none{.kernel = "layer_norm",
                         .library = "libmine.so 1f",
                         .unsupported = 4,
                         .first_unsupported = "only bf16",
                         .left_out = 2,
                         .seed = 7};
  EXPECT_EQ(
      printed(none),
      "layer_norm of libmine.so 1f is NOT layer_norm: it supports none of the trials; seed 7; "
      "4 trials are not supported: only bf16; 2 launches of the steps were not tried, as the "
      "host's reference of one takes seconds\n");
}

TEST(PrintKernels, ACubinHasALineForEachKernel) {
  std::ostringstream out;
  print_cubin(
      out,
      {.path = "build/ln.cubin",
       .bytes = {},
       .capability = 90,
       .entries = {
           {.name = "ln_fwd", .parameter_bytes = {8, 4}, .shared_bytes = 160, .most_threads = 128},
           {.name = "other", .parameter_bytes = {}, .threads = 64, .is_in_clusters = true}}});
  EXPECT_EQ(out.str(),
            "ln.cubin cbf29ce484222325: for compute capability 9.0\n"
            "  ln_fwd: parameters of 8, 4 bytes; at most 128 threads a block; 160 bytes of shared "
            "memory\n"
            "  other: no parameters; 64 threads a block; in clusters\n");
}

TEST(PrintKernels, ALineForProgramsSaysTheSame) {
  std::ostringstream out;
  write_kernel_check_json(out, {.kernel = "add",
                                .library = "a.so 1f",
                                .trials = 2,
                                .faults = {{.check = "inputs", .first = "'x'", .trials = 1}}});
  const auto line = nlohmann::json::parse(out.str());
  EXPECT_EQ(line.at("schema"), "stepgate.kernel_check/1");
  EXPECT_EQ(line.at("is_it"), false);
  EXPECT_EQ(line.at("faults").at(0).at("check"), "inputs");
  EXPECT_TRUE(out.str().ends_with("}\n"));
}

// Sizes and attributes have their names, and operands the elements of a shape that tells them
// apart.
TEST(PrintKernels, EveryKernelIsDescribed) {
  std::ostringstream norm;
  print_kernel(norm, kernel("layer_norm"));
  EXPECT_NE(norm.str().find("sizes       rows, columns\n  attributes  epsilon\n"),
            std::string::npos);
  EXPECT_NE(norm.str().find("statistics     written, fp32; 6 elements for 3 x 7"),
            std::string::npos);
  EXPECT_NE(norm.str().find("  y = (x - mean) / sqrt(variance + epsilon) * weight + bias"),
            std::string::npos)
      << norm.str();
  for (const Kernel& each : kernel_catalogue()) {
    EXPECT_NE(words_of(each).find("\n  operands  "), std::string::npos)
        << each.name << " has no words over its declaration, or they name no operands";
    std::ostringstream out;
    print_kernel(out, each);
    EXPECT_EQ(out.str().find(", ,"), std::string::npos) << out.str();
    EXPECT_EQ(out.str().find("  ,"), std::string::npos) << out.str();
  }
}

}  // namespace
}  // namespace stepgate
