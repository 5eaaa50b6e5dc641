// SPDX-License-Identifier: MIT
#include "plan/compose/transformer/transformer_block.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"

namespace stepgate {
namespace {

constexpr double norm_epsilon = 1e-5;

}  // namespace

TransformerBlocks::TransformerBlocks(StepBuilder& builder, const TransformerShape& shape,
                                     const ParameterTable& table, const TransformerBuffers& buffers,
                                     Fuse fuse, Fp8Gemms* fp8)
    : builder_(builder), shape_(shape), table_(table), buffers_(buffers), fuse_(fuse), fp8_(fp8) {}

BufferUse TransformerBlocks::weight(std::size_t tensor, std::size_t count) const {
  return table_.in(buffers_.weights, tensor, shape_.element_bytes, count);
}

BufferUse TransformerBlocks::gradient(std::size_t tensor, std::size_t count) const {
  return table_.in(buffers_.gradients, tensor, shape_.element_bytes, count);
}

void TransformerBlocks::norm(const NormBuffers& norm, std::size_t tensor) {
  const MatrixShape shape{.rows = shape_.rows(), .columns = shape_.hidden};
  if (shape_.norm == ModelNorm::rms) {
    return launch<kernels::RmsNorm>(
        "norm", shape, {whole(norm.sum), weight(tensor), whole(norm.out), whole(norm.statistics)},
        {.epsilon = norm_epsilon});
  }
  launch<kernels::LayerNorm>("norm", shape,
                             {whole(norm.sum), weight(tensor), weight(tensor + 1), whole(norm.out),
                              whole(norm.statistics)},
                             {.epsilon = norm_epsilon});
}

void TransformerBlocks::add_and_norm(int stream, std::size_t gemm, const NormBuffers& norm,
                                     std::size_t tensor) {
  const MatrixShape shape{.rows = shape_.rows(), .columns = shape_.hidden};
  const BufferUse branch = whole(buffers_.temporaries.branch);
  if (!fuses(Fuse::pointwise)) {
    launch<kernels::Add>("add", shape, {whole(stream), branch, whole(norm.sum)});
    return this->norm(norm, tensor);
  }
  const bool rms = shape_.norm == ModelNorm::rms;
  std::vector<StepBuilder::Operand> operands = {whole(stream), branch};
  if (shape_.bias) operands.push_back(weight(gemm + 1));
  operands.push_back(weight(tensor));
  if (!rms) operands.push_back(weight(tensor + 1));
  for (const int written : {norm.sum, norm.out, norm.statistics})
    operands.push_back(whole(written));
  const std::string_view biased =
      rms ? kernels::ResidualBiasRmsNorm::name : kernels::ResidualBiasLayerNorm::name;
  const std::string_view plain =
      rms ? kernels::ResidualRmsNorm::name : kernels::ResidualLayerNorm::name;
  builder_.launch(prefix_ + "add and norm", shape_.bias ? biased : plain, shape_.dtype, shape,
                  operands, NormAttributes{.epsilon = norm_epsilon});
}

void TransformerBlocks::norm_gradient(const NormBuffers& norm, std::size_t tensor, bool first) {
  const std::int64_t parts = norm_parts(shape_);
  const std::int64_t parameters = shape_.norm_parameters();
  const bool rms = shape_.norm == ModelNorm::rms;
  const int partials = buffers_.temporaries.norm_partials;
  const bool sums = fuses(Fuse::pointwise) && shape_.bias;
  builder_.launch(prefix_ + "norm gradient",
                  rms ? kernels::RmsNormGradient::name : kernels::LayerNormGradient::name,
                  shape_.dtype, PartsShape{shape_.rows(), shape_.hidden, parts},
                  {whole(buffers_.temporaries.d_hidden), whole(norm.sum), weight(tensor),
                   whole(norm.statistics), whole(buffers_.temporaries.d_stream), whole(partials)},
                  NormGradientAttributes{.accumulate = !first, .sums_d_x = sums});
  launch<kernels::SumParts>(
      "norm's parameter gradient", {.columns = parameters, .parts = parts},
      {StepBuilder::Operand::from(partials, 0), gradient(tensor, rms ? 1 : 2)},
      {.accumulate = accumulate_});
}

void TransformerBlocks::gemm(const std::string& name, std::size_t tensor, int in, int out,
                             std::int64_t outputs, std::int64_t inputs) {
  if (fp8_ != nullptr) return fp8_->multiply(prefix_ + name + " gemm", tensor, out, nullptr);
  launch<kernels::Matmul>(name + " gemm", {shape_.rows(), outputs, inputs},
                          {whole(in), weight(tensor), whole(out)}, {.transpose_b = true});
}

void TransformerBlocks::quantize_input(const std::string& name, std::size_t tensor, int in) {
  if (fp8_ != nullptr) fp8_->quantize_input(prefix_ + name, tensor, in);
}

void TransformerBlocks::linear(const std::string& name, std::size_t tensor, int in, int out,
                               std::int64_t outputs, std::int64_t inputs) {
  if (fuses(Fuse::pointwise) && shape_.bias) {
    const BufferUse bias = weight(tensor + 1);
    if (fp8_ != nullptr) return fp8_->multiply(prefix_ + name, tensor, out, &bias);
    return launch<kernels::Linear>(name, {shape_.rows(), outputs, inputs},
                                   {whole(in), weight(tensor), bias, whole(out)});
  }
  gemm(name, tensor, in, out, outputs, inputs);
  if (!shape_.bias) return;
  launch<kernels::BiasActivation>(name + " bias", {.rows = shape_.rows(), .columns = outputs},
                                  {whole(out), weight(tensor + 1), whole(out)});
}

void TransformerBlocks::branch(const std::string& name, std::size_t tensor, int in,
                               std::int64_t inputs) {
  const int out = buffers_.temporaries.branch;
  if (!fuses(Fuse::pointwise)) return linear(name, tensor, in, out, shape_.hidden, inputs);
  gemm(name, tensor, in, out, shape_.hidden, inputs);
}

void TransformerBlocks::linear_gradient(const std::string& name, std::size_t tensor, int d_out,
                                        int in, std::int64_t outputs, std::int64_t inputs) {
  if (!shape_.bias) return weight_gradient(name, tensor, d_out, in, outputs, inputs);
  const std::int64_t parts = column_parts(shape_.rows(), outputs);
  const auto partials = StepBuilder::Operand::from(buffers_.temporaries.bias_partials, 0);
  launch<kernels::ColumnParts>(name + " bias gradient in parts",
                               {.rows = shape_.rows(), .columns = outputs, .parts = parts},
                               {whole(d_out), partials});
  launch<kernels::SumParts>(name + " bias gradient", {.columns = outputs, .parts = parts},
                            {partials, gradient(tensor + 1)}, {.accumulate = accumulate_});
  weight_gradient(name, tensor, d_out, in, outputs, inputs);
}

void TransformerBlocks::weight_gradient(const std::string& name, std::size_t tensor, int d_out,
                                        int in, std::int64_t outputs, std::int64_t inputs) {
  if (fp8_ != nullptr) {
    fp8_->quantize_gradient(prefix_ + name, tensor, d_out);
    return fp8_->weight_gradient(prefix_ + name + " weight gradient", tensor, gradient(tensor),
                                 accumulate_);
  }
  launch<kernels::Matmul>(name + " weight gradient", {outputs, inputs, shape_.rows()},
                          {whole(d_out), whole(in), gradient(tensor)},
                          {.transpose_a = true, .accumulate = accumulate_});
}

void TransformerBlocks::branch_gradient(const std::string& name, std::size_t tensor, int in,
                                        std::int64_t inputs) {
  const int d_out = buffers_.temporaries.d_stream;
  const std::int64_t outputs = shape_.hidden;
  if (!fuses(Fuse::pointwise) || !shape_.bias)
    return linear_gradient(name, tensor, d_out, in, outputs, inputs);
  const std::int64_t parts = norm_parts(shape_);
  const auto sums = StepBuilder::Operand::from(buffers_.temporaries.norm_partials,
                                               parts * shape_.norm_parameters());
  launch<kernels::SumParts>(name + " bias gradient", {.columns = outputs, .parts = parts},
                            {sums, gradient(tensor + 1)}, {.accumulate = accumulate_});
  weight_gradient(name, tensor, d_out, in, outputs, inputs);
}

void TransformerBlocks::input_gradient(const std::string& name, std::size_t tensor, int d_out,
                                       int d_in, std::int64_t outputs, std::int64_t inputs) {
  if (fp8_ != nullptr)
    return fp8_->input_gradient(prefix_ + name + " input gradient", tensor, d_in);
  launch<kernels::Matmul>(name + " input gradient", {shape_.rows(), inputs, outputs},
                          {whole(d_out), weight(tensor), whole(d_in)});
}

void TransformerBlocks::attend(std::int64_t layer, const BlockBuffers& block) {
  const BlockParameters& parameters = table_.block(layer);
  const std::int64_t hidden = shape_.hidden;
  const int qkv = qkv_of_gemm(block.qkv);
  quantize_input("qkv", parameters.qkv, block.norm1.out);
  linear("qkv", parameters.qkv, block.norm1.out, qkv, shape_.qkv(), hidden);
  rope("rope", qkv, false);
  repeat_heads(block);
  attention(block);
  quantize_input("projection", parameters.projection, block.attended);
  branch("projection", parameters.projection, block.attended, hidden);
  add_and_norm(block.norm1.sum, parameters.projection, block.norm2, parameters.norm2);
}

void TransformerBlocks::mlp_up(std::int64_t layer, const BlockBuffers& block) {
  const BlockParameters& parameters = table_.block(layer);
  quantize_input(up_name(shape_.mlp), parameters.up, block.norm2.out);
  activate(parameters.up, block);
  quantize_input("down", parameters.down, block.activation);
}

void TransformerBlocks::activate(std::size_t up, const BlockBuffers& block) {
  const std::int64_t ffn = shape_.ffn;
  const MatrixShape shape{.rows = shape_.rows(), .columns = ffn};
  if (shape_.mlp == ModelMlp::swiglu) {
    // The GEMM adds the bias, so that the kernel that reads gates and ups need not write them back.
    linear(up_name(shape_.mlp), up, block.norm2.out, block.up, shape_.up(), shape_.hidden);
    return launch<kernels::Swiglu>("swiglu", shape, {whole(block.up), whole(block.activation)});
  }
  if (!fuses(Fuse::pointwise) || !shape_.bias) {
    linear("up", up, block.norm2.out, block.up, ffn, shape_.hidden);
    return launch<kernels::Gelu>("gelu", shape, {whole(block.up), whole(block.activation)});
  }
  if (gelu_is_of_gemm()) {
    return launch<kernels::LinearGelu>("up and gelu", {shape_.rows(), ffn, shape_.hidden},
                                       {whole(block.norm2.out), weight(up), weight(up + 1),
                                        whole(block.up), whole(block.activation)});
  }
  // The gelu kernel adds the bias instead of the GEMM, since that kernel runs anyway.
  gemm("up", up, block.norm2.out, block.up, ffn, shape_.hidden);
  launch<kernels::BiasGelu>(
      "bias and gelu", shape,
      {whole(block.up), weight(up + 1), whole(block.up), whole(block.activation)});
}

void TransformerBlocks::mlp_down(std::int64_t layer, const BlockBuffers& block) {
  branch("down", table_.block(layer).down, block.activation, shape_.ffn);
}

void TransformerBlocks::activation_gradient(std::size_t down, const BlockBuffers& block) {
  const MatrixShape shape{.rows = shape_.rows(), .columns = shape_.ffn};
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  const BufferUse d_activation = whole(temporaries.d_activation);
  const BufferUse d_mlp = whole(temporaries.d_mlp);
  if (gelu_is_of_gemm()) {
    return launch<kernels::MatmulGeluGradient>(
        "down input and gelu gradient", {shape.rows, shape.columns, shape_.hidden},
        {whole(temporaries.d_stream), weight(down), whole(block.up), d_mlp});
  }
  input_gradient("down", down, temporaries.d_stream, temporaries.d_activation, shape_.hidden,
                 shape_.ffn);
  if (shape_.mlp == ModelMlp::swiglu) {
    return launch<kernels::SwigluGradient>("swiglu gradient", shape,
                                           {whole(block.up), d_activation, d_mlp});
  }
  launch<kernels::GeluGradient>("gelu gradient", shape, {whole(block.up), d_activation, d_mlp});
}

void TransformerBlocks::backward(std::int64_t layer, const BlockBuffers& block) {
  const BlockParameters& parameters = table_.block(layer);
  const TemporaryBuffers& temporaries = buffers_.temporaries;
  const std::int64_t hidden = shape_.hidden;
  const std::string up = up_name(shape_.mlp);
  branch_gradient("down", parameters.down, block.activation, shape_.ffn);
  activation_gradient(parameters.down, block);
  linear_gradient(up, parameters.up, temporaries.d_mlp, block.norm2.out, shape_.up(), hidden);
  input_gradient(up, parameters.up, temporaries.d_mlp, temporaries.d_hidden, shape_.up(), hidden);
  norm_gradient(block.norm2, parameters.norm2, false);
  branch_gradient("projection", parameters.projection, block.attended, hidden);
  input_gradient("projection", parameters.projection, temporaries.d_stream, temporaries.d_hidden,
                 hidden, hidden);
  attention_gradient(block);
  repeat_heads_gradient();
  const int d_qkv = qkv_of_gemm(temporaries.d_qkv);
  rope("rope gradient", d_qkv, true);
  linear_gradient("qkv", parameters.qkv, d_qkv, block.norm1.out, shape_.qkv(), hidden);
  input_gradient("qkv", parameters.qkv, d_qkv, temporaries.d_hidden, shape_.qkv(), hidden);
  norm_gradient(block.norm1, parameters.norm1, false);
}

CheckedSize norm_parts(const TransformerShape& shape) {
  return layer_norm_parts(shape.rows());
}

CheckedSize norm_partial_elements(const TransformerShape& shape, Fuse fuse) {
  const CheckedSize of_stream = fuse == Fuse::none || !shape.bias ? CheckedSize() : shape.hidden;
  return norm_parts(shape) * (shape.norm_parameters() + of_stream);
}

CheckedSize bias_partial_elements(const TransformerShape& shape) {
  CheckedSize most;
  for (const CheckedSize outputs : {shape.hidden, shape.qkv(), shape.up()})
    most = std::max(most, column_parts(shape.rows(), outputs) * outputs);
  return most;
}

}  // namespace stepgate
