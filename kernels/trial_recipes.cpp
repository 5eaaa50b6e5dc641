// SPDX-License-Identifier: MIT
// The table of recipes. A new kernel adds one row here, in the catalogue's order.
#include <cstdio>
#include <cstdlib>

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

std::vector<TrialRecipe> make_recipes() {
  const OperandRecipe numbers{Format::storage, per_element};
  const OperandRecipe column_numbers{Format::storage, per_column};
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
      in_place(recipe("cross_entropy",
                      {numbers, {Format::label, per_row}, numbers, {Format::single, per_row}},
                      {Scalars{}}, matrices),
               2, 0),
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
