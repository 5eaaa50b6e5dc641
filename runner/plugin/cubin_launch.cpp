// SPDX-License-Identifier: MIT
#include "plugin/cubin_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/files/read_file.h"
#include "base/text/enumerators.h"
#include "base/text/json_nesting.h"
#include "base/text/nearest.h"
#include "base/toml/toml_keys.h"
#include "kernels/trial/kernel_trial.h"
#include "plugin/size_expression.h"

namespace stepgate {
namespace {

constexpr std::string_view null_argument = "null";
constexpr std::string_view page = "docs/kernels.md has such a table";

// Limits of every device since compute capability 8.0.
constexpr std::array<double, 3> most_blocks{2147483647, 65535, 65535};
constexpr std::array<double, 3> most_threads{1024, 1024, 64};
constexpr std::int64_t most_threads_of_block = 1024;

std::int64_t bytes_of(ArgumentType type) {
  const bool is_short =
      type == ArgumentType::i32 || type == ArgumentType::u32 || type == ArgumentType::f32;
  return is_short ? 4 : 8;
}

class LaunchReader {
 public:
  LaunchReader(const TomlTable& table, const Place& place, std::vector<Diagnostic>& faults)
      : keys_(table, place, "a launch of a cubin", faults, page), faults_(faults) {}

  CubinLaunch read() {
    CubinLaunch launch;
    keys_.text("cubin", launch.cubin);
    keys_.text_if_any("metadata", launch.metadata);
    if (launch.metadata.empty()) {  // which has these three
      keys_.text("entry", launch.entry);
      launch.block = expressions("block", true);
      const auto shared = expressions("shared", false);
      if (!shared.empty()) launch.shared = shared.front();
    }
    launch.grid = expressions("grid", true);
    if (const TomlEntry* entry = keys_.required("arguments")) {
      for (const std::string& text : texts(*entry, "a list of words such as \"columns:i32\""))
        if (auto one = argument(*entry, text)) launch.arguments.push_back(std::move(*one));
    }
    if (const TomlEntry* entry = keys_.optional("dtypes")) {
      for (const std::string& text : texts(*entry, "a list of dtypes")) {
        const auto known = std::ranges::find(enumerators<DType>, text);
        if (known != enumerators<DType>.end())
          launch.dtypes.push_back(static_cast<DType>(known - enumerators<DType>.begin()));
        else
          fault(entry->value.place, fmt::format("no dtype '{}'", text),
                did_you_mean(text, enumerators<DType>,
                             fmt::format("they are {}", fmt::join(enumerators<DType>, ", "))));
      }
    }
    if (const TomlEntry* entry = keys_.optional("supports")) {
      const auto* names = std::get_if<TomlTable>(&entry->value.content);
      if (names == nullptr)
        keys_.wrong_type(*entry, "a table such as { columns = { multiple_of = 8 } }");
      for (const TomlEntry& name : names ? *names : TomlTable())
        launch.supports.push_back(limits(name));
    }
    keys_.refuse_the_rest();
    return launch;
  }

 private:
  void fault(const Place& place, std::string fact, std::string way_out) {
    faults_.push_back({place, std::move(fact), std::move(way_out)});
  }

  std::vector<std::string> texts(const TomlEntry& entry, std::string_view wanted) {
    std::vector<std::string> all;
    const auto* list = std::get_if<TomlArray>(&entry.value.content);
    for (const TomlValue& value : list ? *list : TomlArray()) {
      if (const auto* text = std::get_if<std::string>(&value.content)) all.push_back(*text);
    }
    if (list == nullptr || list->size() != all.size()) keys_.wrong_type(entry, wanted);
    return all;
  }

