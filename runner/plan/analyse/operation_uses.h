// SPDX-License-Identifier: MIT
// All uses of buffers that an operation names. Passes that relocate buffers rewrite them: into an
// arena, into the part of a rank, or into separate memory.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

namespace operation_uses_in_detail {

template <class Act>
struct Visitor {
  Act& act;

  void operator()(LaunchKernel& launch) const {
    for (BufferUse& operand : launch.operands) act(operand);
  }
  void operator()(CopyBytes& copy) const {
    act(copy.to);
    act(copy.from);
  }
  void operator()(FillZero& fill) const { act(fill.what); }
  void operator()(HostCopies& copy) const {
    act(copy.to);
    act(copy.from);
  }
  void operator()(Prefetch& prefetch) const { act(prefetch.what); }
  void operator()(Collective& collective) const {
    act(collective.to);
    act(collective.from);
  }
  // These operations name a buffer as a whole.
  void operator()(Allocate&) const {}
  void operator()(Release&) const {}
  void operator()(RegisterHost&) const {}
  void operator()(UnregisterHost&) const {}
  void operator()(EmptyCache&) const {}
  void operator()(RecordEvent&) const {}
  void operator()(StreamWaitsEvent&) const {}
  void operator()(HostWaits&) const {}
  void operator()(TakeBatch&) const {}
  void operator()(HostWork&) const {}
};

}  // namespace operation_uses_in_detail

// Calls act(BufferUse&) for each use of the operation, including buffers that it only keeps.
template <class Act>
void for_each_use(Operation& operation, Act act) {
  std::visit(operation_uses_in_detail::Visitor<Act>{act}, operation.action);
  for (BufferUse& kept : operation.keeps) act(kept);
}

}  // namespace stepgate
