// SPDX-License-Identifier: MIT
// What else a knob could be: the values that stand for "somebody turned it".
#pragma once

#include <vector>

#include "scenario/knobs/fields.h"

namespace stepgate {

// Of a choice all others, of a switch the other one, of a number its double, its half, 16 times
// and a sixteenth of it and 0, or a small one where it is 0, of a list one more, one less and none;
// all within what the field may hold.
std::vector<FieldValue> other_values(const Field&, const FieldValue& now);

}  // namespace stepgate
