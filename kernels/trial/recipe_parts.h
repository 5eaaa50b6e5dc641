// SPDX-License-Identifier: MIT
// Parts of recipes: shapes to try, and functions that make dependent operands consistent. Only
// trial_recipes.cpp includes this.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/batch_norm/batch_statistics.h"
#include "kernels/catalogue.h"
#include "kernels/fp8/fp8_numbers.h"
#include "kernels/kernels.h"
#include "kernels/number_format.h"
#include "kernels/trial/kernel_trial.h"
#include "kernels/update_control.h"

namespace stepgate::recipe_parts {

// Sizes are 1, odd numbers, neighbours of every vector width, and more than one block.
inline const std::vector<MatrixShape> matrices = {
    {1, 1},    {1, 3},    {3, 7},    {5, 8},    {2, 31},    {4, 32},    {33, 33},
    {64, 100}, {65, 257}, {7, 1024}, {1, 4099}, {129, 130}, {64, 1024}, {1030, 20}};

// Sequences of T tokens, H heads of D numbers. T is 1 or near the tile sizes 64 and 128; D is a
// width with or without tensor cores.
inline std::vector<PackedHeadsShape> sequences_of_heads() {
  struct Sequences {
    std::int64_t count, tokens, heads, width;
  };
  std::vector<PackedHeadsShape> shapes;
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

// The same for attention, and sequences whose H heads of queries share fewer heads of keys and
// values: one, or two.
inline std::vector<AttentionShape> sequences_to_attend() {
  std::vector<AttentionShape> shapes;
  for (const auto& [rows, columns, tokens, heads] : sequences_of_heads())
    shapes.push_back({rows, columns, tokens, heads});
  shapes.insert(shapes.end(), {{2, 32, 1, 4, 1},
                               {14, 6 * 32, 7, 6, 2},
                               {33, 4 * 80, 33, 4, 2},
                               {66, 4 * 64, 33, 4, 1},
                               {65, 6 * 64, 65, 6, 2},
                               {129, 2 * 64, 129, 2, 1},
                               {128, 4 * 64, 128, 4, 2},
                               {65, 4 * 128, 65, 4, 2},
                               {129, 2 * 128, 129, 2, 1}});
  return shapes;
}

// Rows of sequences of T tokens that begin with some heads to rotate, of up to 256 numbers each. In
// some shapes nothing follows the heads, in others the values of attention do, or rows are not
// whole packs.
inline const std::vector<PackedHeadsShape> rows_of_turned_heads = {
    {1, 256, 1, 1},    {6, 515, 2, 2},       {14, 768, 7, 2},
    {33, 1025, 33, 4}, {66, 1300, 33, 5},    {200, 1536, 200, 4},
    {3, 2304, 1, 6},   {5000, 264, 5000, 1}, {37, 3072, 37, 11}};

// Rows of H heads of queries, a multiple of 4. Heads are one number, whole packs, or not whole
// packs.
inline const std::vector<kernels::RepeatHeads::Shape> rows_of_shared_heads = {
    {1, 4, 4},    {3, 32, 4},     {64, 36, 12},  {7, 160, 4},
    {33, 512, 8}, {130, 1024, 8}, {9, 2048, 16}, {513, 64, 8}};

// Shapes of G matrices of T x T.
inline const std::vector<kernels::Matmul::Shape> gemms_with_gelu = {
    {1, 8, 8}, {5, 16, 8}, {17, 40, 64}, {64, 64, 64}, {130, 72, 200}, {200, 1000, 72}};

inline const std::vector<kernels::Matmul::Shape> gemms_in_fp8 = {
    {16, 16, 16}, {16, 32, 48}, {64, 64, 64}, {144, 80, 208}, {208, 1008, 80}};

// Keeps bytes that a kernel reads as numbers in fp8 from being infinite or NaN.
inline void be_fp8(KernelTrial& trial) {
  for (const std::size_t factor : {0, 1})
    for (std::byte& byte : trial.operands[factor]) byte &= std::byte{fp8_below_two};
}

inline std::vector<MatrixShape> square_matrices() {
  std::vector<MatrixShape> shapes;
  for (const auto& [groups, tokens] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                       {3, 2},
                                       {2, 7},
                                       {1, 16},
                                       {4, 33},
                                       {2, 64},
                                       {1, 65},
                                       {3, 200},
                                       {1, 515}}) {
    shapes.push_back({groups * tokens, tokens});
  }
  return shapes;
}

// Replaces the output and log sums by those of the forward launch for these qkv: random numbers
// would not be probabilities.
inline void attend(KernelTrial& trial) {
  void* const buffers[] = {trial.operands[0].data(), trial.operands[1].data(),
                           trial.operands[3].data()};
  const kernels::Attention::Attributes attributes{
      trial.attributes.as<kernels::AttentionGradient>().causal};
  kernel("attention").reference({trial.shape, trial.dtype, attributes, buffers});
}

// Makes the visible numbers of the first operand probabilities. Random numbers may be near 1, where
// the gradient is the difference of two nearly equal numbers, which no error bound allows for.
template <bool causal>
void become_probabilities(KernelTrial& trial) {
  std::vector<std::byte> probabilities(trial.operands[0].size());
  void* const buffers[] = {trial.operands[0].data(), probabilities.data()};
  kernel(causal ? kernels::CausalSoftmax::name : kernels::Softmax::name)
      .reference({trial.shape, trial.dtype, kernels::Softmax::Attributes{1}, buffers});
  const std::int64_t columns = trial.shape.as<kernels::Softmax>().columns;
  for (std::int64_t i = 0; i < value_count(trial, 0); ++i) {
    const bool is_visible = !causal || i % columns <= i / columns % columns;
    if (!is_visible) continue;
    set_number(trial.operands[0].data(), trial.dtype, i,
               number_at(probabilities.data(), trial.dtype, i));
  }
}

// Fills the numbers between the elements of `to`, which the kernel must not change.
inline void fill_between_elements(KernelTrial& trial) {
  const std::int64_t fields = trial.attributes.as<kernels::StridedScale>().fields_to;
  for (std::int64_t i = 0; i < value_count(trial, 1); ++i) {
    if (i % fields != 0) set_number(trial.operands[1].data(), trial.dtype, i, 0.25);
  }
}

// Makes the chain one cycle through all lines, and the position one of these lines. The other words
// of a line are not valid line numbers.
inline void link_lines(KernelTrial& trial) {
  const std::int64_t lines = trial.shape.as<kernels::Chase>().lines;
  auto* chain = reinterpret_cast<std::uint32_t*>(trial.operands[0].data());
  auto* position = reinterpret_cast<std::uint32_t*>(trial.operands[1].data());
  constexpr std::uint64_t seed = 0x123456789abcdef;
  for (std::int64_t line = 0; line < lines; ++line) {
    chain[line * chase_line_words] = next_line(static_cast<std::uint64_t>(line), lines, seed);
  }
  *position %= static_cast<std::uint32_t>(lines);
}

// Changes moments where Lion's blend of gradient and moment is near 0. The update jumps with the
// blend's sign, so rounding there would exceed every error bound.
inline void keep_from_zero(KernelTrial& trial) {
  const auto lion = trial.attributes.as<kernels::Lion>();
  const auto operands = kernel(trial.recipe->kernel).operands;
  const bool controlled = operands.back().format == OperandFormat::control;
  const std::size_t moment = operands.size() - (controlled ? 2 : 1);
  auto* m = reinterpret_cast<float*>(trial.operands[moment].data());
  const double factor = controlled ? value_at(trial, moment + 1, update_control::factor) : 1;
  for (std::int64_t i = 0; i < value_count(trial, moment); ++i) {
    if (i % 7 == 3) {  // a parameter without gradients so far, such as an unused row
      m[i] = 0;
      set_number(trial.operands[1].data(), trial.dtype, i, 0);
      continue;
    }
    const double blend = lion.beta1 * m[i] + (1 - lion.beta1) * factor * value_at(trial, 1, i);
    if (std::abs(blend) < 1e-3) m[i] = value_at(trial, 1, i) < 0 ? -0.75f : 0.75f;
  }
}

// The operand of that name; no_operand where the kernel has none.
inline std::size_t operand_named(const KernelTrial& trial, std::string_view name) {
  const auto operands = kernel(trial.recipe->kernel).operands;
  const auto found = std::ranges::find(operands, name, &KernelOperand::name);
  return found == operands.end() ? no_operand : static_cast<std::size_t>(found - operands.begin());
}

// Rounds what a batch norm reads so coarsely that fp32 computes it exactly, since the sign of a
// norm and the largest of a window jump where rounding differs. Some norms are exactly 0, some are
// equal, some only once they are stored. Each deviation is positive, some scales are negative.
inline void norm_exactly(KernelTrial& trial) {
  const auto round = [&](std::string_view name, DType dtype, auto rounded) {
    const std::size_t operand = operand_named(trial, name);
    if (operand == no_operand) return;
    for (std::int64_t i = 0; i < value_count(trial, operand); ++i)
      set_number(trial.operands[operand].data(), dtype, i, rounded(value_at(trial, operand, i), i));
  };
  for (const char* name : {"x", "residual", "shortcut"})
    round(name, trial.dtype,
          [](double value, std::int64_t) { return std::round(64 * value) / 64; });
  for (const char* name : {"statistics", "shortcut_statistics"}) {
    const std::size_t operand = operand_named(trial, name);
    if (operand == no_operand) continue;
    const std::int64_t columns = value_count(trial, operand) / batch_statistics::size;
    round(name, single_of(trial.dtype), [=](double value, std::int64_t i) {
      if (i / columns == batch_statistics::reciprocal) return 0.5 + std::abs(value);
      if (i / columns != batch_statistics::scale) return std::round(8 * value) / 8;
      return std::copysign(0.25 + std::round(64 * std::abs(value)) / 64, value);
    });
  }
}

// Makes partials the sums of a random matrix, and the first row its first row.
inline void sum_a_matrix(KernelTrial& trial) {
  KernelTrial sums =
      make_trial(trial_recipe(kernels::BatchNormSums::name), trial.shape, trial.dtype, {}, 7);
  run_reference(sums);
  trial.operands[1] = sums.operands[1];
  std::copy_n(sums.operands[0].begin(), trial.operands[0].size(), trial.operands[0].begin());
}

// Makes the first pixels and the partials those of a random image.
inline void sum_an_image(KernelTrial& trial) {
  KernelTrial sums =
      make_trial(trial_recipe(kernels::GroupNormSums::name), trial.shape, trial.dtype, {}, 7);
  run_reference(sums);
  trial.operands[0] = sums.operands[2];
  trial.operands[1] = sums.operands[3];
}

// Also clears the bits of a mask that stand for no column.
inline void norm_exactly_with_mask(KernelTrial& trial) {
  norm_exactly(trial);
  const std::size_t mask = operand_named(trial, "mask");
  const std::int64_t columns = trial.shape.as<kernels::BatchNormAddGradientSums>().columns;
  const std::int64_t bytes = (columns + 7) / 8;
  for (std::int64_t i = bytes - 1; columns % 8 != 0 && i < value_count(trial, mask); i += bytes)
    trial.operands[mask][static_cast<std::size_t>(i)] &= std::byte((1 << columns % 8) - 1);
}

// Makes `which` the choice of norm_pool for this x and these statistics.
inline void choose_of_windows(KernelTrial& trial) {
  norm_exactly(trial);
  const auto operand = [&](std::string_view name) -> auto& {
    return trial.operands[operand_named(trial, name)];
  };
  std::vector<std::byte> y(operand("d_y").size()), chosen = y;
  void* const buffers[] = {operand("x").data(), operand("statistics").data(), y.data(),
                           operand("which").data(), chosen.data()};
  kernel(kernels::NormPool::name).reference({trial.shape, trial.dtype, trial.attributes, buffers});
}

// Makes `which` the choice of max_pool for random images.
inline void choose_of_images(KernelTrial& trial) {
  KernelTrial pooled = make_trial(trial_recipe(kernels::MaxPool::name), trial.shape, trial.dtype,
                                  trial.attributes, 7);
  run_reference(pooled);
  trial.operands[1] = pooled.operands[2];
}

// A single number may have a slope of almost 0, where no relative error bound applies.
inline const std::vector<MatrixShape> several_numbers(matrices.begin() + 1, matrices.end());

// Windows of one and of several pixels, strides that leave a last column or row unread, windows
// that lie mostly outside the image, and images that are not square.
inline const std::vector<ConvolutionShape> convolutions = {
    {1, 1, 1, 1, 1, 1, 1, 0},    {2, 5, 5, 3, 4, 3, 1, 1},    {1, 7, 6, 3, 8, 7, 2, 3},
    {2, 8, 8, 4, 8, 1, 2, 0},    {3, 9, 7, 5, 6, 3, 2, 1},    {2, 8, 8, 16, 8, 3, 2, 1},
    {1, 14, 14, 8, 16, 3, 1, 1}, {4, 1, 1, 16, 8, 3, 1, 1},   {1, 20, 9, 2, 3, 5, 3, 2},
    {2, 16, 24, 3, 64, 7, 2, 3}, {1, 33, 8, 3, 128, 7, 2, 2}, {1, 64, 64, 3, 64, 7, 2, 3}};

// Adds rows of eight packs per lane of a warp, and longer rows of packs that need a block.
inline const std::vector<MatrixShape> normed_matrices = [] {
  std::vector<MatrixShape> shapes = matrices;
  shapes.insert(shapes.end(), {{9, 768}, {6, 2048}, {3, 4096}});
  return shapes;
}();

// Adds matrices with few rows and so many columns that one thread sums whole columns.
inline const std::vector<MatrixShape> summed_matrices = [] {
  std::vector<MatrixShape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 65536}, {19, 65544}});
  return shapes;
}();

