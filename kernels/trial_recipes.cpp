// SPDX-License-Identifier: MIT
// The table of recipes. A new kernel adds one row here, in the catalogue's order.
#include <cstdio>
#include <cstdlib>

#include "kernels/recipe_parts.h"

namespace stepgate {
namespace {

using namespace recipe_parts;

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

// Its last operand is a control.
TrialRecipe controlled(TrialRecipe made) {
  made.settle = settle_control;
  return made;
}

TrialRecipe settled(TrialRecipe made, void (*settle)(KernelTrial&)) {
  made.settle = settle;
  return made;
}

TrialRecipe product(TrialRecipe made) {
  made.multiplies = true;
  made.alignment_bytes = 16;
  return made;
}

// Tensor cores take probabilities and gradients of scores rounded to storage, which adds a
// rounding error of each to that of the result.
constexpr double rounded_factors = 2;

TrialRecipe attention_recipe(TrialRecipe made, void (*settle)(KernelTrial&)) {
  made.alignment_bytes = 16;
  made.settle = settle;
  return made;
}

std::vector<TrialRecipe> make_recipes() {
  const OperandRecipe packed{Format::storage, packed_parts};
  const OperandRecipe qkv{Format::storage, packed_qkv};
  const OperandRecipe log_sums{Format::single, per_row_and_group};
  const OperandRecipe numbers{Format::storage, per_element};
  const OperandRecipe column_numbers{Format::storage, per_column};
  const OperandRecipe from_minus_six{Format::storage, per_element, -6};  // where gelu is flat
  const OperandRecipe loss{Format::single, one};
  const OperandRecipe counter{Format::count, one};
  const OperandRecipe singles{Format::single, per_element};
  const OperandRecipe squares{Format::single, per_element, 0};
  const OperandRecipe denominators{Format::single, per_element, 0.1};
  const OperandRecipe control{Format::single, control_size};
  const std::vector<Scalars> adamw_scalars = {Scalars{1e-2, 0.9, 0.999, 1e-8, 0.01},
                                              Scalars{1e-1, 0.5, 0.9, 1e-3, 0}};
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
      in_place(recipe("residual_bias_layer_norm",
                      {numbers,
                       numbers,
                       column_numbers,
                       column_numbers,
                       column_numbers,
                       numbers,
                       numbers,
                       {Format::single, two_a_row}},
                      epsilons, normed_matrices),
               5, 0),
      recipe("layer_norm_gradient",
             {numbers,
              numbers,
              column_numbers,
              {Format::single, two_a_row, 0.5},
              numbers,
              {Format::single, layer_partials}},
             norm_gradient_scalars, parts_of_matrices),
      recipe("rms_norm", {numbers, column_numbers, numbers, {Format::single, per_row}}, epsilons,
             normed_matrices),
      in_place(recipe("residual_bias_rms_norm",
                      {numbers,
                       numbers,
                       column_numbers,
                       column_numbers,
                       numbers,
                       numbers,
                       {Format::single, per_row}},
                      epsilons, normed_matrices),
               4, 0),
      recipe("rms_norm_gradient",
             {numbers,
              numbers,
              column_numbers,
              {Format::single, per_row, 0.5},
              numbers,
              {Format::single, rms_partials}},
             norm_gradient_scalars, parts_of_matrices),
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
      product(
          recipe("linear",
                 {{Format::storage, first_factors},
                  {Format::storage, second_factors},
                  column_numbers,
                  numbers},
                 {Scalars{}},
                 {{1, 1, 1}, {1, 8, 8}, {5, 1, 9}, {17, 33, 65}, {64, 64, 64}, {130, 72, 200}})),
      recipe("split_heads", {packed, packed}, {Scalars{1}, Scalars{3}}, sequences_of_heads()),
      in_place(recipe("causal_softmax", {numbers, numbers}, {Scalars{1}, Scalars{0.125}},
                      square_matrices()),
               1, 0),
      in_place(recipe("causal_softmax_gradient", {numbers, numbers, numbers},
                      {Scalars{1}, Scalars{0.125}}, square_matrices()),
               2, 1),
      recipe("merge_heads", {packed, packed}, {Scalars{1}, Scalars{3}}, sequences_of_heads()),
      attention_recipe(
          recipe("attention", {qkv, numbers, log_sums}, {Scalars{}}, sequences_of_heads()),
          nullptr),
      attention_recipe(
          recipe("attention_gradient",
                 {qkv, numbers, numbers, log_sums, {Format::scratch, attention_scratch}, qkv},
                 {Scalars{}}, sequences_of_heads()),
          attend),
      in_place(recipe("bias_activation", {numbers, column_numbers, numbers},
                      {Scalars{0}, Scalars{1}}, matrices),
               2, 0),
      in_place(recipe("relu_gradient", {numbers, numbers, numbers}, {Scalars{}}, matrices), 2, 1),
      recipe("bias_gradient", {numbers, column_numbers}, {Scalars{0}, Scalars{1}}, summed_matrices),
      recipe("column_parts", {numbers, {Format::single, partials}}, {Scalars{}}, parts_of_matrices),
      in_place(recipe("cross_entropy",
                      {numbers, {Format::label, per_row}, numbers, {Format::single, per_row}},
                      {Scalars{0}, Scalars{5000}}, classified_matrices),
               2, 0),
      in_place(recipe("scaled_cross_entropy",
                      {numbers,
                       {Format::label, per_row},
                       {Format::single, one, 0.5},
                       numbers,
                       {Format::single, per_row}},
                      {Scalars{0}, Scalars{5000}}, classified_matrices),
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
      recipe("adamw", {numbers, numbers, singles, squares, counter}, adamw_scalars, matrices),
      recipe("square_sums", {{Format::storage, per_column}, {Format::single, per_depth}},
             {Scalars{}},
             {{1, 1, 1},
              {1, 7, 1},
              {1, 33, 1},
              {1, 64, 11},
              {1, 4096, 1},
              {1, 4099, 2},
              {1, 20001, 3},
              {1, 100003, 25},
              {1, 262144, 64}}),
      controlled(recipe("clip", {{Format::single, per_depth, 0}, control},
                        {Scalars{1, 2000, 2, 0.5}, Scalars{0, 3, 2, 0.5}, Scalars{1e6, 0, 2, 0.5}},
                        {{1, 1, 1}, {1, 1, 33}, {1, 1, 512}, {1, 1, 1584}})),
      controlled(recipe("adamw_master", {numbers, numbers, singles, singles, squares, control},
                        adamw_scalars, matrices)),
      controlled(recipe("adamw_clipped", {numbers, numbers, singles, squares, control},
                        adamw_scalars, matrices)),
      controlled(recipe("foreach_unscale", {numbers, control}, {Scalars{}}, matrices)),
      controlled(recipe("foreach_decay", {numbers, control}, adamw_scalars, matrices)),
      controlled(recipe("foreach_lerp", {singles, numbers, control}, adamw_scalars, matrices)),
      controlled(recipe("foreach_mul", {squares, control}, adamw_scalars, matrices)),
      controlled(recipe("foreach_addcmul", {squares, numbers, control}, adamw_scalars, matrices)),
      recipe("foreach_sqrt", {singles, squares}, {Scalars{}}, matrices),
      controlled(recipe("foreach_div", {squares, control}, adamw_scalars, matrices)),
      recipe("foreach_add", {squares}, adamw_scalars, matrices),
      controlled(recipe("foreach_addcdiv", {numbers, singles, denominators, control}, adamw_scalars,
                        matrices)),
      settled(
          recipe("strided_scale", {{Format::storage, records_from}, {Format::storage, records_to}},
                 {Scalars{0.3, 1, 1}, Scalars{-2, 6, 6}, Scalars{0.75, 1, 6}, Scalars{3, 6, 1}},
                 {{1, 1, 1},
                  {3, 7, 1},
                  {5, 8, 2},
                  {4, 32, 4},
                  {1, 32, 32},
                  {33, 64, 32},
                  {129, 130, 3},
                  {7, 1024, 7},
                  {65, 256, 8},
                  {1, 4099, 1}}),
          fill_between_elements),
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
