// SPDX-License-Identifier: MIT
// Decides an assertion about stored times. There are two such times: the raw time, and the time
// divided by that of an anchor measured beside it. stored_assertion.h compares each with the stored
// runs.
#pragma once

#include "judge/verdict/verdict.h"

namespace stepgate {

// Position of a value relative to its limit, by the prediction interval of the stored runs.
enum class Against { within, open, beyond };

struct StoredPosition {
  Against raw = Against::open;
  bool raw_looks_beyond = false;  // by its estimate alone, without the interval
  Against normalised = Against::open;
  bool anchor_is_slower = false;  // shown by its own interval
  bool anchor_is_faster = false;
};

struct StoredDecision {
  Outcome outcome = Outcome::undecided;
  StoredNote note = StoredNote::none;
};

// The anchor distinguishes a slower machine from a slower step, but excuses neither. So an
// assertion passes only where both values are within the limit. It fails where the normalised value
// is beyond the limit and the raw value is not within it; otherwise the anchor itself may have
// changed.
StoredDecision decide_by_both(const StoredPosition&);

}  // namespace stepgate