// Adds rows that are kept in shared memory: one whose stages have unequal sizes, and one as wide as
// a vocabulary.
inline const std::vector<MatrixShape> classified_matrices = [] {
  std::vector<MatrixShape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 16648}, {2, 50304}});
  return shapes;
}();

// Shapes of matrices with the number of parts among which the rows are divided. A row has fewer
// packs than a warp holds, the packs of several warps, or more packs than a block holds.
inline const std::vector<PartsShape> parts_of_matrices = {
    {1, 1, 1},    {5, 3, 2},      {3, 8, 3},      {64, 32, 8},   {65, 257, 7},
    {33, 264, 5}, {130, 768, 4},  {40, 2048, 16}, {17, 1030, 2}, {6, 4099, 2},
    {9, 6152, 4}, {1030, 24, 64}, {50, 512, 2},   {21, 1600, 3}, {5, 8200, 2}};

// The shapes of these with several rows, since one row has no variance.
inline const std::vector<PartsShape> parts_of_rows(parts_of_matrices.begin() + 1,
                                                   parts_of_matrices.end());

// Images of odd sizes, with columns that are and are not whole packs.
inline const std::vector<kernels::NormPool::Shape> pooled_images = {
    {1, 2, 2, 1}, {2, 4, 5, 3}, {3, 7, 6, 8}, {1, 9, 13, 33}, {2, 16, 16, 64}, {1, 5, 8, 264}};

