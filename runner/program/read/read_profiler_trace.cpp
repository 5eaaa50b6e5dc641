// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "base/text/diagnostic.h"
#include "program/read/byte_stream.h"
#include "program/read/profiler_trace.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

constexpr std::string_view way_to_export =
    "export it by torch.profiler.profile(...).export_chrome_trace";

// Takes bytes for the parser one by one. It also knows how many were taken, by which the reader
// bounds the length of one text: the parser gathers a whole text before it says anything.
class Bytes {
 public:
  struct TooLong {};

  explicit Bytes(const std::filesystem::path& path) : stream_(path) { refill(); }

  bool is_at_end() const { return at_ == end_; }
  char here() const { return *at_; }
  void advance() {
    if (++at_ == end_) refill();
  }
  void note_event() { told_ = taken_; }

 private:
  void refill() {
    const std::span<const char> piece = stream_.next();
    at_ = piece.data();
    end_ = piece.data() + piece.size();
    taken_ += static_cast<std::int64_t>(piece.size());
    if (taken_ - told_ > longest_text_bytes) throw TooLong();
  }

  ByteStream stream_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::int64_t taken_ = 0;
  std::int64_t told_ = 0;
};

// The iterator by which the parser takes bytes. The default one is the end.
class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  ByteIterator() = default;
  explicit ByteIterator(Bytes& bytes) : bytes_(&bytes) {}
  char operator*() const { return bytes_->here(); }
  ByteIterator& operator++() {
    bytes_->advance();
    return *this;
  }
  ByteIterator operator++(int) { return ++*this; }
  // Each is compared with the end alone.
  bool operator==(const ByteIterator&) const { return bytes_ == nullptr || bytes_->is_at_end(); }
  bool operator!=(const ByteIterator& other) const { return !(*this == other); }

 private:
  Bytes* bytes_ = nullptr;
};

enum class Category {
  other,
  call,
  driver_call,
  kernel,
  copy,
  fill,
  wait,
  annotation,
  operation,
  python,
  overhead
};

Category category_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Category>, 10> all{
      {{"cpu_op", Category::operation},
       {"cuda_runtime", Category::call},
       {"cuda_driver", Category::driver_call},
       {"kernel", Category::kernel},
       {"gpu_memcpy", Category::copy},
       {"gpu_memset", Category::fill},
       {"cuda_sync", Category::wait},
       {"user_annotation", Category::annotation},
       {"python_function", Category::python},
       {"overhead", Category::overhead}}};
  for (const auto& [word, category] : all) {
    if (word == name) return category;
  }
  return Category::other;
}

CopyEnd copy_end(std::string_view word) {
  if (word.starts_with("Pageable")) return CopyEnd::pageable;
  if (word.starts_with("Pinned")) return CopyEnd::pinned;
  if (word.starts_with("Managed")) return CopyEnd::managed;
  if (word.starts_with("Device") || word.starts_with("Array")) return CopyEnd::device;
  return CopyEnd::unknown;
}

// The ends of "Memcpy HtoD (Pageable -> Device)".
std::pair<CopyEnd, CopyEnd> ends_in(std::string_view name) {
  const auto open = name.find('(');
  const auto arrow = name.find(" -> ");
  if (open == std::string_view::npos || arrow == std::string_view::npos || arrow < open) return {};
  return {copy_end(name.substr(open + 1)), copy_end(name.substr(arrow + 4))};
}

// A terminal would act on some letters, and a text that is cut may end within one. Longer texts are
// cut where they are kept.
void make_plain(std::string& text) {
  const std::size_t kept = std::min(text.size(), longest_kept_name);
  for (std::size_t index = 0; index < kept; ++index) {
    if (text[index] < ' ' || text[index] > '~') text[index] = '?';
  }
}

// One event of the trace while it is read.
struct Event {
  bool is_complete = false;
  Category category = Category::other;
  std::string name;
  std::string thread;
  std::int64_t process = 0;
  std::optional<std::int64_t> begin, length;
  std::int64_t correlation = 0;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::int64_t bytes = 0;
  bool from_graph = false;
  bool is_collective = false;

  void clear() {
    is_complete = false;
    category = Category::other;
    name.clear();
    thread.clear();
    process = 0;
    begin.reset();
    length.reset();
    correlation = device = stream = bytes = 0;
    from_graph = is_collective = false;
  }
};

// A value is known by its depth and the key before it.
enum class Key {
  none,
  phase,
  category,
  name,
  process,
  thread,
  time,
  length,
  correlation,
  device,
  stream,
  bytes,
  graph_node,
  collective,
  rank,
  world_size,
  nccl,
  cuda,
  driver,
  cupti
};

