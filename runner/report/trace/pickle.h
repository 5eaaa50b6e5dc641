// SPDX-License-Identifier: MIT
// Values in Python's pickle format, protocol 2: as much of it as dicts, lists, numbers and words
// need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepgate {

// Write one value. A dict is written between begin_dict and end_dict as keys and values in turns, a
// list between begin_list and end_list.
class Pickle {
 public:
  Pickle();

  Pickle& begin_dict();
  Pickle& end_dict();
  Pickle& begin_list();
  Pickle& end_list();
  Pickle& number(std::int64_t);
  Pickle& address(std::uint64_t);
  Pickle& truth(bool);
  Pickle& text(std::string_view utf8);
  Pickle& pair(std::int64_t, std::int64_t);  // a tuple

  // Key and value of a dict.
  Pickle& entry(std::string_view key, std::int64_t value) { return text(key).number(value); }
  Pickle& entry(std::string_view key, std::string_view value) { return text(key).text(value); }

  // The bytes of the file; after this nothing more is written.
  std::string finish();

 private:
  void add(char opcode) { bytes_.push_back(opcode); }
  void add_little_endian(std::uint64_t value, int bytes);

  std::string bytes_;
};

}  // namespace stepgate
