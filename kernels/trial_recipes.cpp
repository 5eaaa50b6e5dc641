// SPDX-License-Identifier: MIT
// The table of recipes. A new kernel adds one row here, in the catalogue's order.
#include <cstdio>
#include <cstdlib>

#include "kernels/kernel_trial.h"

namespace stepgate {
namespace {

using Format = OperandFormat;
using Shape = KernelShape;
using Scalars = KernelScalars;

constexpr auto one = [](const Shape&, const Scalars&) -> std::int64_t { return 1; };
constexpr auto per_row = [](const Shape& s, const Scalars&) { return s.rows; };
constexpr auto per_column = [](const Shape& s, const Scalars&) { return s.columns; };
constexpr auto per_element = [](const Shape& s, const Scalars&) { return s.rows * s.columns; };
constexpr auto first_factors = [](const Shape& s, const Scalars&) {
  return s.groups * s.rows * s.depth;
};
constexpr auto second_factors = [](const Shape& s, const Scalars&) {
  return s.groups * s.depth * s.columns;
};
constexpr auto products = [](const Shape& s, const Scalars&) {
  return s.groups * s.rows * s.columns;
};
constexpr auto rows_depth = [](const Shape& s, const Scalars&) { return s.rows * s.depth; };
constexpr auto two_a_row = [](const Shape& s, const Scalars&) { return 2 * s.rows; };
constexpr auto partials = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
constexpr auto two_partials = [](const Shape& s, const Scalars&) {
  return 2 * s.depth * s.columns;
};
constexpr auto table = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
constexpr auto positions = [](const Shape& s, const Scalars&) { return s.groups * s.columns; };
constexpr auto capacity = [](const Shape&, const Scalars& scalars) {
  return static_cast<std::int64_t>(scalars[0]);
};

constexpr auto two_a_slot = [](const Shape&, const Scalars& scalars) {
  return 2 * static_cast<std::int64_t>(scalars[0]);
};

// 1, odd, just beside every vector width, and larger than one block.
const std::vector<Shape> matrices = {{1, 1},    {1, 3},     {3, 7},     {5, 8},    {2, 31},
                                     {4, 32},   {33, 33},   {64, 100},  {65, 257}, {7, 1024},
                                     {1, 4099}, {129, 130}, {64, 1024}, {1030, 20}};

// A single number may lie where a slope is next to nothing, which no relative error allows for.
const std::vector<Shape> several_numbers(matrices.begin() + 1, matrices.end());

const std::vector<Scalars> epsilons = {{1e-5}, {0.5}};

// Also rows that a warp holds eight packs a lane of, and rows that move in packs but take a block.
const std::vector<Shape> normed_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{9, 768}, {6, 2048}, {3, 4096}});
  return shapes;
}();

// Also rows that shared memory is to hold: of unequal parts, and as wide as a vocabulary.
const std::vector<Shape> classified_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 16648}, {2, 50304}});
  return shapes;
}();

// With the parts among which the rows are divided; rows of less than a warp's packs, of several
// warps', and of more than a block's.
const std::vector<Shape> parts_of_matrices = {
    {1, 1, 1},     {5, 3, 2},      {3, 8, 3},     {64, 32, 8},  {65, 257, 7}, {33, 264, 5},
    {130, 768, 4}, {40, 2048, 16}, {17, 1030, 2}, {6, 4099, 2}, {9, 6152, 4}, {1030, 24, 64}};

// Tokens, columns, vocabulary and positions: few and many equal tokens.
const std::vector<Shape> sequences = {{1, 1, 1, 1},     {5, 3, 7, 2},       {12, 8, 5, 4},
                                      {7, 31, 3, 7},    {64, 33, 50, 16},   {33, 256, 1000, 11},
                                      {20, 1032, 9, 5}, {300, 4, 3000, 100}};

// Also more tokens than a block's lists hold: of one value, and of a few that the windows share.
const std::vector<Shape> repeated_sequences = [] {
  std::vector<Shape> shapes = sequences;
  shapes.insert(shapes.end(), {{2500, 3, 1, 50}, {5003, 8, 2, 1}, {4097, 5, 2200, 1}});
  return shapes;
}();

TrialRecipe recipe(std::string_view kernel, std::vector<OperandRecipe> operands,
                   std::vector<Scalars> scalars, std::vector<Shape> shapes) {
  return {.kernel = kernel,
          .operands = std::move(operands),
          .scalars = std::move(scalars),
          .shapes = std::move(shapes)};
}

TrialRecipe in_place(TrialRecipe made, int output, int over) {
  made.output = output;
  made.output_over = over;
  return made;
}

TrialRecipe product(TrialRecipe made) {
  made.multiplies = true;
  made.alignment_bytes = 16;
  return made;
}

