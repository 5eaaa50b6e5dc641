// SPDX-License-Identifier: MIT
// The table of recipes. A new kernel adds one row here, in the catalogue's order.
#include <cstdio>
#include <cstdlib>

#include "kernels/attention_gradient/attention_gradient.h"
#include "kernels/catalogue.h"
#include "kernels/kernel_trial.h"
#include "kernels/update_control.h"

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
constexpr auto per_depth = [](const Shape& s, const Scalars&) { return s.depth; };
constexpr auto control_size = [](const Shape&, const Scalars&) { return update_control::size; };
constexpr auto rows_depth = [](const Shape& s, const Scalars&) { return s.rows * s.depth; };
constexpr auto two_a_row = [](const Shape& s, const Scalars&) { return 2 * s.rows; };
constexpr auto partials = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
// Of the parameters' gradients and, where asked for, of d_x.
constexpr auto layer_partials = [](const Shape& s, const Scalars& scalars) {
  return (scalars[1] != 0 ? 3 : 2) * s.depth * s.columns;
};
constexpr auto rms_partials = [](const Shape& s, const Scalars& scalars) {
  return (scalars[1] != 0 ? 2 : 1) * s.depth * s.columns;
};
constexpr auto table = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
constexpr auto positions = [](const Shape& s, const Scalars&) { return s.groups * s.columns; };
constexpr auto capacity = [](const Shape&, const Scalars& scalars) {
  return static_cast<std::int64_t>(scalars[0]);
};

constexpr auto two_a_slot = [](const Shape&, const Scalars& scalars) {
  return 2 * static_cast<std::int64_t>(scalars[0]);
};

constexpr auto packed_parts = [](const Shape& s, const Scalars& scalars) {
  return static_cast<std::int64_t>(scalars[0]) * s.rows * s.columns;
};
constexpr auto packed_qkv = [](const Shape& s, const Scalars&) { return 3 * s.rows * s.columns; };
constexpr auto per_row_and_group = [](const Shape& s, const Scalars&) { return s.rows * s.groups; };
// As much as any dtype needs.
constexpr auto attention_scratch = [](const Shape& s, const Scalars& scalars) {
  return attention_gradient_scratch_bytes(s, DType::bf16, static_cast<std::int64_t>(scalars[0]));
};

// 1, odd, just beside every vector width, and larger than one block.
const std::vector<Shape> matrices = {{1, 1},    {1, 3},     {3, 7},     {5, 8},    {2, 31},
                                     {4, 32},   {33, 33},   {64, 100},  {65, 257}, {7, 1024},
                                     {1, 4099}, {129, 130}, {64, 1024}, {1030, 20}};

// One of `matrices`, for which the updates of weights are skipped.
constexpr Shape skipped = {4, 32};

// A control as clip leaves it: the last operand.
void settle_control(Trial& trial) {
  auto* control = reinterpret_cast<float*>(trial.operands.back().data());
  control[update_control::factor] = trial.shape == skipped ? 0.0f : 0.25f;
  control[update_control::loss_scale] = 4;
  control[update_control::good_updates] = 2;
  control[update_control::updates] = 5;
}

// Sequences of T tokens, H heads of D numbers: one token, beside the tiles of 64 and 128 tokens,
// heads with and without tensor cores.
std::vector<Shape> sequences_of_heads() {
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
std::vector<Shape> square_matrices() {
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
void attend(Trial& trial) {
  void* const buffers[] = {trial.operands[0].data(), trial.operands[1].data(),
                           trial.operands[3].data()};
  kernel("attention").reference({trial.shape, trial.dtype, {}, buffers});
}
// A single number may lie where a slope is next to nothing, which no relative error allows for.
const std::vector<Shape> several_numbers(matrices.begin() + 1, matrices.end());

const std::vector<Scalars> epsilons = {{1e-5}, {0.5}};

// Also rows that a warp holds eight packs a lane of, and rows that move in packs but take a block.
const std::vector<Shape> normed_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{9, 768}, {6, 2048}, {3, 4096}});
  return shapes;
}();

// Also few rows of so many columns that a thread takes all rows of its own.
const std::vector<Shape> summed_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 65536}, {19, 65544}});
  return shapes;
}();

// Also rows that shared memory is to hold: of unequal parts, and as wide as a vocabulary.
const std::vector<Shape> classified_matrices = [] {
  std::vector<Shape> shapes = matrices;
  shapes.insert(shapes.end(), {{3, 16648}, {2, 50304}});
  return shapes;
}();

const std::vector<Scalars> norm_gradient_scalars = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};

// With the parts among which the rows are divided; rows of less than a warp's packs, of several
// warps', and of more than a block's.
const std::vector<Shape> parts_of_matrices = {
    {1, 1, 1},    {5, 3, 2},      {3, 8, 3},      {64, 32, 8},   {65, 257, 7},
    {33, 264, 5}, {130, 768, 4},  {40, 2048, 16}, {17, 1030, 2}, {6, 4099, 2},
    {9, 6152, 4}, {1030, 24, 64}, {50, 512, 2},   {21, 1600, 3}, {5, 8200, 2}};

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

// Its last operand is a control.
TrialRecipe controlled(TrialRecipe made) {
  made.settle = settle_control;
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

TrialRecipe attention_recipe(TrialRecipe made, void (*settle)(Trial&)) {
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
      in_place(
          recipe("residual_rms_norm",
                 {numbers, numbers, column_numbers, numbers, numbers, {Format::single, per_row}},
                 epsilons, normed_matrices),
          3, 0),
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
      recipe("narrow", {singles, numbers}, {Scalars{}}, matrices),
      recipe("widen", {numbers, singles}, {Scalars{}}, matrices),
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
