// SPDX-License-Identifier: MIT
// Tests that steps of a known class get this class on every device that traces. They are far from
// the limits of the rules on any GPU; diagnosis_test.cpp tests more realistic steps. Linked into
// the programs of the trace contract.
#include <gtest/gtest.h>

#include "judge/mechanism/diagnose.h"
#include "measure/planned_subject.h"
#include "measure/trace/trace_rounds.h"
#include "plan/count/facts_of.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

Knobs spinning(std::int64_t kernels, std::int64_t kernel_us) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::spin, .kernels = kernels, .kernel_us = kernel_us};
  knobs.batch = {.size = 16, .sample_bytes = 4096, .tensors = 1};
  return knobs;
}

Knobs gemms(std::int64_t hidden, std::int64_t batch) {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::mlp, .layers = 4, .hidden = hidden};
  knobs.batch.size = batch;
  return knobs;
}

struct ClassCase {
  std::string_view bound;    // start of the diagnosis
  BoundClass bound_class{};  // value of the assertion
  Knobs knobs;
};

std::vector<ClassCase> class_cases() {
  // The host works as long as the device, and waits for it in each step.
  Knobs sync = spinning(2, 200);
  sync.host.step_us = 400;
  sync.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 1};
  // Copies 64 MiB in order with one short kernel.
  Knobs copy = spinning(1, 50);
  copy.batch.sample_bytes = std::int64_t{4} << 20;
  copy.transfer.host = HostMemory::pinned;
  // The host makes every batch itself, far longer than the device computes.
  Knobs data = spinning(2, 50);
  data.loader.wait_us = 2000;
  // Every launch costs the host more than the kernel takes.
  Knobs launch = spinning(100, 1);
  launch.host.launch_us = 15;
  // GEMMs of a tiny batch only read weights, and the optimizer reads three times as much.
  Knobs memory = gemms(4096, 8);
  memory.optim.kind = OptimKind::adamw;
  return {{"sync-bound", BoundClass::host, sync},
          {"copy-bound", BoundClass::copy, copy},
          {"data-bound", BoundClass::data, data},
          {"launch-bound", BoundClass::host, launch},
          {"memory-bound", BoundClass::compute, memory},
          {"compute-bound", BoundClass::compute, gemms(4096, 4096)}};
}

class DiagnosisOf : public testing::TestWithParam<DeviceCase> {};

TEST_P(DiagnosisOf, StepsThatWereBuiltToBeOfAClassIsThatClass) {
  const std::unique_ptr<Device> device = GetParam().make();
  if (!device->reason_against_tracing().empty()) return;
  for (const ClassCase& built : class_cases()) {
    const std::vector<PlannedStep> plans{with_facts(plan_of(built.knobs))};
    const Traced traced =
        trace_rounds(*device, plans, {.rounds = 3, .max_seconds = 1e6, .seed = 1});
    ASSERT_EQ(traced.unavailable, "");
    const Mechanism mechanism = mechanism_of(subjects_of(plans), traced, {}, {});
    const std::string& diagnosis = mechanism.variants.at(0).diagnosis;
    EXPECT_EQ(diagnosis.substr(0, diagnosis.find(':')), built.bound) << diagnosis;
    EXPECT_EQ(mechanism.variants.at(0).bound_class, built.bound_class) << diagnosis;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, DiagnosisOf, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
