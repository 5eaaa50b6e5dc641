// SPDX-License-Identifier: MIT
// JSON form of a trace, which the recording process sends to another.
#pragma once

#include "base/record/record_json.h"
#include "device/trace.h"

namespace stepgate {

// `read` throws WrongRecord if a trace has no step, a call refers to a missing span, or a rank is
// out of range. It also throws for a size below zero, and for a number so large that a sum of two
// would overflow.
template <>
struct JsonForm<Trace> {
  static RecordJson write(const Trace&);
  static void read(const RecordJson&, Trace&);
};

}  // namespace stepgate
