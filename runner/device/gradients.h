// SPDX-License-Identifier: MIT
// Sketches of a step's gradients: a few numbers for each parameter, from which the distance between
// two gradients is estimated. They are small enough to be stored, added over ranks and sent to
// another process.
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

// Bit k is the sign of the element in projection k. `element` is the index within its parameter.
constexpr std::uint64_t signs_of(std::int64_t element) {
  return random_bits(0x9a3d5e71c2b8460fULL, static_cast<std::uint64_t>(element));
}

// Sums of a parameter's gradient with random signs (Achlioptas: Database-friendly random
// projections, PODS 2001). The mean of their squares estimates the squared norm, with a relative
// standard error of sqrt(2 / 64) = 18 %. They are linear: the sketch of a difference is the
// difference of the sketches.
struct GradientSketch {
  std::int64_t elements =
      0;               // that were read; fewer than the parameter has where a part is missing
  double squares = 0;  // sum of the squares of the elements
  std::array<double, gradient_projections> projections{};

  GradientSketch& operator+=(const GradientSketch&);
};
template <>
inline constexpr auto fields_of<GradientSketch> =
    fields<&GradientSketch::elements, &GradientSketch::squares, &GradientSketch::projections>;

// The norm of the difference as a share of the larger norm; 0 where both gradients are zero. The
// larger norm is taken to be at least `floor`. NaN where either gradient has an element that is not
// finite.
double relative_difference(const GradientSketch&, const GradientSketch&, double floor = 0);

// Adds a sketch if all its numbers are finite: in fp16 with a loss scale some parameters overflow
// in the first steps.
void add_finite(GradientSketch& whole, const GradientSketch&);

// The norm below which a parameter's gradient is only the rounding error of the other gradients,
// for as many elements as `own` has. The bias of a softmax's keys has such a gradient. `whole` is
// the sum of all parameters.
double negligible_norm(const GradientSketch& whole, const GradientSketch& own);

// Hexadecimal text that another process reads: 16 digits of elements, 16 of the squares' bits as a
// double and 8 of each projection's bits as a float. nullopt where the text is not a sketch.
std::string text_of(const GradientSketch&);
std::optional<GradientSketch> sketch_of(std::string_view text);

// A part of a launch's gradients that belongs to one parameter.
struct GradientPart {
  std::size_t parameter = 0;  // index into StepPlan::parameters
  std::int64_t first = 0;     // its first element, counted in the parameter
  std::int64_t elements = 0;
  std::int64_t in_operand = 0;  // offset of the part from the start of the operand, in elements
};
std::vector<GradientPart> gradient_parts(const StepPlan&, const GradientsRead&);

// The gradients operand of a launch that reads gradients.
const BufferUse& gradients_of(const Operation&);

// The reason why the gradients of a step cannot be read, in words; empty where they can. A graph is
// one launch, so gradients that it overwrites or releases before its end cannot be read.
std::string reason_against_gradients(const StepPlan&);

// Adds the elements of a part to its sketch. `operand` is the launch's operand in host memory, with
// elements of this dtype.
void add_part(const GradientPart&, const void* operand, DType, GradientSketch&);

}  // namespace stepgate