class TraceBuilder : public nlohmann::json_sax<Json> {
 public:
  TraceBuilder(std::string place, Bytes& bytes) : place_(std::move(place)), bytes_(bytes) {}

  bool null() override { return told(); }
  bool boolean(bool) override { return told(); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<std::int64_t>(
        std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max())));
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (key_ == Key::time) event_.begin = nanoseconds_of(text);
    if (key_ == Key::length) event_.length = nanoseconds_of(text);
    return told();
  }
  bool binary(binary_t&) override { return told(); }

  bool string(string_t& text) override {
    make_plain(text);
    switch (key_) {
      case Key::phase:
        event_.is_complete = text == "X";
        break;
      case Key::category:
        event_.category = category_named(text);
        break;
      case Key::name:
        if (section_ == Section::events)
          event_.name.assign(text, 0, longest_kept_name);
        else
          trace_.versions.try_emplace("gpu", text.substr(0, longest_version));
        break;
      case Key::thread:
        event_.thread.assign(text, 0, longest_version);
        break;
      // Some versions write numbers as texts.
      case Key::correlation:
      case Key::device:
      case Key::stream:
      case Key::bytes:
      case Key::process: {
        std::int64_t value = 0;
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (failure == std::errc() && end == text.data() + text.size()) (void)number(value);
        break;
      }
      case Key::nccl:
        trace_.versions["nccl"] = text.substr(0, longest_version);
        break;
      case Key::collective:
        event_.is_collective = true;
        break;
      default:
        break;
    }
    return told();
  }

  bool start_object(std::size_t) override {
    if (++depth_ > deepest_nesting) refuse_depth();
    if (section_ == Section::events && depth_ == event_depth) event_.clear();
    key_ = Key::none;
    return told();
  }
  bool end_object() override {
    if (section_ == Section::events && depth_ == event_depth) take_event();
    return close();
  }
  bool start_array(std::size_t) override {
    if (++depth_ > deepest_nesting) refuse_depth();
    has_events_ = has_events_ || (depth_ == 2 && section_ == Section::events);
    key_ = Key::none;
    return told();
  }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (depth_ == 1) section_ = section_named(name);
    key_ = key_named(name);
    return told();
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    refuse(fmt::format("is no JSON at byte {}, or ends there", position));
  }

  ProfilerTrace finish();

 private:
  enum class Section { other, events, device, job };
  static constexpr int event_depth = 3;
  static constexpr std::size_t longest_version = 128;

  [[noreturn]] void refuse(const std::string& fact) const {
    throw RequestError(Diagnostic{{place_, 0, 0}, fact, std::string(way_to_export)});
  }
  [[noreturn]] void refuse_depth() const {
    refuse(fmt::format("is nested more than {} deep", deepest_nesting));
  }

  bool told() {
    bytes_.note_event();
    return true;
  }
  bool close() {
    --depth_;
    key_ = Key::none;
    return told();
  }

  static Section section_named(std::string_view name) {
    if (name == "traceEvents") return Section::events;
    if (name == "deviceProperties") return Section::device;
    return name == "distributedInfo" ? Section::job : Section::other;
  }

  Key key_named(std::string_view name) const {
    struct Row {
      Section section;
      int depth;
      std::string_view name;
      Key key;
    };
    static constexpr std::array known_keys{
        Row{Section::events, event_depth, "ph", Key::phase},
        Row{Section::events, event_depth, "cat", Key::category},
        Row{Section::events, event_depth, "name", Key::name},
        Row{Section::events, event_depth, "pid", Key::process},
        Row{Section::events, event_depth, "tid", Key::thread},
        Row{Section::events, event_depth, "ts", Key::time},
        Row{Section::events, event_depth, "dur", Key::length},
        Row{Section::events, event_depth + 1, "correlation", Key::correlation},
        Row{Section::events, event_depth + 1, "device", Key::device},
        Row{Section::events, event_depth + 1, "stream", Key::stream},
        Row{Section::events, event_depth + 1, "bytes", Key::bytes},
        Row{Section::events, event_depth + 1, "graph node id", Key::graph_node},
        Row{Section::events, event_depth + 1, "Collective name", Key::collective},
        Row{Section::device, 3, "name", Key::name},
        Row{Section::job, 2, "rank", Key::rank},
        Row{Section::job, 2, "world_size", Key::world_size},
        Row{Section::job, 2, "nccl_version", Key::nccl},
        Row{Section::other, 1, "cuda_runtime_version", Key::cuda},
        Row{Section::other, 1, "cuda_driver_version", Key::driver},
        Row{Section::other, 1, "cupti_version", Key::cupti}};
    if (section_ == Section::other && depth_ != 1) return Key::none;
    for (const Row& row : known_keys) {
      if (row.depth == depth_ && row.section == section_ && row.name == name) return row.key;
    }
    return Key::none;
  }

  bool number(std::int64_t value) {
    constexpr std::int64_t most_microseconds = std::numeric_limits<std::int64_t>::max() / 4000;
    const auto time = [&]() -> std::optional<std::int64_t> {
      if (value > most_microseconds || value < -most_microseconds) return std::nullopt;
      return value * 1000;
    };
    const auto version = [&](const char* name) {
      trace_.versions[name] = fmt::format("{}.{}", value / 1000, value % 1000 / 10);
    };
    switch (key_) {
      case Key::time:
        event_.begin = time();
        break;
      case Key::length:
        event_.length = time();
        break;
      case Key::process:
        event_.process = value;
        break;
      case Key::thread:
        event_.thread = std::to_string(value);
        break;
      case Key::correlation:
        event_.correlation = value;
        break;
      case Key::device:
        event_.device = value;
        break;
      case Key::stream:
        event_.stream = value;
        break;
      case Key::bytes:
        event_.bytes = value;
        break;
      case Key::graph_node:
        event_.from_graph = value != 0;
        break;
      case Key::rank:
        trace_.rank = value;
        break;
      case Key::world_size:
        trace_.world_size = value;
        break;
      case Key::cuda:
        version("cuda");
        break;
      case Key::driver:
        version("driver");
        break;
      case Key::cupti:
        trace_.versions["cupti"] = std::to_string(value);
        break;
      default:
        break;
    }
    return told();
  }

  std::uint32_t kept_name() {
    const auto [found, is_new] =
        by_name_.try_emplace(event_.name, static_cast<std::uint32_t>(trace_.names.size()));
    if (!is_new) return found->second;
    name_bytes_ += event_.name.size();
    if (name_bytes_ > most_name_bytes)
      refuse(fmt::format("has more than {} MiB of names", most_name_bytes >> 20));
    trace_.names.push_back(event_.name);
    return found->second;
  }
  std::uint32_t thread() {
    const std::string text = fmt::format("{}:{}", event_.process, event_.thread);
    return threads_.try_emplace(text, static_cast<std::uint32_t>(threads_.size())).first->second;
  }

  void take_event();
  void leave_inner_calls_out();
  void take_work(Interval time, WorkKind kind);

  std::string place_;
  Bytes& bytes_;
  ProfilerTrace trace_;
  Event event_;
  int depth_ = 0;
  Section section_ = Section::other;
  Key key_ = Key::none;
  bool has_events_ = false;
  std::size_t records_ = 0;
  std::size_t name_bytes_ = 0;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::unordered_map<std::string, std::uint32_t> threads_;
};

