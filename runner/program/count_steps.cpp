// SPDX-License-Identifier: MIT
#include "program/count_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/process/masked_words.h"
#include "base/text/diagnostic.h"
#include "program/matching_names.h"

namespace stepgate {
namespace {

using namespace attached;

constexpr std::array rows{
    CallCountRow{CallCount::waits, "waits", "waits", CountIs::exact, std::nullopt},
    CallCountRow{CallCount::device_waits, "device_waits", "  for the whole device", CountIs::exact,
                 Metric::device_syncs_per_step},
    CallCountRow{CallCount::blocking_copies, "blocking_copies", "copies that block", CountIs::exact,
                 std::nullopt},
    CallCountRow{CallCount::blocking_frees, "blocking_frees", "frees and pins that block",
                 CountIs::exact, std::nullopt},
    CallCountRow{CallCount::pageable_copies, "pageable_copies", "pageable copies", CountIs::exact,
                 Metric::pageable_copies_per_step},
    CallCountRow{CallCount::copies_to_device, "copies_to_device", "copies to device",
                 CountIs::exact, std::nullopt},
    CallCountRow{CallCount::copies_to_host, "copies_to_host", "copies to host", CountIs::exact,
                 std::nullopt},
    CallCountRow{CallCount::copies, "copies", "copies in all", CountIs::exact,
                 Metric::copies_per_step},
    CallCountRow{CallCount::copy_bytes, "copy_bytes", "bytes copied", CountIs::exact,
                 Metric::copy_bytes_per_step},
    CallCountRow{CallCount::device_allocs, "device_allocs", "device allocations", CountIs::exact,
                 Metric::device_allocs_per_step},
    CallCountRow{CallCount::device_frees, "device_frees", "device frees", CountIs::exact,
                 Metric::device_frees_per_step},
    CallCountRow{CallCount::pinned_allocs, "pinned_allocs", "pinned allocations", CountIs::exact,
                 Metric::pinned_allocs_per_step},
    CallCountRow{CallCount::launches, "launches", "launches", CountIs::version,
                 Metric::launches_per_step},
    CallCountRow{CallCount::graph_launches, "graph_launches", "  of graphs", CountIs::exact,
                 std::nullopt},
    CallCountRow{CallCount::graph_kernels, "graph_kernels", "kernels in graphs", CountIs::version,
                 std::nullopt},
    CallCountRow{CallCount::fills, "fills", "fills", CountIs::version, std::nullopt},
    CallCountRow{CallCount::polls, "polls", "polls", CountIs::neither, Metric::polls_per_step},
    CallCountRow{CallCount::collectives, "collectives", "collectives", CountIs::exact,
                 Metric::collectives_per_step},
    CallCountRow{CallCount::unknown_copies, "unknown_copies", "copies of unknown ends",
                 CountIs::exact, std::nullopt},
};
static_assert(rows.size() == call_count_count);

double& at(CallCounts& counts, CallCount count) {
  return counts[static_cast<std::size_t>(count)];
}

// CUgraphNodeType.
enum NodeType : std::uint16_t { kernel_node = 0, copy_node = 1, fill_node = 2 };

struct GraphWork {
  double kernels = 0, copies = 0, fills = 0;
};

// The work of executable graphs at the moment of a record.
class Graphs {
 public:
  void take(const Record& record) {
    switch (kind_of(record)) {
      case RecordKind::graph_created:
        graphs_[record.payload] = {};
        break;
      case RecordKind::node_created: {
        GraphWork& work = graphs_[record.payload];
        switch (record.head & 0xff) {
          case kernel_node:
            ++work.kernels;
            break;
          case copy_node:
            ++work.copies;
            break;
          case fill_node:
            ++work.fills;
            break;
          default:
            break;
        }
        break;
      }
      case RecordKind::exec_created:
        made_[record.payload] = graphs_[record.detail];
        break;
      case RecordKind::mark:
        break;
    }
  }
  GraphWork of(std::uint64_t executable) const {
    const auto found = made_.find(executable);
    return found == made_.end() ? GraphWork{} : found->second;
  }

