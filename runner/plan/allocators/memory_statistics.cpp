// SPDX-License-Identifier: MIT
// Tables that give the statistics their names: pooled statistics, with four numbers for each of
// three pools; single statistics; and counts.
#include "plan/allocators/memory_statistics.h"

#include <map>

#include "base/require.h"

namespace stepgate {
namespace {

template <class Member>
struct Row {
  std::string_view name;
  Member member;
};

constexpr std::array<Row<PooledStat MemoryStatistics::*>, 9> pooled_stats{{
    {"allocation", &MemoryStatistics::allocation},
    {"segment", &MemoryStatistics::segment},
    {"active", &MemoryStatistics::active},
    {"inactive_split", &MemoryStatistics::inactive_split},
    {"allocated_bytes", &MemoryStatistics::allocated_bytes},
    {"reserved_bytes", &MemoryStatistics::reserved_bytes},
    {"active_bytes", &MemoryStatistics::active_bytes},
    {"inactive_split_bytes", &MemoryStatistics::inactive_split_bytes},
    {"requested_bytes", &MemoryStatistics::requested_bytes},
}};

constexpr std::array<Row<MemoryStat PooledStat::*>, 3> pools{{
    {"all", &PooledStat::all},
    {"small_pool", &PooledStat::small_pool},
    {"large_pool", &PooledStat::large_pool},
}};

constexpr std::array<Row<std::int64_t MemoryStat::*>, 4> numbers{{
    {"current", &MemoryStat::current},
    {"peak", &MemoryStat::peak},
    {"allocated", &MemoryStat::allocated},
    {"freed", &MemoryStat::freed},
}};

constexpr std::array<Row<MemoryStat MemoryStatistics::*>, 2> single_stats{{
    {"oversize_allocations", &MemoryStatistics::oversize_allocations},
    {"oversize_segments", &MemoryStatistics::oversize_segments},
}};

constexpr std::array<Row<std::int64_t MemoryStatistics::*>, 5> counts{{
    {"num_alloc_retries", &MemoryStatistics::num_alloc_retries},
    {"num_ooms", &MemoryStatistics::num_ooms},
    {"num_sync_all_streams", &MemoryStatistics::num_sync_all_streams},
    {"num_device_alloc", &MemoryStatistics::num_device_alloc},
    {"num_device_free", &MemoryStatistics::num_device_free},
}};

constexpr std::size_t first_single = pooled_stats.size() * pools.size() * numbers.size();
constexpr std::size_t first_count = first_single + single_stats.size() * numbers.size();
constexpr std::size_t all_statistics = first_count + counts.size();

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) {
    if (!text.empty()) text += '.';
    text += part;
  }
  return text;
}

}  // namespace

void MemoryStatistics::reset_peak() {
  for (const auto& row : pooled_stats) {
    for (const auto& pool : pools) (this->*row.member.*pool.member).reset_peak();
  }
  for (const auto& row : single_stats) (this->*row.member).reset_peak();
}

std::size_t statistic_count() {
  return all_statistics;
}

std::string name_of_statistic(std::size_t index) {
  require(index < all_statistics, "a statistic is one of the table");
  if (index >= first_count) return std::string(counts[index - first_count].name);
  const std::string_view number = numbers[index % numbers.size()].name;
  if (index >= first_single)
    return joined({single_stats[(index - first_single) / numbers.size()].name, number});
  const std::size_t stat = index / numbers.size();
  return joined({pooled_stats[stat / pools.size()].name, pools[stat % pools.size()].name, number});
}

std::int64_t value_of_statistic(const MemoryStatistics& statistics, std::size_t index) {
  require(index < all_statistics, "a statistic is one of the table");
  if (index >= first_count) return statistics.*counts[index - first_count].member;
  const auto number = numbers[index % numbers.size()].member;
  if (index >= first_single)
    return statistics.*single_stats[(index - first_single) / numbers.size()].member.*number;
  const std::size_t stat = index / numbers.size();
  return statistics.*pooled_stats[stat / pools.size()].member.*pools[stat % pools.size()].member.*
         number;
}

std::optional<std::size_t> statistic_named(std::string_view name) {
  for (std::size_t index = 0; index < all_statistics; ++index) {
    if (name_of_statistic(index) == name) return index;
  }
  return std::nullopt;
}

}  // namespace stepgate
