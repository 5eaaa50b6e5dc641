// SPDX-License-Identifier: MIT
// Short lines about scenarios and devices, for `list`, `check` and `devices`.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "device/open_device.h"
#include "scenario/scenario.h"
#include "support/text/diagnostic.h"

namespace stepgate {

// Name, tags, claim, variants and the names of the sentences.
void print_listed(std::ostream&, const Scenario&);

// The same for programs, one JSON object a line: name, file, tags, and of every sentence its name,
// line and text. Of a file with faults the name and what is wrong with it: whoever makes tests of
// scenarios must not lose one.
void write_listed(std::ostream&, const Scenario&);
void write_unlisted(std::ostream&, const std::string& file, const RequestError&);

// "scenarios/a.toml: 3 variants, 5 sentences", then a line for each warning.
void print_checked(std::ostream&, const Scenario&);

void print_devices(std::ostream&, std::span<const DeviceRow>);

}  // namespace stepgate
