// SPDX-License-Identifier: MIT
// Kernels that were published as faster and were not, or were not that kernel. Both libraries of
// wrong kernels have a function that plays each, named after what it does; docs/kernels.md has
// these rows.
#pragma once

#include <array>

namespace stepgate {

struct PublishedCheat {
  const char* source;  // the project and its issue or pull request
  const char* function;
  const char* check;  // that refuses it
  const char* words;  // of the fault
};

inline constexpr std::array<PublishedCheat, 8> published_cheats{{
    {"karpathy/llm.c#851", "persists_in_l2", "leaves the device alone", "it was "},
    {"karpathy/llm.c#852", "honest_40_times", "many launches", "after 50 launches"},
    {"flashinfer-bench-starter-kit#21", "caches_by_fingerprint", "keeps nothing",
     "after other numbers at the same addresses"},
    {"tensara/tensara#238", "replays_the_first", "keeps nothing",
     "after other numbers at the same addresses"},
    {"gpu-mode/reference-kernels#104", "batches_15_calls", "numbers",
     "of them NaN, as before the launch"},
    {"ScalingIntelligence/KernelBench#82", "copies_fresh_memory", "numbers", "'y': "},
    {"ScalingIntelligence/KernelBench#82", "uses_a_side_stream", "after its stream",
     "it ran before the work that its stream had"},
    {"wafer.ai, reward hacking", "asks_for_too_much_shared", "numbers",
     "of them NaN, as before the launch"},
}};

}  // namespace stepgate
