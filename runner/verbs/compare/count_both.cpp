// SPDX-License-Identifier: MIT
#include "verbs/compare/count_both.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

namespace stepgate {
namespace {

struct CountedSide {
  std::vector<StepCounts> counts;  // of the first works
  std::string failure;
};

CountedSide count_all(Worker& worker, std::span<const std::string> works,
                      const std::function<void(const std::string&)>& progress) {
  CountedSide side;
  try {
    for (const std::string& work : works) {
      progress(work);
      side.counts.push_back(worker.count({work}));
    }
    worker.quit();
  } catch (const WorkerError& error) {
    side.failure = error.what();
    if (works.size() > 1) {
      side.failure += fmt::format("; {} of {} works were not counted",
                                  works.size() - side.counts.size(), works.size());
    }
  }
  return side;
}

}  // namespace

CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> works,
                       const std::function<void(const std::string& work)>& progress) {
  auto of_head = std::async(std::launch::async,
                            [&] { return count_all(head, works, [](const std::string&) {}); });
  CountedSide base_side = count_all(base, works, progress);
  CountedSide head_side = of_head.get();
  CountedBoth both;
  const std::size_t common = std::min(base_side.counts.size(), head_side.counts.size());
  for (std::size_t index = 0; index < common; ++index) {
    both.pairs.push_back(CountedPair{.work = works[index],
                                     .base = std::move(base_side.counts[index]),
                                     .head = std::move(head_side.counts[index])});
  }
  for (std::string& failure : {std::ref(base_side.failure), std::ref(head_side.failure)}) {
    if (!failure.empty()) both.failures.push_back(std::move(failure));
  }
  return both;
}

}  // namespace stepgate
