// SPDX-License-Identifier: MIT
// JSON of a trace, for the way from the process that recorded it.
#pragma once

#include "device/trace.h"
#include "support/record/record_json.h"

namespace stepgate {

// A trace that is read has at least one step, every call belongs to one of its spans or to none,
// and every rank is one that there can be.
template <>
struct JsonForm<Trace> {
  static RecordJson write(const Trace&);
  static void read(const RecordJson&, Trace&);
};

}  // namespace stepgate
