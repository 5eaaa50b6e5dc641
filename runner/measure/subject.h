// SPDX-License-Identifier: MIT
// The subject of a measurement and of a verdict: a step with its name, units of work and counts. It
// is made from a planned step (planned_subject.h) or by a program without a plan.
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

// A kernel launch of the model, or a collective, which adds and rounds numbers as kernels do.
struct ModelWork {
  std::string name;  // of the kernel, or of the collective and its reduction
  KernelShape shape = {};
  DType dtype = DType::fp32;
  KernelAttributes attributes = {};
  std::int64_t payload_bytes = 0;  // of a collective
  bool operator==(const ModelWork&) const = default;
};

// The arithmetic of a step. Besides ranks, sizes and dtype, two steps must agree in it for their
// losses and gradients to be comparable. It also determines the allowed difference.
struct Arithmetic {
  std::uint64_t seed = 0;                 // of weights and batches
  std::vector<std::int64_t> batch_sizes;  // of the steps, repeated cyclically
  std::vector<std::int64_t> lengths;      // tokens of samples, cyclically; empty: equally long
  ModelKnobs model;
  std::int64_t workspace_bytes = 0;  // determines how cuBLASLt splits the sums of a GEMM
  std::set<std::string> kernels;     // of model and optimizer; evaluation changes no weights
  // The kernels of the optimizer and their launch attributes, without duplicates.
  std::vector<std::pair<std::string, KernelAttributes>> update;
  GemmChoice gemm_algorithms = GemmChoice::heuristic;
  AttentionSums attention_sums = AttentionSums::fixed;
  std::vector<ModelWork> model_work;  // of forward and backward, in order
  std::int64_t rows_of_norm = 0;      // of the first batch norm; 0: there is none
  // The sizes of matrices that have one scale in fp8; parts of a batch have scales of their own.
  std::set<std::pair<std::int64_t, std::int64_t>> scaled_matrices;
  double rows = 0;                      // mean number of rows per step that the loss averages over
  std::vector<std::string> parameters;  // names, in the order of the gradients
  std::string against_gradients;        // why gradients cannot be read, in words; empty: they can
};

// Unknown facts are absent, and so is every metric that needs one.
struct Subject {
  std::string name;  // of the variant, or anchor_variant
  int ranks = 1;     // number of processes with one GPU each that run the step together
  std::optional<double> batch_size;   // mean samples per step, over all ranks
  std::optional<double> tokens;       // mean per step; 0: samples are not sequences
  std::optional<double> model_flops;  // per step, as counted by mfu
  std::optional<DType> dtype;         // of its GEMMs; mfu uses the peak rate for it
  std::int64_t batch_bytes = 0;       // batch_bytes in assertions, and then param_bytes
  std::int64_t param_bytes = 0;
  std::map<Metric, double> counts;        // known counts per step, in base units
  bool is_counted = false;                // `counts` are of calls that were seen, not of a plan
  std::array<Tally, phase_count> phases;  // mean counts per step, by phase
  // Phases with work inside a graph. The launch of the graph counts once and belongs to no phase.
  std::array<bool, phase_count> in_graph{};
  std::vector<PeriodicWork> periodic;  // work that happens only every n steps
  std::string anchor;                  // measured beside it: "hbm.1"; empty: none is
  // Why its steps cannot run between those of other variants, in words; empty: they can.
  std::string against_interleaving;
  int steps_in_flight = 8;        // the host is never further ahead of the device than this
  std::int64_t loader_depth = 0;  // batches made ahead; 0: the host makes each
  // Steps of which one waits for the loader: workers that began together finish together.
  std::int64_t loader_turn = 1;
  int prefetch_depth = 0;            // steps that the host starts before step 0
  std::vector<DeviceKey> libraries;  // that the steps depend on besides the device (device.h)
  // Whether kernels of its steps replace kernels of the catalogue, so that launches are audited.
  bool has_replaced_kernels = false;
  std::optional<MemoryUse> planned_memory;                  // planned_memory.h
  std::optional<AllocatorSimulation> allocator_simulation;  // of its own, if it has one
  // A subject with arithmetic also has a dtype. Without it, losses and gradients are not compared.
  std::optional<Arithmetic> arithmetic;

  std::optional<double> count(Metric metric) const {
    const auto found = counts.find(metric);
    return found == counts.end() ? std::nullopt : std::optional(found->second);
  }
};

}  // namespace stepgate
