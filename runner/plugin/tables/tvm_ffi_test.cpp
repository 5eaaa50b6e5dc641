// SPDX-License-Identifier: MIT
// A function of tvm-ffi gets the tensors and numbers of its table, on the stream of the launch. The
// tests play tvm-ffi's library.
#include "plugin/tables/tvm_ffi.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/norm/norm.h"
#include "plugin/check_kernel.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/fake_trial_device.h"

namespace stepgate {
namespace {

const std::string table_of_ffi = R"toml(library = "kernels.so"
abi = "tvm-ffi"
function = "layer_norm"
arguments = ["x[rows, columns]", "weight[columns]", "bias[columns]", "y[rows, columns]", "statistics[rows, 2]", "epsilon:f64"]
)toml";

class TvmFfiFunctions : public testing::Test {
 protected:
  void SetUp() override { ::setenv("STEPGATE_TVM_FFI", STEPGATE_FAKE_TVM_FFI, 1); }
  void TearDown() override { ::unsetenv("STEPGATE_TVM_FFI"); }

  static std::optional<TvmFfiLaunch> read(const std::string& text, std::string& said) {
    std::vector<Diagnostic> faults;
    const auto table = parse_toml(text, "ln.toml", faults);
    auto launch = read_tvm_ffi_launch(*table, {.file = "ln.toml"}, faults);
    for (const Diagnostic& fault : faults) said += to_string(fault) + "\n";
    return launch;
  }

  static TvmFfi opened(const std::string& from = "", const std::string& to = "") {
    std::string text = table_of_ffi, said;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    auto launch = read(text, said);
    if (!launch) throw KernelLibraryError(said);
    launch->library = STEPGATE_FAKE_FFI_KERNELS;
    return {std::move(*launch), "", kernel("layer_norm")};
  }

  static KernelCheck checked(TvmFfi function) {
    const auto device = make_fake_trial_device();
    return check_kernel(*device,
                        {.loaded = {.identity = function.identity(),
                                    .prepare =
                                        [&](const KernelRequest& asked, const DeviceFacts& facts) {
                                          return function.prepare(asked, facts);
                                        }},
                         .kernel = kernel("layer_norm"),
                         .seed = 7});
  }

