// SPDX-License-Identifier: MIT
#include "compare/gate/accepted.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text/nearest.h"
#include "base/text/units.h"
#include "base/toml/toml.h"
#include "base/toml/toml_keys.h"
#include "compare/worker/kernel_workload.h"
#include "kernels/catalogue.h"
#include "ledger/series/history.h"
#include "scenario/assertions/metric.h"

namespace stepgate {
namespace {

constexpr std::string_view accepted_way_out = "docs/gate.md has an example";

constexpr double most_weeks = 53;

// "kernel_us(", which a kernel follows.
std::string before_kernel() {
  return fmt::format("{}(", row_of(Metric::kernel_us).name);
}

bool names_kernel(const Accepted& entry) {
  return std::ranges::any_of(kernel_catalogue(), [&](const Kernel& kernel) {
    return entry.what == metric_text(KernelWorkload{{}, std::string(kernel.name)});
  });
}

Accepted read_entry(const TomlKeys::Table& table, const std::string& day,
                    TomlKeys::Faults& faults) {
  Accepted entry;
  entry.place = table.place;
  TomlKeys keys(*table.content, table.place, "an accepted change", faults, accepted_way_out);
  keys.text("workload", entry.workload);
  keys.text("what", entry.what);
  std::string at_most;
  keys.text_if_any("at_most", at_most);
  keys.text("who", entry.who);
  keys.text("why", entry.why);
  keys.text("until", entry.until);
  keys.refuse_the_rest();
  const auto metric = metric_named(entry.what);
  const bool measured = is_of_time(entry) || metric;
  const auto quantity = parse_quantity(at_most);
  const Dimension wanted =
      metric && row_of(*metric).unit == MetricUnit::bytes ? Dimension::bytes : Dimension::plain;
  const bool is_share = at_most.find('%') != std::string::npos;
  const bool share_wanted = !metric || row_of(*metric).unit == MetricUnit::ratio;
  entry.limit_text = at_most;
  if (!measured && !at_most.empty()) {
    keys.fault(table.place, "'at_most' says nothing of '" + entry.what + "'");
  } else if (measured && (!quantity || quantity->dimension != wanted || is_share != share_wanted)) {
    keys.fault(table.place, "'at_most' must say how much is accepted of '" + entry.what +
                                "', as in \"5%\" for time, \"27\" for launches or \"4 MiB\" for "
                                "bytes");
  } else if (measured) {
    entry.limit = quantity->value;
  }
  if (entry.what.starts_with(before_kernel()) && !names_kernel(entry)) {
    std::vector<std::string_view> kernels;
    for (const Kernel& kernel : kernel_catalogue()) kernels.push_back(kernel.name);
    const std::string_view asked = std::string_view(entry.what).substr(before_kernel().size());
    keys.fault(table.place, fmt::format("'{}' names no kernel; {}", entry.what,
                                        did_you_mean(asked.substr(0, asked.find(')')), kernels,
                                                     "write it as an assertion does")));
  }
  constexpr std::size_t day_bytes = std::string_view("2027-01-31").size();
  const bool is_day = entry.until.size() == day_bytes && weeks_of_date(entry.until);
  if (!entry.until.empty() && !is_day)
    keys.fault(table.place, "'until' must be a day, as in until = \"2027-01-31\"");
  const auto today = weeks_of_date(day);
  if (is_day && today && *weeks_of_date(entry.until) - *today > most_weeks)
    keys.fault(table.place, "'until' is more than a year away; give a day within a year");
  if (is_of_time(entry) && entry.workload.find_first_not_of("*?/") == std::string::npos)
    keys.fault(table.place, "'workload' is every workload; name the scenarios that may be slower");
  for (const auto& [name, text] : {std::pair{"who", &entry.who}, {"why", &entry.why}}) {
    if (text->find_first_not_of(' ') == std::string::npos)
      keys.fault(table.place, std::string("'") + name + "' is empty");
  }
  return entry;
}

}  // namespace

std::vector<Accepted> read_accepted(const std::filesystem::path& file, const std::string& day) {
  const TomlTable table = read_toml(file, "a file of accepted changes");
  TomlKeys::Faults faults;
  TomlKeys keys(table, {file.string(), 0, 0}, "a file of accepted changes", faults,
                accepted_way_out);
  std::vector<Accepted> all;
  if (const TomlEntry* entries = keys.optional("accepted")) {
    for (const TomlKeys::Table& entry : keys.tables(*entries))
      all.push_back(read_entry(entry, day, faults));
  }
  keys.refuse_the_rest();
  if (!faults.empty()) throw RequestError(std::move(faults));
  return all;
}

bool is_of_time(const Accepted& entry) {
  return entry.what == "time" || entry.what.starts_with(before_kernel());
}

bool speaks_of(const Accepted& entry, const std::string& workload, const std::string& what) {
  return entry.what == what && ::fnmatch(entry.workload.c_str(), workload.c_str(), 0) == 0;
}

bool counts_on(const Accepted& entry, const std::string& day) {
  return day.substr(0, entry.until.size()) <= entry.until;
}

}  // namespace stepgate
