// SPDX-License-Identifier: MIT
// Other values of a knob: they stand for an accidental change.
#pragma once

#include <vector>

#include "scenario/knobs/fields.h"

namespace stepgate {

// All other values of a choice and of a switch. For a number its double, its half, 16 times and a
// sixteenth of it and 0, or a small one where it is 0. For a list one element more, one less and
// none. All lie within what the field may pass.
std::vector<FieldValue> other_values(const Field&, const FieldValue& now);

}  // namespace stepgate
