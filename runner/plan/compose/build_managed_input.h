// SPDX-License-Identifier: MIT
// How a batch arrives in managed memory: the host writes it, page faults or a prefetch bring it to
// the device. build_input.cpp has the batches that are copied.
#pragma once

#include "plan/compose/build_input.h"

namespace stepgate {

// Appends the operations that bring a batch to the device without a copy call. The host writes a
// slot only when the device has read the batch that lay in it.
InputParts build_managed_input(StepBuilder&, const Knobs&, std::int64_t batch_bytes);

}  // namespace stepgate
