// SPDX-License-Identifier: MIT
// Tests the kernels of an update together on the GPU: norm, clip and AdamW over several steps, some
// with gradients that are not finite. kernels_cuda_test.cpp tests each kernel alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/optimizer/optimizer.h"
#include "kernels/trial/cuda_trial.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

constexpr std::int64_t count = 20'001;
constexpr MatrixShape shape{1, count};
constexpr kernels::SquareSums::Shape pieces{count, square_sum_pieces(count)};
constexpr kernels::Clip::Attributes clip_attributes = {0.5, 3, 2, 0.5};
constexpr kernels::Adamw::Attributes adamw_attributes = {1e-2, 0.9, 0.999, 1e-8, 0.01};

// The operands of all three kernels, on the host or on the device.
struct Update {
  void* weights;
  void* gradients;
  void* master;
  void* m;
  void* v;
  void* control;
  void* partials;

  template <class Carry>
  void carry_out(Carry carry) const {
    carry("square_sums", pieces, KernelAttributes{}, {gradients, partials});
    carry("clip", kernels::Clip::Shape{pieces.pieces}, clip_attributes, {partials, control});
    carry("adamw_master", shape, adamw_attributes, {weights, gradients, master, m, v, control});
  }
};

Update update_on(const DeviceOperands& adamw, const DeviceOperands& sums) {
  void* const* a = adamw.pointers();
  return {a[0], a[1], a[2], a[3], a[4], a[5], sums.pointers()[1]};
}

Update update_on(KernelTrial& adamw, KernelTrial& sums) {
  const auto at = [&](std::size_t i) { return static_cast<void*>(adamw.operands[i].data()); };
  return {at(0), at(1), at(2), at(3), at(4), at(5), sums.operands[1].data()};
}

void spoil(KernelTrial& adamw, float gradient) {
  set_number(adamw.operands[1].data(), adamw.dtype, count / 2, gradient);
}

void start(KernelTrial& adamw) {
  auto* control = reinterpret_cast<float*>(adamw.operands[5].data());
  for (std::int64_t i = 0; i < update_control::size; ++i) control[i] = 0;
  control[update_control::loss_scale] = 8;
}

class CudaUpdate : public testing::TestWithParam<DType> {
 protected:
  // One update on the host and on the device; the device gets the trial's gradients.
  void step(KernelTrial& adamw, KernelTrial& sums, const DeviceOperands& device_adamw,
            const DeviceOperands& device_sums) {
    const std::vector<std::byte>& gradients = adamw.operands[1];
    const Update device = update_on(device_adamw, device_sums);
    check_cuda(
        cudaMemcpy(device.gradients, gradients.data(), gradients.size(), cudaMemcpyHostToDevice),
        "upload the gradients");
    device.carry_out([&](const char* name, const KernelShape& sizes,
                         const KernelAttributes& attributes, std::vector<void*> buffers) {
      kernel(name).prepare(sizes, GetParam(), attributes, libraries_.context())(buffers.data(),
                                                                                nullptr);
    });
    update_on(adamw, sums)
        .carry_out([&](const char* name, const KernelShape& sizes,
                       const KernelAttributes& attributes, std::vector<void*> buffers) {
          kernel(name).reference({sizes, GetParam(), attributes, buffers});
        });
    check_cuda(cudaDeviceSynchronize(), "update");
  }

  CudaLibraries libraries_;
};

TEST_P(CudaUpdate, SkipsGradientsThatAreNotFiniteAndGoesOnAsTheReferenceDoes) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  KernelTrial adamw =
      make_trial(trial_recipe("adamw_master"), shape, GetParam(), adamw_attributes, 1);
  KernelTrial sums = make_trial<kernels::SquareSums>(pieces, GetParam(), {}, 2);
  start(adamw);
  const DeviceOperands device_adamw(adamw, {}), device_sums(sums, {});
  float updates = 0;
  for (const float spoiled : {0.5f, infinity, 0.25f, std::nanf(""), 1.0f, 0.5f, 2.0f, -infinity}) {
    SCOPED_TRACE(spoiled);
    spoil(adamw, spoiled);
    const KernelTrial before = device_adamw.read_back();
    step(adamw, sums, device_adamw, device_sums);
    const KernelTrial got = device_adamw.read_back();
    const auto control = [&](std::int64_t i) { return value_at(got, 5, i); };
    if (std::isfinite(spoiled)) {
      updates += 1;
      EXPECT_GT(control(update_control::factor), 0);
      EXPECT_LE(relative_error(got, adamw, 5), 1e-5);
    } else {
      EXPECT_EQ(control(update_control::factor), 0);
      for (const std::size_t kept : {0, 2, 3, 4}) {
        EXPECT_EQ(got.operands[kept], before.operands[kept]) << "operand " << kept;
      }
    }
    EXPECT_EQ(control(update_control::updates), updates);
    EXPECT_EQ(control(update_control::loss_scale), value_at(adamw, 5, update_control::loss_scale));
    for (const std::size_t operand : {0, 2, 3, 4}) {
      EXPECT_LE(relative_error(got, adamw, operand), error_bound(adamw, operand))
          << "operand " << operand;
    }
  }
  EXPECT_EQ(value_at(adamw, 5, update_control::loss_scale), 8 * 0.5 * 0.5 * 2 * 0.5);
}

INSTANTIATE_TEST_SUITE_P(DTypes, CudaUpdate,
                         testing::Values(DType::fp32, DType::bf16, DType::fp16));

}  // namespace
}  // namespace stepgate