 private:
  std::unordered_map<std::uint64_t, GraphWork> graphs_;
  std::unordered_map<std::uint64_t, GraphWork> made_;
};

bool is_call(const Record& record) {
  return kind_of(record) < RecordKind::mark;
}
CallKind call_of(const Record& record) {
  return static_cast<CallKind>(kind_of(record));
}
bool counts(const Record& record) {
  return !has(record, failed) && !has(record, captured);
}
bool launches_work(const Record& record) {
  if (!is_call(record)) return false;
  switch (call_of(record)) {
    case CallKind::launch:
    case CallKind::graph_launch:
    case CallKind::copy:
    case CallKind::fill:
      return true;
    default:
      return false;
  }
}

void add_copy(const Record& record, CallCounts& counts) {
  at(counts, CallCount::copies) += 1;
  at(counts, CallCount::copy_bytes) += static_cast<double>(record.payload);
  if (has(record, to_device)) at(counts, CallCount::copies_to_device) += 1;
  if (has(record, from_device)) at(counts, CallCount::copies_to_host) += 1;
  if (has(record, pageable)) at(counts, CallCount::pageable_copies) += 1;
  if (has(record, unknown_end)) at(counts, CallCount::unknown_copies) += 1;
  if (has(record, can_block) || has(record, pageable)) at(counts, CallCount::blocking_copies) += 1;
}

// Kernels of NCCL, by what their launches carry.
std::set<std::uint64_t> collectives_of(const RecordedProcess& process) {
  std::set<std::uint64_t> kernels;
  for (const auto& [key, name] : process.names) {
    if (key < range_name_keys && (name.find("ncclDevKernel") != std::string::npos ||
                                  name.find("ncclKernel") != std::string::npos))
      kernels.insert(key);
  }
  return kernels;
}

void add(const Record& record, const Graphs& graphs, const std::set<std::uint64_t>& collectives,
         CallCounts& counts) {
  const auto blocking = [&] {
    if (has(record, can_block)) at(counts, CallCount::blocking_frees) += 1;
  };
  switch (call_of(record)) {
    case CallKind::launch:
      at(counts, CallCount::launches) += 1;
      if (collectives.contains(record.payload)) at(counts, CallCount::collectives) += 1;
      break;
    case CallKind::graph_launch: {
      const GraphWork work = graphs.of(record.payload);
      at(counts, CallCount::launches) += 1;
      at(counts, CallCount::graph_launches) += 1;
      at(counts, CallCount::graph_kernels) += work.kernels;
      at(counts, CallCount::copies) += work.copies;
      at(counts, CallCount::fills) += work.fills;
      break;
    }
    case CallKind::copy:
      add_copy(record, counts);
      break;
    case CallKind::fill:
      at(counts, CallCount::fills) += 1;
      break;
    case CallKind::allocate:
      at(counts, CallCount::device_allocs) += 1;
      break;
    case CallKind::release:
      at(counts, CallCount::device_frees) += 1;
      blocking();
      break;
    case CallKind::pin:
      at(counts, CallCount::pinned_allocs) += 1;
      blocking();
      break;
    case CallKind::unpin:
      blocking();
      break;
    case CallKind::wait_for_device:
      at(counts, CallCount::device_waits) += 1;
      [[fallthrough]];
    case CallKind::wait_for_stream:
    case CallKind::wait_for_event:
      at(counts, CallCount::waits) += 1;
      break;
    case CallKind::poll:
      at(counts, CallCount::polls) += static_cast<double>(record.payload);
      break;
    case CallKind::other:
      break;
  }
}

// The row under which a place of the call is shown, for calls in which the host can wait and for
// allocations.
std::optional<CallCount> shown_under(const Record& record) {
  switch (call_of(record)) {
    case CallKind::wait_for_device:
    case CallKind::wait_for_stream:
    case CallKind::wait_for_event:
      return CallCount::waits;
    case CallKind::copy:
      if (has(record, pageable)) return CallCount::pageable_copies;
      if (has(record, can_block)) return CallCount::blocking_copies;
      return std::nullopt;
    case CallKind::allocate:
      return CallCount::device_allocs;
    case CallKind::release:
      return CallCount::device_frees;
    case CallKind::pin:
      return CallCount::pinned_allocs;
    case CallKind::unpin:
      return CallCount::blocking_frees;
    default:
      return std::nullopt;
  }
}

// Boundaries between steps, and what they are.
struct Boundaries {
  std::vector<std::uint64_t> at;  // sequences
  std::string words;
  std::string problem;  // why they are not known; empty: they are
};

Boundaries marks_of(const RecordedProcess& process, MarkSource source) {
  Boundaries found;
  std::optional<std::uint64_t> optimizer;
  for (const Record& record : process.records) {
    if (kind_of(record) != RecordKind::mark || record.payload != static_cast<std::uint64_t>(source))
      continue;
    // The first optimizer's ends count: a second one is part of the same step.
    if (source == MarkSource::optimizer && optimizer.value_or(record.detail) != record.detail)
      continue;
    optimizer = record.detail;
    found.at.push_back(sequence_of(record));
  }
  return found;
}

std::string call_name(const RecordedProcess& process, const Record& record) {
  const auto found = process.names.find(call_name_keys + record.call);
  return found == process.names.end() ? std::string("?") : found->second;
}

std::string ways_to_end_a_step(const StepChoice& choice) {
  return fmt::format("{}, {} or {}", choice.name_of("step-range"), choice.name_of("step-kernel"),
                     choice.name_of("step-call"));
}

Boundaries kernels_named(const RecordedProcess& process, const StepChoice& choice,
                         Deadline deadline) {
  Boundaries found;
  found.words = fmt::format("launches of kernels like '{}'", choice.kernel);
  const auto is_launch = [](const Record& record) {
    return is_call(record) && call_of(record) == CallKind::launch && counts(record);
  };
  std::map<std::uint64_t, std::size_t> places;  // of the kernels that were launched, in `symbols`
  std::vector<std::string> symbols;
  for (const Record& record : process.records) {
    if (!is_launch(record)) continue;
    const auto name = process.names.find(record.payload);
    if (name == process.names.end() || !places.try_emplace(record.payload, symbols.size()).second)
      continue;
    symbols.push_back(name->second);
  }
  const auto matches = matching_names(symbols, choice.kernel, deadline);
  if (!matches) {
    found.problem = fmt::format(
        "the names of its kernels could not be read in time and memory: name what ends "
        "a step by {} or {}",
        choice.name_of("step-call"), choice.name_of("step-range"));
    return found;
  }
  for (const Record& record : process.records) {
    const auto place = is_launch(record) ? places.find(record.payload) : places.end();
    if (place != places.end() && (*matches)[place->second]) found.at.push_back(sequence_of(record));
  }
  return found;
}

Boundaries calls_named(const RecordedProcess& process, const std::string& name) {
  Boundaries found;
  for (const Record& record : process.records) {
    if (is_call(record) && counts(record) && call_name(process, record) == name)
      found.at.push_back(sequence_of(record));
  }
  found.words = fmt::format("calls of {}", name);
  return found;
}

// The user's choice comes first, then the rule by which the library ends the window.
Boundaries boundaries_of(const RecordedProcess& process, const StepChoice& choice,
                         Deadline deadline) {
  if (!choice.kernel.empty()) return kernels_named(process, choice, deadline);
  if (!choice.call.empty()) return calls_named(process, choice.call);
  std::array<std::uint64_t, mark_source_count> marks{};
  for (const Record& record : process.records) {
    if (kind_of(record) == RecordKind::mark && record.payload < marks.size())
      ++marks[record.payload];
  }
  const MarkSource source = choice.names_range ? MarkSource::range : leading_source(marks);
  Boundaries found = marks_of(process, source);
  const auto optimizer = process.notes.find("optimizer");
  switch (source) {
    case MarkSource::range:
      found.words = fmt::format("ranges '{}'", choice.range);
      break;
    case MarkSource::optimizer:
      found.words =
          fmt::format("ends of {}.step", optimizer == process.notes.end() ? std::string("optimizer")
                                                                          : optimizer->second);
      break;
    case MarkSource::program:
      found.words = "marks of the program";
      break;
  }
  return found;
}

std::string reason_against(const RecordedProcess& process) {
  if (!process.fault.empty()) return process.fault;
  if (process.subscribed == no_cupti) {
    return "CUPTI was not found in the process; install the one of its CUDA (the wheel "
           "nvidia-cuda-cupti), or name libcupti.so in STEPGATE_CUPTI";
  }
  if (process.subscribed == not_subscribed_yet) return "the process ended while CUDA started";
  if (process.subscribed != 0) {
    return fmt::format("CUPTI is held by {}; run without that tool",
                       process.holder.empty() ? std::string("another tool") : process.holder);
  }
  return "";
}

// "train.py --steps 60" of "/usr/bin/python3 /x/train.py --steps 60".
std::string in_few_words(const std::vector<std::string>& command) {
  if (command.empty()) return "?";
  const auto is_interpreter = [](const std::string& word) {
    return std::filesystem::path(word).filename().string().starts_with("python");
  };
  auto word = command.begin();
  if (std::ranges::find(command, "-c") != command.end())  // what follows is code
    return std::filesystem::path(*word).filename().string() + " -c";
  if (is_interpreter(*word)) {
    const auto script = std::find_if(
        word + 1, command.end(), [](const std::string& each) { return !each.starts_with("-"); });
    if (script != command.end()) word = script;
  }
  return std::filesystem::path(*word).filename().string();
}

std::string version_in_words(std::uint64_t version) {  // 130001: 13.0.1
  return version >= 100000
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : fmt::format("{}", version);
}

std::map<std::string, std::string> versions_of(const RecordedProcess& process) {
  std::map<std::string, std::string> versions;
  for (const char* key : {"gpu", "torch"}) {
    const auto found = process.notes.find(key);
    if (found != process.notes.end()) versions.emplace(key, found->second);
  }
  versions.emplace("cupti", version_in_words(process.cupti_version));
  versions.emplace("driver", fmt::format("{}.{}", process.driver_version / 1000,
                                         process.driver_version % 1000 / 10));
  return versions;
}

// Each is looked for in its source.
constexpr std::size_t most_places = 1000;

// Counts every step of the window, and gathers the places of its calls.
class StepCounter {
 public:
  StepCounter(const RecordedProcess& process, std::vector<std::uint64_t> boundaries)
      : process_(process), boundaries_(std::move(boundaries)) {}

