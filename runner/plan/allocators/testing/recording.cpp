// SPDX-License-Identifier: MIT
#include "plan/allocators/testing/recording.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/text/diagnostic.h"
#include "base/text/json_nesting.h"
#include "base/text/nearest.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t format = 1;
constexpr std::int64_t most_streams = 1 << 16;
constexpr std::array<std::string_view, 6> actions{"allocate", "free",        "record_stream",
                                                  "finish",   "empty_cache", "cap"};
constexpr std::array<std::string_view, 2> pool_names{"small", "large"};
constexpr std::array<std::string_view, 3> uses{"live", "pending", "free"};

[[noreturn]] void fail_whole(const std::string& file, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.place.file = file;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  throw RequestError(std::move(diagnostic));
}

// Access to the members of one line. Reports missing members and wrong types with their place.
class Line {
 public:
  Line(const Json& json, const Place& place) : json_(json), place_(place) {
    if (!json.is_object()) fail("this is no JSON object", "each line is one");
  }

  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw RequestError(Diagnostic{place_, std::move(message), std::move(hint)});
  }

  bool has(const char* key) const { return json_.contains(key); }

  const Json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("'{}' is missing", key));
    return *found;
  }

  const Json& list(const char* key) const {
    const Json& value = at(key);
    if (!value.is_array()) fail(fmt::format("'{}' is no list", key));
    return value;
  }

  std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) fail(fmt::format("'{}' is no text", key));
    return value.get<std::string>();
  }

  std::int64_t number(const Json& value, const char* what, std::int64_t least,
                      std::int64_t most) const {
    if (!value.is_number_integer() || value.get<std::int64_t>() < least ||
        value.get<std::int64_t>() > most ||
        (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())))
      fail(fmt::format("'{}' is {}, not a whole number from {} to {}", what, value.dump(), least,
                       most));
    return value.get<std::int64_t>();
  }
  std::int64_t number(const char* key, std::int64_t least, std::int64_t most) const {
    return number(at(key), key, least, most);
  }

  bool yes_or_no(const char* key) const {
    const Json& value = at(key);
    if (!value.is_boolean()) fail(fmt::format("'{}' is neither true nor false", key));
    return value.get<bool>();
  }

  template <class Choice, std::size_t count>
  Choice choice(const Json& value, const char* what,
                const std::array<std::string_view, count>& names) const {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    for (std::size_t index = 0; index < count; ++index) {
      if (text == names[index]) return static_cast<Choice>(index);
    }
    fail(fmt::format("'{}' is no {}", text, what),
         did_you_mean(text, names, fmt::format("it is one of {}", fmt::join(names, ", "))));
  }

  StreamId stream() const { return static_cast<StreamId>(number("stream", 0, most_streams)); }

  const Place& place() const { return place_; }

 private:
  const Json& json_;
  const Place& place_;
};

class Reader {
 public:
  Reader(std::istream& in, std::string file) : in_(in), place_{std::move(file), 0, 1} {}

  AllocationRecording read() {
    Json json;
    if (!next(json)) fail_whole(place_.file, "this recording is empty", "");
    recording_.file = place_.file;
    read_head(Line(json, place_));
    while (next(json)) read_event(Line(json, place_));
    recording_.blocks = blocks_;
    return std::move(recording_);
  }

 private:
  bool next(Json& json) {
    std::string text;
    do {
      ++place_.line;
      if (!std::getline(in_, text)) return false;
    } while (text.find_first_not_of(" \t\r") == std::string::npos);
    constexpr const char* way_out = "the file was cut off or changed after it was recorded";
    const auto refuse = [&](int column, std::string fact) {
      throw RequestError(Diagnostic{{place_.file, place_.line, column}, std::move(fact), way_out});
    };
    if (nests_too_deep(text)) refuse(1, "this nests deeper than recordings do");
    try {
      json = Json::parse(text);
    } catch (const Json::parse_error& wrong) {
      refuse(static_cast<int>(wrong.byte), "this is no JSON");
    } catch (const Json::exception&) {  // e.g. a number out of range
      refuse(1, "this is JSON that nobody can pass");
    }
    return true;
  }

  void read_head(const Line& line) {
    if (!line.has("stepgate_allocator_recording"))
      line.fail("this is no recording of an allocator", "ci/record_allocator.py writes them");
    if (line.number("stepgate_allocator_recording", 0, INT64_MAX) != format)
      line.fail(fmt::format("this recording is not of format {}", format), "record it anew");
    recording_.pytorch = line.text("pytorch");
    recording_.device = line.text("device");
    recording_.seed = static_cast<std::uint64_t>(line.number("seed", 0, INT64_MAX));
    recording_.device_bytes = line.number("device_bytes", 1, largest_request_bytes);
    for (const Json& name : line.list("statistics")) {
      const auto index = name.is_string() ? statistic_named(name.get<std::string>()) : std::nullopt;
      if (!index) line.fail(fmt::format("there is no statistic {}", name.dump()));
      recording_.statistics.push_back(*index);
    }
    read_rules(Line(line.at("rules"), place_));
  }

