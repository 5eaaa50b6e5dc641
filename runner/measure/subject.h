// SPDX-License-Identifier: MIT
// The subject of a measurement and of a verdict: a step by its name, its units of work and its
// counts, whoever knows them. A planned step makes one (planned_subject.h), and so may a program
// that has no plan.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "measure/arithmetic.h"
#include "scenario/assertions/step_counts.h"

namespace stepgate {

// Facts that nobody knows are absent, and a metric that needs one is not known either.
struct Subject {
  std::string name;                   // of the variant, or anchor_variant
  int ranks = 1;                      // processes with a GPU each that do it together
  std::optional<double> batch_size;   // samples a step, of all ranks together, on average
  std::optional<double> tokens;       // a step, on average; 0: samples are no sequences
  std::optional<double> model_flops;  // a step: what mfu counts
  std::optional<DType> dtype;         // of its GEMMs: by whose peak rate mfu counts them
  std::int64_t batch_bytes = 0;       // what assertions mean by batch_bytes and param_bytes
  std::int64_t param_bytes = 0;
  std::map<Metric, double> counts;        // a step, in base units; those that are known
  std::array<Tally, phase_count> phases;  // of them what each phase adds, on average a step
  // Phases with work of a graph, whose launches are one and of no phase.
  std::array<bool, phase_count> in_graph{};
  std::vector<PeriodicWork> periodic;  // all that it does only every so many steps
  std::string anchor;                  // measured beside it: "hbm.1"; empty: none is
  // Why its steps cannot run between those of others, in words; empty: they can.
  std::string against_interleaving;
  int steps_in_flight = 8;           // the host is never further ahead of the device than this
  std::int64_t loader_depth = 0;     // batches that a loader makes ahead; 0: the host makes each
  int prefetch_depth = 0;            // steps that the host starts before step 0
  std::vector<DeviceKey> libraries;  // that it depends on besides the device (device.h)
  MemoryUse planned_memory;          // planned_memory.h; without a plan all of it is 0
  std::optional<AllocatorSimulation> allocator_simulation;  // of its own, if it has one
  // It comes with a dtype. Nobody compares losses and gradients of a step without arithmetic.
  std::optional<Arithmetic> arithmetic;

  std::optional<double> count(Metric metric) const {
    const auto found = counts.find(metric);
    return found == counts.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace stepgate
