// SPDX-License-Identifier: MIT
// One number for what a scenario asks, so that a baseline of another question is never compared.
#pragma once

#include <cstdint>

#include "scenario/scenario.h"

namespace stepgate {

// FNV-1a (Fowler, Noll, Vo; 64 bits) over every knob of every variant in the field table's order,
// the assertions as parsed and the [measure] knobs. Comments, the order of keys, defaults written
// out, and the claim do not change it.
std::uint64_t fingerprint_of(const Scenario&);

// The same over the knobs of one step: which assertions speak of it does not change it.
std::uint64_t fingerprint_of(const Knobs&);

}  // namespace stepgate
