// SPDX-License-Identifier: MIT
// Other values of a knob: they stand for an accidental change.
#pragma once

#include <vector>

#include "scenario/knobs/fields.h"

namespace stepgate {

// Values to try instead of the present one. For a choice or switch: all others. For a number: its
// double, its half, 16 times, a sixteenth and 0, or a small one if it is 0. For a list: one element
// more, one less and none. All are within the field's limits.
std::vector<FieldValue> other_values(const Field&, const FieldValue& now);

}  // namespace stepgate
