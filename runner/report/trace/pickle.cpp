// SPDX-License-Identifier: MIT
// The opcodes are those of Python's pickletools.
#include "report/trace/pickle.h"

#include <utility>

namespace stepgate {
namespace {

constexpr char protocol = '\x80';
constexpr char mark = '(';
constexpr char empty_dict = '}';
constexpr char set_items = 'u';
constexpr char empty_list = ']';
constexpr char appends = 'e';
constexpr char long_1 = '\x8a';  // a length in a byte, then two's complement
constexpr char new_true = '\x88';
constexpr char new_false = '\x89';
constexpr char unicode = 'X';  // a length in four bytes, then UTF-8
constexpr char tuple_2 = '\x86';
constexpr char stop = '.';

}  // namespace

Pickle::Pickle() {
  add(protocol);
  add('\x02');
}

void Pickle::add_little_endian(std::uint64_t value, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) add(static_cast<char>(value >> (8 * byte) & 0xff));
}

Pickle& Pickle::begin_dict() {
  add(empty_dict);
  add(mark);
  return *this;
}

Pickle& Pickle::end_dict() {
  add(set_items);
  return *this;
}

Pickle& Pickle::begin_list() {
  add(empty_list);
  add(mark);
  return *this;
}

Pickle& Pickle::end_list() {
  add(appends);
  return *this;
}

Pickle& Pickle::number(std::int64_t value) {
  add(long_1);
  add('\x08');
  add_little_endian(static_cast<std::uint64_t>(value), 8);
  return *this;
}

// A ninth byte keeps the highest addresses from being negative.
Pickle& Pickle::address(std::uint64_t value) {
  add(long_1);
  add('\x09');
  add_little_endian(value, 8);
  add('\x00');
  return *this;
}

Pickle& Pickle::truth(bool value) {
  add(value ? new_true : new_false);
  return *this;
}

Pickle& Pickle::text(std::string_view utf8) {
  add(unicode);
  add_little_endian(utf8.size(), 4);
  bytes_ += utf8;
  return *this;
}

Pickle& Pickle::pair(std::int64_t first, std::int64_t second) {
  number(first).number(second);
  add(tuple_2);
  return *this;
}

std::string Pickle::finish() {
  add(stop);
  return std::move(bytes_);
}

}  // namespace stepgate
