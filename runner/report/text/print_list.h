// SPDX-License-Identifier: MIT
// Short lines about scenarios and devices, for `list`, `check` and `devices`.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "device/open_device.h"
#include "scenario/scenario.h"

namespace stepgate {

// Name, tags, claim, the five things of its steps, variants and the names of the assertions.
void print_listed(std::ostream&, const Scenario&);

// "scenarios/a.toml: 3 variants, 5 assertions", then a line for each warning.
void print_checked(std::ostream&, const Scenario&, std::span<const Diagnostic> warnings);

void print_devices(std::ostream&, std::span<const DeviceRow>);

}  // namespace stepgate
