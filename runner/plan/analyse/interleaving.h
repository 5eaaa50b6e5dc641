// SPDX-License-Identifier: MIT
// Whether the steps of a plan may run between those of another without the host waiting in between,
// and still take the time that they take alone.
#pragma once

#include <span>
#include <string>

#include "plan/plan_facts.h"

namespace stepgate {

// Why a few steps of it, then a few of something else, would not be its step any more, in words: it
// works beside the compute stream, waits for the device or for a loader, or asks the driver for
// memory, all of which spends or saves time in the steps of others; or it does something in some
// steps only, which a few of them hold or do not. Empty where they may.
std::string reason_against_interleaving(const StepPlan&, std::span<const PeriodicWork>);

}  // namespace stepgate
