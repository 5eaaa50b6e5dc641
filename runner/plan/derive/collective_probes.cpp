// SPDX-License-Identifier: MIT
#include "plan/derive/collective_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/require.h"
#include "base/text/units.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/step_names.h"
#include "plan/count/facts_of.h"

namespace stepgate {
namespace {

constexpr std::uint64_t probe_seed = 1;

// Limits of the number of collectives in a step, and the total of bytes that they should have.
constexpr std::int64_t most_times = 20;
constexpr std::int64_t fewest_times = 2;
constexpr std::int64_t bytes_of_a_step = 512 * mebibyte;

// Upper limit of the host time of a collective; NCCL's calls took 12 to 13 us on the host of two
// H100.
constexpr std::int64_t host_microseconds = 20;

StepPlan step_that_holds_the_stream(std::int64_t microseconds) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::spin, .kernels = 1, .kernel_us = microseconds};
  knobs.transfer.host = HostMemory::resident;
  Scenario scenario;
  scenario.name = "collectives";
  scenario.variants.push_back({.name = "probe", .knobs = knobs, .place = {}});
  return build_step_plans(scenario, probe_seed).front();
}

Collective collective_of(CollectiveKind kind, int buffer, std::int64_t bytes, int ranks) {
  const std::int64_t part = bytes / ranks;
  const BufferUse whole{.buffer = buffer, .offset_bytes = 0, .bytes = bytes};
  const BufferUse own{
      .buffer = buffer, .offset_bytes = 0, .bytes = part, .rank_stride_bytes = part};
  return {.kind = kind,
          .from = kind == CollectiveKind::all_gather ? own : whole,
          .to = kind == CollectiveKind::reduce_scatter ? own : whole,
          .dtype = DType::bf16};
}

StepPlan step_with(CollectiveKind kind, std::int64_t bytes, std::int64_t times, std::int64_t hold,
                   int ranks) {
  StepPlan plan = step_that_holds_the_stream(hold);
  plan.variant = fmt::format("{} of {} bytes, {} times", name_of(kind), bytes, times);
  plan.ranks = {.count = ranks, .rank = 0, .communicators = 1};
  StepBuilder builder(plan);
  const int buffer = builder.add({.name = "communicated",
                                  .purpose = Purpose::gradients,
                                  .bytes = bytes,
                                  .dtype = DType::bf16});
  builder.enter(Phase::backward);
  for (std::int64_t time = 0; time < times; ++time)
    builder.act(std::string(name_of(kind)), collective_of(kind, buffer, bytes, ranks));
  return plan;
}

}  // namespace

std::vector<CollectiveProbe> collective_probes(int ranks) {
  require(ranks > 1, "one rank communicates with nobody");
  constexpr std::int64_t kibibyte = 1024;
  constexpr std::int64_t sizes[] = {64 * kibibyte, 256 * kibibyte, mebibyte,
                                    4 * mebibyte,  16 * mebibyte,  32 * mebibyte,
                                    64 * mebibyte, 256 * mebibyte, 1024 * mebibyte};
  std::vector<CollectiveProbe> probes;
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    for (const std::int64_t size : sizes) {
      constexpr std::int64_t aligned = 16;  // bytes: all parts have equal sizes
      const std::int64_t bytes = size / (ranks * aligned) * (ranks * aligned);
      const std::int64_t times = std::clamp(bytes_of_a_step / bytes, fewest_times, most_times);
      const std::int64_t hold = 100 + 2 * times * host_microseconds;
      probes.push_back({.kind = kind,
                        .bytes = bytes,
                        .times_more = times,
                        .fewer = with_facts(step_with(kind, bytes, times, hold, ranks)),
                        .more = with_facts(step_with(kind, bytes, 2 * times, hold, ranks))});
    }
  }
  return probes;
}

}  // namespace stepgate
