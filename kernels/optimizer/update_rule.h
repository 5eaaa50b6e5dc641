// SPDX-License-Identifier: MIT
// The kernels of an optimizer's rule, as its header declares them: a rule has one that updates the
// weights, one that is steered by a control (update_control.h), and one that also keeps an fp32
// master of the weights.
//   shape     rows x columns parameters
//   operands  weights, gradients, master (fp32; of a master only), moments (fp32, as many as the
//             rule has), then the control, or the counter (uint64 [1]: the number of this step,
//             from 1) of a plain rule that asks for it
// Where a control's factor is 0 nothing changes; otherwise gradients are multiplied by it. The
// weights are the rounded master and never read where there is one.
//
// A rule is named by a struct in namespace `kernels`: the `names` of its kernels in the order of
// UpdateKind, the first of them as its `name`, its Attributes, how many `moments` it has and
// whether its plain kernel `counts_updates`.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

enum class UpdateKind { plain, clipped, master };

constexpr UpdateKind update_kinds[] = {UpdateKind::plain, UpdateKind::clipped, UpdateKind::master};

template <class Named>
constexpr std::string_view update_name(UpdateKind kind) {
  return Named::names[static_cast<std::size_t>(kind)];
}

// A kernel of the rule that `Named` names.
template <class Named, UpdateKind kind>
struct UpdateKernel {
  static constexpr std::string_view name = update_name<Named>(kind);
  using Shape = typename Named::Shape;
  using Attributes = typename Named::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace stepgate
