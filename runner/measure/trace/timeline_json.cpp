// SPDX-License-Identifier: MIT
#include "measure/trace/timeline_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace stepgate {
namespace {

constexpr int work_kind_count = 4;
constexpr int collective_kind_count = 3;
constexpr int memory_kind_count = 5;
constexpr int page_event_kind_count = 4;
constexpr std::int64_t most_operations = std::numeric_limits<int>::max();
constexpr std::int64_t most_correlations = std::numeric_limits<std::uint32_t>::max();

template <class Choice>
int number_of(Choice choice) {
  return static_cast<int>(choice);
}

// Rows say how long after the first record something was: fewer digits.
std::int64_t origin_of(const Trace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const HostSpan& span : trace.spans) first = std::min(first, span.begin.count());
  for (const DeviceWork& work : trace.work) first = std::min(first, work.begin.count());
  return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
}

class Names {
 public:
  std::size_t index_of(const std::string& name) {
    const auto [place, is_new] = indices_.try_emplace(name, list_.size());
    if (is_new) list_.push_back(name);
    return place->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> indices_;
  std::vector<std::string> list_;
};

TraceJson row_of(const DeviceWork& work, Names& names, std::int64_t origin) {
  return {number_of(work.kind),
          names.index_of(work.name),
          work.stream,
          work.operation,
          work.step,
          work.correlation,
          work.from_graph ? 1 : 0,
          work.begin.count() - origin,
          work.end.count() - origin,
          work.bytes,
          number_of(work.from),
          number_of(work.to),
          work.grid[0],
          work.grid[1],
          work.grid[2],
          work.block[0],
          work.block[1],
          work.block[2],
          work.registers_per_thread,
          work.shared_memory_bytes,
          work.collective ? number_of(*work.collective) : -1};
}

// The order of the columns is that of the writers above and below.
class Rows {
 public:
  explicit Rows(const TraceJson& json)
      : json_(json), origin_(whole_number(json.at("origin"))), names_(json.at("names")) {}

  template <class Record, class Read>
  std::vector<Record> all(const char* key, std::size_t columns, Read&& read) const {
    std::vector<Record> records;
    for (const TraceJson& json : json_.at(key)) {
      TraceRow row(json, columns);
      records.push_back(read(row));
    }
    return records;
  }
  TraceTime time(TraceRow& row) const { return TraceTime(origin_ + row.number()); }
  std::string name(TraceRow& row) const {
    const std::int64_t last = static_cast<std::int64_t>(names_.size()) - 1;
    return names_.at(static_cast<std::size_t>(row.number(0, last))).get<std::string>();
  }
  static int operation(TraceRow& row) { return static_cast<int>(row.number(-1, most_operations)); }
  static std::optional<CollectiveKind> collective(TraceRow& row) {
    const std::int64_t kind = row.number(-1, collective_kind_count - 1);
    return kind < 0 ? std::nullopt : std::optional(static_cast<CollectiveKind>(kind));
  }
  static int size(TraceRow& row) { return static_cast<int>(row.number(0, most_operations)); }
  static std::uint32_t correlation(TraceRow& row) {
    return static_cast<std::uint32_t>(row.number(0, most_correlations));
  }

 private:
  const TraceJson& json_;
  std::int64_t origin_;
  const TraceJson& names_;
};

HostSpan span_from(const Rows& rows, TraceRow& row) {
  return {.operation = Rows::operation(row),
          .step = row.number(),
          .acts_for = row.number(),
          .begin = rows.time(row),
          .end = rows.time(row)};
}

HostCall call_from(const Rows& rows, TraceRow& row, std::int64_t spans) {
  return {.name = rows.name(row),
          .kind = row.choice<CallKind>(call_kind_count),
          .can_block = row.number(0, 1) == 1,
          .span = static_cast<int>(row.number(-1, spans - 1)),
          .correlation = Rows::correlation(row),
          .count = row.number(),
          .begin = rows.time(row),
          .end = rows.time(row)};
}

DeviceWork work_from(const Rows& rows, TraceRow& row) {
  return {.kind = row.choice<WorkKind>(work_kind_count),
          .name = rows.name(row),
          .stream = static_cast<int>(row.number(-most_operations, most_operations)),
          .operation = Rows::operation(row),
          .step = row.number(),
          .correlation = Rows::correlation(row),
          .from_graph = row.number(0, 1) == 1,
          .begin = rows.time(row),
          .end = rows.time(row),
          .bytes = row.number(),
          .from = row.choice<CopyEnd>(copy_end_count),
          .to = row.choice<CopyEnd>(copy_end_count),
          .grid = {Rows::size(row), Rows::size(row), Rows::size(row)},
          .block = {Rows::size(row), Rows::size(row), Rows::size(row)},
          .registers_per_thread = Rows::size(row),
          .shared_memory_bytes = row.number(),
          .collective = Rows::collective(row)};
}

}  // namespace

