// SPDX-License-Identifier: MIT
#include "plan/analyse/stays.h"

#include <algorithm>

namespace stepgate {
namespace {

// The number of consecutive steps from the allocation to the release.
std::int64_t steps_of(const Allocate& allocate) {
  return allocate.steps;
}
std::int64_t steps_of(const RegisterHost&) {
  return 1;
}

template <class Take>
bool belong_together(const Operation& take, const Operation& give) {
  if (take.every != give.every) return false;
  const std::int64_t apart = (give.turn - take.turn + take.every) % take.every;
  return apart + 1 == steps_of(std::get<Take>(take.action));
}

template <class Take>
Stays matched(const StepPlan& plan, const std::vector<int>& takes, const std::vector<int>& gives) {
  Stays stays;
  for (std::size_t index = 0; index < takes.size(); ++index) {
    const bool given_back =
        index < gives.size() &&
        belong_together<Take>(plan.operations[static_cast<std::size_t>(takes[index])],
                              plan.operations[static_cast<std::size_t>(gives[index])]);
    if (given_back) {
      stays.pairs.emplace_back(takes[index], gives[index]);
    } else {
      stays.unmatched.push_back(takes[index]);
    }
  }
  return stays;
}

template <class Take, class Give>
std::vector<Stays> stays_of(const StepPlan& plan) {
  std::vector<std::vector<int>> takes(plan.buffers.size());
  std::vector<std::vector<int>> gives(plan.buffers.size());
  for (int index = 0; index < std::ssize(plan.operations); ++index) {
    const Action& action = plan.operations[static_cast<std::size_t>(index)].action;
    if (const auto* take = std::get_if<Take>(&action))
      takes[static_cast<std::size_t>(take->buffer)].push_back(index);
    if (const auto* give = std::get_if<Give>(&action))
      gives[static_cast<std::size_t>(give->buffer)].push_back(index);
  }
  std::vector<Stays> stays;
  for (std::size_t buffer = 0; buffer < plan.buffers.size(); ++buffer)
    stays.push_back(matched<Take>(plan, takes[buffer], gives[buffer]));
  return stays;
}

}  // namespace

std::vector<Stays> stays_allocated(const StepPlan& plan) {
  return stays_of<Allocate, Release>(plan);
}

std::vector<Stays> stays_registered(const StepPlan& plan) {
  return stays_of<RegisterHost, UnregisterHost>(plan);
}

bool gives_back_everything(const StepPlan& plan) {
  const auto within_a_step = [&](const Stays& stays) {
    return stays.unmatched.empty() && std::ranges::all_of(stays.pairs, [&](const auto& pair) {
             const Operation& take = operation_at(plan, pair.first);
             const Operation& give = operation_at(plan, pair.second);
             return pair.first < pair.second && take.ahead == 0 && give.ahead == 0 &&
                    take.turn == give.turn;
           });
  };
  return std::ranges::all_of(stays_allocated(plan), within_a_step) &&
         std::ranges::all_of(stays_registered(plan), within_a_step);
}

}  // namespace stepgate
