// SPDX-License-Identifier: MIT
#include "line/programs/held_steps.h"

#include <algorithm>
#include <utility>

namespace stepgate {
namespace {

class HeldStep : public LoadedStep {
 public:
  HeldStep(const HeldVariant& held, std::int64_t first_step, std::int64_t& peak)
      : variant_(held.name),
        program_(held.request),
        before_first_(held.skip_steps + first_step),
        peak_(peak) {}

  StepResult run(const Observe& observe) override try {
    (void)program_.hello();
    const std::int64_t before = std::max<std::int64_t>(
        std::exchange(before_first_, 0), program_.steps_to_settle() - observe.wash_out_steps);
    const HeldRun run = program_.run(observe.steps, before + observe.wash_out_steps);
    peak_ = std::max(peak_, run.peak_memory_bytes);
    StepResult result;
    result.first_step = done_ + before;
    result.steps = run.steps;
    result.elapsed = run.elapsed;
    done_ = result.first_step + observe.wash_out_steps + run.steps;
    return result;
  } catch (const HeldError& error) {
    throw DeviceError(variant_ + ": " + error.what());
  }

 private:
  std::string variant_;
  HeldProgram program_;
  std::int64_t before_first_;
  std::int64_t& peak_;
  std::int64_t done_ = 0;
};

}  // namespace

std::unique_ptr<LoadedStep> HeldRunner::load(std::size_t variant, const LoadDraw& draw) {
  return std::make_unique<HeldStep>(variants_[variant], draw.first_step, peaks_[variant]);
}

}  // namespace stepgate
