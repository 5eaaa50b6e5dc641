// SPDX-License-Identifier: MIT
// Plants launches that a step must not make, on the local GPU: on another stream, and launches that
// change limits of the device. Fails, never skips, where there is no GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <memory>

#include "device/cuda/cuda_device.h"
#include "kernels/kernels.h"
#include "measure/trace/trace_rounds.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

using Deed = void (*)(const Launch& launch, void* const* buffers, CUstream_st* stream);
Deed deed = nullptr;
void (*at_preparation)() = nullptr;

void honest(const Launch& launch, void* const* buffers, CUstream_st* stream) {
  launch(buffers, stream);
}

void on_the_legacy_stream(const Launch& launch, void* const* buffers, CUstream_st*) {
  launch(buffers, cudaStreamLegacy);
}

void set_limit(cudaLimit limit, std::size_t bytes) {
  EXPECT_EQ(cudaDeviceSetLimit(limit, bytes), cudaSuccess);
}

Launch planted_launch(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                      const LaunchContext& context) {
  if (at_preparation != nullptr) at_preparation();
  const Launch launch = kernel(kernels::LayerNorm::name).prepare(shape, dtype, attributes, context);
  return [launch](void* const* buffers, CUstream_st* stream) { deed(launch, buffers, stream); };
}

// A step that copies its batches on the side stream. Its layer norms do this deed.
StepPlan plan_that(Deed does) {
  static Kernel planted;
  planted = kernel(kernels::LayerNorm::name);
  planted.prepare = planted_launch;
  deed = does;
  Knobs knobs;
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::memcpy};
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 128, .dtype = DType::bf16};
  knobs.model.heads = 2;
  knobs.model.seq = 128;
  knobs.model.vocab = 1024;
  knobs.batch.size = 4;
  knobs.optim.kind = OptimKind::adamw;
  knobs.launch.fuse = Fuse::none;
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({.name = "fix", .knobs = knobs, .place = {}});
  StepPlan plan = build_step_plans(scenario, 1).front();
  bool any = false;
  for (Operation& operation : plan.operations) {
    auto* const launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || launch->kernel != kernels::LayerNorm::name) continue;
    launch->kernel = KernelRef(planted);
    any = true;
  }
  EXPECT_TRUE(any);
  return plan;
}

// The device records, so it is opened before anything else uses CUDA.
Device& device() {
  static const std::unique_ptr<Device> only = make_cuda_device(Recording::on);
  return *only;
}

std::string against_trace(Deed does) {
  const std::vector<PlannedStep> plans{with_facts(plan_that(does))};
  const Traced traced = trace_rounds(device(), plans, {});
  EXPECT_EQ(traced.unavailable, "");
  return traced.not_as_planned;
}

TEST(PlantedLaunches, OnTheLegacyStreamAreNotThePlans) {
  EXPECT_EQ(against_trace(honest), "");
  const std::string reason = against_trace(on_the_legacy_stream);
  EXPECT_NE(reason.find("kernels of '"), std::string::npos) << reason;
  EXPECT_NE(reason.find("the plan's 'compute'"), std::string::npos) << reason;
}

// Returns what a run of the step with this deed says of the device.
std::string changed_by(Deed does) {
  const StepPlan plan = plan_that(does);
  return device().load(plan)->run({.wash_out_steps = 1, .steps = 3}).device_changed;
}

TEST(PlantedLaunches, ThatChangeNoLimitAreLeftAlone) {
  EXPECT_EQ(changed_by(honest), "");
}

TEST(PlantedLaunches, ThatSetCacheAsideAreFound) {
  std::size_t before = 0;
  ASSERT_EQ(cudaDeviceGetLimit(&before, cudaLimitPersistingL2CacheSize), cudaSuccess);
  const std::string words =
      changed_by([](const Launch& launch, void* const* buffers, CUstream_st* stream) {
        set_limit(cudaLimitPersistingL2CacheSize, std::size_t{4} << 20);
        launch(buffers, stream);
      });
  EXPECT_TRUE(words.starts_with("persisting L2 was ")) << words;
  set_limit(cudaLimitPersistingL2CacheSize, before);
}

TEST(PlantedLaunches, ThatSetCacheAsideWhileTheyArePreparedAreFound) {
  std::size_t before = 0;
  (void)device();
  ASSERT_EQ(cudaDeviceGetLimit(&before, cudaLimitPersistingL2CacheSize), cudaSuccess);
  at_preparation = [] { set_limit(cudaLimitPersistingL2CacheSize, std::size_t{4} << 20); };
  const std::string words = changed_by(honest);
  at_preparation = nullptr;
  EXPECT_TRUE(words.starts_with("persisting L2 was ")) << words;
  set_limit(cudaLimitPersistingL2CacheSize, before);
}

TEST(PlantedLaunches, ThatKeepTheirOperandsInTheCacheAreFound) {
  const std::string words =
      changed_by([](const Launch& launch, void* const* buffers, CUstream_st* stream) {
        cudaStreamAttrValue value{};
        value.accessPolicyWindow = {.base_ptr = buffers[0],
                                    .num_bytes = 4096,
                                    .hitRatio = 1,
                                    .hitProp = cudaAccessPropertyPersisting,
                                    .missProp = cudaAccessPropertyStreaming};
        EXPECT_EQ(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value),
                  cudaSuccess);
        launch(buffers, stream);
      });
  EXPECT_EQ(words, "the access policy window of the stream 'compute' was 0 B and is 4096 B");
}

}  // namespace
}  // namespace stepgate
