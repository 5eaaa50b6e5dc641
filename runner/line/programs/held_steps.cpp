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
    const std::int64_t unscored = observe.wash_out_steps + std::exchange(before_first_, 0);
    const HeldRun run = program_.run(observe.steps, unscored);
    peak_ = std::max(peak_, run.peak_memory_bytes);
    StepResult result;
    result.first_step = done_;
    result.steps = run.steps;
    result.elapsed = run.elapsed;
    done_ += unscored + run.steps;
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