  // A whole number or an expression, or up to three of them.
  std::vector<std::string> expressions(std::string_view key, bool is_required) {
    const TomlEntry* entry = is_required ? keys_.required(key) : keys_.optional(key);
    if (entry == nullptr) return {};
    std::vector<std::string> all;
    const auto add = [&](const TomlValue& value) {
      if (const auto* text = std::get_if<std::string>(&value.content)) all.push_back(*text);
      if (const auto* number = std::get_if<std::int64_t>(&value.content))
        all.push_back(fmt::format("{}", *number));
    };
    std::size_t given = 1;
    if (const auto* list = std::get_if<TomlArray>(&entry->value.content)) {
      given = list->size();
      for (const TomlValue& value : *list) add(value);
    } else {
      add(entry->value);
    }
    const std::size_t most = key == "shared" ? 1 : most_blocks.size();
    if (all.size() != given || all.empty() || all.size() > most) {
      keys_.wrong_type(*entry, most == 1 ? "a number, or text such as \"4 * columns\""
                                         : "a number, text such as \"ceil(rows / 4)\", or a list "
                                           "of up to three");
    }
    return all;
  }

  std::optional<CubinArgument> argument(const TomlEntry& entry, const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) return CubinArgument{.value = text};
    const std::string type = text.substr(colon + 1);
    const auto known = std::ranges::find(enumerators<ArgumentType>, type);
    if (known != enumerators<ArgumentType>.end()) {
      return CubinArgument{
          .value = text.substr(0, colon),
          .type = static_cast<ArgumentType>(known - enumerators<ArgumentType>.begin())};
    }
    fault(entry.value.place, fmt::format("'{}' has no type '{}'", text, type),
          did_you_mean(type, enumerators<ArgumentType>,
                       "the types are i32, i64, u32, u64, f32, "
                       "f64"));
    return std::nullopt;
  }

  CubinLimits limits(const TomlEntry& entry) {
    CubinLimits limits{.name = entry.key};
    const auto* table = std::get_if<TomlTable>(&entry.value.content);
    if (table == nullptr) {
      keys_.wrong_type(entry, "a table such as { multiple_of = 8 }");
      return limits;
    }
    TomlKeys keys(*table, entry.value.place, fmt::format("the limits of '{}'", entry.key), faults_,
                  page);
    constexpr double most = 1e15;
    std::optional<double> least, largest, multiple;
    keys.number_if_any("at_least", -most, most, least);
    keys.number_if_any("at_most", -most, most, largest);
    keys.number_if_any("multiple_of", 1, most, multiple);
    keys.refuse_the_rest();
    limits.at_least = least.value_or(limits.at_least);
    limits.at_most = largest.value_or(limits.at_most);
    limits.multiple_of = static_cast<std::int64_t>(multiple.value_or(1));
    return limits;
  }

  TomlKeys keys_;
  std::vector<Diagnostic>& faults_;
};

// The names of sizes and attributes that launches of the kernel have.
std::vector<NamedNumber> names_of(const Kernel& kernel) {
  const TrialRecipe& recipe = trial_recipe(kernel.name);
  return numbers_of(recipe.shapes.front(), recipe.attributes.front());
}

std::vector<std::string_view> operands_of(const Kernel& kernel) {
  std::vector<std::string_view> names;
  for (const KernelOperand& operand : kernel.operands) names.push_back(operand.name);
  return names;
}

// Whether the value of the expression is the address of an operand. Throws where it is nothing.
void require_value(const CubinArgument& argument, const Kernel& kernel,
                   const std::vector<NamedNumber>& names) {
  if (argument.type != ArgumentType::pointer) {
    (void)value_of(argument.value, names);
    return;
  }
  const std::vector<std::string_view> operands = operands_of(kernel);
  if (argument.value == null_argument ||
      std::ranges::find(operands, argument.value) != operands.end())
    return;
  if (std::ranges::find(names, argument.value, &NamedNumber::name) != names.end()) {
    throw KernelLibraryError(
        fmt::format("the argument '{}' is a number without a type", argument.value),
        fmt::format("write {}:i32, or another of i64, u32, u64, f32, f64", argument.value));
  }
  throw KernelLibraryError(
      fmt::format("{} has no operand '{}'", kernel.name, argument.value),
      did_you_mean(argument.value, operands,
                   fmt::format("its operands are {}", fmt::join(operands, ", "))));
}

std::string text_of(const CubinArgument& argument) {
  if (argument.type == ArgumentType::pointer) return argument.value;
  return fmt::format("{}:{}", argument.value,
                     enumerators<ArgumentType>[static_cast<std::size_t>(argument.type)]);
}

// Evaluates expressions for one launch, and says which one is out of its limits.
class CallNumbers {
 public:
  explicit CallNumbers(const KernelRequest& asked)
      : asked_(asked), names_(numbers_of(asked.shape, asked.attributes)) {}