int rank_from(const TraceJson& json) {
  const std::int64_t rank = whole_number(json);
  if (rank < 0 || rank >= most_ranks) throw WrongTrace("has a rank that means nothing");
  return static_cast<int>(rank);
}

TraceRow::TraceRow(const TraceJson& row, std::size_t columns) : row_(row) {
  if (!row.is_array() || row.size() != columns) throw WrongTrace("has a row of the wrong length");
}

std::int64_t whole_number(const TraceJson& json) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  if (!json.is_number_integer()) throw WrongTrace("has something that is no whole number");
  const auto value = json.get<std::int64_t>();
  if (value < -most || value > most) throw WrongTrace("has a number that means nothing");
  return value;
}

std::int64_t TraceRow::number() {
  return whole_number(row_.at(next_++));
}

std::int64_t TraceRow::number(std::int64_t least, std::int64_t most) {
  const std::int64_t value = number();
  if (value < least || value > most) throw WrongTrace("has a number that means nothing");
  return value;
}

TraceJson json_of(const MemoryUse& memory) {
  TraceJson json = {{"allocated", memory.allocated_bytes},
                    {"peak_allocated", memory.peak_allocated_bytes},
                    {"peak_reserved", memory.peak_reserved_bytes},
                    {"pinned", memory.pinned_bytes}};
  if (memory.driver_bytes) json["driver"] = *memory.driver_bytes;
  return json;
}

MemoryUse memory_from(const TraceJson& json) {
  MemoryUse memory;
  TraceRow purposes(json.at("allocated"), memory.allocated_bytes.size());
  for (std::int64_t& bytes : memory.allocated_bytes) bytes = purposes.number();
  memory.peak_allocated_bytes = whole_number(json.at("peak_allocated"));
  memory.peak_reserved_bytes = whole_number(json.at("peak_reserved"));
  memory.pinned_bytes = whole_number(json.at("pinned"));
  if (json.contains("driver")) memory.driver_bytes = whole_number(json.at("driver"));
  return memory;
}

TraceJson json_of(const LibraryRecord& record) {
  TraceJson algorithms = TraceJson::array();
  for (const CollectiveAlgorithm& one : record.algorithms) {
    algorithms.push_back(
        {number_of(one.kind), one.bytes, one.channels, one.algorithm, one.protocol});
  }
  return {{"library", record.library},           {"unavailable", record.unavailable},
          {"difference", record.difference},     {"guessed", record.guessed},
          {"algorithms", std::move(algorithms)}, {"captured", record.captured}};
}

LibraryRecord library_record_from(const TraceJson& json) {
  LibraryRecord record{.library = json.at("library").get<std::string>(),
                       .unavailable = json.at("unavailable").get<std::string>(),
                       .difference = json.at("difference").get<std::string>(),
                       .guessed = json.at("guessed").get<std::string>(),
                       .captured = json.at("captured").get<bool>()};
  for (const TraceJson& one : json.at("algorithms")) {
    TraceRow row(one, 5);
    record.algorithms.push_back({.kind = row.choice<CollectiveKind>(collective_kind_count),
                                 .bytes = row.number(),
                                 .algorithm = one.at(3).get<std::string>(),
                                 .protocol = one.at(4).get<std::string>(),
                                 .channels = 0});
    record.algorithms.back().channels = row.number();
  }
  return record;
}