std::vector<TrialRecipe> make_recipes() {
  const OperandRecipe numbers{Format::storage, per_element};
  const OperandRecipe column_numbers{Format::storage, per_column};
  const OperandRecipe from_minus_six{Format::storage, per_element, -6};  // where gelu is flat
  const OperandRecipe loss{Format::single, one};
  const OperandRecipe counter{Format::count, one};
  return {
      recipe("ingest", {{Format::single, rows_depth}, numbers, {Format::label, per_row}},
             {Scalars{}},
             {{1, 1, 2},
              {3, 2, 3},
              {5, 7, 8},
              {4, 8, 12},
              {2, 8, 64},
              {6, 33, 100},
              {64, 256, 257},
              {64, 256, 260},
              {7, 100, 3001},
              {9, 64, 4096},
              {33, 1024, 1025}}),
      recipe(
          "ingest_tokens",
          {{Format::word, rows_depth}, {Format::label, per_element}, {Format::label, per_element}},
          {Scalars{1}, Scalars{97}, Scalars{50304}},
          {{1, 1, 2},
           {3, 2, 3},
           {5, 7, 8},
           {2, 8, 61},
           {6, 33, 100},
           {4, 255, 1000},
           {3, 256, 257},
           {2, 31, 4096},
           {7, 1023, 1025}}),
      recipe("embedding",
             {{Format::token, per_row},
              {Format::storage, table},
              {Format::storage, positions},
              numbers},
             {Scalars{}}, sequences),
      recipe("embedding_gradient", {{Format::token, per_row}, numbers, {Format::storage, table}},
             {Scalars{}}, repeated_sequences),
      in_place(recipe("add", {numbers, numbers, numbers}, {Scalars{}}, matrices), 2, 0),
      in_place(recipe("gelu", {from_minus_six, numbers}, {Scalars{}}, matrices), 1, 0),
      in_place(
          recipe("gelu_gradient", {from_minus_six, numbers, numbers}, {Scalars{}}, several_numbers),
          2, 1),
      in_place(
          recipe("bias_gelu", {numbers, column_numbers, numbers, numbers}, {Scalars{}}, matrices),
          2, 0),
      recipe("layer_norm",
             {numbers, column_numbers, column_numbers, numbers, {Format::single, two_a_row}},
             epsilons, normed_matrices),
      in_place(recipe("residual_layer_norm",
                      {numbers,
                       numbers,
                       column_numbers,
                       column_numbers,
                       numbers,
                       numbers,
                       {Format::single, two_a_row}},
                      epsilons, normed_matrices),
               4, 0),
      recipe("layer_norm_gradient",
             {numbers,
              numbers,
              column_numbers,
              {Format::single, two_a_row, 0.5},
              numbers,
              {Format::single, two_partials}},
             {Scalars{0}, Scalars{1}}, parts_of_matrices),
      recipe("rms_norm", {numbers, column_numbers, numbers, {Format::single, per_row}}, epsilons,
             normed_matrices),
      in_place(
          recipe("residual_rms_norm",
                 {numbers, numbers, column_numbers, numbers, numbers, {Format::single, per_row}},
                 epsilons, normed_matrices),
          3, 0),
      recipe("rms_norm_gradient",
             {numbers,
              numbers,
              column_numbers,
              {Format::single, per_row, 0.5},
              numbers,
              {Format::single, partials}},
             {Scalars{0}, Scalars{1}}, parts_of_matrices),
      recipe("sum_parts", {{Format::single, partials}, column_numbers}, {Scalars{0}, Scalars{1}},
             {{1, 1, 1},
              {1, 1, 7},
              {1, 31, 2},
              {1, 33, 40},
              {1, 257, 264},
              {1, 1536, 64},
              {1, 4099, 3}}),
      product(recipe("matmul",
                     {{Format::storage, first_factors},
                      {Format::storage, second_factors},
                      {Format::storage, products}},
                     {Scalars{0, 0, 0}, Scalars{1, 0, 0}, Scalars{0, 1, 0}, Scalars{1, 1, 1},
                      Scalars{1, 0, 1}},
                     {{1, 1, 1},
                      {1, 7, 3},
                      {5, 1, 9},
                      {17, 33, 65},
                      {64, 64, 64},
                      {130, 72, 200},
                      {16, 24, 8, 3},
                      {5, 7, 3, 4},
                      {40, 64, 32, 17}})),
      in_place(recipe("bias_activation", {numbers, column_numbers, numbers},
                      {Scalars{0}, Scalars{1}}, matrices),
               2, 0),
      in_place(recipe("relu_gradient", {numbers, numbers, numbers}, {Scalars{}}, matrices), 2, 1),
      recipe("bias_gradient", {numbers, column_numbers}, {Scalars{0}, Scalars{1}}, matrices),
      recipe("column_parts", {numbers, {Format::single, partials}}, {Scalars{}}, parts_of_matrices),
      in_place(recipe("cross_entropy",
                      {numbers, {Format::label, per_row}, numbers, {Format::single, per_row}},
                      {Scalars{}}, classified_matrices),
               2, 0),
      in_place(recipe("scaled_cross_entropy",
                      {numbers,
                       {Format::label, per_row},
                       {Format::single, one, 0.5},
                       numbers,
                       {Format::single, per_row}},
                      {Scalars{}}, classified_matrices),
               3, 0),
      recipe("report_loss",
             {{Format::single, per_row},
              loss,
              {Format::single, capacity},
              {Format::count, capacity},
              counter,
              {Format::count, two_a_slot}},
             {Scalars{1}, Scalars{5}}, {{1}, {3}, {64}, {255}, {257}, {4096}}),
      recipe("accumulate_loss", {loss, loss}, {Scalars{}}, {{}}),
      recipe("mean_loss", {loss, loss}, {Scalars{1}, Scalars{7}}, {{}}),
      recipe("sgd", {numbers, numbers}, {Scalars{0.125}, Scalars{0.01}}, matrices),
      recipe("adamw",
             {numbers,
              numbers,
              {Format::single, per_element},
              {Format::single, per_element, 0},
              counter},
             {Scalars{1e-2, 0.9, 0.999, 1e-8, 0.01}, Scalars{1e-1, 0.5, 0.9, 1e-3, 0}}, matrices),
      recipe("spin", {{Format::word, one}}, {Scalars{0}, Scalars{20}}, {{}}),
  };
}

}  // namespace

std::span<const TrialRecipe> trial_recipes() {
  static const std::vector<TrialRecipe> recipes = make_recipes();
  return recipes;
}

const TrialRecipe& trial_recipe(std::string_view name) {
  for (const TrialRecipe& candidate : trial_recipes()) {
    if (candidate.kernel == name) return candidate;
  }
  std::fprintf(stderr, "no trial recipe for '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace stepgate