  void read_rules(const Line& line) {
    CachingRules& rules = recording_.rules;
    if (line.yes_or_no("expandable")) rules.segments = SegmentKind::expandable;
    rules.round_divisions = line.number("round_divisions", 0, 1 << 20);
    if (rules.round_divisions > 0 &&
        !std::has_single_bit(static_cast<std::uint64_t>(rules.round_divisions)))
      line.fail("'round_divisions' is no power of 2");
    if (!line.at("split_max_bytes").is_null())
      rules.split_max_bytes =
          line.number("split_max_bytes", split_max_above_bytes + 1, largest_request_bytes);
    const Json& threshold = line.at("garbage_collection_threshold");
    if (!threshold.is_number() || !(threshold.get<double>() >= 0) || threshold.get<double>() >= 1)
      line.fail("'garbage_collection_threshold' is no share from 0 to below 1");
    rules.garbage_collection_threshold = threshold.get<double>();
  }

  void read_event(const Line& line) {
    RecordedEvent event;
    event.line = place_.line;
    event.action = line.choice<RecordedAction>(line.at("do"), "event", actions);
    switch (event.action) {
      case RecordedAction::allocate:
        read_request(line, event);
        break;
      case RecordedAction::free:
        event.block = held(line);
        held_.erase(line.number("block", 0, INT64_MAX));
        break;
      case RecordedAction::record_stream:
        event.block = held(line);
        event.stream = line.stream();
        break;
      case RecordedAction::finish:
        event.stream = line.stream();
        break;
      case RecordedAction::empty_cache:
        break;
      case RecordedAction::cap:
        if (!line.at("bytes").is_null())
          event.cap_bytes = line.number("bytes", 0, largest_request_bytes);
        break;
    }
    if (line.has("changed") || line.has("segments") || line.has("gone")) {
      event.found = recording_.found.size();
      recording_.found.push_back(state(line));
    }
    recording_.events.push_back(event);
  }

  void read_request(const Line& line, RecordedEvent& event) {
    event.bytes = line.number("bytes", 1, INT64_MAX);
    event.stream = line.stream();
    event.block = blocks_++;
    if (line.has("refused"))
      event.outcome =
          line.yes_or_no("refused") ? RecordedOutcome::refused : RecordedOutcome::served;
    const std::int64_t name = line.number("block", 0, INT64_MAX);
    if (event.outcome == RecordedOutcome::refused) return;
    if (!held_.emplace(name, event.block).second)
      line.fail(fmt::format("block {} is asked for while it is held", name));
  }

  std::size_t held(const Line& line) const {
    const std::int64_t name = line.number("block", 0, INT64_MAX);
    const auto found = held_.find(name);
    if (found == held_.end()) line.fail(fmt::format("block {} is not held here", name));
    return found->second;
  }

  RecordedState state(const Line& line) {
    RecordedState state;
    if (line.has("changed")) {
      for (const Json& pair : line.list("changed")) {
        if (!pair.is_array() || pair.size() != 2) line.fail("'changed' is no list of pairs");
        const auto count = static_cast<std::int64_t>(recording_.statistics.size());
        const auto which = line.number(pair[0], "changed", 0, count - 1);
        state.statistics.emplace_back(recording_.statistics[static_cast<std::size_t>(which)],
                                      line.number(pair[1], "changed", INT64_MIN, INT64_MAX));
      }
    }
    if (line.has("segments") || line.has("gone")) {
      recording_.has_segments = true;
      for (const Json& one : line.list("segments"))
        state.segments.push_back(segment(Line(one, place_)));
      for (const Json& address : line.list("gone"))
        state.gone.push_back(static_cast<Address>(line.number(address, "gone", 0, INT64_MAX)));
      check_overlap(line, state);
    }
    return state;
  }

  // Segments must not overlap, since their memory would be handed out twice.
  void check_overlap(const Line& line, const RecordedState& state) {
    for (const Address address : state.gone) segments_.erase(address);
    for (const SegmentState& segment : state.segments) segments_[segment.address] = segment.bytes;
    Address end = 0;
    for (const auto& [address, bytes] : segments_) {
      if (address < end) line.fail(fmt::format("segment {} overlaps the one before it", address));
      end = address + static_cast<Address>(bytes);
    }
  }

  static SegmentState segment(const Line& line) {
    SegmentState segment;
    segment.address = static_cast<Address>(line.number("address", 0, INT64_MAX));
    segment.bytes = line.number("bytes", 1, largest_request_bytes);
    segment.stream = line.stream();
    segment.pool = line.choice<PoolSize>(line.at("pool"), "pool", pool_names);
    if (line.yes_or_no("expandable")) segment.kind = SegmentKind::expandable;
    Address next = segment.address;
    for (const Json& triple : line.list("blocks")) {
      if (!triple.is_array() || triple.size() != 3) line.fail("'blocks' is no list of triples");
      BlockState block{.address = next};
      block.bytes = line.number(triple[0], "blocks", 1, segment.bytes);
      block.use = line.choice<BlockUse>(triple[1], "use of a block", uses);
      block.requested_bytes = line.number(triple[2], "blocks", 0, block.bytes);
      next += static_cast<Address>(block.bytes);
      segment.blocks.push_back(block);
    }
    if (next != segment.address + static_cast<Address>(segment.bytes))
      line.fail(fmt::format("the blocks of segment {} do not fill it", segment.address));
    return segment;
  }

  std::istream& in_;
  Place place_;
  AllocationRecording recording_;
  std::size_t blocks_ = 0;
  std::unordered_map<std::int64_t, std::size_t> held_;
  std::map<Address, std::int64_t> segments_;  // state after the event
};

}  // namespace

AllocationRecording read_recording(std::istream& in, const std::string& file) {
  return Reader(in, file).read();
}

AllocationRecording read_recording(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || std::filesystem::is_directory(path))
    fail_whole(path.string(), "cannot be read", "is it there?");
  return read_recording(in, path.string());
}

}  // namespace stepgate