TraceJson json_of(const Trace& trace) {
  const std::int64_t origin = origin_of(trace);
  const auto since = [&](TraceTime time) { return time.count() - origin; };
  Names names;
  TraceJson spans = TraceJson::array();
  for (const HostSpan& span : trace.spans) {
    spans.push_back({span.operation, span.step, span.acts_for, since(span.begin), since(span.end)});
  }
  TraceJson calls = TraceJson::array();
  for (const HostCall& call : trace.calls) {
    calls.push_back({names.index_of(call.name), number_of(call.kind), call.can_block ? 1 : 0,
                     call.span, call.correlation, call.count, since(call.begin), since(call.end)});
  }
  TraceJson works = TraceJson::array();
  for (const DeviceWork& work : trace.work) works.push_back(row_of(work, names, origin));
  TraceJson changes = TraceJson::array();
  for (const MemoryChange& change : trace.memory_changes) {
    changes.push_back({since(change.at), change.bytes, number_of(change.memory), change.operation});
  }
  TraceJson unsteady = TraceJson::array();
  for (const Unsteady& event : trace.unsteady) {
    unsteady.push_back({number_of(event.kind), since(event.begin), since(event.end)});
  }
  TraceJson pages;  // null where nobody can tell
  if (trace.page_events) pages = TraceJson::array();
  for (const PageEvent& event : trace.page_events.value_or(std::vector<PageEvent>{})) {
    pages.push_back({number_of(event.kind), event.amount, since(event.begin), since(event.end)});
  }
  TraceJson clocks = TraceJson::array();
  for (const ClockReading& clock : trace.clocks) {
    clocks.push_back({since(clock.at), std::llround(clock.hertz)});
  }
  TraceJson arrivals = TraceJson::array();
  for (const RankArrival& arrival : trace.arrivals) {
    arrivals.push_back({arrival.operation, arrival.step, arrival.rank, since(arrival.at)});
  }
  TraceJson json = {{"first_step", trace.first_step},
                    {"steps", trace.steps},
                    {"origin", origin},
                    {"names", names.list()},
                    {"spans", std::move(spans)},
                    {"calls", std::move(calls)},
                    {"work", std::move(works)},
                    {"memory_changes", std::move(changes)},
                    {"unsteady", std::move(unsteady)},
                    {"page_events", std::move(pages)},
                    {"clocks", std::move(clocks)},
                    {"memory", json_of(trace.memory)},
                    {"rank", trace.rank},
                    {"alike", trace.alike},
                    {"arrivals", std::move(arrivals)}};
  if (trace.library) json["library"] = json_of(*trace.library);
  return json;
}

Trace trace_from(const TraceJson& json) {
  const Rows rows(json);
  Trace trace;
  trace.first_step = whole_number(json.at("first_step"));
  trace.steps = whole_number(json.at("steps"));
  if (trace.steps < 1) throw WrongTrace("has a timeline without a step");
  trace.spans = rows.all<HostSpan>("spans", 5, [&](TraceRow& row) { return span_from(rows, row); });
  const auto spans = static_cast<std::int64_t>(trace.spans.size());
  trace.calls =
      rows.all<HostCall>("calls", 8, [&](TraceRow& row) { return call_from(rows, row, spans); });
  trace.work =
      rows.all<DeviceWork>("work", 21, [&](TraceRow& row) { return work_from(rows, row); });
  trace.memory_changes = rows.all<MemoryChange>("memory_changes", 4, [&](TraceRow& row) {
    return MemoryChange{.at = rows.time(row),
                        .bytes = row.number(),
                        .memory = row.choice<MemoryKind>(memory_kind_count),
                        .operation = Rows::operation(row)};
  });
  trace.unsteady = rows.all<Unsteady>("unsteady", 3, [&](TraceRow& row) {
    return Unsteady{.kind = row.choice<UnsteadyKind>(unsteady_kind_count),
                    .begin = rows.time(row),
                    .end = rows.time(row)};
  });
  if (!json.at("page_events").is_null()) {
    trace.page_events = rows.all<PageEvent>("page_events", 4, [&](TraceRow& row) {
      return PageEvent{.kind = row.choice<PageEventKind>(page_event_kind_count),
                       .amount = row.number(),
                       .begin = rows.time(row),
                       .end = rows.time(row)};
    });
  }
  trace.clocks = rows.all<ClockReading>("clocks", 2, [&](TraceRow& row) {
    return ClockReading{.at = rows.time(row), .hertz = static_cast<double>(row.number())};
  });
  trace.memory = memory_from(json.at("memory"));
  trace.rank = rank_from(json.at("rank"));
  for (const TraceJson& rank : json.at("alike")) trace.alike.push_back(rank_from(rank));
  trace.arrivals = rows.all<RankArrival>("arrivals", 4, [&](TraceRow& row) {
    return RankArrival{.operation = Rows::operation(row),
                       .step = row.number(),
                       .rank = static_cast<int>(row.number(0, most_ranks - 1)),
                       .at = rows.time(row)};
  });
  if (json.contains("library")) trace.library = library_record_from(json.at("library"));
  return trace;
}

}  // namespace stepgate
