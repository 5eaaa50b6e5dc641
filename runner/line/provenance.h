// SPDX-License-Identifier: MIT
// Says where a run comes from: when it was made, of which commit and build, and on which boot.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "judge/stored/baseline.h"
#include "line/line_arguments.h"
#include "scenario/scenario.h"

namespace stepgate {

// Names what is under test: this build where --subject does not say. Throws RequestError for a
// character that is not printable ASCII.
std::string subject_under_test(const LineArguments&);
std::string build_in_words();

// The provenance of a run that begins now. Only a GPU run records the boot: a simulated device does
// not depend on it.
Provenance provenance_of(const LineArguments&, const Scenario&, std::uint64_t seed, DeviceKind);

// The day and second to write into a file: what was given, or now.
std::string date_of(const LineArguments&);

// The commit that the scenario's folder is at, "-dirty" behind it when something there is changed;
// --commit where it was given, "unknown" where git does not know.
std::string commit_of(const LineArguments&, const std::filesystem::path& scenario_file);

}  // namespace stepgate
