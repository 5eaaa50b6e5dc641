// SPDX-License-Identifier: MIT
// Decides an assertion about stored times. There are two such times: the raw time, and the time
// divided by that of an anchor measured beside it. stored_assertion.h compares each with the stored
// runs.
#pragma once

#include "judge/verdict/verdict.h"

namespace stepgate {

// Where a value lies by the interval that stored runs predict for it.
enum class Against { within, open, beyond };

struct StoredPosition {
  Against raw = Against::open;
  bool raw_looks_beyond = false;  // by its estimate, whatever the interval says
  Against normalised = Against::open;
  bool anchor_is_slower = false;  // shown, by its own interval
  bool anchor_is_faster = false;
};

struct StoredDecision {
  Outcome outcome = Outcome::undecided;
  StoredNote note = StoredNote::none;
};

// An anchor tells a machine that is slower from a step that is; it excuses neither. So an assertion
// holds only where both values are within the limit. It fails where the step is beyond it
// beside its anchor, and not within it alone: what only the anchor says may be the anchor's doing.
StoredDecision decide_by_both(const StoredPosition&);

}  // namespace stepgate
