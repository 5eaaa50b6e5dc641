// SPDX-License-Identifier: MIT
// The field table as documents: for the terminal and for editors.
// Printing and writing them is for others.
#pragma once

#include <string>
#include <string_view>

namespace stepgate {

// The output of `stepgate fields`: every field whose name contains the filter, or that a familiar
// word means, with its values, default and meaning, and a line for each choice; then the metrics
// that match. Empty if nothing matches.
std::string fields_text(std::string_view filter = {});

// A JSON Schema (draft 2020-12) of scenario files, for editors.
std::string fields_json_schema();

}  // namespace stepgate
