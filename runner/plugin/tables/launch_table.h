// SPDX-License-Identifier: MIT
// The keys that tables of launches share: the arguments, and which launches are supported. A file
// that such a table names has no code of stepgate's interface, so that the table answers for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"
#include "base/toml/toml_keys.h"
#include "plugin/tables/supported.h"

namespace stepgate {

inline constexpr std::string_view null_argument = "null";

enum class ArgumentType { pointer, i32, i64, u32, u64, f32, f64 };

// "x" is the address of that operand and null_argument no address; "columns:i32" is the value of an
// expression (size_expression.h) in that type.
struct LaunchArgument {
  std::string value;
  ArgumentType type = ArgumentType::pointer;

  bool operator==(const LaunchArgument&) const = default;
};

// "columns:i32"
std::string text_of(const LaunchArgument&);

// The names of the kernel's operands.
std::vector<std::string_view> operands_of(const Kernel&);

// Reads the keys one by one; readers of a kind of table take theirs beside these.
class LaunchTable {
 public:
  // `what` names the table in messages: "a launch of a cubin".
  LaunchTable(const TomlTable&, const Place&, std::string what, std::vector<Diagnostic>&);

  TomlKeys& keys() { return keys_; }
  std::vector<LaunchArgument> arguments();
  Supported supported();

 private:
  std::vector<const TomlValue*> texts(const TomlEntry&, std::string_view wanted);
  SizeLimits limits(const TomlEntry&);
  template <class Enum>
  std::optional<Enum> one_of(std::string_view name, std::string fact, const TomlValue&);

  TomlKeys keys_;
  std::vector<Diagnostic>& faults_;
};

}  // namespace stepgate
