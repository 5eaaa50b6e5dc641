// SPDX-License-Identifier: MIT
#include "judge/stored/stored_rule.h"

namespace stepgate {
namespace {

StoredDecision beside_the_anchor_beyond(const StoredPosition& at) {
  if (!at.raw_looks_beyond) return {Outcome::undecided, StoredNote::anchor_moved};
  return {Outcome::fails, at.anchor_is_slower ? StoredNote::machine_is_slower : StoredNote::none};
}

StoredDecision alone_beyond(const StoredPosition& at) {
  if (at.normalised != Against::within) return {};
  if (at.anchor_is_slower) return {Outcome::machine_slower, StoredNote::none};
  if (at.anchor_is_faster) return {Outcome::not_comparable, StoredNote::machine_is_faster};
  return {Outcome::undecided, StoredNote::raw_is_not_shown};
}

}  // namespace

StoredDecision decide_by_both(const StoredPosition& at) {
  if (at.normalised == Against::beyond) return beside_the_anchor_beyond(at);
  if (at.raw == Against::beyond) return alone_beyond(at);
  if (at.normalised != Against::within) return {};
  if (at.raw == Against::within) return {Outcome::passes, StoredNote::none};
  return {Outcome::undecided, StoredNote::raw_is_not_shown};
}

}  // namespace stepgate
