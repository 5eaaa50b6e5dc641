// SPDX-License-Identifier: MIT
#include "kernels/gemm/gemm_autotuner.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/gemm/gemm_operands.h"
#include "kernels/stopwatch.h"

namespace stepgate {
namespace {

constexpr int most_algorithms = 16;
constexpr int rounds = 5;
constexpr double least_seconds = 500e-6;  // of a sample; its events cost some microseconds
constexpr int most_launches = 20;         // of a sample
constexpr double near = 1.02;             // as a multiple of the fastest time

struct Candidate {
  cublasLtMatmulAlgo_t algorithm;
  int rank;
  std::vector<double> seconds;

  double median() const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + rounds / 2, sorted.end());
    return sorted[rounds / 2];
  }
};

// The first algorithm of the heuristics, and all others with bitwise equal results.
std::vector<Candidate> candidates_of(const GemmCall& call, const GemmOperands& operands) {
  std::vector<Candidate> candidates;
  const auto algorithms = call.algorithms(most_algorithms);
  for (int rank = 0; rank < static_cast<int>(algorithms.size()); ++rank) {
    const auto& algorithm = algorithms[static_cast<std::size_t>(rank)];
    operands.clear_result();
    call.enqueue(operands.pointers(), algorithm, nullptr);
    if (rank == 0) {
      operands.keep_result();
    } else if (!operands.result_is_as_kept()) {
      continue;
    }
    candidates.push_back({algorithm, rank, {}});
  }
  return candidates;
}

// Times the candidates in turns, so that they see the same GPU clocks.
void time_all(const GemmCall& call, const GemmOperands& operands,
              std::vector<Candidate>& candidates) {
  Stopwatch stopwatch;
  const auto run = [&](const Candidate& candidate, int times) {
    return stopwatch.seconds_each(
        times, [&] { call.enqueue(operands.pointers(), candidate.algorithm, nullptr); });
  };
  const double once = run(candidates.front(), 1);
  const int launches =
      std::clamp(static_cast<int>(std::ceil(least_seconds / once)), 1, most_launches);
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) candidate.seconds.push_back(run(candidate, launches));
  }
}

const Candidate& choose(const std::vector<Candidate>& candidates) {
  double fastest = candidates.front().median();
  for (const Candidate& candidate : candidates) fastest = std::min(fastest, candidate.median());
  return *std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    return candidate.median() <= near * fastest;
  });
}

}  // namespace

cublasLtMatmulAlgo_t GemmAutotuner::algorithm_for(const GemmCall& call) {
  const auto known = std::find_if(choices_.begin(), choices_.end(), [&](const Choice& choice) {
    return choice.gemm == call.shape() && choice.workspace_bytes == call.workspace_bytes();
  });
  if (known != choices_.end()) return known->algorithm;
  const auto operands = GemmOperands::make(call.shape());
  if (!operands) {
    throw std::runtime_error(
        call.kernel() + ": the device has no room for " +
        std::to_string(GemmOperands::bytes_of(call.shape()) >> 20) +
        " MiB more, on which algorithms are measured; write launch.gemm = \"heuristic\"");
  }
  std::vector<Candidate> candidates = candidates_of(call, *operands);
  time_all(call, *operands, candidates);
  const Candidate& chosen = choose(candidates);
  choices_.push_back({.gemm = call.shape(),
                      .workspace_bytes = call.workspace_bytes(),
                      .algorithm = chosen.algorithm,
                      .rank = chosen.rank,
                      .speedup = candidates.front().median() / chosen.median()});
  return chosen.algorithm;
}

}  // namespace stepgate
