// SPDX-License-Identifier: MIT
// The table of recipes, and the operands made from them. A new kernel adds one row here.
#include "kernels/kernel_trial.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>

#include "kernels/catalogue.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- the recipes ---------------------------------------------------------------------------------

using Format = OperandFormat;
using Shape = KernelShape;
using Scalars = KernelScalars;

constexpr auto one = [](const Shape&, const Scalars&) -> std::int64_t { return 1; };
constexpr auto per_row = [](const Shape& s, const Scalars&) { return s.rows; };
constexpr auto per_column = [](const Shape& s, const Scalars&) { return s.columns; };
constexpr auto per_element = [](const Shape& s, const Scalars&) { return s.rows * s.columns; };
constexpr auto rows_depth = [](const Shape& s, const Scalars&) { return s.rows * s.depth; };
constexpr auto depth_columns = [](const Shape& s, const Scalars&) { return s.depth * s.columns; };
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

std::vector<TrialRecipe> make_recipes() {
  const OperandRecipe numbers{Format::storage, per_element};
  const OperandRecipe column_numbers{Format::storage, per_column};
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
      recipe("matmul", {{Format::storage, rows_depth}, {Format::storage, depth_columns}, numbers},
             {Scalars{0, 0, 0}, Scalars{1, 0, 0}, Scalars{0, 1, 0}, Scalars{1, 1, 1},
              Scalars{1, 0, 1}},
             {{1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {17, 33, 65}, {64, 64, 64}, {130, 72, 200}}),
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

// --- operands ------------------------------------------------------------------------------------

std::int64_t element_bytes(Format format, DType dtype) {
  switch (format) {
    case Format::storage:
      return bytes_of(dtype);
    case Format::count:
      return 8;
    default:
      return 4;
  }
}

void fill(Trial& trial, std::size_t operand, std::uint64_t seed) {
  const OperandRecipe& recipe = trial.recipe->operands[operand];
  void* data = trial.operands[operand].data();
  std::mt19937_64 random(seed + operand);
  std::uniform_real_distribution<double> number(recipe.lowest, 1.0);
  for (std::int64_t i = 0; i < value_count(trial, operand); ++i) {
    switch (recipe.format) {
      case Format::storage:
      case Format::single: {
        const DType dtype = recipe.format == Format::single ? DType::fp32 : trial.dtype;
        set_number(data, dtype, i, number(random));
        break;
      }
      case Format::label:
        static_cast<std::int32_t*>(data)[i] =
            static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(trial.shape.columns));
        break;
      case Format::count:
        static_cast<std::uint64_t*>(data)[i] = 1 + random() % 1000;
        break;
      case Format::word:
        static_cast<std::uint32_t*>(data)[i] = static_cast<std::uint32_t>(random());
        break;
    }
  }
}

bool is_read(const Trial& trial, std::size_t operand) {
  const KernelOperand& row = kernel(trial.recipe->kernel).operands[operand];
  return access_of(row, trial.scalars) != Access::write;
}

}  // namespace

// --- trials --------------------------------------------------------------------------------------

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

Trial make_trial(const TrialRecipe& recipe, const KernelShape& shape, DType dtype,
                 const KernelScalars& scalars, std::uint64_t seed) {
  Trial trial{&recipe, shape, dtype, scalars, {}};
  for (std::size_t operand = 0; operand < recipe.operands.size(); ++operand) {
    const std::int64_t bytes = operand_bytes(trial, operand);
    trial.operands.emplace_back(static_cast<std::size_t>(bytes), std::byte{0xff});
    if (is_read(trial, operand)) fill(trial, operand, seed);
  }
  return trial;
}

std::vector<Trial> all_trials(const TrialRecipe& recipe, std::uint64_t seed) {
  std::vector<Trial> trials;
  for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16}) {
    for (const KernelScalars& scalars : recipe.scalars) {
      for (const KernelShape& shape : recipe.shapes) {
        trials.push_back(make_trial(recipe, shape, dtype, scalars, seed + 1000 * trials.size()));
      }
    }
  }
  return trials;
}

std::int64_t value_count(const Trial& trial, std::size_t operand) {
  return trial.recipe->operands[operand].elements(trial.shape, trial.scalars);
}

std::int64_t operand_bytes(const Trial& trial, std::size_t operand) {
  return value_count(trial, operand) *
         element_bytes(trial.recipe->operands[operand].format, trial.dtype);
}

double value_at(const Trial& trial, std::size_t operand, std::int64_t index) {
  const void* data = trial.operands[operand].data();
  switch (trial.recipe->operands[operand].format) {
    case Format::storage:
      return number_at(data, trial.dtype, index);
    case Format::single:
      return number_at(data, DType::fp32, index);
    case Format::label:
      return static_cast<const std::int32_t*>(data)[index];
    case Format::count:
      return static_cast<double>(static_cast<const std::uint64_t*>(data)[index]);
    case Format::word:
      break;
  }
  return static_cast<const std::uint32_t*>(data)[index];
}

void run_reference(Trial& trial) {
  std::vector<void*> buffers;
  for (auto& operand : trial.operands) buffers.push_back(operand.data());
  kernel(trial.recipe->kernel).reference({trial.shape, trial.dtype, trial.scalars, buffers});
}

std::string describe(const Trial& trial, std::uint64_t seed) {
  constexpr const char* dtypes[] = {"fp32", "tf32", "bf16"};
  const auto [rows, columns, depth] = trial.shape;
  std::ostringstream text;
  text << trial.recipe->kernel << ' ' << rows << 'x' << columns << 'x' << depth << ' '
       << dtypes[static_cast<int>(trial.dtype)] << " scalars";
  for (const double scalar : trial.scalars) text << ' ' << scalar;
  text << " seed " << seed;
  return text.str();
}

}  // namespace stepgate