inline const std::vector<kernels::Upsample::Shape> enlarged_images = [] {
  std::vector<kernels::Upsample::Shape> shapes;
  for (const auto& [images, height, width, columns] : pooled_images)
    shapes.push_back({images, height, width, columns});
  return shapes;
}();

// Images with channels of one or two operands, in groups of one channel, of whole packs, and of
// more channels than a warp has lanes.
inline const std::vector<kernels::GroupNormApply::Shape> grouped_images = {
    {1, 1, 1, 0, 1},    {2, 5, 6, 0, 3},      {3, 7, 8, 0, 2},     {2, 9, 6, 9, 5},
    {1, 33, 16, 8, 6},  {2, 64, 32, 32, 16},  {3, 50, 264, 0, 33}, {1, 130, 128, 256, 32},
    {2, 300, 24, 0, 6}, {1, 7, 1032, 312, 3}, {5, 12, 8, 16, 24},  {2, 40, 96, 32, 32}};

// The same images with a number of parts.
inline const std::vector<kernels::GroupNormSums::Shape> parts_of_grouped_images = [] {
  std::vector<kernels::GroupNormSums::Shape> shapes;
  for (const auto& [samples, pixels, columns, others, groups] : grouped_images)
    shapes.push_back({samples, pixels, columns, others, groups, std::min<std::int64_t>(pixels, 9)});
  return shapes;
}();

// Shapes of tokens, columns, vocabulary and positions, with few and with many equal tokens.
inline const std::vector<kernels::Embedding::Shape> sequences = {
    {1, 1, 1, 1},     {5, 3, 7, 2},        {12, 8, 5, 4},    {7, 31, 3, 7},
    {64, 33, 50, 16}, {33, 256, 1000, 11}, {20, 1032, 9, 5}, {300, 4, 3000, 100}};

// The same shapes without positions, for kernels other than embedding.
inline const std::vector<kernels::TokenEmbedding::Shape> looked_up = [] {
  std::vector<kernels::TokenEmbedding::Shape> shapes;
  for (const auto& [rows, columns, table_rows, positions] : sequences)
    shapes.push_back({rows, columns, table_rows});
  return shapes;
}();

// Adds more tokens than a block's lists hold: all equal, or of a few values that several windows
// share.
inline const std::vector<kernels::TokenEmbedding::Shape> repeated = [] {
  std::vector<kernels::TokenEmbedding::Shape> shapes = looked_up;
  shapes.insert(shapes.end(), {{2500, 3, 1}, {5003, 8, 2}, {4097, 5, 2200}});
  return shapes;
}();

}  // namespace stepgate::recipe_parts