  // False where no work was launched: then the steps are not those of the program.
  bool count(CountedProcess& into) {
    find_threads();
    if (threads_.empty()) return false;
    into.each.assign(boundaries_.size() - 1, {});
    Graphs graphs;
    const std::set<std::uint64_t> collectives = collectives_of(process_);
    for (const Record& record : process_.records) {
      graphs.take(record);
      const std::optional<std::size_t> step = step_of(sequence_of(record));
      if (!step || !is_call(record) || !counts(record) || !threads_.contains(record.thread))
        continue;
      add(record, graphs, collectives, into.each[*step]);
      if (const auto row = shown_under(record)) add_place(record, *row, *step);
    }
    for (std::size_t index = 0; index < into.mean.size(); ++index) {
      for (const CallCounts& step : into.each) into.mean[index] += step[index];
      into.mean[index] /= static_cast<double>(into.each.size());  // whole counts stay whole
    }
    into.places = places(into.each.size());
    return true;
  }

 private:
  std::optional<std::size_t> step_of(std::uint64_t sequence) const {
    const auto after = std::ranges::upper_bound(boundaries_, sequence);
    if (after == boundaries_.begin() || after == boundaries_.end()) return std::nullopt;
    return static_cast<std::size_t>(after - boundaries_.begin()) - 1;
  }

