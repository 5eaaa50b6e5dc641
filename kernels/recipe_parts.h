// SPDX-License-Identifier: MIT
// What recipes are made of: how large operands are, which shapes are worth trying, and how operands
// that depend on each other are made consistent. Only trial_recipes.cpp includes this.
#pragma once

#include <vector>

#include "kernels/attention_gradient/attention_gradient.h"
#include "kernels/catalogue.h"
#include "kernels/kernel_trial.h"
#include "kernels/number_format.h"
#include "kernels/strided_scale/strided_scale.h"
#include "kernels/update_control.h"

namespace stepgate::recipe_parts {

using Format = OperandFormat;
using Shape = KernelShape;
using Scalars = KernelScalars;

inline constexpr auto one = [](const Shape&, const Scalars&) -> std::int64_t { return 1; };
inline constexpr auto per_row = [](const Shape& s, const Scalars&) { return s.rows; };
inline constexpr auto per_column = [](const Shape& s, const Scalars&) { return s.columns; };
inline constexpr auto per_element = [](const Shape& s, const Scalars&) {
  return s.rows * s.columns;
};
inline constexpr auto first_factors = [](const Shape& s, const Scalars&) {
  return s.groups * s.rows * s.depth;
};
inline constexpr auto second_factors = [](const Shape& s, const Scalars&) {
  return s.groups * s.depth * s.columns;
};
inline constexpr auto products = [](const Shape& s, const Scalars&) {
  return s.groups * s.rows * s.columns;
};
inline constexpr auto per_depth = [](const Shape& s, const Scalars&) { return s.depth; };
inline constexpr auto control_size = [](const Shape&, const Scalars&) {
  return update_control::size;
};
inline constexpr auto rows_depth = [](const Shape& s, const Scalars&) { return s.rows * s.depth; };
inline constexpr auto two_a_row = [](const Shape& s, const Scalars&) { return 2 * s.rows; };
inline constexpr auto partials = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
// Of the parameters' gradients and, where asked for, of d_x.
inline constexpr auto layer_partials = [](const Shape& s, const Scalars& scalars) {
  return (scalars[1] != 0 ? 3 : 2) * s.depth * s.columns;
};
inline constexpr auto rms_partials = [](const Shape& s, const Scalars& scalars) {
  return (scalars[1] != 0 ? 2 : 1) * s.depth * s.columns;
};
inline constexpr auto table = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
inline constexpr auto positions = [](const Shape& s, const Scalars&) {
  return s.groups * s.columns;
};
inline constexpr auto capacity = [](const Shape&, const Scalars& scalars) {
  return static_cast<std::int64_t>(scalars[0]);
};

inline constexpr auto two_a_slot = [](const Shape&, const Scalars& scalars) {
  return 2 * static_cast<std::int64_t>(scalars[0]);
};

inline constexpr auto packed_parts = [](const Shape& s, const Scalars& scalars) {
  return static_cast<std::int64_t>(scalars[0]) * s.rows * s.columns;
};
inline constexpr auto packed_qkv = [](const Shape& s, const Scalars&) {
  return 3 * s.rows * s.columns;
};
inline constexpr auto per_row_and_group = [](const Shape& s, const Scalars&) {
  return s.rows * s.groups;
};
inline constexpr auto records_from = [](const Shape& s, const Scalars& scalars) {
  return s.rows * s.columns * static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_from]);
};
inline constexpr auto records_to = [](const Shape& s, const Scalars& scalars) {
  return s.rows * s.columns * static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_to]);
};
// As much as any dtype needs.
inline constexpr auto attention_scratch = [](const Shape& s, const Scalars& scalars) {
  return attention_gradient_scratch_bytes(s, DType::bf16, static_cast<std::int64_t>(scalars[0]));
};

// 1, odd, just beside every vector width, and larger than one block.
inline const std::vector<Shape> matrices = {{1, 1},    {1, 3},     {3, 7},     {5, 8},    {2, 31},
                                            {4, 32},   {33, 33},   {64, 100},  {65, 257}, {7, 1024},
                                            {1, 4099}, {129, 130}, {64, 1024}, {1030, 20}};

// One of `matrices`, for which the updates of weights are skipped.
inline constexpr Shape skipped = {4, 32};

// A control as clip leaves it: the last operand.
inline void settle_control(KernelTrial& trial) {
  auto* control = reinterpret_cast<float*>(trial.operands.back().data());
  control[update_control::factor] = trial.shape == skipped ? 0.0f : 0.25f;
  control[update_control::loss_scale] = 4;
  control[update_control::good_updates] = 2;
  control[update_control::updates] = 5;
}