void TraceBuilder::take_work(Interval time, WorkKind kind) {
  ProfiledWork work{.time = time,
                    .bytes = std::max<std::int64_t>(event_.bytes, 0),
                    .name = kept_name(),
                    .correlation = static_cast<std::uint32_t>(event_.correlation),
                    .stream = static_cast<std::int32_t>(event_.stream),
                    .device = static_cast<std::int16_t>(event_.device),
                    .kind = kind,
                    .from_graph = event_.from_graph};
  if (kind == WorkKind::copy) std::tie(work.from, work.to) = ends_in(event_.name);
  if (kind == WorkKind::kernel && (event_.is_collective || event_.name.starts_with("ncclDev")))
    work.kind = WorkKind::collective;
  trace_.work.push_back(work);
}

void TraceBuilder::take_event() {
  if (!event_.is_complete || event_.category == Category::other) return;
  if (!event_.begin || !event_.length || *event_.length < 0) {
    ++trace_.impossible;
    return;
  }
  if (++records_ > most_records)
    refuse(fmt::format("has more than {} million events", most_records / 1'000'000));
  const Interval time{*event_.begin, *event_.begin + *event_.length};
  const auto range = [&](RangeKind kind) {
    trace_.ranges.push_back({time, kept_name(), thread(), kind});
  };
  switch (event_.category) {
    case Category::call:
    case Category::driver_call:
      if (trace_.process == 0) trace_.process = event_.process;
      trace_.calls.push_back({time, kept_name(), static_cast<std::uint32_t>(event_.correlation),
                              thread(), event_.category == Category::driver_call});
      break;
    case Category::kernel:
      take_work(time, WorkKind::kernel);
      break;
    case Category::copy:
      take_work(time, WorkKind::copy);
      break;
    case Category::fill:
      take_work(time, WorkKind::fill);
      break;
    case Category::wait:
      // A stream that waits for another one does not hold the host.
      if (event_.name.find("Wait Event") == std::string::npos)
        trace_.waits.push_back({time, static_cast<std::uint32_t>(event_.correlation),
                                event_.name.starts_with("Context")});
      break;
    case Category::annotation:
      range(RangeKind::annotation);
      break;
    case Category::operation:
      range(RangeKind::operation);
      break;
    case Category::python:
      range(RangeKind::python);
      break;
    case Category::overhead:
      if (event_.name.find("Loading") != std::string::npos) ++trace_.lazy_loads;
      break;
    case Category::other:
      break;
  }
}