  std::span<const NamedNumber> names() const { return names_; }

  std::int64_t whole(std::string_view what, const std::string& expression, double least,
                     double most) const {
    const double value = value_of(expression, names_);
    if (value >= least && value <= most && value == std::trunc(value))
      return static_cast<std::int64_t>(value);
    throw KernelLibraryError(
        fmt::format("'{}' is {} = {} for {}, and must be a whole number from {:.0f} to {:.0f}",
                    what, expression, value, in_words(asked_), least, most),
        value != std::trunc(value) ? fmt::format("write ceil({})", expression) : std::string());
  }

  std::array<std::uint32_t, 3> three(std::string_view what,
                                     const std::vector<std::string>& expressions,
                                     const std::array<double, 3>& most) const {
    std::array<std::uint32_t, 3> numbers{1, 1, 1};
    for (std::size_t index = 0; index < expressions.size(); ++index)
      numbers[index] = static_cast<std::uint32_t>(whole(what, expressions[index], 1, most[index]));
    return numbers;
  }

  std::uint64_t bits(const CubinArgument& argument) const {
    constexpr double two_to_31 = 2147483648.0, exact = 9007199254740992.0;
    const auto number = [&](double least, double most) {
      return static_cast<std::uint64_t>(whole(text_of(argument), argument.value, least, most));
    };
    switch (argument.type) {
      case ArgumentType::i32:
        return number(-two_to_31, two_to_31 - 1);
      case ArgumentType::u32:
        return number(0, 2 * two_to_31 - 1);
      case ArgumentType::i64:
        return number(-exact, exact);
      case ArgumentType::u64:
        return number(0, exact);
      case ArgumentType::f32:
        return std::bit_cast<std::uint32_t>(static_cast<float>(value_of(argument.value, names_)));
      case ArgumentType::f64:
        return std::bit_cast<std::uint64_t>(value_of(argument.value, names_));
      case ArgumentType::pointer:
        break;
    }
    return 0;
  }

 private:
  const KernelRequest& asked_;
  std::vector<NamedNumber> names_;
};

}  // namespace

std::optional<CubinLaunch> read_cubin_launch(const TomlTable& table, const Place& place,
                                             std::vector<Diagnostic>& faults) {
  const std::size_t before = faults.size();
  CubinLaunch launch = LaunchReader(table, place, faults).read();
  return faults.size() == before ? std::optional(std::move(launch)) : std::nullopt;
}

