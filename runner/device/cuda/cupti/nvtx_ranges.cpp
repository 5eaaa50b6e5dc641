// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/nvtx_ranges.h"

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include <string>

#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

class NvtxRanges : public StepObserver {
 public:
  explicit NvtxRanges(nvtxDomainHandle_t domain) : domain_(domain) {}
  ~NvtxRanges() override { nvtxDomainDestroy(domain_); }

  void begin_run(const StepPlan& plan) override {
    plan_ = &plan;
    (void)cudaProfilerStart();
    push(plan.scenario + "/" + plan.variant);
  }

  // Ranges are nested: a phase in a step, the step in the run. An operation of the next phase or
  // step ends them.
  void begin(int operation, std::int64_t step, std::int64_t) override {
    if (operation < 0) return close_phase();
    const Phase phase = plan_->operations[static_cast<std::size_t>(operation)].phase;
    if (in_step_ && step != step_) close_step();
    if (!in_step_) push("step " + std::to_string(step));
    in_step_ = true;
    step_ = step;
    if (in_phase_ && phase == phase_) return;
    close_phase();
    push(std::string(name_of(phase)));
    in_phase_ = true;
    phase_ = phase;
  }

  void end() override {}

  void end_run() override {
    if (in_step_) close_step();
    pop();
    (void)cudaProfilerStop();
  }

 private:
  void close_phase() {
    if (in_phase_) pop();
    in_phase_ = false;
  }
  void close_step() {
    close_phase();
    pop();
    in_step_ = false;
  }
  void push(const std::string& name) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name.c_str();
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void pop() { nvtxDomainRangePop(domain_); }

  nvtxDomainHandle_t domain_;
  const StepPlan* plan_ = nullptr;
  bool in_step_ = false;
  bool in_phase_ = false;
  std::int64_t step_ = 0;
  Phase phase_ = Phase::host;
};

}  // namespace

std::unique_ptr<StepObserver> make_nvtx_ranges() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("stepgate");
  return domain ? std::make_unique<NvtxRanges>(domain) : nullptr;
}

}  // namespace stepgate
