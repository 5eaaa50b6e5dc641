// SPDX-License-Identifier: MIT
// A number that identifies what a scenario measures, so that a baseline of another measurement is
// never compared.
#pragma once

#include <cstdint>

#include "scenario/scenario.h"

namespace stepgate {

// FNV-1a (Fowler, Noll, Vo; 64 bits) over every knob of every variant in the field table's order,
// the parsed assertions and the [measure] knobs. Comments, the order of keys, defaults written out
// and the claim have no influence.
std::uint64_t fingerprint_of(const Scenario&);

// FNV-1a over the knobs of one step, without the assertions about it.
std::uint64_t fingerprint_of(const Knobs&);

}  // namespace stepgate