Cubin::Cubin(CubinLaunch launch, CubinFile file, const Kernel& kernel)
    : launch_(std::move(launch)), file_(std::move(file)) {
  const std::vector<NamedNumber> names = names_of(kernel);
  const CubinEntry& entry = this->entry();
  if (entry.is_in_clusters) {
    throw KernelLibraryError(
        fmt::format("'{}' of '{}' runs in clusters of blocks, which a table cannot say", entry.name,
                    file_.path),
        "launch it from a library (docs/kernels.md)");
  }
  for (const std::vector<std::string>& expressions :
       {launch_.grid, launch_.block, {launch_.shared}})
    for (const std::string& expression : expressions) (void)value_of(expression, names);
  for (const CubinLimits& limits : launch_.supports) (void)value_of(limits.name, names);
  for (const CubinArgument& argument : launch_.arguments) require_value(argument, kernel, names);
  // Triton's kernels end with up to two addresses of scratch memory, which these do not need.
  constexpr std::size_t most_scratch = 2;
  const std::size_t parameters = entry.parameter_bytes.size();
  if (!launch_.metadata.empty()) {
    for (std::size_t added = 0; added < most_scratch && launch_.arguments.size() < parameters;
         ++added)
      launch_.arguments.push_back({.value = std::string(null_argument)});
  }
  if (parameters != launch_.arguments.size()) {
    throw KernelLibraryError(
        fmt::format("'{}' of '{}' has {} parameters, and there are {} arguments", entry.name,
                    file_.path, parameters, launch_.arguments.size()),
        fmt::format("give it {} bytes", fmt::join(entry.parameter_bytes, ", ")));
  }
  for (std::size_t index = 0; index < parameters; ++index) {
    const CubinArgument& argument = launch_.arguments[index];
    const std::int64_t bytes = entry.parameter_bytes[index];
    if (bytes == bytes_of(argument.type)) continue;
    constexpr std::int64_t of_a_tensor_map = 128;
    throw KernelLibraryError(
        fmt::format("parameter {} of '{}' has {} bytes, and the argument '{}' {}", index + 1,
                    entry.name, bytes, text_of(argument), bytes_of(argument.type)),
        bytes == of_a_tensor_map   ? "a tensor map needs a library (docs/kernels.md)"
        : bytes == 4 || bytes == 8 ? "give it another type"
                                   : "a struct needs a library (docs/kernels.md)");
  }
}

std::string Cubin::in_words() const {
  std::vector<std::string> arguments;
  for (const CubinArgument& argument : launch_.arguments) arguments.push_back(text_of(argument));
  const auto three = [](const std::vector<std::string>& expressions) {
    return expressions.size() == 1 ? expressions.front()
                                   : fmt::format("({})", fmt::join(expressions, ", "));
  };
  return fmt::format("{}<<<{}, {}, {}>>>({})", launch_.entry, three(launch_.grid),
                     three(launch_.block), launch_.shared, fmt::join(arguments, ", "));
}

std::string Cubin::identity() const {
  std::string also = in_words();
  for (const DType dtype : launch_.dtypes) also += fmt::format(" {}", name_of(dtype));
  for (const CubinLimits& limits : launch_.supports) {
    also += fmt::format(" {} {} {} {}", limits.name, limits.at_least, limits.at_most,
                        limits.multiple_of);
  }
  return identity_of(file_.path, file_.bytes, also);
}

CubinCall Cubin::call(const KernelRequest& asked, const DeviceFacts& device) const {
  const std::string who = fmt::format("'{}' of '{}'", launch_.entry, file_.path);
  const CallNumbers numbers(asked);
  const auto unsupported = [&](const std::string& why) {
    throw KernelUnsupported(
        fmt::format("{} does not support {}: {}", who, stepgate::in_words(asked), why));
  };
  if (!launch_.dtypes.empty() &&
      std::ranges::find(launch_.dtypes, asked.dtype) == launch_.dtypes.end()) {
    std::vector<std::string_view> dtypes;
    for (const DType dtype : launch_.dtypes) dtypes.push_back(name_of(dtype));
    unsupported(fmt::format("its table says {}", fmt::join(dtypes, ", ")));
  }
  for (const CubinLimits& limits : launch_.supports) {
    const double value = value_of(limits.name, numbers.names());
    if (value < limits.at_least || value > limits.at_most)
      unsupported(fmt::format("its table says {} from {} to {}", limits.name, limits.at_least,
                              limits.at_most));
    if (std::fmod(value, static_cast<double>(limits.multiple_of)) != 0)
      unsupported(fmt::format("{} must be a multiple of {}", limits.name, limits.multiple_of));
  }
  // Code for 9.0 runs on 9.x that is not earlier, and on no other.
  if (device.capability < file_.capability || device.capability / 10 != file_.capability / 10) {
    throw KernelLibraryError(
        fmt::format("{} is for a GPU of compute capability {}.{}, and this one has {}.{}", who,
                    file_.capability / 10, file_.capability % 10, device.capability / 10,
                    device.capability % 10),
        fmt::format("compile it with -arch=sm_{}", device.capability));
  }
  CubinCall call;
  call.grid = numbers.three("grid", launch_.grid, most_blocks);
  call.block = numbers.three("block", launch_.block, most_threads);
  const CubinEntry& entry = this->entry();
  const std::int64_t threads = std::int64_t{call.block[0]} * call.block[1] * call.block[2];
  const std::int64_t most = entry.most_threads > 0 ? entry.most_threads : most_threads_of_block;
  if (threads > most || (entry.threads > 0 && threads != entry.threads)) {
    throw KernelLibraryError(fmt::format("{} has blocks of {}{} threads, and 'block' is {}", who,
                                         entry.threads > 0 ? "" : "at most ",
                                         entry.threads > 0 ? entry.threads : most, threads));
  }
  call.shared_bytes = static_cast<std::uint32_t>(
      numbers.whole("shared", launch_.shared, 0, std::numeric_limits<std::int32_t>::max()));
  const std::int64_t shared = call.shared_bytes + entry.shared_bytes;
  if (shared > device.shared_bytes) {
    throw KernelLibraryError(
        fmt::format("{} needs {} bytes of shared memory for {}, and a block may have {}", who,
                    shared, stepgate::in_words(asked), device.shared_bytes));
  }
  const std::vector<std::string_view> operands = operands_of(asked.kernel);
  for (const CubinArgument& argument : launch_.arguments) {
    const auto operand = std::ranges::find(operands, argument.value);
    if (argument.type == ArgumentType::pointer && operand != operands.end())
      call.arguments.push_back({.operand = static_cast<std::size_t>(operand - operands.begin())});
    else
      call.arguments.push_back({.bits = numbers.bits(argument)});
  }
  return call;
}