void TraceBuilder::leave_inner_calls_out() {
  std::unordered_map<std::uint32_t, ProfiledCall> outer;            // by thread
  std::unordered_map<std::uint32_t, std::uint32_t> of_outer_calls;  // by the inner correlation
  std::erase_if(trace_.calls, [&](const ProfiledCall& call) {
    const auto [last, is_new] = outer.try_emplace(call.thread, call);
    if (is_new) return false;
    if (call.is_driver && !last->second.is_driver && call.time.end <= last->second.time.end) {
      if (call.correlation != last->second.correlation)
        of_outer_calls[call.correlation] = last->second.correlation;
      return true;
    }
    if (call.time.end >= last->second.time.end) last->second = call;
    return false;
  });
  for (ProfiledWork& work : trace_.work) {
    const auto found = of_outer_calls.find(work.correlation);
    if (found != of_outer_calls.end()) work.correlation = found->second;
  }
}

ProfilerTrace TraceBuilder::finish() {
  if (!has_events_) refuse("is JSON, and no trace of torch.profiler: it has no traceEvents");
  const auto by_begin = [](const auto& a, const auto& b) { return a.time.begin < b.time.begin; };
  // An outer call may begin in the same nanosecond.
  std::ranges::stable_sort(trace_.calls, [](const ProfiledCall& a, const ProfiledCall& b) {
    return std::tuple(a.time.begin, -a.time.end) < std::tuple(b.time.begin, -b.time.end);
  });
  leave_inner_calls_out();
  std::ranges::stable_sort(trace_.work, by_begin);
  std::ranges::stable_sort(trace_.waits, by_begin);
  std::ranges::stable_sort(trace_.ranges, [](const ProfiledRange& a, const ProfiledRange& b) {
    return std::tuple(a.thread, a.time.begin, -a.time.end) <
           std::tuple(b.thread, b.time.begin, -b.time.end);
  });
  return std::move(trace_);
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  // More digits would not fit; 10^15 us are 31 years.
  constexpr std::size_t most_digits = 15;
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const auto point = std::min(text.find('.'), text.size());
  std::string_view whole = text.substr(0, point);
  std::string_view rest = text.substr(std::min(point + 1, text.size()));
  if (text.find_first_not_of("0123456789.") != std::string_view::npos) {  // "1.5e3"
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size() || value > 1e15)
      return std::nullopt;
    const auto nanoseconds = static_cast<std::int64_t>(std::llround(value * 1000));
    return is_negative ? -nanoseconds : nanoseconds;
  }
  if (whole.empty() || whole.size() > most_digits) return std::nullopt;
  std::int64_t value = 0;
  for (const char digit : whole) value = 10 * value + (digit - '0');
  for (std::size_t place = 0; place < 3; ++place)
    value = 10 * value + (place < rest.size() ? rest[place] - '0' : 0);
  return is_negative ? -value : value;
}

ProfilerTrace read_profiler_trace(const std::filesystem::path& path) {
  const std::string place = path == "-" ? "standard input" : path.string();
  try {
    Bytes bytes(path);
    TraceBuilder builder(place, bytes);
    Json::sax_parse(ByteIterator(bytes), ByteIterator(), &builder);
    ProfilerTrace trace = builder.finish();
    trace.file = path == "-" ? place : path.filename().string();
    return trace;
  } catch (const Bytes::TooLong&) {
    throw RequestError(
        Diagnostic{{place, 0, 0},
                   fmt::format("has a text of more than {} MiB", longest_text_bytes >> 20),
                   std::string(way_to_export)});
  }
}

}  // namespace stepgate
