// SPDX-License-Identifier: MIT
// Must not compile: whoever walks the fields of a record that leaves a member out is told.
#include <string>

#include "support/record/fields.h"

namespace stepgate {

struct Key {
  std::string name;
  std::string value;
};
template <>
inline constexpr auto fields_of<Key> = fields<&Key::name>;

void walk(const Key& key) {
  for_each_field(key, [](auto, const auto&) {});
}

}  // namespace stepgate
