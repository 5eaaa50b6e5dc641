// SPDX-License-Identifier: MIT
// Must not compile: code that iterates over a record's fields gets an error if the list lacks a
// member.
#include <string>

#include "base/record/fields.h"

namespace stepgate {

struct Key {
  std::string name;
  std::string value;
};
template <>
#if defined(STEPGATE_LISTED_TWICE)
inline constexpr auto fields_of<Key> = fields<&Key::name, &Key::name>;
#else
inline constexpr auto fields_of<Key> = fields<&Key::name>;
#endif

void walk(const Key& key) {
  for_each_field(key, [](auto, const auto&) {});
}

}  // namespace stepgate
