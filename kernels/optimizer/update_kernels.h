// SPDX-License-Identifier: MIT
// The host side of the kernels of an optimizer's rule: operands, work and references. update_rule.h
// has their meaning and shapes.
#pragma once

#include "kernels/extents.h"
#include "kernels/number_format.h"
#include "kernels/optimizer/update_rule.h"

namespace stepgate {

// A rule has the type `Named`, its flops per parameter, and
//   static double step(const Attributes&, double updates, double weight, double gradient,
//                      double* moments)
// which updates the moments and returns the new weight.
template <class Rule, UpdateKind kind>
struct UpdateLayout {
  static constexpr bool controlled = kind != UpdateKind::plain;
  static constexpr bool counted = !controlled && Rule::Named::counts_updates;
  static constexpr std::size_t first_moment = kind == UpdateKind::master ? 3 : 2;
  static constexpr std::size_t steering = first_moment + Rule::Named::moments;
  static constexpr std::size_t operands = steering + (controlled || counted ? 1 : 0);
};

template <class Rule, UpdateKind kind>
constexpr auto update_operands() {
  using Layout = UpdateLayout<Rule, kind>;
  constexpr std::string_view moments[] = {"m", "v"};
  OperandOf<typename Rule::Named> all[Layout::operands] = {};
  all[0] = {.name = "weights",
            .access = Access::read_write,
            .elements = extent::elements,
            .keeps_rest = kind == UpdateKind::master};
  all[1] = {"gradients", Access::read, extent::elements};
  if constexpr (kind == UpdateKind::master)
    all[2] = {"master", Access::read_write, extent::elements, OperandFormat::single};
  for (std::size_t i = 0; i < Rule::Named::moments; ++i)
    all[Layout::first_moment + i] = {moments[i], Access::read_write, extent::elements,
                                     OperandFormat::single};
  if constexpr (Layout::controlled)
    all[Layout::steering] = {"control", Access::read, extent::control, OperandFormat::control};
  if constexpr (Layout::counted)
    all[Layout::steering] = {"counter", Access::read, extent::one, OperandFormat::count};
  return operands_of(all);
}

template <class Rule, UpdateKind kind>
void update_reference(const CallOf<typename Rule::Named>& call) {
  using Layout = UpdateLayout<Rule, kind>;
  const DType single = single_of(call.dtype);
  double factor = 1, updates = 0;
  if constexpr (Layout::controlled) {
    const auto* control = static_cast<const float*>(call.buffers[Layout::steering]);
    factor = control[update_control::factor];
    updates = control[update_control::updates];
    if (factor == 0) return;
  }
  if constexpr (Layout::counted) {
    const auto* counter = static_cast<const std::uint64_t*>(call.buffers[Layout::steering]);
    updates = static_cast<double>(*counter);
  }
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const auto kept = [&](std::size_t operand) {
      return number_at(call.buffers[operand], single, i);
    };
    const auto keep = [&](std::size_t operand, double value) {
      set_number(call.buffers[operand], single, i, value);
    };
    double moments[Rule::Named::moments];
    for (std::size_t moment = 0; moment < Rule::Named::moments; ++moment)
      moments[moment] = kept(Layout::first_moment + moment);
    const double gradient = factor * number_at(call.buffers[1], call.dtype, i);
    double weight = 0;
    if constexpr (kind == UpdateKind::master)
      weight = kept(2);
    else
      weight = number_at(call.buffers[0], call.dtype, i);
    weight = Rule::step(call.attributes, updates, weight, gradient, moments);
    for (std::size_t moment = 0; moment < Rule::Named::moments; ++moment)
      keep(Layout::first_moment + moment, moments[moment]);
    if constexpr (kind == UpdateKind::master) {
      keep(2, weight);
      weight = kept(2);
    }
    set_number(call.buffers[0], call.dtype, i, weight);
  }
}

template <class Rule, UpdateKind kind>
Kernel update_kernel() {
  static constexpr auto operands = update_operands<Rule, kind>();
  // The flops of a launch that is not skipped; multiplying by the control's factor is one more.
  constexpr std::int64_t flops = Rule::flops + (UpdateLayout<Rule, kind>::controlled ? 1 : 0);
  return row<UpdateKernel<typename Rule::Named, kind>, update_reference<Rule, kind>>(
      operands, flops_an_element<flops>);
}

// The catalogue rows of the rule's kernels.
template <class Rule>
std::vector<Kernel> update_kernels() {
  return {update_kernel<Rule, UpdateKind::plain>(), update_kernel<Rule, UpdateKind::clipped>(),
          update_kernel<Rule, UpdateKind::master>()};
}

}  // namespace stepgate
