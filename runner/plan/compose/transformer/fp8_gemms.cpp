// SPDX-License-Identifier: MIT
#include "plan/compose/transformer/fp8_gemms.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace stepgate {
namespace {

constexpr std::int64_t scale_words = 4;  // from one inverse scale to the next: 16 bytes, for GEMMs

}  // namespace

Fp8Gemms::Fp8Gemms(StepBuilder& builder, const TransformerShape& shape, const ParameterTable& table,
                   ModelFp8 scales, std::int64_t places)
    : builder_(builder), rows_(shape.rows()), is_delayed_(scales == ModelFp8::delayed) {
  const auto add = [&](const std::string& name, CheckedSize bytes) {
    return builder.add({.name = name, .purpose = Purpose::activations, .bytes = bytes});
  };
  CheckedSize weights, most_parts, widest, most_outputs;
  std::map<std::string, int> kept;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const BlockParameters& block = table.block(layer);
    const CheckedSize hidden = shape.hidden;
    for (const auto& [tensor, inputs, outputs] :
         {std::tuple{block.qkv, hidden, shape.qkv()}, std::tuple{block.projection, hidden, hidden},
          std::tuple{block.up, hidden, shape.up()}, std::tuple{block.down, shape.ffn, hidden}}) {
      const std::string input = "fp8 input " + std::to_string(gemms_.size() % 4) + " of block " +
                                std::to_string(layer % places);
      if (!kept.contains(input)) kept[input] = add(input + ", transposed", rows_ * inputs);
      const std::int64_t index = std::ssize(gemms_);
      gemms_[tensor] = {.name = table.tensors()[tensor].name,
                        .index = index,
                        .inputs = inputs,
                        .outputs = outputs,
                        .weight = weights,
                        .transposed_input = kept[input]};
      weights += inputs * outputs;
      widest = std::max({widest, inputs, outputs});
      most_outputs = std::max(most_outputs, outputs);
      for (const CheckedSize numbers : {rows_ * inputs, rows_ * outputs, inputs * outputs})
        most_parts = std::max(most_parts, CheckedSize(amax_parts(numbers)));
    }
  }
  const std::int64_t tensors = factors * std::ssize(gemms_);
  weights_ = add("fp8 weights", weights);
  transposed_weights_ = add("fp8 weights, transposed", weights);
  matrix_ = add("fp8 input or gradient", rows_ * widest);
  transposed_gradient_ = add("fp8 gradient, transposed", rows_ * most_outputs);
  inverse_scales_ = add("fp8 inverse scales", tensors * scale_words * word_bytes);
  maxima_ = is_delayed_ ? builder.add({.name = "fp8 maxima",
                                       .purpose = Purpose::optimizer_state,
                                       .bytes = tensors * amax_numbers * word_bytes})
                        : add("fp8 maxima in parts", most_parts * word_bytes);
}

StepBuilder::Operand Fp8Gemms::inverse_scale(const Gemm& gemm, Factor factor) const {
  const std::int64_t index = factors * gemm.index + static_cast<std::int64_t>(factor);
  return StepBuilder::Operand::from(inverse_scales_, index * scale_words);
}

void Fp8Gemms::quantize(const std::string& name, const Gemm& gemm, Factor factor, MatrixShape shape,
                        const StepBuilder::Operand& x, const StepBuilder::Operand& out,
                        const StepBuilder::Operand& transposed) {
  const Fp8Attributes format{.gradient = factor == Factor::gradient};
  const StepBuilder::Operand scale = inverse_scale(gemm, factor);
  if (is_delayed_) {
    const std::int64_t tensor = factors * gemm.index + static_cast<std::int64_t>(factor);
    return builder_.launch<kernels::QuantizeFp8Delayed>(
        name + " in fp8", shape,
        {x, StepBuilder::Operand::from(maxima_, tensor * amax_numbers), out, transposed, scale},
        format);
  }
  const auto maxima = StepBuilder::Operand::from(maxima_, 0);
  const std::int64_t numbers = elements_of(shape), parts = amax_parts(numbers);
  builder_.launch<kernels::AmaxParts>(name + " maximum", {.numbers = numbers, .parts = parts},
                                      {x, maxima});
  builder_.launch<kernels::QuantizeFp8>(name + " in fp8", {shape.rows, shape.columns, parts},
                                        {x, maxima, out, transposed, scale}, format);
}

