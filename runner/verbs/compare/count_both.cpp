// SPDX-License-Identifier: MIT
#include "verbs/compare/gate_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <utility>

namespace stepgate {
namespace {

struct CountedSide {
  std::vector<StepCounts> counts;  // of the first workloads
  std::optional<CountingFailure> failure;
};

// Number of workloads that are still worth counting: those that one side cannot answer need no
// answer from the other.
using Useful = std::atomic<std::size_t>;

CountedSide count_all(Worker& worker, std::span<const std::string> workloads, Useful& useful,
                      const std::function<void(const std::string&)>& progress) {
  CountedSide side;
  try {
    while (side.counts.size() < useful) {
      const std::string& workload = workloads[side.counts.size()];
      progress(workload);
      side.counts.push_back(worker.count({workload}));
    }
    worker.quit();
  } catch (const WorkerError& error) {
    const std::size_t counted = side.counts.size();
    useful = std::min(useful.load(), counted);
    side.failure = {.workload = counted < workloads.size() ? workloads[counted] : "",
                    .words = error.what()};
    if (counted < workloads.size() && workloads.size() > 1) {
      side.failure->words += fmt::format("; {} of {} workloads were not counted",
                                         workloads.size() - counted, workloads.size());
    }
  } catch (...) {
    useful = 0;
    throw;
  }
  return side;
}

}  // namespace

CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> workloads,
                       const std::function<void(const std::string& workload)>& progress) {
  Useful useful = workloads.size();
  auto of_head = std::async(std::launch::async, [&] {
    return count_all(head, workloads, useful, [](const std::string&) {});
  });
  CountedSide base_side = count_all(base, workloads, useful, progress);
  progress("HEAD");
  CountedSide head_side = of_head.get();
  CountedBoth both;
  const std::size_t common = std::min(base_side.counts.size(), head_side.counts.size());
  for (std::size_t index = 0; index < common; ++index) {
    both.pairs.push_back(CountedPair{.workload = workloads[index],
                                     .base = std::move(base_side.counts[index]),
                                     .head = std::move(head_side.counts[index])});
  }
  for (CountedSide* side : {&base_side, &head_side}) {
    if (side->failure) both.failures.push_back(*std::move(side->failure));
  }
  return both;
}

}  // namespace stepgate
