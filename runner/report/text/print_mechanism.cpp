// SPDX-License-Identifier: MIT
#include "report/text/print_mechanism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <ostream>
#include <string_view>
#include <vector>

#include "judge/verdict/words.h"
#include "plan/compose/step_names.h"
#include "report/text/table.h"

namespace stepgate {
namespace {

using Rows = std::vector<std::vector<std::string>>;

void print_right_aligned(std::ostream& out, const Rows& rows) {
  std::vector<Align> alignment(rows.front().size(), Align::right);
  alignment.front() = Align::left;
  out << '\n';
  print_table(out, alignment, rows);
}

std::string counted_noun(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// ", 1.2 s"; nothing where that is not worth saying, as on a device that only computes times.
std::string cost_in_words(std::chrono::nanoseconds wall_time) {
  constexpr double hardly_anything = 0.1;
  const double seconds = std::chrono::duration<double>(wall_time).count();
  return seconds < hardly_anything ? "" : fmt::format(", {:.1f} s", seconds);
}

// "; a traced step takes 1.02x to 1.12x the time of a timed one", where both are known.
std::string slowdown_in_words(const Mechanism& mechanism) {
  std::vector<double> slowdowns;
  for (const VariantMechanism& variant : mechanism.variants) {
    if (variant.slowdown) slowdowns.push_back(*variant.slowdown);
  }
  if (slowdowns.empty()) return "";
  const auto [least, most] = std::minmax_element(slowdowns.begin(), slowdowns.end());
  const std::string from = fmt::format("{:.2f}x", *least);
  const std::string to = fmt::format("{:.2f}x", *most);
  constexpr double too_slow = 1.1;
  return fmt::format(
      "; a traced step takes {}{} the time of a timed one{}", from, from == to ? "" : " to " + to,
      *most > too_slow ? ", so its host issues work more slowly than in timed ones" : "");
}

// But for a word that somebody reads back.
bool same_memory(const MemoryUse& one, const MemoryUse& other) {
  constexpr std::int64_t hardly_anything = 4096;
  const auto about = [](std::int64_t a, std::int64_t b) {
    return std::abs(a - b) <= hardly_anything;
  };
  return about(one.peak_allocated_bytes, other.peak_allocated_bytes) &&
         about(one.peak_reserved_bytes, other.peak_reserved_bytes) &&
         about(one.pinned_bytes, other.pinned_bytes);
}

std::vector<std::string> memory_row(std::string name, const MemoryUse& use,
                                    const std::vector<std::size_t>& purposes) {
  const auto bytes = [](std::int64_t count) {
    return in_words(static_cast<double>(count), MetricUnit::bytes);
  };
  std::vector<std::string> row{std::move(name)};
  for (const std::size_t purpose : purposes) row.push_back(bytes(use.allocated_bytes[purpose]));
  for (const std::int64_t count :
       {use.peak_allocated_bytes, use.peak_reserved_bytes, use.pinned_bytes}) {
    row.push_back(bytes(count));
  }
  return row;
}

// A device that books no memory shows none.
bool is_booked(const VariantMechanism& variant) {
  return variant.memory.peak_allocated_bytes > 0;
}

// So is one of which there is no plan.
bool is_as_planned(const VariantMechanism& variant) {
  return !variant.planned || same_memory(variant.memory, *variant.planned);
}

void print_memory(std::ostream& out, const std::vector<VariantMechanism>& variants) {
  const bool worth_showing =
      std::any_of(variants.begin(), variants.end(), [&](const VariantMechanism& variant) {
        return is_booked(variant) &&
               (!same_memory(variant.memory, variants.front().memory) || !is_as_planned(variant));
      });
  if (!worth_showing) return;
  std::vector<std::size_t> purposes;
  Rows rows(1);
  rows[0].emplace_back("memory");
  for (std::size_t purpose = 0; purpose < purpose_count; ++purpose) {
    const bool used =
        std::any_of(variants.begin(), variants.end(), [&](const VariantMechanism& variant) {
          const auto& planned = variant.planned;
          return variant.memory.allocated_bytes[purpose] > 0 ||
                 (planned && planned->allocated_bytes[purpose] > 0);
        });
    if (!used) continue;
    purposes.push_back(purpose);
    rows[0].emplace_back(name_of(static_cast<Purpose>(purpose)));
  }
  for (const char* title : {"allocated", "reserved", "pinned host"}) rows[0].emplace_back(title);
  for (const VariantMechanism& variant : variants) {
    if (!is_booked(variant)) continue;
    rows.push_back(memory_row(variant.variant, variant.memory, purposes));
    if (is_as_planned(variant)) continue;
    rows.push_back(memory_row("  planned", *variant.planned, purposes));
  }
  print_right_aligned(out, rows);
}

// Says which rank each number of a variant comes from; empty where its ranks do not differ.
std::string ranks_in_words(const std::string& variant, const WorstRanks& ranks) {
  if (ranks.metrics.empty() && ranks.kernels.empty()) return "";
  std::map<int, std::vector<std::string_view>> worst_at;
  for (const auto& [metric, rank] : ranks.metrics) worst_at[rank].push_back(row_of(metric).name);
  std::string words = fmt::format(
      "{}: the parts of its step are rank {}'s, and kernels each those of the rank where they take "
      "longest",
      variant, ranks.shown);
  std::string_view link = " is worst";
  for (const auto& [rank, metrics] : worst_at) {
    words += fmt::format("; rank {}{} at {}", rank, link, fmt::join(metrics, ", "));
    link = "";
  }
  return words;
}

// Names of the work that takes the most seconds in any variant.
std::vector<std::string> slowest_first(const Mechanism& mechanism) {
  constexpr std::size_t most_rows = 8;
  std::map<std::string, double> seconds;
  for (const VariantMechanism& variant : mechanism.variants) {
    for (const auto& [name, time] : variant.work)
      seconds[name] = std::max(seconds[name], time.seconds);
  }
  std::vector<std::string> names;
  for (const auto& [name, most] : seconds) names.push_back(name);
  std::ranges::stable_sort(names, std::greater<>(),
                           [&](const std::string& name) { return seconds.at(name); });
  if (names.size() > most_rows) names.resize(most_rows);
  return names;
}

constexpr std::size_t most_whole_columns = 5;

// Steps of one rank have no communication, and few kernels wait for one load after the other.
std::vector<TimePart> parts_shown(const Mechanism& mechanism) {
  const auto any = [&](auto&& has) { return std::ranges::any_of(mechanism.variants, has); };
  const bool communicates = any([](const VariantMechanism& variant) {
    const auto time = variant.values.find(Metric::comm_us);
    return time != variant.values.end() && time->second > 0;
  });
  const bool waits_for_loads =
      any([](const VariantMechanism& variant) { return variant.time.latency > 0; });
  std::vector<TimePart> parts;
  for (int index = 0; index < time_part_count; ++index) {
    const auto part = static_cast<TimePart>(index);
    if (part == TimePart::communication && !communicates) continue;
    if (part == TimePart::latency && !waits_for_loads) continue;
    parts.push_back(part);
  }
  return parts;
}

// "24x 1.2 ms 34.1 %", or the time alone where many variants stand side by side; work side by side
// adds up to more than the step.
std::string cell_of(const WorkTime& work, const TimeBreakdown& time, bool whole) {
  if (!whole) return in_words(work.seconds, MetricUnit::seconds);
  const std::string share =
      time.step > 0 ? fmt::format(" {:.1f} %", 100 * work.seconds / time.step) : "";
  return fmt::format("{:.4g}x {}{}", work.times, in_words(work.seconds, MetricUnit::seconds),
                     share);
}

}  // namespace

std::vector<std::vector<std::string>> time_rows(const Mechanism& mechanism) {
  Rows rows(1);
  rows[0] = {"variant", "traced step"};
  const std::vector<TimePart> parts = parts_shown(mechanism);
  for (const TimePart part : parts) rows[0].emplace_back(in_words(part));
  for (const VariantMechanism& variant : mechanism.variants) {
    const TimeBreakdown& time = variant.time;
    rows.push_back({variant.variant, in_words(time.step, MetricUnit::seconds)});
    for (const TimePart part : parts) {
      const double seconds = part_of(time, part);
      rows.back().push_back(time.step > 0 ? fmt::format("{:.1f} %", 100 * seconds / time.step)
                                          : "-");
    }
  }
  return rows;
}

std::vector<std::vector<std::string>> slowest_rows(const Mechanism& mechanism) {
  const std::vector<std::string> names = slowest_first(mechanism);
  if (names.empty()) return {};
  Rows rows(1);
  rows[0].emplace_back("slowest, a step");
  for (const VariantMechanism& variant : mechanism.variants) rows[0].push_back(variant.variant);
  const bool whole = mechanism.variants.size() <= most_whole_columns;
  for (const std::string& name : names) {
    rows.push_back({name});
    for (const VariantMechanism& variant : mechanism.variants) {
      const auto found = variant.work.find(name);
      rows.back().push_back(
          found == variant.work.end() ? "-" : cell_of(found->second, variant.time, whole));
    }
  }
  return rows;
}

void print_mechanism(std::ostream& out, const Mechanism& mechanism) {
  out << "\nmechanism\n";
  if (mechanism.variants.empty()) {
    out << "  "
        << (mechanism.unavailable.empty() ? "nothing was traced"
                                          : "trace unavailable: " + mechanism.unavailable)
        << '\n';
    return;
  }
  std::size_t width = 0;
  for (const VariantMechanism& variant : mechanism.variants) {
    width = std::max(width, variant.variant.size());
  }
  for (const VariantMechanism& variant : mechanism.variants) {
    out << fmt::format("  {:<{}}  {}\n", variant.variant, width, variant.diagnosis);
  }
  for (const Separation& separation : mechanism.separations) {
    out << "  " << separation.sentence << '\n';
  }
  print_right_aligned(out, time_rows(mechanism));
  if (const Rows slowest = slowest_rows(mechanism); !slowest.empty())
    print_right_aligned(out, slowest);
  for (const VariantMechanism& variant : mechanism.variants) {
    if (!variant.ranks) continue;
    const std::string ranks = ranks_in_words(variant.variant, *variant.ranks);
    if (!ranks.empty()) out << "  " << ranks << '\n';
  }
  print_memory(out, mechanism.variants);
  out << fmt::format("  {} of {}{}{}\n", counted_noun(mechanism.rounds, "traced round"),
                     counted_noun(mechanism.steps, "step"), cost_in_words(mechanism.wall_time),
                     slowdown_in_words(mechanism));
}

}  // namespace stepgate