void Fp8Gemms::quantize_weights(const std::string& name, const ParameterTable& table,
                                std::int64_t layer, int weights) {
  const BlockParameters& block = table.block(layer);
  for (const std::size_t tensor : {block.qkv, block.projection, block.up, block.down}) {
    const Gemm& of = gemm(tensor);
    quantize(name + of.name, of, Factor::weight, {of.outputs, of.inputs},
             StepBuilder::Operand::from(weights, table.first_of(tensor)),
             StepBuilder::Operand::from(weights_, of.weight),
             StepBuilder::Operand::from(transposed_weights_, of.weight));
  }
}

void Fp8Gemms::quantize_input(const std::string& name, std::size_t tensor, int in) {
  const Gemm& of = gemm(tensor);
  quantize(name + " input", of, Factor::input, {rows_, of.inputs},
           StepBuilder::Operand::from(in, 0), StepBuilder::Operand::from(matrix_, 0),
           StepBuilder::Operand::from(of.transposed_input, 0));
}

void Fp8Gemms::multiply(const std::string& name, std::size_t tensor, int out,
                        const BufferUse* bias) {
  const Gemm& of = gemm(tensor);
  const kernels::Matmul::Shape shape{rows_, of.outputs, of.inputs};
  std::vector<StepBuilder::Operand> operands = {
      StepBuilder::Operand::from(matrix_, 0), StepBuilder::Operand::from(weights_, of.weight),
      inverse_scale(of, Factor::input), inverse_scale(of, Factor::weight)};
  if (bias != nullptr) operands.push_back(*bias);
  operands.push_back(builder_.whole(out));
  if (bias != nullptr)
    builder_.launch<kernels::LinearFp8>(name, shape, operands);
  else
    builder_.launch<kernels::MatmulFp8>(name, shape, operands);
}

void Fp8Gemms::quantize_gradient(const std::string& name, std::size_t tensor, int d_out) {
  const Gemm& of = gemm(tensor);
  quantize(name + " output gradient", of, Factor::gradient, {rows_, of.outputs},
           StepBuilder::Operand::from(d_out, 0), StepBuilder::Operand::from(matrix_, 0),
           StepBuilder::Operand::from(transposed_gradient_, 0));
}

void Fp8Gemms::weight_gradient(const std::string& name, std::size_t tensor,
                               const BufferUse& gradient, bool accumulate) {
  const Gemm& of = gemm(tensor);
  builder_.launch<kernels::MatmulFp8>(
      name, {of.outputs, of.inputs, rows_},
      {StepBuilder::Operand::from(transposed_gradient_, 0),
       StepBuilder::Operand::from(of.transposed_input, 0), inverse_scale(of, Factor::gradient),
       inverse_scale(of, Factor::input), gradient},
      {.gradient = true, .accumulate = accumulate});
}

void Fp8Gemms::input_gradient(const std::string& name, std::size_t tensor, int d_in) {
  const Gemm& of = gemm(tensor);
  builder_.launch<kernels::MatmulFp8>(name, {rows_, of.inputs, of.outputs},
                                      {StepBuilder::Operand::from(matrix_, 0),
                                       StepBuilder::Operand::from(transposed_weights_, of.weight),
                                       inverse_scale(of, Factor::gradient),
                                       inverse_scale(of, Factor::weight), builder_.whole(d_in)},
                                      {.gradient = true});
}

void Fp8Gemms::end_step() {
  if (!is_delayed_) return;
  builder_.launch<kernels::MoveAmaxHistories>("move the maxima of fp8 on",
                                              {.tensors = factors * std::ssize(gemms_)},
                                              {builder_.whole(maxima_)});
}

}  // namespace stepgate
