// SPDX-License-Identifier: MIT
// A trace of torch.profiler as compact records. A trace comes from a stranger: its depth, the
// lengths of its texts and the number of its records are bounded, and what does not fit is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/stats/interval_union.h"
#include "device/trace.h"

namespace stepgate {

// Times are nanoseconds since some moment, the same for all records of a trace. Names are indexes
// into ProfilerTrace::names.
struct ProfiledCall {
  Interval time;
  std::uint32_t name = 0;
  std::uint32_t correlation = 0;  // 0: none
  std::uint32_t thread = 0;       // counted from 0
  bool is_driver = false;
};

struct ProfiledWork {
  Interval time;
  std::int64_t bytes = 0;  // of a copy or a fill
  std::uint32_t name = 0;
  std::uint32_t correlation = 0;
  std::int32_t stream = 0;
  std::int16_t device = 0;
  WorkKind kind = WorkKind::kernel;
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  bool from_graph = false;
};

// A wait as the device's side records it; those of one stream for another are left out.
struct ProfiledWait {
  Interval time;
  std::uint32_t correlation = 0;
  bool is_for_device = false;
};

enum class RangeKind : std::uint8_t { annotation, operation, python };

// A range of the host: an annotation of the user, an operation of PyTorch, a function of Python.
struct ProfiledRange {
  Interval time;
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
  RangeKind kind = RangeKind::operation;
};

struct ProfilerTrace {
  std::string file;  // without its folder
  std::int64_t process = 0;
  std::int64_t rank = -1;                       // -1: the trace names none
  std::int64_t world_size = 0;                  // 0: the trace names none
  std::map<std::string, std::string> versions;  // "gpu", "cuda", "driver", "nccl"
  std::vector<std::string> names;
  // Each list is in order of begin. Calls of the driver within one of the runtime are its
  // implementation: they are left out, and their work is that of the outer call.
  std::vector<ProfiledCall> calls;
  std::vector<ProfiledWork> work;
  std::vector<ProfiledWait> waits;
  std::vector<ProfiledRange> ranges;  // by thread, then by begin, the longer one first
  std::int64_t lazy_loads = 0;        // of modules, while steps ran
  std::int64_t impossible = 0;        // events of negative length, which are left out

  std::string_view name_of(const auto& record) const { return names[record.name]; }
};

// Throws RequestError placed at the file where it is no trace of torch.profiler, is damaged, or is
// beyond a limit. "-" is standard input.
ProfilerTrace read_profiler_trace(const std::filesystem::path&);

// Limits on what a trace may hold.
inline constexpr int deepest_nesting = 64;
inline constexpr std::int64_t longest_text_bytes = 16 << 20;  // of one text
inline constexpr std::size_t most_records = 30'000'000;
inline constexpr std::size_t most_name_bytes = 64 << 20;  // of all names that are kept
inline constexpr std::size_t longest_kept_name = 1024;

// Nanoseconds of microseconds as they are written: "123.456" is 123456. Digits beyond nanoseconds
// are dropped; nullopt where the text is no number or too large for the clock.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);

}  // namespace stepgate
