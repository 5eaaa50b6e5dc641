// SPDX-License-Identifier: MIT
// Gradients of a step as a few numbers for each parameter, from which the distance between two of
// them is known: small enough to be kept, added up over ranks, and sent to another program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/record/fields.h"
#include "plan/step_plan.h"

namespace stepgate {

inline constexpr std::size_t gradient_projections = 64;

// Bit k is the sign of the element in projection k. Elements are counted from the first of their
// parameter.
constexpr std::uint64_t signs_of(std::int64_t element) {
  return random_bits(0x9a3d5e71c2b8460fULL, static_cast<std::uint64_t>(element));
}

// Sums of a parameter's gradient with random signs (Achlioptas: Database-friendly random
// projections, PODS 2001). The mean of their squares estimates the squared norm, with a standard
// error of sqrt(2 / 64) = 18 % of it. They are linear: those of a difference are the differences.
struct GradientSketch {
  std::int64_t elements =
      0;               // that were read; fewer than the parameter has where a part is missing
  double squares = 0;  // their sum
  std::array<double, gradient_projections> projections{};

  GradientSketch& operator+=(const GradientSketch&);
};
template <>
inline constexpr auto fields_of<GradientSketch> =
    fields<&GradientSketch::elements, &GradientSketch::squares, &GradientSketch::projections>;

// The norm of the difference as a share of the larger norm; 0 where both are zero. The larger norm
// is at least `floor`. Not a number where either gradient has one that is not finite.
double relative_difference(const GradientSketch&, const GradientSketch&, double floor = 0);

// Adds what is finite: of fp16 with a loss scale some parameters overflow in the first steps.
void add_finite(GradientSketch& whole, const GradientSketch&);

// The norm below which a parameter's gradient is rounding of the others', for as many elements as
// `own` has (the bias of a softmax's keys, for one). `whole` is the sum of all parameters.
double negligible_norm(const GradientSketch& whole, const GradientSketch& own);

// In hexadecimal, for the way to another program: 16 digits of elements, 16 of the squares' bits as
// a double and 8 of each projection's as a float. Nothing where a text is none.
std::string text_of(const GradientSketch&);
std::optional<GradientSketch> sketch_of(std::string_view text);

// A part of a launch's gradients that belongs to one parameter.
struct GradientPart {
  std::size_t parameter = 0;  // index into StepPlan::parameters
  std::int64_t first = 0;     // its first element, counted in the parameter
  std::int64_t elements = 0;
  std::int64_t in_operand = 0;  // where that lies, in elements from the start of the operand
};
std::vector<GradientPart> gradient_parts(const StepPlan&, const GradientsRead&);

// The gradients operand of a launch that reads gradients.
const BufferUse& gradients_of(const Operation&);

// Why the gradients of a step cannot be read, in words; empty where they can. A graph is one
// launch: gradients that it overwrites or releases before its end cannot be read.
std::string reason_against_gradients(const StepPlan&);

// Adds numbers of the part in host memory, as the dtype stores them.
void add_part(const GradientPart&, const void* operand, DType, GradientSketch&);

}  // namespace stepgate
