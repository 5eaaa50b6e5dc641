// SPDX-License-Identifier: MIT
// JSON of a trace, for the way from the process that recorded it.
#pragma once

#include "base/record/record_json.h"
#include "device/trace.h"

namespace stepgate {

// `read` throws WrongRecord where a trace has no step, a call of a span that is not there, a rank
// that cannot be, a size below zero, or a number so large that sums of two would overflow.
template <>
struct JsonForm<Trace> {
  static RecordJson write(const Trace&);
  static void read(const RecordJson&, Trace&);
};

}  // namespace stepgate
