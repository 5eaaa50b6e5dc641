// SPDX-License-Identifier: MIT
// Rules about combinations of knobs, which check_knobs.cpp applies, and the facts that these rules
// and the conditions of single knobs (knob_conditions.h) query.
#pragma once

#include <span>
#include <string_view>

#include "scenario/scenario.h"

namespace stepgate {

struct KnobRule {
  std::string_view field;  // the diagnostic's place is that of this field
  bool (*broken)(const Knobs&);
  std::string_view message;
  std::string_view hint;
};

// Rules about combinations of knobs, independent of where each was set.
std::span<const KnobRule> knobs_that_clash();

// Whether nothing is allocated while steps run.
inline bool is_fixed(const AllocKnobs& alloc) {
  return alloc.with == Allocator::fixed || alloc.with == Allocator::arena;
}

inline bool is_managed(const TransferKnobs& transfer) {
  return transfer.host == HostMemory::managed || transfer.host == HostMemory::managed_prefetch;
}

inline bool is_resnet(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::resnet;
}

inline bool is_unet(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::unet;
}

inline bool has_images(const Knobs& knobs) {
  return is_resnet(knobs) || is_unet(knobs);
}

inline bool is_transformer(const Knobs& knobs) {
  return knobs.model.kind == ModelKind::transformer;
}

}  // namespace stepgate
