// SPDX-License-Identifier: MIT
// Traces on their way from the process that traced to the one that decides: JSON under a line that
// says how long it is and what its digest is. The program that wrote them reads them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "measure/trace/traced.h"

namespace stepgate {

// The traces, or why the text cannot be trusted, in words that go on after "the trace ": "is cut
// off after 17 of 2048 bytes".
struct DamagedTrace {
  std::string reason;
};
using TracedOrDamaged = std::variant<Traced, DamagedTrace>;

std::string traced_text(const Traced&);
TracedOrDamaged read_traced_text(std::string_view text);

// Writes for a reader that is waiting, without syncing to disk. The reader detects a file that is
// not complete.
void write_traced(const std::filesystem::path&, const Traced&);
TracedOrDamaged read_traced(const std::filesystem::path&);

}  // namespace stepgate
