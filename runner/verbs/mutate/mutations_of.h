// SPDX-License-Identifier: MIT
// Makes every mutation of a scenario and lets the device decide it: what `mutate` and
// `check --strict` share. Which one was noticed is judge's to say.
#pragma once

#include <functional>

#include "judge/verdict/mutation.h"
#include "verbs/planned.h"

namespace stepgate {

// Every scenario that the arguments name, fitted to their device, the simulated one when they name
// none. Throws RequestError for any other device.
using EachMutated = std::function<void(const Planned&, const Mutations&)>;
void mutate_each(const Arguments&, const EachMutated&);

// Without each override of a variant in turn; then, for assertions that none of these failed, with
// other values of knobs until one does. Each on a device of its own as the arguments say, so that
// none depends on what was tried before it. Throws RequestError and DeviceError when the scenario
// itself cannot be decided.
Mutations mutations_of(const Planned&, const Arguments&, std::uint64_t seed);

}  // namespace stepgate
