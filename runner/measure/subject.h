// SPDX-License-Identifier: MIT
// The subject of a measurement and of a verdict: the name of a step, its units of work and its
// counts. A planned step makes one (planned_subject.h), and so may a program that has no plan.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "kernels/kernel.h"
#include "scenario/assertions/step_counts.h"
#include "scenario/scenario.h"

namespace stepgate {

// A launch of the model, or a collective, which rounds where it adds as kernels do.
struct ModelWork {
  std::string name;  // of the kernel; of a collective with how it reduces
  KernelShape shape = {};
  DType dtype = DType::fp32;
  KernelAttributes attributes = {};
  std::int64_t payload_bytes = 0;  // of a collective
  bool operator==(const ModelWork&) const = default;
};

// The arithmetic of a step: all that two steps must share, besides their ranks, sizes and dtype,
// for their losses and gradients to be comparable, and that decides how near those then are.
struct Arithmetic {
  std::uint64_t seed = 0;                 // of weights and batches
  std::vector<std::int64_t> batch_sizes;  // of the steps, in turns
  std::vector<std::int64_t> lengths;      // tokens of the samples, in turns; empty: all alike
  ModelKnobs model;
  std::int64_t workspace_bytes = 0;  // by which cuBLASLt chooses how a GEMM adds up
  std::set<std::string> kernels;     // of model and optimizer; evaluation changes nothing
  // Each kernel of the optimizer with the attributes that it is launched with, once.
  std::vector<std::pair<std::string, KernelAttributes>> update;
  GemmChoice gemm_algorithms = GemmChoice::heuristic;
  std::vector<ModelWork> model_work;    // of forward and backward, in order
  double rows = 0;                      // a step, on average, that a loss is the mean of
  std::vector<std::string> parameters;  // by name, in the order of gradients
  std::string against_gradients;        // why those cannot be read, in words; empty: they can
};

// Unknown facts are absent, and a metric that needs one is unknown too.
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
  std::optional<MemoryUse> planned_memory;                  // planned_memory.h
  std::optional<AllocatorSimulation> allocator_simulation;  // of its own, if it has one
  // It comes with a dtype. Nobody compares losses and gradients of a step without arithmetic.
  std::optional<Arithmetic> arithmetic;

  std::optional<double> count(Metric metric) const {
    const auto found = counts.find(metric);
    return found == counts.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace stepgate
