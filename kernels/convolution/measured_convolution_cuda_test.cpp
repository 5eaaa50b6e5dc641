// SPDX-License-Identifier: MIT
// Tests on a GPU that measured engines of convolutions give the same bits as the first that cuDNN
// ranks. Fails where there is no cuDNN.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/convolution/convolution.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/gemm/gemm_autotuner.h"
#include "kernels/trial/cuda_trial.h"

namespace stepgate {
namespace {

// Windows of 3x3, also with stride 2, and single pixels with stride 2, as in a ResNet.
constexpr ConvolutionShape shapes[] = {
    {.images = 8,
     .height = 28,
     .width = 28,
     .channels = 64,
     .outputs = 64,
     .window = 3,
     .padding = 1},
    {.images = 8,
     .height = 28,
     .width = 28,
     .channels = 64,
     .outputs = 64,
     .window = 3,
     .stride = 2,
     .padding = 1},
    {.images = 8, .height = 28, .width = 28, .channels = 64, .outputs = 128, .stride = 2}};

class MeasuredConvolutions : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    std::string reason;
    cudnn_ = open_cudnn(&reason);
    ASSERT_NE(cudnn_, nullptr) << reason;
    libraries_ = std::make_unique<CudaLibraries>(cudnn_.get());
  }

  KernelTrial carried_out(const KernelTrial& trial, GemmAutotuner* measuring) {
    const DeviceOperands operands(trial, {});
    LaunchContext context = libraries_->context();
    context.gemm_autotuner = measuring;
    const Launch launch =
        kernel(trial.recipe->kernel).prepare(trial.shape, trial.dtype, trial.attributes, context);
    launch(operands.pointers(), nullptr);
    check_cuda(cudaDeviceSynchronize(), "convolve");
    EXPECT_TRUE(operands.guards_are_untouched());
    return operands.read_back();
  }

  void expect_equal_bits(const KernelTrial& trial) {
    SCOPED_TRACE(describe(trial, 20261129));
    GemmAutotuner measuring;
    const KernelTrial expected = carried_out(trial, nullptr);
    EXPECT_NE(expected.operands.back(), trial.operands.back());
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(carried_out(trial, &measuring).operands, expected.operands);
  }

 private:
  std::shared_ptr<Cudnn> cudnn_;
  std::unique_ptr<CudaLibraries> libraries_;
};

TEST_P(MeasuredConvolutions, HaveTheBitsOfTheFirstEngine) {
  for (const ConvolutionShape& shape : shapes) {
    expect_equal_bits(make_trial<kernels::Convolution>(shape, GetParam(), {}, 20261129));
    expect_equal_bits(
        make_trial<kernels::ConvolutionDataGradient>(shape, GetParam(), {}, 20261129));
    for (const bool accumulate : {false, true})
      expect_equal_bits(make_trial<kernels::ConvolutionWeightGradient>(shape, GetParam(),
                                                                       {accumulate}, 20261129));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDType, MeasuredConvolutions,
                         testing::Values(DType::fp32, DType::tf32, DType::bf16, DType::fp16));

}  // namespace
}  // namespace stepgate
