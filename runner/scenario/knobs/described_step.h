// SPDX-License-Identifier: MIT
// Describes the step of a variant in the five things that every scenario is about, model, batch,
// transfer, sync and alloc, and one line for the rest. Derived from the field table, so a new knob
// shows up as soon as a scenario sets it. A program is described by its command line, in that line
// for the rest, with secrets masked.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.h"

namespace stepgate {

// The tables of a scenario file that define a step.
inline constexpr std::array<std::string_view, 5> five_things{"model", "batch", "transfer", "sync",
                                                             "alloc"};
inline constexpr std::string_view other_things = "other";
inline constexpr std::string_view program_thing =
    "program";  // where no variant has one of the five

struct DescribedStep {
  std::string variant;
  // Describes each of the five things in order: its kind, and every knob with an effect that is not
  // at its default, as a file writes them: "mlp, layers 4, hidden 1024, tf32".
  std::array<std::string, five_things.size()> words;
  std::string other;  // knobs of other tables that are not at their defaults: "host.step_us 100"
};

std::vector<DescribedStep> described_steps(const std::vector<Variant>&);

// Variants with an equal description of one thing, in the order of their first one.
struct AlikeVariants {
  std::vector<std::string> variants;
  std::string words;
};

struct ComparedThing {
  std::string_view thing;
  std::vector<AlikeVariants> groups;
  bool differs() const { return groups.size() > 1; }
};

// Groups the variants by equal descriptions of each of the five things that any variant has. A
// group for `other` follows if any variant sets a knob outside them.
std::vector<ComparedThing> compared_things(const std::vector<DescribedStep>&);

}  // namespace stepgate
