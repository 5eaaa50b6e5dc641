// SPDX-License-Identifier: MIT
#include "device/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <variant>

#include "base/random.h"
#include "kernels/number_format.h"
#include "kernels/trial/kernel_trial.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

// Three copies of the operands are made in host memory.
constexpr std::int64_t most_audited_bytes = std::int64_t{1} << 30;

const Kernel* in_catalogue(std::string_view name) {
  const auto found = std::ranges::find(kernel_catalogue(), name, &Kernel::name);
  return found == kernel_catalogue().end() ? nullptr : &*found;
}

std::int64_t bytes_of_operands(const LaunchKernel& launch) {
  std::int64_t bytes = 0;
  for (const BufferUse& use : launch.operands) bytes += use.bytes;
  return bytes;
}

// Whether the operations of the graph may be issued one by one instead.
bool graph_is_simple(const StepPlan& plan) {
  return std::ranges::all_of(plan.operations, [](const Operation& operation) {
    const Action& action = operation.action;
    return !operation.captured || std::holds_alternative<LaunchKernel>(action) ||
           std::holds_alternative<CopyBytes>(action) || std::holds_alternative<FillZero>(action) ||
           std::holds_alternative<RecordEvent>(action) ||
           std::holds_alternative<StreamWaitsEvent>(action);
  });
}

void read(const AuditedLaunch& audited, KernelTrial& to) {
  for (std::size_t index = 0; index < to.operands.size(); ++index)
    audited.copy(to.operands[index].data(), audited.operands[index], to.operands[index].size());
}

void write(const AuditedLaunch& audited, const KernelTrial& from) {
  for (std::size_t index = 0; index < from.operands.size(); ++index) {
    const std::vector<std::byte>& content = from.operands[index];
    audited.copy(audited.operands[index], content.data(), content.size());
  }
}

bool is_read(const KernelTrial& trial, std::size_t operand) {
  return access_of(operand_of(trial, operand), trial.attributes) != Access::write;
}

// Fills outputs with 0xff, which is NaN in every float format. An output in the buffer of an input
// stays as it is.
void spoil(const AuditedLaunch& audited, KernelTrial& trial) {
  const auto overlap = [&](std::size_t one, std::size_t other) {
    const std::byte* const first = audited.operands[one];
    const std::byte* const second = audited.operands[other];
    return first < second + trial.operands[other].size() &&
           second < first + trial.operands[one].size();
  };
  for (std::size_t output = 0; output < trial.operands.size(); ++output) {
    bool is_input = is_read(trial, output);
    for (std::size_t input = 0; input < trial.operands.size(); ++input)
      is_input = is_input || (is_read(trial, input) && overlap(output, input));
    if (!is_input) std::ranges::fill(trial.operands[output], std::byte{0xff});
  }
}

// Numbers that are NaN, or the same infinity, in both trials are no difference: memory that no
// launch writes may hold anything. They become 0.
void forget_what_is_no_number(KernelTrial& got, KernelTrial& expected, std::size_t operand) {
  const OperandFormat format = operand_of(expected, operand).format;
  if (format != OperandFormat::storage && format != OperandFormat::single) return;
  const DType dtype = format == OperandFormat::single ? DType::fp32 : expected.dtype;
  for (std::int64_t index = 0; index < value_count(expected, operand); ++index) {
    const double own = value_at(got, operand, index);
    const double right = value_at(expected, operand, index);
    if (std::isfinite(right) || !(std::isnan(right) ? std::isnan(own) : own == right)) continue;
    set_number(got.operands[operand].data(), dtype, index, 0);
    set_number(expected.operands[operand].data(), dtype, index, 0);
  }
}

std::string first_difference(KernelTrial got, KernelTrial expected) {
  for (std::size_t operand = 0; operand < expected.operands.size(); ++operand) {
    const KernelOperand& declared = operand_of(expected, operand);
    if (declared.format == OperandFormat::scratch || is_clock(expected, operand)) continue;
    if (got.operands[operand] == expected.operands[operand]) continue;
    forget_what_is_no_number(got, expected, operand);
    const std::string words = difference(got, expected, operand);
    if (!words.empty()) return fmt::format("'{}': {}", declared.name, words);
  }
  return "";
}

}  // namespace

bool is_replaced(const LaunchKernel& launch) {
  const Kernel* const own = in_catalogue(launch.kernel.name());
  return own != nullptr && own != &kernel(launch.kernel);
}

std::vector<int> launches_to_audit(const StepPlan& plan, std::int64_t step, std::uint64_t seed,
                                   std::span<const int> by_us) {
  std::map<std::string_view, std::vector<int>> replaced, all;  // by kernel
  const bool includes_graph = graph_is_simple(plan);
  for (int index = 0; index < static_cast<int>(plan.operations.size()); ++index) {
    const Operation& operation = operation_at(plan, index);
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || in_catalogue(launch->kernel.name()) == nullptr) continue;
    if (!acts_for(operation, step) || (operation.captured && !includes_graph)) continue;
    if (bytes_of_operands(*launch) > most_audited_bytes) continue;
    all[launch->kernel.name()].push_back(index);
    if (is_replaced(*launch) && !std::ranges::binary_search(by_us, index))
      replaced[launch->kernel.name()].push_back(index);
  }
  Random random(seed);
  std::vector<int> chosen;
  for (const auto& [kernel, launches] : replaced.empty() ? all : replaced)
    chosen.push_back(launches[random.below(launches.size())]);
  std::ranges::sort(chosen);
  return chosen;
}

std::string difference_by_audit(const AuditedLaunch& audited) {
  const LaunchKernel& launch = audited.launch;
  const KernelRef own(launch.kernel.name());
  KernelTrial spoilt{&trial_recipe(own.name()), launch.shape, launch.dtype, launch.attributes, {}};
  for (const KernelOperand& operand : kernel(own).operands) {
    spoilt.operands.emplace_back(static_cast<std::size_t>(
        operand_bytes(operand, launch.shape, launch.dtype, launch.attributes)));
  }
  read(audited, spoilt);
  spoil(audited, spoilt);
  write(audited, spoilt);
  audited.run_own();
  KernelTrial got = spoilt;
  read(audited, got);
  write(audited, spoilt);
  audited.run_catalogue();
  KernelTrial expected = std::move(spoilt);
  read(audited, expected);
  write(audited, got);
  return first_difference(std::move(got), std::move(expected));
}

}  // namespace stepgate
