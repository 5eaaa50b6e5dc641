// SPDX-License-Identifier: MIT
// For tests of this station: steps of fills and copies, and their expected lifetimes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "plan/analyse/lifetimes.h"
#include "plan/compose/step_builder.h"
#include "plan/testing/three_streams.h"

namespace stepgate {

// How a failing test calls it.
inline void PrintTo(const Lifetime& live, std::ostream* out) {
  *out << "buffer " << live.buffer << ", " << live.slots << " slots, " << live.bytes
       << " bytes, from " << live.first << " to " << live.last << ": " << in_words(live.because);
}

inline constexpr std::int64_t block = block_alignment_bytes;

// A step of fills (which write) and copies (which read the one and write the other).
class Step {
 public:
  Step() { plan.streams = three_streams(); }

  int buffer(const char* name, Purpose purpose = Purpose::activations, std::int64_t bytes = block,
             std::int64_t slots = 1) {
    return builder.add({.name = name, .purpose = purpose, .bytes = bytes, .slots = slots});
  }
  Step& on(int stream) {
    builder.enter(Phase::forward, stream);
    return *this;
  }
  Step& write(int to) {
    builder.act("write", FillZero{builder.whole(to)});
    return *this;
  }
  Step& write(int to, std::int64_t offset, std::int64_t bytes) {
    builder.act("write a part", FillZero{StepBuilder::part(to, offset, bytes)});
    return *this;
  }
  Step& read(int from) {
    builder.act("read", CopyBytes{builder.whole(sink_), StepBuilder::part(from, 0, block)});
    return *this;
  }
  Step& act(Action action) {
    builder.act("act", std::move(action));
    return *this;
  }
  Step& captured() {
    plan.operations.back().captured = true;
    return *this;
  }

  StepPlan plan;
  StepBuilder builder{plan};

 private:
  int sink_ = buffer("sink", Purpose::bookkeeping);
};

inline std::vector<Lifetime> of_buffer(const std::vector<Lifetime>& all, int buffer) {
  std::vector<Lifetime> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const Lifetime& live) { return live.buffer == buffer; });
  return found;
}

inline Lifetime only(const Step& step, int buffer) {
  const std::vector<Lifetime> found = of_buffer(lifetimes_of(step.plan).device, buffer);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? Lifetime{} : found.front();
}

inline Lifetime in_blocks_of(int buffer, int first, int last, LivenessReason because) {
  return {buffer, 1, block, first, last, because};
}

}  // namespace stepgate