void take_metadata(CubinLaunch& launch, std::string_view text) {
  using Json = nlohmann::json;
  const auto refuse = [&](std::string_view fact, std::string_view way_out) {
    throw KernelLibraryError(fmt::format("'{}' {}", launch.metadata, fact), std::string(way_out));
  };
  const Json metadata =
      nests_too_deep(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key, std::int64_t otherwise) {
    const auto found = metadata.find(key);
    if (found == metadata.end() || found->is_null()) return otherwise;
    if (!found->is_number_unsigned())
      refuse(fmt::format("has no whole number as '{}'", key), "let Triton write it again");
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(found->get<std::uint64_t>(), 1U << 30));
  };
  if (!metadata.is_object() || !metadata.contains("name") || !metadata["name"].is_string() ||
      !metadata.contains("num_warps") || !metadata.contains("shared")) {
    refuse("is no metadata of Triton: an object with name, num_warps and shared",
           "name the .json that lies beside the cubin in Triton's cache");
  }
  constexpr std::string_view by_library = "launch it from a library (docs/kernels.md)";
  if (number("global_scratch_size", 0) > 0)
    refuse("says that the kernel needs global scratch memory", by_library);
  if (number("num_ctas", 1) > 1) refuse("says that the kernel runs in clusters", by_library);
  const auto maps = metadata.find("tensordesc_meta");
  if (maps != metadata.end() && !maps->is_null() && !maps->empty())
    refuse("says that the kernel takes tensor maps", by_library);
  constexpr std::int64_t lanes = 32;
  launch.entry = metadata["name"].get<std::string>();
  launch.block = {fmt::format("{}", lanes * number("num_warps", 0))};
  launch.shared = fmt::format("{}", number("shared", 0));
}

Cubin read_cubin_of(CubinLaunch launch, const std::filesystem::path& folder, const Kernel& kernel) {
  if (!launch.metadata.empty()) {
    const auto text = read_file(folder / launch.metadata, "metadata of Triton");
    if (const auto* problem = std::get_if<Diagnostic>(&text))
      throw KernelLibraryError(to_string(*problem));
    take_metadata(launch, std::get<std::string>(text));
  }
  CubinFile file = read_cubin(folder / launch.cubin);
  return {std::move(launch), std::move(file), kernel};
}

}  // namespace stepgate
