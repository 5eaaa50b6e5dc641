// SPDX-License-Identifier: MIT
#include "plugin/tables/cubin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include "base/files/read_file.h"
#include "base/text/nearest.h"
#include "plugin/tables/size_expression.h"

namespace stepgate {
namespace {

// Limits of every device since compute capability 8.0.
constexpr std::array<double, 3> most_blocks{2147483647, 65535, 65535};
constexpr std::array<double, 3> most_threads{1024, 1024, 64};
constexpr std::int64_t most_threads_of_block = 1024;

constexpr std::int64_t registers_of_block = 65536;
constexpr std::int64_t lanes = 32;

constexpr std::string_view correct_the_table =
    "correct the table, or say in its 'supports' which sizes the kernel takes";

// The most that a block may have on any device of this generation (CUDA C++ programming guide,
// technical specifications per compute capability).
std::uint32_t most_shared_bytes(std::uint32_t capability) {
  switch (capability / 10) {
    case 7:
      return 96 * 1024;
    case 8:
      return 163 * 1024;
    case 12:
      return 99 * 1024;
    default:
      return 227 * 1024;
  }
}

// The registers that a block takes: a warp's are a multiple of 256.
std::int64_t registers_of(const CubinEntry& entry, std::int64_t threads) {
  constexpr std::int64_t unit = 256;
  const std::int64_t warps = (threads + lanes - 1) / lanes;
  return (entry.registers * lanes + unit - 1) / unit * unit * warps;
}

std::int64_t bytes_of(ArgumentType type) {
  const bool is_short =
      type == ArgumentType::i32 || type == ArgumentType::u32 || type == ArgumentType::f32;
  return is_short ? 4 : 8;
}

// Whether the value of the expression is the address of an operand. Throws where it is nothing.
void require_value(const LaunchArgument& argument, const Kernel& kernel,
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

// Evaluates expressions for one launch, and says which one is out of its limits.
class CallNumbers {
 public:
  explicit CallNumbers(const KernelRequest& asked)
      : asked_(asked), names_(numbers_of(asked.shape, asked.attributes)) {}

  std::int64_t whole(std::string_view what, const std::string& expression, double least,
                     double most) const {
    const double value = value_of(expression, names_);
    if (value >= least && value <= most && value == std::trunc(value))
      return static_cast<std::int64_t>(value);
    std::string said = fmt::format("{}", value);
    if (said != expression) said = fmt::format("{} = {}", expression, said);
    throw KernelLibraryError(
        fmt::format("'{}' is {} for {}, and must be a whole number from {:.0f} to {:.0f}", what,
                    said, in_words(asked_), least, most),
        std::isfinite(value) && value != std::trunc(value)
            ? fmt::format("write ceil({})", expression)
            : std::string(correct_the_table));
  }

  std::array<std::uint32_t, 3> three(std::string_view what,
                                     const std::vector<std::string>& expressions,
                                     const std::array<double, 3>& most) const {
    std::array<std::uint32_t, 3> numbers{1, 1, 1};
    for (std::size_t index = 0; index < expressions.size(); ++index)
      numbers[index] = static_cast<std::uint32_t>(whole(what, expressions[index], 1, most[index]));
    return numbers;
  }

  std::uint64_t bits(const LaunchArgument& argument) const {
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

Cubin::Cubin(CubinLaunch launch, CubinFile file, const Kernel& kernel)
    : launch_(std::move(launch)), file_(std::move(file)) {
  const std::vector<NamedNumber> names = names_in(kernel);
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
  require_names(launch_.supported, kernel);
  for (const LaunchArgument& argument : launch_.arguments) require_value(argument, kernel, names);
  // Triton's kernels end with up to two addresses of scratch memory, which these do not need.
  constexpr std::size_t most_scratch = 2;
  const std::size_t given = launch_.arguments.size(), parameters = entry.parameter_bytes.size();
  if (!launch_.metadata.empty() && given < parameters) {
    launch_.arguments.resize(std::min(parameters, given + most_scratch),
                             {.value = std::string(null_argument)});
  }
  require_parameters();
}

void Cubin::require_parameters() const {
  const CubinEntry& entry = this->entry();
  const std::size_t parameters = entry.parameter_bytes.size();
  if (parameters != launch_.arguments.size()) {
    throw KernelLibraryError(
        fmt::format("'{}' of '{}' has {} parameters, and there are {} arguments", entry.name,
                    file_.path, parameters, launch_.arguments.size()),
        fmt::format("give it {} bytes", fmt::join(entry.parameter_bytes, ", ")));
  }
  for (std::size_t index = 0; index < parameters; ++index) {
    const LaunchArgument& argument = launch_.arguments[index];
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

std::string Cubin::identity() const {
  return identity_of(file_.path, file_.bytes, text_of(launch_) + text_of(launch_.supported));
}

std::string Cubin::who() const {
  return fmt::format("'{}' of '{}'", launch_.entry, file_.path);
}

// Code for 9.0 runs on 9.x that is not earlier, and on no other.
void Cubin::require_runs_on(const DeviceFacts& device) const {
  if (device.capability >= file_.capability && device.capability / 10 == file_.capability / 10)
    return;
  throw KernelLibraryError(
      fmt::format("{} is for a GPU of compute capability {}.{}, and this one has {}.{}", who(),
                  file_.capability / 10, file_.capability % 10, device.capability / 10,
                  device.capability % 10),
      fmt::format("compile it with -arch=sm_{}", device.capability));
}

void Cubin::require_resources(const CubinCall& call, const KernelRequest& asked,
                              const DeviceFacts& device) const {
  const CubinEntry& entry = this->entry();
  const std::int64_t threads = std::int64_t{call.block[0]} * call.block[1] * call.block[2];
  const std::int64_t most = entry.most_threads > 0 ? entry.most_threads : most_threads_of_block;
  if (threads > most || (entry.threads > 0 && threads != entry.threads)) {
    throw KernelLibraryError(
        fmt::format("{} has blocks of {}{} threads, and 'block' is {} for {}", who(),
                    entry.threads > 0 ? "" : "at most ", entry.threads > 0 ? entry.threads : most,
                    threads, in_words(asked)),
        std::string(correct_the_table));
  }
  if (const std::int64_t registers = registers_of(entry, threads); registers > registers_of_block) {
    throw KernelLibraryError(
        fmt::format(
            "{} needs {} registers a thread, which are {} for a block of {} threads of {}, and "
            "a block may have {}",
            who(), entry.registers, registers, threads, in_words(asked), registers_of_block),
        fmt::format("write a smaller 'block', or compile it with __launch_bounds__({})", threads));
  }
  const std::int64_t shared = call.shared_bytes + entry.shared_bytes;
  if (shared > device.shared_bytes) {
    throw KernelLibraryError(
        fmt::format("{} needs {} bytes of shared memory for {}, and a block may have {}", who(),
                    shared, in_words(asked), device.shared_bytes),
        std::string(correct_the_table));
  }
}

void Cubin::require_launchable(const KernelRequest& asked) const {
  (void)call(asked,
             {.capability = file_.capability, .shared_bytes = most_shared_bytes(file_.capability)});
}

CubinCall Cubin::call(const KernelRequest& asked, const DeviceFacts& device) const {
  require_supported(launch_.supported, who(), asked);
  require_runs_on(device);
  const CallNumbers numbers(asked);
  CubinCall call;
  call.grid = numbers.three("grid", launch_.grid, most_blocks);
  call.block = numbers.three("block", launch_.block, most_threads);
  call.shared_bytes = static_cast<std::uint32_t>(
      numbers.whole("shared", launch_.shared, 0, std::numeric_limits<std::int32_t>::max()));
  require_resources(call, asked, device);
  const std::vector<std::string_view> operands = operands_of(asked.kernel);
  for (const LaunchArgument& argument : launch_.arguments) {
    const auto operand = std::ranges::find(operands, argument.value);
    if (argument.type == ArgumentType::pointer && operand != operands.end())
      call.arguments.push_back({.operand = static_cast<std::size_t>(operand - operands.begin())});
    else
      call.arguments.push_back({.bits = numbers.bits(argument)});
  }
  return call;
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
