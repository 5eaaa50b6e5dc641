// SPDX-License-Identifier: MIT
// For tests only: runs each rank in a process, forked from one that has never called CUDA.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

// A rank's connection to the process that started it.
class RankChannel {
 public:
  RankChannel(int rank, int count, int file) : rank_(rank), count_(count), file_(file) {}

  int rank() const { return rank_; }
  int count() const { return count_; }
  // Returns the text of rank 0 on every rank; the texts of other ranks are ignored.
  std::string share(std::string_view of_rank_0) const;

 private:
  int rank_;
  int count_;
  int file_;
};

using RankWork = std::function<std::string(const RankChannel&)>;

// Runs `work` in one process per rank and returns the results by rank. Each rank calls share()
// `shares` times. Throws std::runtime_error with the message of the first rank that failed, also
// when the ranks exceed the time limit; no process is left then.
std::vector<std::string> run_ranks(int count, int shares, const RankWork& work,
                                   std::chrono::seconds limit = std::chrono::seconds(180));

// The reason why ranks cannot communicate here: too few GPUs, or no NCCL; empty where they can.
// This is checked in a process of its own.
std::string reason_against_ranks_here(int count);

}  // namespace stepgate
