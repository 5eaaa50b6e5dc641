// SPDX-License-Identifier: MIT
// Reads one table of a file that stepgate wrote, key by key. Reports keys that are missing, of
// another type, or not read by any caller. Callers interpret the values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"

namespace stepgate {

class TomlKeys {
 public:
  using Faults = std::vector<Diagnostic>;

  // `what` names the table in messages: "a run". Every fault gets the hint `way_out`. The table and
  // the faults must outlive this object.
  TomlKeys(const TomlTable&, Place, std::string what, Faults&, std::string_view way_out);

  const TomlEntry* optional(std::string_view key);
  const TomlEntry* required(std::string_view key);

  // Each reads a required key into `to`, which is unchanged when there is a fault.
  void text(std::string_view key, std::string& to);
  void hexadecimal_number(std::string_view key, std::uint64_t& to);
  void number(std::string_view key, double low, double high, double& to);
  void count(std::string_view key, std::int64_t& to);  // at least 0

  // Like text and number, but the key may be missing.
  void text_if_any(std::string_view key, std::string& to);
  void number_if_any(std::string_view key, double low, double high, std::optional<double>& to);

  // Reads the tables of [[key]]; for any other value returns none and adds a fault.
  struct Table {
    const TomlTable* content;
    Place place;
  };
  std::vector<Table> tables(const TomlEntry&);

  // Whether 'format' is `newest`; a newer one is refused: "baseline format 2 is newer than ...".
  bool is_format(std::int64_t newest, std::string_view file_kind, std::string_view otherwise);

  void wrong_type(const TomlEntry&, std::string_view wanted);
  void fault(const Place&, std::string message);
  void refuse_the_rest();

  // The value of a finite integer or floating-point number.
  static std::optional<double> number(const TomlValue&);

 private:
  void text(const TomlEntry&, std::string& to);
  void number(const TomlEntry&, double low, double high, double& to);

  const TomlTable& table_;
  Place place_;
  std::string what_;
  Faults& faults_;
  std::string_view way_out_;
  std::vector<std::string_view> known_;
};

}  // namespace stepgate