  template <class Act>
  static std::string refusal(const Act& act) {
    try {
      (void)act();
    } catch (const RequestError& error) {
      return error.what();
    }
    return {};
  }
};

// Two variants of a step have a library each.
TEST(OpenLibraries, AreApartFromEachOther) {
  void* const first = open_bytes("first", bytes_of_file(STEPGATE_FAKE_KERNELS));
  void* const second = open_bytes("second", bytes_of_file(STEPGATE_FAKE_FFI_KERNELS));
  EXPECT_NE(::dlsym(first, "layer_norm"), nullptr);
  EXPECT_NE(::dlsym(second, "__tvm_ffi_layer_norm"), nullptr);
  EXPECT_NE(first, second);
}

TEST_F(TvmFfiFunctions, AreCheckedLikeAnyKernel) {
  KernelCheck right = checked(opened());
  // A busy machine keeps this process from its processor for as long as a wait would.
  std::erase_if(right.faults, [](const KernelFault& one) { return one.check == "does not wait"; });
  EXPECT_TRUE(right.is_it()) << (right.faults.empty() ? "" : right.faults.front().first);
  EXPECT_EQ(right.unsupported, 0);
  EXPECT_TRUE(contains(right.library, "kernels.so "));
  const KernelCheck wrong = checked(opened("layer_norm", "forgets_the_last_row"));
  ASSERT_FALSE(wrong.faults.empty());
  EXPECT_EQ(wrong.faults.front().check, "numbers");
  const KernelCheck narrow =
      checked(opened("abi", "supports = { columns = { multiple_of = 8 } }\nabi"));
  EXPECT_TRUE(contains(narrow.first_unsupported, "columns must be a multiple of 8"));
  EXPECT_GT(narrow.trials, 0);
}

TEST_F(TvmFfiFunctions, AFailureIsToldInTheirWords) {
  for (const auto& [function, words] :
       {std::pair{"raises", "failed to launch: RuntimeError: columns must be even"},
        std::pair{"fails_without_an_error", "failed to launch: it raised no error"},
        std::pair{"returns_a_tensor", "returns a tensor, which it allocated; take its outputs"}}) {
    const KernelCheck check = checked(opened("layer_norm", function));
    ASSERT_FALSE(check.faults.empty());
    EXPECT_TRUE(contains(check.faults.front().first, words));
  }
  const KernelCheck other = checked(opened("weight[columns]", "weight[1, columns]"));
  ASSERT_FALSE(other.faults.empty());
  EXPECT_TRUE(contains(other.faults.front().first, "TypeError: wants five tensors"));
}

TEST_F(TvmFfiFunctions, WhatDoesNotFitIsRefused) {
  for (const auto& [from, to, words] :
       {std::tuple{"layer_norm", "layernorm", "exports no 'layernorm'; did you mean 'layer_norm'?"},
        std::tuple{"\"tvm-ffi\"", "\"tvm\"", "'abi' must be \"tvm-ffi\""},
        std::tuple{"function = ", "functio = ", "unknown key 'functio'"},
        std::tuple{"x[rows", "z[rows", "layer_norm has no operand 'z'"},
        std::tuple{"x[rows, columns]", "x", "the argument 'x' is no tensor and no number"},
        std::tuple{"x[rows", "x[row", "has no size 'row'; did you mean 'rows'?"},
        std::tuple{"epsilon:f64", "epsilon:f32",
                   "'epsilon:f32' is no number of tvm-ffi; its "
                   "numbers are i64 and f64"},
        std::tuple{"epsilon:f64", "epsilo:f64", "did you mean 'epsilon'?"}})
    EXPECT_TRUE(contains(refusal([from = from, to = to] { return opened(from, to); }), words));
  const KernelCheck few = checked(opened("x[rows, columns]", "x[rows, min(columns, 1)]"));
  ASSERT_FALSE(few.faults.empty());
  EXPECT_EQ(few.faults.front().check, "prepares");
  EXPECT_TRUE(contains(few.faults.front().first, "'x[rows, min(columns, 1)]' has "));
  const KernelCheck half = checked(opened("x[rows, columns]", "x[rows, columns / 2]"));
  ASSERT_FALSE(half.faults.empty());
  EXPECT_TRUE(
      contains(half.faults.front().first, "'columns / 2' is 0.5 for layer_norm of 1 x 1 in "));
  EXPECT_TRUE(contains(refusal([] { return read_tvm_ffi_library(STEPGATE_FAKE_KERNELS); }),
                       "is no shared library with a function for tvm-ffi"));
}

TEST_F(TvmFfiFunctions, WhatFitsNoLaunchOfAShapeIsRefusedBeforeOneIsMade) {
  const auto refused = [](const std::string& to) {
    return refusal([&] {
      opened("x[rows, columns]", to)
          .require_launchable({.kernel = kernel("layer_norm"),
                               .shape = MatrixShape{.rows = 10, .columns = 771},
                               .dtype = DType::bf16,
                               .attributes = NormAttributes{.epsilon = 1e-5}});
      return 0;
    });
  };
  EXPECT_EQ(refused("x[rows, columns]"), "");
  for (const auto& [tensor, words] :
       {std::pair{"x[rows, columns / 2]",
                  "'columns / 2' is 385.5 for layer_norm of 10 x 771 in bf16, and"},
        std::pair{"x[rows, columns - 772]",
                  "'x[rows, columns - 772]' has a size of -1 for layer_norm of 10 x 771 in bf16"},
        std::pair{"x[rows, columns - 771]", "has 0 elements for layer_norm of 10 x 771 in bf16"}})
    EXPECT_TRUE(contains(refused(tensor), words));
}

TEST_F(TvmFfiFunctions, WithoutItsLibraryThatIsSaid) {
  ::setenv("STEPGATE_TVM_FFI", "/nowhere/libtvm_ffi.so", 1);
  const KernelCheck check = checked(opened());
  ASSERT_FALSE(check.faults.empty());
  EXPECT_TRUE(contains(check.faults.front().first, "needs tvm-ffi"));
  EXPECT_TRUE(contains(check.faults.front().first, "/nowhere/libtvm_ffi.so"));
}

}  // namespace
}  // namespace stepgate
