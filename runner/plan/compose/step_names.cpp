// SPDX-License-Identifier: MIT
#include "plan/compose/step_names.h"

#include <array>

#include "base/require.h"

namespace stepgate {
namespace {

// The names are in the order of the enums.
constexpr std::array<std::string_view, 5> memory_names{"device", "pinned", "pageable", "registered",
                                                       "managed"};
constexpr std::array<std::string_view, purpose_count> purpose_names{
    "weights",   "gradients", "optimizer state", "activations",
    "workspace", "batch",     "staging",         "bookkeeping"};

template <class Names, class Value>
std::string_view name_in(const Names& names, Value value) {
  const auto index = static_cast<std::size_t>(value);
  require(index < names.size(), "every part of a plan has a name");
  return names[index];
}

}  // namespace

std::string_view name_of(MemoryKind memory) {
  return name_in(memory_names, memory);
}

std::string_view name_of(Purpose purpose) {
  return name_in(purpose_names, purpose);
}

}  // namespace stepgate
