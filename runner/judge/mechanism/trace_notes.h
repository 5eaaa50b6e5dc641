// SPDX-License-Identifier: MIT
// Notes for a reader of traced numbers, in words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "measure/subject.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Whether the library of collectives counts them too, in so many words, and how it carries them
// out; nothing where no variant has any.
std::vector<std::string> library_record_notes(const Traced&);

// Events of the traced steps that do not belong into a steady step, with what to do about them.
std::vector<std::string> unsteady_notes(std::span<const Subject>, const Traced&);

}  // namespace stepgate
