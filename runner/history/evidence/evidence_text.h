// SPDX-License-Identifier: MIT
// The text of an evidence file, but for evidence_text itself: what reading it back needs too.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "history/evidence/evidence_file.h"

namespace stepgate {

struct EvidenceKeyRow {
  std::string_view name;  // in the file
  std::string EvidenceKey::*value;
};

// The texts that every key has, in the order of the file.
std::span<const EvidenceKeyRow> evidence_key_rows();

// Of everything that an entry holds.
std::uint64_t digest_of(const EvidenceEntry&);

}  // namespace stepgate
