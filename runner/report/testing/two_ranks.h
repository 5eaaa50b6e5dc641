// SPDX-License-Identifier: MIT
// For tests of this station: a plan of two ranks and the traces of both, with a common clock and
// one collective per step on a stream of its own.
#pragma once

#include <algorithm>
#include <vector>

#include "plan/testing/three_streams.h"
#include "report/testing/fake_trace.h"
#include "report/trace/trace_rows.h"

namespace stepgate {

struct TwoRanks {
  StepPlan plan;
  std::vector<Trace> traces;
};

// Rank 1 arrives at each collective later by `late`.
inline TwoRanks two_ranks(TraceTime late) {
  FakeTrace fake = fake_trace({.steps = 6});
  fake.plan.ranks.count = 2;
  const int stream = static_cast<int>(fake.plan.streams.size());
  fake.plan.streams.push_back(fake.plan.streams[side_stream]);
  fake.plan.streams.back().name = "communication";
  const int operation = static_cast<int>(fake.plan.operations.size());
  fake.plan.operations.push_back({.name = "reduce bucket 0",
                                  .phase = Phase::backward,
                                  .stream = stream,
                                  .action = Collective{}});
  TwoRanks ranks{fake.plan, {fake.trace, fake.trace}};
  std::vector<RankArrival> arrivals;
  for (const NumberedStep& step : steps_of_the_host(fake.trace)) {
    const TraceTime came = step.when.begin + TraceTime(3000);
    for (const int rank : {0, 1}) {
      const TraceTime at = came + rank * late;
      arrivals.push_back({.operation = operation, .step = step.number, .rank = rank, .at = at});
      ranks.traces[static_cast<std::size_t>(rank)].work.push_back(
          {.kind = WorkKind::collective,
           .name = "ncclDevKernel_AllReduce",
           .stream = 21,
           .operation = operation,
           .step = step.number,
           .begin = at,
           .end = came + late + TraceTime(5000),
           .bytes = 1 << 20,
           .collective = CollectiveKind::all_reduce});
    }
  }
  for (const int rank : {0, 1}) {
    Trace& trace = ranks.traces[static_cast<std::size_t>(rank)];
    std::ranges::stable_sort(trace.work, {}, &DeviceWork::begin);
    trace.rank = rank;
    trace.arrivals = arrivals;
  }
  return ranks;
}

}  // namespace stepgate
