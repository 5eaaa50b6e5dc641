// SPDX-License-Identifier: MIT
// Describes the step of a variant in the five things that every scenario is about, model, batch,
// transfer, sync and alloc, and one line for the rest. Derived from the field table, so a new knob
// shows up as soon as a scenario sets it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

// The tables of a scenario file that say what a step is.
inline constexpr std::array<std::string_view, 5> five_things{"model", "batch", "transfer", "sync",
                                                             "alloc"};
inline constexpr std::string_view other_things = "other";

struct DescribedStep {
  std::string variant;
  // Words for the five things in their order: what kind each is, and every knob that is not at its
  // default and has an effect, as a file writes them: "mlp, layers 4, hidden 1024, tf32".
  std::array<std::string, five_things.size()> words;
  std::string other;  // knobs of all other tables: "host.step_us 100"; empty: at their defaults
};

std::vector<DescribedStep> described_steps(const std::vector<Variant>&);

// Variants that are alike in something, in the order of the first of them.
struct AlikeVariants {
  std::vector<std::string> variants;
  std::string words;
};

struct ComparedThing {
  std::string_view thing;
  std::vector<AlikeVariants> groups;
  bool differs() const { return groups.size() > 1; }
};

// Groups the variants by equal words for each of the five things. `other_things` follows if any
// variant sets another knob.
std::vector<ComparedThing> compared_things(const std::vector<DescribedStep>&);

}  // namespace stepgate