  // Threads of loaders and watchdogs launch nothing, and are left out.
  void find_threads() {
    for (const Record& record : process_.records) {
      if (step_of(sequence_of(record)) && launches_work(record) && counts(record))
        threads_.insert(record.thread);
    }
  }

  struct Key {
    CallCount count;
    std::string call;
    CallPlace place;
    std::string range;
    auto operator<=>(const Key&) const = default;
  };
  struct Seen {
    std::map<std::size_t, std::int64_t> by_step;
    double bytes = 0;
  };

  void add_place(const Record& record, CallCount row, std::size_t step) {
    const auto place = process_.places.find(sequence_of(record));
    const auto range = process_.names.find(record.detail);
    Key key{row, call_name(process_, record), {}, {}};
    if (place != process_.places.end()) {
      key.place = place->second;
    } else {
      steps_without_line_[row].insert(step);
      if (range != process_.names.end()) key.range = range->second;
    }
    Seen& seen = seen_[key];
    ++seen.by_step[step];
    seen.bytes += call_of(record) == CallKind::copy ? static_cast<double>(record.payload) : 0;
  }

  // Lines are taken as far as there was time: the share of a line in a step is its mean over the
  // steps of which every line of that row is known.
  std::vector<CountedPlace> places(std::size_t steps) const {
    std::vector<CountedPlace> all;
    for (const auto& [key, seen] : seen_) {
      const auto missing = steps_without_line_.find(key.count);
      const bool has_line = key.place.own.line > 0;
      const std::size_t known =
          steps - (missing == steps_without_line_.end() ? 0 : missing->second.size());
      // Calls whose lines there was no time for come from lines that other steps show.
      if (!has_line && known > 0) continue;
      double in_known = 0, in_all = 0;
      for (const auto& [step, times] : seen.by_step) {
        in_all += static_cast<double>(times);
        if (missing == steps_without_line_.end() || !missing->second.contains(step))
          in_known += static_cast<double>(times);
      }
      const double a_step = !has_line   ? in_all / static_cast<double>(steps)
                            : known > 0 ? in_known / static_cast<double>(known)
                                        : 0;
      all.push_back({.count = key.count,
                     .call = key.call,
                     .place = key.place,
                     .range = key.range,
                     .a_step = a_step,
                     .seen = static_cast<std::int64_t>(in_all),
                     .bytes = in_all > 0 ? seen.bytes / in_all : 0});
    }
    std::ranges::stable_sort(all, [](const CountedPlace& a, const CountedPlace& b) {
      return std::pair(a.a_step, a.seen) > std::pair(b.a_step, b.seen);
    });
    if (all.size() > most_places) all.resize(most_places);
    return all;
  }

