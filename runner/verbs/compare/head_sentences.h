// SPDX-License-Identifier: MIT
// Runs a program's scenarios with `<program> run` as a child, and reads the sentences of the JSON
// that it wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "duel/gate/judge_gate.h"
#include "verbs/arguments.h"

namespace stepgate {

struct RunOfProgram {
  std::vector<HeadSentence> sentences;  // of the scenarios that it decided
  std::int64_t scenarios = 0;           // so many
  bool suite_refuted = false;           // though perhaps no sentence of it is
  std::string device;                   // that it says it ran on: "NVIDIA H200, driver 580.159"
  bool simulated = false;
  std::string failure;         // in words, why there are no more; empty when all are there
  bool gated_nothing = false;  // the failure is that it found nothing to measure with
  bool stopped = false;        // a signal came in between
};

// `files` instead of those of the arguments; `bases` are folders, each with a ':' behind it, that
// they may extend from besides. Throws std::system_error when there is no process.
RunOfProgram run_program_on(const Arguments&, DuelSide, const std::string& program,
                            const std::vector<std::filesystem::path>& files, std::uint64_t seed,
                            const std::string& bases = {});

}  // namespace stepgate
