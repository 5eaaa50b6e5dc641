// SPDX-License-Identifier: MIT
#include "report/text/print_snapshot.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text/number_words.h"
#include "base/text/units.h"
#include "report/text/table.h"

namespace stepgate {

void print_snapshot(std::ostream& out, const MemorySnapshot& snapshot,
                    std::optional<std::int64_t> cap_bytes) {
  out << fmt::format("{}\n  {}", snapshot.file,
                     counted_in_words(std::ssize(snapshot.requests), "request"));
  if (snapshot.held_before > 0)
    out << fmt::format(", {} of them for blocks from before the history", snapshot.held_before);
  if (snapshot.refusals > 0)
    out << fmt::format("; the program ran out of memory {}x", snapshot.refusals);
  out << "\n\n";
  const auto size = [](std::int64_t bytes) {
    return rounded_bytes_text(static_cast<double>(bytes));
  };
  std::vector<std::vector<std::string>> rows{{"allocator", "live at most", "reserved at most"}};
  if (cap_bytes) rows.front().push_back("into " + size(*cap_bytes));
  for (const AllocatorNeed& need : needs_of(snapshot, cap_bytes)) {
    rows.push_back({need.name, size(need.live_bytes), size(need.reserved_bytes)});
    if (need.fits) rows.back().emplace_back(*need.fits ? "fits" : "does not fit");
  }
  print_table(out, {Align::left, Align::right, Align::right, Align::left}, rows);
}

}  // namespace stepgate