  const RecordedProcess& process_;
  std::vector<std::uint64_t> boundaries_;
  std::set<std::uint32_t> threads_;
  std::map<Key, Seen> seen_;
  std::map<CallCount, std::set<std::size_t>> steps_without_line_;
};

// Fewer give no step.
std::size_t least_boundaries(const StepChoice& choice) {
  if (!choice.is_default) return boundaries_wanted(choice);
  return choice.names_skip ? static_cast<std::size_t>(choice.skip) + 2 : 3;
}

// First boundary and number of steps of the window; 0 steps: there are too few.
std::pair<std::size_t, std::size_t> window_in(std::size_t boundaries, const StepChoice& choice) {
  const auto skip = static_cast<std::size_t>(choice.skip);
  const auto steps = static_cast<std::size_t>(choice.steps);
  if (boundaries >= boundaries_wanted(choice)) return {skip, steps};
  if (!choice.is_default) return {skip, 0};
  const std::size_t first = choice.names_skip ? skip : std::min(skip, boundaries / 2);
  return {first, boundaries < least_boundaries(choice) ? 0 : boundaries - 1 - first};
}

}  // namespace

std::span<const CallCountRow> call_count_table() {
  return rows;
}
const CallCountRow& row_of(CallCount count) {
  return rows[static_cast<std::size_t>(count)];
}

std::optional<double> value_of(const CallCounts& counts, Metric metric) {
  const auto value = [&](CallCount count) { return counts[static_cast<std::size_t>(count)]; };
  if (metric == Metric::host_waits_per_step) {
    return value(CallCount::waits) + value(CallCount::blocking_copies) +
           value(CallCount::blocking_frees);
  }
  // A copy of unknown ends may be pageable: no number is better than a wrong one.
  if (metric == Metric::pageable_copies_per_step && value(CallCount::unknown_copies) > 0)
    return std::nullopt;
  for (const CallCountRow& row : rows) {
    if (row.metric == metric) return value(row.count);
  }
  return std::nullopt;
}

std::size_t boundaries_wanted(const StepChoice& choice) {
  return static_cast<std::size_t>(choice.skip + choice.steps + 1);
}

std::size_t boundaries_in(const RecordedProcess& process, const StepChoice& choice,
                          Deadline deadline) {
  return boundaries_of(process, choice, deadline).at.size();
}

CountedProcess count_steps(const RecordedProcess& process, const StepChoice& choice,
                           Deadline deadline) {
  CountedProcess counted{.process = process.process,
                         .rank = process.rank,
                         .program = in_few_words(masked(process.command)),
                         .problem = reason_against(process),
                         .versions = versions_of(process)};
  counted.hides_calls = !counted.problem.empty();
  if (counted.hides_calls) return counted;
  counted.cupti = fmt::format("CUPTI {} in {}", version_in_words(process.cupti_version),
                              std::filesystem::path(process.cupti_path).parent_path().string());
  for (const Record& record : process.records)
    counted.launches_in_all += is_call(record) && launches_work(record) && counts(record) ? 1 : 0;
  if (counted.launches_in_all == 0) {
    counted.problem = "it launched no work";
    return counted;
  }
  const Boundaries boundaries = boundaries_of(process, choice, deadline);
  if (!boundaries.problem.empty()) {
    counted.hides_calls = true;
    counted.problem = boundaries.problem;
    return counted;
  }
  if (boundaries.at.empty()) {
    counted.problem = fmt::format(
        "it has no steps that are known: mark them by an NVTX range 'step', or name their end by "
        "{}",
        ways_to_end_a_step(choice));
    return counted;
  }
  counted.marks = fmt::format("{}{} {}", boundaries.at.size(),
                              process.window_is_over ? " or more" : "", boundaries.words);
  if (process.window_is_over && boundaries.at.size() < boundaries_wanted(choice)) {
    counted.hides_calls = true;
    counted.problem = fmt::format(
        "its recording ended at {}, before the {} that are needed: name what ends a step by {}",
        counted.marks, boundaries_wanted(choice), ways_to_end_a_step(choice));
    return counted;
  }
  const auto [first, steps] = window_in(boundaries.at.size(), choice);
  if (steps == 0) {
    counted.problem = fmt::format(
        "it has {}, and {} are needed: let it run longer, or say {} and {}", counted.marks,
        least_boundaries(choice), choice.name_of("skip-steps"), choice.name_of("steps"));
    return counted;
  }
  const auto begin = boundaries.at.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<std::uint64_t> window(begin, begin + static_cast<std::ptrdiff_t>(steps) + 1);
  if (process.first_dropped != 0 && process.first_dropped < window.back()) {
    const auto whole = std::ranges::lower_bound(window, process.first_dropped) - window.begin();
    counted.hides_calls = true;
    counted.problem = fmt::format(
        "the record file was full, or its disk, within step {}: count fewer steps ({}, {}), or set "
        "TMPDIR to a disk with 256 MiB",
        static_cast<std::ptrdiff_t>(first) + whole, choice.name_of("skip-steps"),
        choice.name_of("steps"));
    return counted;
  }
  counted.first_step = static_cast<std::int64_t>(first) + 1;
  counted.steps = static_cast<std::int64_t>(steps);
  if (!StepCounter(process, std::move(window)).count(counted)) {
    counted.problem =
        fmt::format("it launched no work in steps {} to {}: count others by {} and {}",
                    counted.first_step, counted.first_step + counted.steps - 1,
                    choice.name_of("skip-steps"), choice.name_of("steps"));
    counted.first_step = counted.steps = 0;
  }
  return counted;
}

std::string StepChoice::name_of(std::string_view option) const {
  if (!is_of_scenario) return fmt::format("--{}", option);
  std::string key = fmt::format("program.{}", option);
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string uneven_in_words(const CountedProcess& process, CallCount count) {
  const auto index = static_cast<std::size_t>(count);
  std::map<double, std::int64_t> times;
  for (const CallCounts& step : process.each) ++times[step[index]];
  if (times.size() < 2) return "";
  const double usual =
      std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; })->first;
  std::vector<std::int64_t> others;
  std::set<double> values;
  for (std::size_t step = 0; step < process.each.size(); ++step) {
    if (process.each[step][index] == usual) continue;
    others.push_back(process.first_step + static_cast<std::int64_t>(step));
    values.insert(process.each[step][index]);
  }
  std::string every;
  if (others.size() >= 2) {
    const std::int64_t distance = others[1] - others[0];
    bool regular = distance > 1;
    for (std::size_t next = 2; next < others.size(); ++next)
      regular = regular && others[next] - others[next - 1] == distance;
    if (regular) every = fmt::format(" (every {}th)", distance);
  }
  constexpr std::size_t most = 4;
  std::vector<std::string> shown;
  for (std::size_t at = 0; at < std::min(most, others.size()); ++at)
    shown.push_back(std::to_string(others[at]));
  if (others.size() > most) shown.push_back("...");
  const std::string value = values.size() == 1
                                ? fmt::format("{:g}", *values.begin())
                                : fmt::format("{:g} to {:g}", *values.begin(), *values.rbegin());
  return fmt::format("{:g}; {} in step{} {}{}", usual, value, others.size() == 1 ? "" : "s",
                     fmt::join(shown, ", "), every);
}

}  // namespace stepgate