// Sequences of T tokens, H heads of D numbers: one token, beside the tiles of 64 and 128 tokens,
// heads with and without tensor cores.
inline std::vector<Shape> sequences_of_heads() {
  struct Sequences {
    std::int64_t count, tokens, heads, width;
  };
  std::vector<Shape> shapes;
  for (const auto& [count, tokens, heads, width] :
       {Sequences{1, 1, 1, 8}, Sequences{3, 2, 2, 16}, Sequences{2, 7, 3, 32},
        Sequences{1, 16, 1, 40}, Sequences{2, 33, 1, 80}, Sequences{2, 1, 2, 64},
        Sequences{2, 33, 2, 64}, Sequences{1, 64, 1, 64}, Sequences{1, 65, 3, 64},
        Sequences{1, 200, 2, 64}, Sequences{3, 7, 1, 128}, Sequences{2, 65, 1, 128},
        Sequences{1, 128, 1, 128}, Sequences{1, 200, 1, 128}}) {
    shapes.push_back({count * tokens, heads * width, tokens, heads});
  }
  return shapes;
}

// G matrices of T x T.
inline std::vector<Shape> square_matrices() {
  std::vector<Shape> shapes;
  for (const auto& [groups, tokens] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                       {3, 2},
                                       {2, 7},
                                       {1, 16},
                                       {4, 33},
                                       {2, 64},
                                       {1, 65},
                                       {3, 200},
                                       {1, 515}}) {
    shapes.push_back({groups * tokens, tokens, 1, groups});
  }
  return shapes;
}

// What the forward launch leaves for these qkv: random probabilities would be no probabilities.
inline void attend(KernelTrial& trial) {
  void* const buffers[] = {trial.operands[0].data(), trial.operands[1].data(),
                           trial.operands[3].data()};
  kernel("attention").reference({trial.shape, trial.dtype, {}, buffers});
}

// Numbers between the elements of `to`, which stay.
inline void fill_between_elements(KernelTrial& trial) {
  const auto fields = static_cast<std::int64_t>(trial.scalars[strided_scale_scalar::fields_to]);
  for (std::int64_t i = 0; i < value_count(trial, 1); ++i) {
    if (i % fields != 0) set_number(trial.operands[1].data(), trial.dtype, i, 0.25);
  }
}

// A single number may lie where a slope is next to nothing, which no relative error allows for.
inline const std::vector<Shape> several_numbers(matrices.begin() + 1, matrices.end());

inline const std::vector<Scalars> norm_gradient_scalars = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};

inline const std::vector<Scalars> epsilons = {{1e-5}, {0.5}};

// Also rows that a warp holds eight packs a lane of, and rows that move in packs but take a block.
inline const std::vector<Shape> normed_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{9, 768}, {6, 2048}, {3, 4096}});
  return shapes;
}();

// Also few rows of so many columns that a thread takes all rows of its own.
inline const std::vector<Shape> summed_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 65536}, {19, 65544}});
  return shapes;
}();

// Also rows that shared memory is to hold: of unequal parts, and as wide as a vocabulary.
inline const std::vector<Shape> classified_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 16648}, {2, 50304}});
  return shapes;
}();

// With the parts among which the rows are divided; rows of less than a warp's packs, of several
// warps', and of more than a block's.
inline const std::vector<Shape> parts_of_matrices = {
    {1, 1, 1},    {5, 3, 2},      {3, 8, 3},      {64, 32, 8},   {65, 257, 7},
    {33, 264, 5}, {130, 768, 4},  {40, 2048, 16}, {17, 1030, 2}, {6, 4099, 2},
    {9, 6152, 4}, {1030, 24, 64}, {50, 512, 2},   {21, 1600, 3}, {5, 8200, 2}};

// Tokens, columns, vocabulary and positions: few and many equal tokens.
inline const std::vector<Shape> sequences = {
    {1, 1, 1, 1},     {5, 3, 7, 2},        {12, 8, 5, 4},    {7, 31, 3, 7},
    {64, 33, 50, 16}, {33, 256, 1000, 11}, {20, 1032, 9, 5}, {300, 4, 3000, 100}};

// Also more tokens than a block's lists hold: of one value, and of a few that the windows share.
inline const std::vector<Shape> repeated_sequences = [] {
  std::vector<Shape> shapes = sequences;
  shapes.insert(shapes.end(), {{2500, 3, 1, 50}, {5003, 8, 2, 1}, {4097, 5, 2200, 1}});
  return shapes;
}();

}  // namespace stepgate::recipe_parts
