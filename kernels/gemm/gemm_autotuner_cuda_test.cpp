// SPDX-License-Identifier: MIT
// Tests on a GPU that measured algorithms give the same bits as the one that the heuristics choose.
// ci/compare_pytorch.py measures how fast they are.
#include "kernels/gemm/gemm_autotuner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/catalogue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/trial/cuda_trial.h"

namespace stepgate {
namespace {

struct Case {
  std::string_view kernel;
  kernels::Matmul::Shape shape;
  KernelAttributes attributes;
};

// The cases are forward, input gradient, a weight gradient deep enough to be split, batched GEMMs,
// and odd sizes.
const Case cases[] = {
    {"matmul", {1024, 768, 256}, kernels::Matmul::Attributes{false, true}},
    {"matmul", {1024, 256, 768}, kernels::Matmul::Attributes{false, false}},
    {"matmul", {256, 256, 4096}, kernels::Matmul::Attributes{true, false}},
    {"matmul", {256, 256, 1024}, kernels::Matmul::Attributes{true, false, true}},
    {"matmul", {136, 72, 40, 6}, kernels::Matmul::Attributes{false, true}},
    {"matmul", {8, 8, 8}, kernels::Matmul::Attributes{false, false}},
    {"linear", {1024, 768, 256}, {}},
    {"linear", {200, 1000, 72}, {}},
    {"linear_gelu", {1024, 768, 256}, {}},
    {"matmul_gelu_gradient", {1024, 768, 256}, {}},
    {"linear_fp8", {1024, 768, 256}, {}},
    {"matmul_fp8", {1024, 768, 256}, kernels::MatmulFp8::Attributes{}},
    {"matmul_fp8", {256, 256, 4096}, kernels::MatmulFp8::Attributes{true, true}},
};

class GemmsOf : public testing::TestWithParam<DType> {
 protected:
  KernelTrial carried_out(const KernelTrial& trial, GemmAutotuner* gemms) {
    const DeviceOperands operands(trial, {});
    LaunchContext context = libraries_.context();
    context.gemm_autotuner = gemms;
    const Launch launch =
        kernel(trial.recipe->kernel).prepare(trial.shape, trial.dtype, trial.attributes, context);
    launch(operands.pointers(), nullptr);
    check_cuda(cudaDeviceSynchronize(), "multiply");
    EXPECT_TRUE(operands.guards_are_untouched());
    return operands.read_back();
  }

  LaunchContext measuring(GemmAutotuner& gemms) const {
    LaunchContext context = libraries_.context();
    context.gemm_autotuner = &gemms;
    return context;
  }

 private:
  CudaLibraries libraries_;
};

TEST_P(GemmsOf, EveryShapeHaveTheBitsOfTheHeuristicsFirst) {
  GemmAutotuner gemms;
  std::size_t tried = 0;
  for (const Case& test : cases) {
    if (!std::ranges::count(trial_recipe(test.kernel).dtypes, GetParam())) continue;
    ++tried;
    const KernelTrial trial =
        make_trial(trial_recipe(test.kernel), test.shape, GetParam(), test.attributes, 20261122);
    SCOPED_TRACE(describe(trial, 20261122));
    const KernelTrial expected = carried_out(trial, nullptr);
    EXPECT_NE(expected.operands.back(), trial.operands.back());
    EXPECT_EQ(carried_out(trial, &gemms).operands, expected.operands);
  }
  ASSERT_EQ(gemms.choices().size(), tried);
  for (const GemmAutotuner::Choice& choice : gemms.choices())
    EXPECT_GE(choice.speedup, choice.rank == 0 ? 1 : 0.98);
}

TEST_P(GemmsOf, EqualShapesShareOneChoice) {
  GemmAutotuner gemms;
  const LaunchContext context = measuring(gemms);
  const Kernel& matmul = kernel("matmul");
  for (int i = 0; i < 3; ++i)
    (void)matmul.prepare(kernels::Matmul::Shape{64, 64, 64}, GetParam(),
                         kernels::Matmul::Attributes{false, true}, context);
  EXPECT_EQ(gemms.choices().size(), 1u);
  (void)matmul.prepare(kernels::Matmul::Shape{64, 64, 64}, GetParam(),
                       kernels::Matmul::Attributes{true, false}, context);
  (void)matmul.prepare(kernels::Matmul::Shape{64, 64, 72}, GetParam(),
                       kernels::Matmul::Attributes{false, true}, context);
  EXPECT_EQ(gemms.choices().size(), 3u);
}

TEST_P(GemmsOf, SizesThatFitInNoMemoryAreRefusedWithAWayOut) {
  GemmAutotuner gemms;
  constexpr std::int64_t size = 1 << 18;  // four operands of 128 GiB and more
  try {
    (void)kernel("matmul").prepare(kernels::Matmul::Shape{size, size, size}, GetParam(),
                                   kernels::Matmul::Attributes{false, false}, measuring(gemms));
    FAIL() << "measured";
  } catch (const std::runtime_error& error) {
    const std::string mebibytes = bytes_of(GetParam()) == 2 ? "524288 MiB" : "1048576 MiB";
    EXPECT_NE(std::string(error.what()).find(mebibytes), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("launch.gemm = \"heuristic\""), std::string::npos);
  }
  EXPECT_TRUE(gemms.choices().empty());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(EveryDType, GemmsOf,
                         testing::Values(DType::fp32, DType::tf32, DType::bf16, DType::fp16));

}  // namespace
}  // namespace stepgate
