// SPDX-License-Identifier: MIT
#include "device/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "kernels/number_format.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

// Whether the gradients that operation `index` reads cannot be read after its graph: they are
// allocated within the step, or this or a later captured operation writes to them.
bool is_lost_in_graph(const StepPlan& plan, std::size_t index) {
  const BufferUse& gradients = gradients_of(plan.operations[index]);
  const auto overlaps = [&](const BufferUse& use) {
    return use.buffer == gradients.buffer &&
           use.offset_bytes < gradients.offset_bytes + gradients.bytes &&
           gradients.offset_bytes < use.offset_bytes + use.bytes;
  };
  if (buffer_at(plan, gradients.buffer).allocated_by != AllocatedBy::the_plan) return true;
  for (std::size_t next = index; next < plan.operations.size(); ++next) {
    const Operation& operation = plan.operations[next];
    if (!operation.captured) continue;
    for (const auto& [use, access] : accesses_of(plan, operation)) {
      if (access != Access::read && overlaps(use)) return true;
    }
  }
  return false;
}

}  // namespace

GradientSketch& GradientSketch::operator+=(const GradientSketch& more) {
  elements += more.elements;
  squares += more.squares;
  for (std::size_t k = 0; k < projections.size(); ++k) projections[k] += more.projections[k];
  return *this;
}

double relative_difference(const GradientSketch& one, const GradientSketch& other, double floor) {
  double squares = 0;
  for (std::size_t k = 0; k < gradient_projections; ++k) {
    const double difference = one.projections[k] - other.projections[k];
    squares += difference * difference;
  }
  const double distance = std::sqrt(squares / gradient_projections);
  if (distance == 0) return 0;
  return distance / std::max(std::sqrt(std::max(one.squares, other.squares)), floor);
}

void add_finite(GradientSketch& whole, const GradientSketch& sketch) {
  if (std::isfinite(sketch.squares)) whole += sketch;
}

double negligible_norm(const GradientSketch& whole, const GradientSketch& own) {
  constexpr double negligible = 1e-3;
  if (whole.elements == 0) return 0;
  return negligible * std::sqrt(whole.squares * static_cast<double>(own.elements) /
                                static_cast<double>(whole.elements));
}

std::string text_of(const GradientSketch& sketch) {
  std::string text =
      fmt::format("{:016x}{:016x}", sketch.elements, std::bit_cast<std::uint64_t>(sketch.squares));
  for (const double projection : sketch.projections)
    text += fmt::format("{:08x}", std::bit_cast<std::uint32_t>(static_cast<float>(projection)));
  return text;
}

std::optional<GradientSketch> sketch_of(std::string_view text) {
  constexpr std::size_t wide = 16;
  constexpr std::size_t narrow = 8;
  if (text.size() != 2 * wide + gradient_projections * narrow) return std::nullopt;
  bool is_one = true;
  const auto take = [&](std::size_t digits) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, 16);
    is_one = is_one && error == std::errc() && end == text.data() + digits;
    text.remove_prefix(digits);
    return number;
  };
  GradientSketch sketch;
  sketch.elements = static_cast<std::int64_t>(take(wide));
  sketch.squares = std::bit_cast<double>(take(wide));
  for (double& projection : sketch.projections)
    projection = std::bit_cast<float>(static_cast<std::uint32_t>(take(narrow)));
  return is_one && sketch.elements >= 0 ? std::optional(sketch) : std::nullopt;
}

const BufferUse& gradients_of(const Operation& operation) {
  const auto& launch = std::get<LaunchKernel>(operation.action);
  return launch.operands.at(operation.reads_gradients.value().operand);
}

std::vector<GradientPart> gradient_parts(const StepPlan& plan, const GradientsRead& read) {
  std::vector<GradientPart> parts;
  const std::int64_t end = read.flat.first + read.flat.elements;
  for (std::size_t index = 0; index < plan.parameters.size(); ++index) {
    const Parameter& parameter = plan.parameters[index];
    const std::int64_t first = std::max(read.flat.first, parameter.first);
    const std::int64_t last = std::min(end, parameter.first + parameter.elements);
    if (first >= last) continue;
    parts.push_back({.parameter = index,
                     .first = first - parameter.first,
                     .elements = last - first,
                     .in_operand = first - read.flat.first});
  }
  return parts;
}

std::string reason_against_gradients(const StepPlan& plan) {
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (operation.reads_gradients && operation.captured && is_lost_in_graph(plan, index))
      return "its graph overwrites or releases the gradients that '" + operation.name + "' reads";
  }
  return "";
}

void add_part(const GradientPart& part, const void* operand, DType dtype, GradientSketch& sketch) {
  const auto* const bytes = static_cast<const std::byte*>(operand);
  sketch.elements += part.elements;
  for (std::int64_t index = 0; index < part.elements; ++index) {
    const double value = number_at(bytes, dtype, part.in_operand + index);
    sketch.squares += value * value;
    const std::uint64_t signs = signs_of(part.first + index);
    for (std::size_t k = 0; k < gradient_projections; ++k)
      sketch.projections[k] += (signs >> k & 1U) != 0 ? value : -value;
  }
}

}  // namespace stepgate
