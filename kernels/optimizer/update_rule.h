// SPDX-License-Identifier: MIT
// The kernels of an optimizer's rule, as its header declares them. A rule has three kernels: plain,
// clipped (with a control, update_control.h), and master (with a control and an fp32 master of the
// weights).
//   shape     rows x columns parameters
//   operands  weights, gradients, master (fp32; only of a master kernel), moments (fp32, as many as
//             the rule has), then the control, or in a plain kernel with `counts_updates` the
//             counter (uint64 [1]: the number of this step, from 1)
// Where a control's factor is 0 nothing changes; otherwise gradients are multiplied by it. If there
// is a master, the weights are the rounded master and never read.
//
// A rule is named by a struct in namespace `kernels`. It has the `names` of its kernels in the
// order of UpdateKind, of which the first is its `name`, and its Attributes. It also has the number
// of `moments`, and whether its plain kernel `counts_updates`.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

enum class UpdateKind { plain, clipped, master };

constexpr UpdateKind update_kinds[] = {UpdateKind::plain, UpdateKind::clipped, UpdateKind::master};

template <class Named>
constexpr std::string_view update_name(UpdateKind kind) {
  return Named::names[static_cast<std::size_t>(kind)];
}

// A kernel of the rule `Named`.
template <class Named, UpdateKind kind>
struct UpdateKernel {
  static constexpr std::string_view name = update_name<Named>(kind);
  using Shape = typename Named::Shape;
  using Attributes = typename Named::Attributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace stepgate
