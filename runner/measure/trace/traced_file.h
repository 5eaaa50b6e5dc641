// SPDX-License-Identifier: MIT
// Passes traces from the tracing process to the judging one: JSON after a header line with its
// length and digest. The same program writes and reads them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "measure/trace/traced.h"

namespace stepgate {

// Why the text cannot be trusted, in words that continue "the trace ": "is cut off after 17 of 2048
// bytes".
struct DamagedTrace {
  std::string reason;
};
using TracedOrDamaged = std::variant<Traced, DamagedTrace>;

std::string traced_text(const Traced&);
TracedOrDamaged read_traced_text(std::string_view text);

// Writes a new file into a TemporaryFolder of the reader, which detects a missing or incomplete
// one.
void write_traced(const std::filesystem::path&, const Traced&);
TracedOrDamaged read_traced(const std::filesystem::path&);

}  // namespace stepgate
