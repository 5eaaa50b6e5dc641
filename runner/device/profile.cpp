// SPDX-License-Identifier: MIT
#include "device/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <variant>

#include "base/require.h"
#include "base/text/nearest.h"
#include "base/toml/toml.h"
#include "base/toml/toml_text.h"
#include "device/device.h"

namespace stepgate {
namespace {

// The target of a row of the file; the type of the pointer is the type of the value.
using Target = std::variant<std::string*, std::int64_t*, double*, std::vector<std::int64_t>*>;

constexpr std::size_t most_sizes_of_a_copy = 1000;
constexpr std::int64_t largest_memory_bytes = std::int64_t{1} << 60;

template <class Whole>
struct RowOf {
  std::string_view table;  // empty: the top of the file
  std::string_view key;
  ProfileLimits limits;
  Target (*target)(Whole&);
  bool may_be_missing = false;  // then the value is the default of DeviceProfile
};
using ProfileRow = RowOf<DeviceProfile>;
using CollectiveRow = RowOf<CollectiveCosts>;

constexpr ProfileLimits text{};
constexpr ProfileLimits versions{1, 99};
constexpr ProfileLimits engines{1, 64};
constexpr ProfileLimits processors{1, 100'000};
constexpr ProfileLimits memory{1 << 20, largest_memory_bytes};
constexpr ProfileLimits times{0, longest_cost_nanoseconds};
constexpr ProfileLimits rates{1e9, 1e18};  // the upper limit is a thousand times the fastest GPU
constexpr ProfileLimits clocks{1e8, 1e10};
constexpr ProfileLimits copied{1, largest_memory_bytes};
constexpr ProfileLimits staged{0, largest_memory_bytes};
constexpr ProfileLimits ranks{2, 64};
constexpr ProfileLimits shares{0, 1};
constexpr ProfileLimits stretches{1, 100};
constexpr ProfileLimits probabilities{0, 1};

constexpr ProfileRow profile_rows[] = {
    {"", "name", text, [](DeviceProfile& p) -> Target { return &p.name; }},
    {"", "driver", text, [](DeviceProfile& p) -> Target { return &p.driver; }},
    {"", "runtime", text, [](DeviceProfile& p) -> Target { return &p.runtime; }},
    {"", "measured", text, [](DeviceProfile& p) -> Target { return &p.measured; }},
    {"", "compute_capability", versions,
     [](DeviceProfile& p) -> Target { return &p.compute_capability; }},
    {"", "copy_engines", engines, [](DeviceProfile& p) -> Target { return &p.copy_engines; }},
    {"", "link", text, [](DeviceProfile& p) -> Target { return &p.link; }, true},
    {"", "multiprocessors", processors,
     [](DeviceProfile& p) -> Target { return &p.multiprocessors; }},
    {"", "memory_bytes", memory, [](DeviceProfile& p) -> Target { return &p.memory_bytes; }},
    {"host", "processors", processors,
     [](DeviceProfile& p) -> Target { return &p.host.processors; }, true},
    {"host", "launch_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.launch_nanoseconds; }},
    {"host", "product_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.gemm_nanoseconds; }},
    {"host", "graph_launch_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.graph_launch_nanoseconds; }},
    {"host", "copy_call_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.copy_call_nanoseconds; }},
    {"host", "event_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.event_nanoseconds; }},
    {"host", "wake_up_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.wake_up_nanoseconds; }},
    {"host", "malloc_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.malloc_nanoseconds; }},
    {"host", "free_ns", times, [](DeviceProfile& p) -> Target { return &p.host.free_nanoseconds; }},
    {"host", "malloc_async_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.malloc_async_nanoseconds; }},
    {"host", "pool_grow_ns", times,
     [](DeviceProfile& p) -> Target { return &p.host.pool_grow_nanoseconds; }},
    {"host", "page_lock_ns_per_mib", times,
     [](DeviceProfile& p) -> Target { return &p.host.register_nanoseconds_per_mib; }},
    {"host", "page_unlock_ns_per_mib", times,
     [](DeviceProfile& p) -> Target { return &p.host.unregister_nanoseconds_per_mib; }},
    {"compute", "launch_latency_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.launch_latency_nanoseconds; }},
    {"compute", "kernel_floor_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.kernel_floor_nanoseconds; }},
    {"compute", "graph_node_floor_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.graph_node_floor_nanoseconds; }},
    {"compute", "memory_bytes_per_second", rates,
     [](DeviceProfile& p) -> Target { return &p.compute.memory_bytes_per_second; }},
    {"compute", "fp32_flops_per_second", rates,
     [](DeviceProfile& p) -> Target { return &p.compute.fp32_flops_per_second; }},
    {"compute", "tf32_flops_per_second", rates,
     [](DeviceProfile& p) -> Target { return &p.compute.tf32_flops_per_second; }},
    {"compute", "bf16_flops_per_second", rates,
     [](DeviceProfile& p) -> Target { return &p.compute.bf16_flops_per_second; }},
    {"compute", "l1_latency_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.l1_latency_nanoseconds; }, true},
    {"compute", "l2_latency_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.l2_latency_nanoseconds; }, true},
    {"compute", "memory_latency_ns", times,
     [](DeviceProfile& p) -> Target { return &p.compute.memory_latency_nanoseconds; }, true},
    {"compute", "l1_bytes", staged, [](DeviceProfile& p) -> Target { return &p.compute.l1_bytes; },
     true},
    {"compute", "l2_bytes", staged, [](DeviceProfile& p) -> Target { return &p.compute.l2_bytes; },
     true},
    {"compute", "sm_clock_hertz", clocks,
     [](DeviceProfile& p) -> Target { return &p.compute.sm_clock_hertz; }, true},
    {"pinned", "bytes", copied, [](DeviceProfile& p) -> Target { return &p.pinned.bytes; }},
    {"pinned", "ns", times, [](DeviceProfile& p) -> Target { return &p.pinned.nanoseconds; }},
    {"pageable", "bytes", copied, [](DeviceProfile& p) -> Target { return &p.pageable.bytes; }},
    {"pageable", "ns", times, [](DeviceProfile& p) -> Target { return &p.pageable.nanoseconds; }},
    {"pageable", "staging_bytes", staged,
     [](DeviceProfile& p) -> Target { return &p.staging_bytes; }},
    {"noise", "within_rounds", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.within_rounds; }},
    {"noise", "between_rounds", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.between_rounds; }},
    {"noise", "between_loads", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.between_loads; }},
    {"noise", "between_slots", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.between_slots; }},
    {"noise", "between_processes", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.between_processes; }},
    {"noise", "drift_per_second", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.drift_per_second; }},
    {"noise", "spike_probability", probabilities,
     [](DeviceProfile& p) -> Target { return &p.noise.spike_probability; }},
    {"noise", "spike_ns", times,
     [](DeviceProfile& p) -> Target { return &p.noise.spike_nanoseconds; }},
    {"noise", "slower_after_steps", times,
     [](DeviceProfile& p) -> Target { return &p.noise.slower_after_steps; }, true},
    {"noise", "slower_by", shares, [](DeviceProfile& p) -> Target { return &p.noise.slower_by; },
     true},
    {"noise", "slower_each_step", shares,
     [](DeviceProfile& p) -> Target { return &p.noise.slower_each_step; }, true},
};

constexpr std::string_view collectives = "collectives";

// The keys of one table of collectives, which comes before the noise in the file.
constexpr CollectiveRow collective_rows[] = {
    {collectives, "ranks", ranks, [](CollectiveCosts& c) -> Target { return &c.ranks; }},
    {collectives, "bytes", copied, [](CollectiveCosts& c) -> Target { return &c.bytes; }},
    {collectives, "all_reduce_ns", times,
     [](CollectiveCosts& c) -> Target { return &c.all_reduce_nanoseconds; }},
    {collectives, "reduce_scatter_ns", times,
     [](CollectiveCosts& c) -> Target { return &c.reduce_scatter_nanoseconds; }},
    {collectives, "all_gather_ns", times,
     [](CollectiveCosts& c) -> Target { return &c.all_gather_nanoseconds; }},
    {collectives, "kernel_stretch", stretches,
     [](CollectiveCosts& c) -> Target { return &c.kernel_stretch; }},
    {collectives, "collective_stretch", stretches,
     [](CollectiveCosts& c) -> Target { return &c.collective_stretch; }},
};

template <class Whole>
std::string full_name(const RowOf<Whole>& row) {
  return row.table.empty() ? std::string(row.key) : fmt::format("{}.{}", row.table, row.key);
}

// Assigns one value to its target; returns false when it has another type or is beyond its limits.
struct Assign {
  const TomlValue& value;
  const ProfileLimits& limits;

  // The comparison also rejects NaN.
  bool is_within(double number) const { return number >= limits.least && number <= limits.most; }

  bool operator()(std::string* to) const {
    const auto* written = std::get_if<std::string>(&value.content);
    if (written) *to = *written;
    return written != nullptr;
  }
  bool operator()(std::int64_t* to) const {
    const auto* number = std::get_if<std::int64_t>(&value.content);
    if (!number || !is_within(static_cast<double>(*number))) return false;
    *to = *number;
    return true;
  }
  bool operator()(double* to) const {
    if (const auto* number = std::get_if<double>(&value.content)) {
      *to = *number;
    } else if (const auto* whole = std::get_if<std::int64_t>(&value.content)) {
      *to = static_cast<double>(*whole);
    } else {
      return false;
    }
    return is_within(*to);
  }
  bool operator()(std::vector<std::int64_t>* to) const {
    const auto* array = std::get_if<TomlArray>(&value.content);
    if (!array) return false;
    to->clear();
    for (const TomlValue& element : *array) {
      std::int64_t number = 0;
      if (!Assign{element, limits}(&number) || (!to->empty() && number <= to->back())) return false;
      to->push_back(number);
    }
    return to->size() >= 2 && to->size() <= most_sizes_of_a_copy;
  }
};

std::string expectation_of(const Target& target, const ProfileLimits& limits) {
  constexpr const char* texts[] = {"a string", "a whole number from {} to {}",
                                   "a number from {} to {}",
                                   "a list of 2 to 1000 ascending whole numbers from {} to {}"};
  return fmt::format(fmt::runtime(std::string("must be ") + texts[target.index()]), limits.least,
                     limits.most);
}

class ProfileReader {
 public:
  explicit ProfileReader(DeviceProfile& profile) : profile_(profile) {}

  void read(const TomlTable& table, std::string_view prefix) {
    for (const TomlEntry& entry : table) {
      const auto* inner = std::get_if<TomlTable>(&entry.value.content);
      if (prefix.empty() && entry.key == collectives) {
        read_collectives(entry);
      } else if (prefix.empty() && inner) {
        read(*inner, entry.key);
      } else if (const auto index = read_entry(entry, prefix, profile_rows, profile_)) {
        seen_[*index] = true;
      }
    }
  }

  std::vector<Diagnostic> finish(const std::string& file) {
    for (std::size_t index = 0; index < std::size(profile_rows); ++index) {
      if (!seen_[index] && !profile_rows[index].may_be_missing) {
        fail(file, fmt::format("'{}' is missing", full_name(profile_rows[index])),
             "measure the profile again");
      }
    }
    if (wrong_.empty() &&
        (profile_.pinned.bytes.size() != profile_.pinned.nanoseconds.size() ||
         profile_.pageable.bytes.size() != profile_.pageable.nanoseconds.size())) {
      fail(file, "a copy's 'bytes' and 'ns' have different lengths", "give one time for each size");
    }
    if (wrong_.empty()) check_levels(file);
    if (wrong_.empty()) check_collectives(file);
    if (!profile_.link.empty() && profile_.link != nvlink && profile_.link != no_nvlink)
      fail(file, fmt::format("'link' is '{}'", profile_.link),
           fmt::format("say '{}' or '{}', or leave it out", nvlink, no_nvlink));
    return std::move(wrong_);
  }

 private:
  // Checks that caches and memory are in order. Some values may be defaults, which need not be
  // consistent with the values in the file.
  void check_levels(const std::string& file) {
    const ComputeCosts& costs = profile_.compute;
    if (costs.l1_latency_nanoseconds > costs.l2_latency_nanoseconds ||
        costs.l2_latency_nanoseconds > costs.memory_latency_nanoseconds) {
      fail(
          file,
          fmt::format("the latencies of l1, l2 and memory are {}, {} and {} ns, where each must be "
                      "at least the one before; what the file leaves out is typical",
                      costs.l1_latency_nanoseconds, costs.l2_latency_nanoseconds,
                      costs.memory_latency_nanoseconds),
          "give all three");
    }
    if (costs.l1_bytes > costs.l2_bytes) {
      fail(file,
           fmt::format("l1 has {} bytes and l2 has {}, where l2 must have at least as many; what "
                       "the file leaves out is typical",
                       costs.l1_bytes, costs.l2_bytes),
           "give both");
    }
  }

  // Reads one table, or an array with one table for each number of ranks.
  void read_collectives(const TomlEntry& entry) {
    if (const auto* table = std::get_if<TomlTable>(&entry.value.content)) {
      read_collectives_of_a_count(*table);
    } else if (const auto* tables = std::get_if<TomlArray>(&entry.value.content)) {
      for (const TomlValue& value : *tables) {
        const auto* of_a_count = std::get_if<TomlTable>(&value.content);
        if (of_a_count == nullptr) return refuse_collectives(entry);
        read_collectives_of_a_count(*of_a_count);
      }
    } else {
      refuse_collectives(entry);
    }
  }

  void refuse_collectives(const TomlEntry& entry) {
    wrong_.push_back({entry.value.place,
                      "'collectives' must be a table, or one for each count of "
                      "ranks",
                      "measure the profile again"});
  }

  void read_collectives_of_a_count(const TomlTable& table) {
    CollectiveCosts& costs = profile_.collectives.emplace_back();
    for (const TomlEntry& entry : table) read_entry(entry, collectives, collective_rows, costs);
  }

  // A table of collectives is complete or absent.
  void check_collectives(const std::string& file) {
    std::set<std::int64_t> counts;
    for (const CollectiveCosts& costs : profile_.collectives) {
      const std::size_t sizes = costs.bytes.size();
      const bool is_whole = costs.all_reduce_nanoseconds.size() == sizes &&
                            costs.reduce_scatter_nanoseconds.size() == sizes &&
                            costs.all_gather_nanoseconds.size() == sizes;
      if (!is_whole || costs.ranks == 0 || sizes == 0) {
        fail(file, "'collectives' has no time of each kind for each size on a count of ranks",
             "give 'ranks', 'bytes' and as many 'all_reduce_ns', 'reduce_scatter_ns' and "
             "'all_gather_ns', or leave the table out");
      } else if (!counts.insert(costs.ranks).second) {
        fail(file, fmt::format("'collectives' has two tables of {} ranks", costs.ranks),
             "leave one out");
      }
    }
  }

  void fail(const std::string& file, std::string message, std::string hint) {
    Diagnostic& wrong = wrong_.emplace_back();
    wrong.place.file = file;
    wrong.message = std::move(message);
    wrong.hint = std::move(hint);
  }

  // Returns the index of the entry's row; nullopt where there is no such row.
  template <class Whole, std::size_t count>
  std::optional<std::size_t> read_entry(const TomlEntry& entry, std::string_view prefix,
                                        const RowOf<Whole> (&rows)[count], Whole& whole) {
    for (std::size_t index = 0; index < count; ++index) {
      if (rows[index].table != prefix || rows[index].key != entry.key) continue;
      const Target target = rows[index].target(whole);
      const ProfileLimits& limits = rows[index].limits;
      if (!std::visit(Assign{entry.value, limits}, target)) {
        wrong_.push_back(
            {entry.value.place,
             fmt::format("'{}' {}", full_name(rows[index]), expectation_of(target, limits)),
             "measure the profile again"});
      }
      return index;
    }
    wrong_.push_back(
        {entry.place, fmt::format("unknown key '{}' in a device profile", entry.key), ""});
    return std::nullopt;
  }

  DeviceProfile& profile_;
  bool seen_[std::size(profile_rows)] = {};
  std::vector<Diagnostic> wrong_;
};

std::string text_of(const Target& target) {
  struct Text {
    std::string operator()(const std::string* value) const { return toml_string(*value); }
    std::string operator()(const std::int64_t* value) const { return fmt::format("{}", *value); }
    std::string operator()(const double* value) const { return fmt::format("{:.6g}", *value); }
    std::string operator()(const std::vector<std::int64_t>* value) const {
      return fmt::format("[{}]", fmt::join(*value, ", "));
    }
  };
  return std::visit(Text{}, target);
}

constexpr std::string_view before_which_collectives_stand = "noise";

std::string text_of(std::vector<CollectiveCosts>& tables) {
  std::string text;
  for (CollectiveCosts& costs : tables) {
    text += tables.size() == 1 ? fmt::format("\n[{}]\n", collectives)
                               : fmt::format("\n[[{}]]\n", collectives);
    CollectiveCosts none;
    for (const CollectiveRow& row : collective_rows) {
      const std::string value = text_of(row.target(costs));
      if (value != text_of(row.target(none))) text += fmt::format("{} = {}\n", row.key, value);
    }
  }
  return text;
}

}  // namespace

std::vector<ProfileField> profile_fields() {
  std::vector<ProfileField> fields;
  const auto add = [&]<class Whole>(std::span<const RowOf<Whole>> rows) {
    Whole whole;
    for (const RowOf<Whole>& row : rows) {
      constexpr ProfileKind kinds[] = {ProfileKind::text, ProfileKind::whole, ProfileKind::number,
                                       ProfileKind::list};
      fields.push_back({full_name(row), kinds[row.target(whole).index()], row.limits});
    }
  };
  add(std::span<const ProfileRow>(profile_rows));
  add(std::span<const CollectiveRow>(collective_rows));
  return fields;
}

std::int64_t CopyCost::of(std::int64_t size) const {
  require(bytes.size() >= 2 && bytes.size() == nanoseconds.size(),
          "a copy's cost has at least two sizes");
  std::size_t upper = 1;
  while (upper + 1 < bytes.size() && size > bytes[upper]) ++upper;
  if (size <= bytes.front()) return nanoseconds.front();
  const auto span = static_cast<double>(bytes[upper] - bytes[upper - 1]);
  const auto rise = static_cast<double>(nanoseconds[upper] - nanoseconds[upper - 1]);
  const auto beyond = static_cast<double>(size - bytes[upper - 1]);
  const auto before = static_cast<double>(nanoseconds[upper - 1]);
  return nanoseconds[upper - 1] + static_cast<std::int64_t>(std::clamp<double>(
                                      beyond * rise / span, -before, longest_cost_nanoseconds));
}

double CopyCost::bytes_per_nanosecond() const {
  require(bytes.size() >= 2, "a copy's cost has at least two sizes");
  const std::size_t last = bytes.size() - 1;
  const auto rise = static_cast<double>(nanoseconds[last] - nanoseconds[last - 1]);
  return static_cast<double>(bytes[last] - bytes[last - 1]) / std::max(rise, 1.0);
}

DeviceProfile read_profile(const std::filesystem::path& file) {
  DeviceProfile profile;
  ProfileReader reader(profile);
  reader.read(read_toml(file, "a device profile"), "");
  std::vector<Diagnostic> wrong = reader.finish(file.string());
  if (!wrong.empty()) throw RequestError(std::move(wrong));
  return profile;
}

std::string to_toml(const DeviceProfile& profile) {
  DeviceProfile copy = profile;
  DeviceProfile typical;
  std::string text;
  std::string_view table;
  for (const ProfileRow& row : profile_rows) {
    const std::string value = text_of(row.target(copy));
    if (row.may_be_missing && value == text_of(row.target(typical))) continue;
    if (row.table != table) {
      table = row.table;
      if (table == before_which_collectives_stand) text += text_of(copy.collectives);
      text += fmt::format("\n[{}]\n", table);
    }
    text += fmt::format("{} = {}\n", row.key, value);
  }
  return text;
}

}  // namespace stepgate
