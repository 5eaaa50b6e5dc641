// SPDX-License-Identifier: MIT
// `stepgate gate --self-test`: what the gate's comparison of times ends with where the answer is
// known. BASE is both sides, and on one of them its workers do what is injected.
#pragma once

#include "verbs/arguments.h"

namespace stepgate {

// Prints a table of each workload and what it comes to; writes no file. Returns the exit code: that
// of the gravest workload. Throws RequestError, WorkerError, and NotGatedError where BASE simulates
// and nobody asked for it.
int test_the_gate(const Arguments&);

}  // namespace stepgate
