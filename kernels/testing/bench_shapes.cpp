// SPDX-License-Identifier: MIT
#include "kernels/testing/bench_shapes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "kernels/trial/kernel_trial.h"

namespace stepgate {
namespace {

// The sizes of a transformer's training step.
struct Step {
  std::int64_t samples, tokens, hidden, heads, vocab;
  std::int64_t rows() const { return samples * tokens; }
};

// These are the two largest steps that ci/compare_pytorch.py compares.
constexpr Step steps[] = {{32, 1024, 768, 12, 50304}, {8, 2048, 2048, 16, 32768}};

constexpr std::int64_t verified_rows = 64;
// The number of parameters of a model whose update exceeds all caches, and the number that is
// verified.
constexpr std::int64_t parameters = 162'000'000, verified_parameters = 4096;

std::int64_t few(std::int64_t rows) {
  return std::min(rows, verified_rows);
}

BenchShape by_rows(std::string_view kernel, std::int64_t rows, std::int64_t columns,
                   KernelAttributes attributes = {}) {
  return {.kernel = kernel,
          .shape = MatrixShape{rows, columns},
          .verified = MatrixShape{few(rows), columns},
          .attributes = attributes};
}

BenchShape in_parts(std::string_view kernel, std::int64_t rows, std::int64_t columns,
                    std::int64_t (*parts)(std::int64_t), KernelAttributes attributes) {
  return {.kernel = kernel,
          .shape = PartsShape{rows, columns, parts(rows)},
          .verified = PartsShape{few(rows), columns, parts(few(rows))},
          .attributes = attributes};
}

BenchShape gemm(std::string_view kernel, const kernels::Matmul::Shape& shape,
                KernelAttributes attributes) {
  const kernels::Matmul::Shape small{few(shape.rows), few(shape.columns),
                                     std::min<std::int64_t>(shape.depth, 256),
                                     std::min<std::int64_t>(shape.groups, 2)};
  return {kernel, shape, small, attributes};
}

// Two short sequences verify the result.
template <class Shape>
BenchShape by_sequences(std::string_view kernel, const Shape& shape, KernelAttributes attributes) {
  constexpr std::int64_t short_sequence = 128;
  Shape small = shape;
  small.tokens = short_sequence;
  small.rows = 2 * short_sequence;
  return {.kernel = kernel, .shape = shape, .verified = small, .attributes = attributes};
}

// A shape of rows of `parts` times packed heads.
BenchShape packed_heads(std::string_view kernel, const Step& step, std::int64_t parts,
                        std::int64_t heads_of_parts, KernelAttributes attributes) {
  return by_sequences(
      kernel,
      PackedHeadsShape{step.rows(), parts * step.hidden, step.tokens, heads_of_parts * step.heads},
      attributes);
}

// Attention of a step whose heads of keys and values are shared by `sharing` heads of queries.
BenchShape attention(std::string_view kernel, const Step& step, std::int64_t sharing,
                     KernelAttributes attributes = {}) {
  return by_sequences(
      kernel,
      AttentionShape{step.rows(), step.hidden, step.tokens, step.heads, step.heads / sharing},
      attributes);
}

void append_gemms(const Step& step, std::vector<BenchShape>& all) {
  constexpr kernels::Matmul::Attributes forward = {.transpose_b = true}, input = {},
                                        weight = {.transpose_a = true};
  const std::int64_t n = step.rows(), c = step.hidden;
  for (const auto& [outputs, inputs] : {std::pair{3 * c, c}, {c, c}, {4 * c, c}, {c, 4 * c}}) {
    all.push_back(gemm("linear", {n, outputs, inputs}, {}));
    all.push_back(gemm("matmul", {n, outputs, inputs}, forward));
    all.push_back(gemm("matmul", {n, inputs, outputs}, input));
    all.push_back(gemm("matmul", {outputs, inputs, n}, weight));
  }
  using Fp8 = kernels::MatmulFp8::Attributes;
  for (const auto& [outputs, inputs] : {std::pair{3 * c, c}, {c, c}, {4 * c, c}, {c, 4 * c}}) {
    all.push_back(gemm("linear_fp8", {n, outputs, inputs}, {}));
    all.push_back(gemm("matmul_fp8", {n, outputs, inputs}, Fp8{}));
    all.push_back(gemm("matmul_fp8", {n, inputs, outputs}, Fp8{.gradient = true}));
    all.push_back(gemm("matmul_fp8", {outputs, inputs, n}, Fp8{.gradient = true}));
  }
  for (const std::int64_t columns : {c, 4 * c}) {
    all.push_back({.kernel = "amax_parts",
                   .shape = kernels::AmaxParts::Shape{n * columns, amax_parts(n * columns)},
                   .verified = kernels::AmaxParts::Shape{verified_parameters, 1}});
    all.push_back({.kernel = "quantize_fp8",
                   .shape = PartsShape{n, columns, amax_parts(n * columns)},
                   .verified = PartsShape{verified_rows, columns, 1},
                   .attributes = Fp8Attributes{}});
    all.push_back(by_rows("quantize_fp8_delayed", n, columns, Fp8Attributes{}));
  }
  for (const char* kernel : {"linear_gelu", "matmul_gelu_gradient"})
    all.push_back(gemm(kernel, {n, 4 * c, c}, {}));
  all.push_back(gemm("matmul", {n, step.vocab, c}, forward));
}

void append_step(const Step& step, std::vector<BenchShape>& all) {
  const std::int64_t n = step.rows(), c = step.hidden;
  // These norms have so many rows that launch costs hardly matter.
  for (const char* kernel : {"layer_norm", "rms_norm"})
    all.push_back(by_rows(kernel, 8 * n, c, NormAttributes{1e-5}));
  all.push_back(
      {.kernel = "embedding",
       .shape = kernels::Embedding::Shape{n, c, step.vocab, step.tokens},
       .verified = kernels::Embedding::Shape{verified_rows, c, step.vocab, verified_rows}});
  for (const char* kernel : {"token_embedding", "embedding_gradient"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::TokenEmbedding::Shape{n, c, step.vocab},
                   .verified = kernels::TokenEmbedding::Shape{verified_rows, c, step.vocab}});
  all.push_back(by_rows("add", n, c));
  for (const char* kernel : {"widen", "narrow"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::Widen::Shape{n * c},
                   .verified = kernels::Widen::Shape{n * c}});
  for (const char* kernel : {"gelu", "gelu_gradient", "bias_gelu"})
    all.push_back(by_rows(kernel, n, 4 * c));
  // The width is that of Llama, 8/3 of the hidden size.
  for (const char* kernel : {"swiglu", "swiglu_gradient"})
    all.push_back(by_rows(kernel, n, (8 * c + 191) / 192 * 64));
  for (const char* kernel : {"layer_norm", "residual_layer_norm", "residual_bias_layer_norm",
                             "rms_norm", "residual_rms_norm", "residual_bias_rms_norm"})
    all.push_back(by_rows(kernel, n, c, NormAttributes{1e-5}));
  // d_x is accumulated and its sums are requested, as in all norms of a step but the last.
  for (const char* kernel : {"layer_norm_gradient", "rms_norm_gradient"})
    all.push_back(in_parts(kernel, n, c, layer_norm_parts, NormGradientAttributes{true, true}));
  for (const std::int64_t columns : {c, 4 * c}) {
    all.push_back({.kernel = "column_parts",
                   .shape = PartsShape{n, columns, column_parts(n, columns)},
                   .verified = PartsShape{verified_rows, columns}});
  }
  all.push_back(by_rows("bias_gradient", n, 4 * c));
  all.push_back(by_rows("bias_gradient", step.samples, step.tokens * c));
  for (const char* kernel : {"cross_entropy", "scaled_cross_entropy"})
    all.push_back(by_rows(kernel, n, step.vocab));
  // rope rotates the queries and keys of packed rows.
  all.push_back(packed_heads("rope", step, 3, 2,
                             kernels::Rope::Attributes{.width = step.hidden / step.heads}));
  // Each head of keys and values is shared by four heads of queries.
  for (const char* kernel : {"repeat_heads", "repeat_heads_gradient"}) {
    all.push_back({.kernel = kernel,
                   .shape = kernels::RepeatHeads::Shape{n, c, step.heads},
                   .verified = kernels::RepeatHeads::Shape{verified_rows, c, step.heads},
                   .attributes = kernels::RepeatHeads::Attributes{step.heads / 4}});
  }
  for (const char* kernel : {"split_heads", "merge_heads"})
    all.push_back(packed_heads(kernel, step, 1, 1, kernels::SplitHeads::Attributes{3}));
  for (const std::int64_t sharing : {1, 4}) {
    all.push_back(attention("attention", step, sharing));
    all.push_back(attention("attention_gradient", step, sharing,
                            kernels::AttentionGradient::Attributes{1280LL << 20}));
  }
  for (const char* kernel : {"causal_softmax", "causal_softmax_gradient"}) {
    const std::int64_t groups = step.samples * step.heads, tokens = step.tokens;
    all.push_back({.kernel = kernel,
                   .shape = MatrixShape{groups * tokens, tokens},
                   .verified = MatrixShape{tokens, tokens},
                   .attributes = kernels::CausalSoftmax::Attributes{0.125}});
  }
  append_gemms(step, all);
}

// The convolutions of ResNet-50 at 224 x 224 that are no GEMM: the first, those of 3x3 pixels, and
// that of the first shortcut with a stride.
void append_convolutions(std::vector<BenchShape>& all) {
  const auto append = [&](std::int64_t side, std::int64_t channels, std::int64_t outputs,
                          std::int64_t window, std::int64_t stride) {
    ConvolutionShape shape{.images = 256,
                           .height = side,
                           .width = side,
                           .channels = channels,
                           .outputs = outputs,
                           .window = window,
                           .stride = stride,
                           .padding = window / 2};
    ConvolutionShape small = shape;
    small.images = 1;
    small.height = small.width = 16;
    for (const char* kernel :
         {"convolution", "convolution_data_gradient", "convolution_weight_gradient"}) {
      const bool is_of_images = channels == 3;  // which need no gradient
      if (is_of_images && kernel == std::string_view("convolution_data_gradient")) continue;
      all.push_back({.kernel = kernel, .shape = shape, .verified = small});
    }
  };
  append(224, 3, 64, 7, 2);
  append(56, 64, 64, 3, 1);
  append(28, 128, 128, 3, 1);
  append(14, 256, 256, 3, 1);
  append(7, 512, 512, 3, 1);
  append(56, 256, 512, 1, 2);
}

// Norms and pools of ResNet-50 at 224 x 224: those of the stem and of each layer's widest norms.
void append_resnet(std::vector<BenchShape>& all) {
  constexpr std::int64_t images = 256;
  struct Layer {
    std::int64_t side, columns;
  };
  for (const auto& [side, columns] :
       {Layer{112, 64}, {56, 64}, {56, 256}, {28, 512}, {14, 1024}, {7, 2048}}) {
    const std::int64_t rows = images * side * side;
    const auto sums = [&, columns = columns](const char* kernel, KernelAttributes told = {}) {
      all.push_back(in_parts(kernel, rows, columns, batch_norm_parts, told));
    };
    sums("batch_norm_sums");
    sums("batch_norm_finish", kernels::BatchNormFinish::Attributes{1e-5, 0.1});
    sums("batch_norm_gradient_sums", ReluAttributes{true});
    sums("batch_norm_add_gradient_sums");
    sums("batch_norm_gradient_finish");
    for (const char* kernel : {"batch_norm_apply", "batch_norm_gradient_apply"})
      all.push_back(by_rows(kernel, rows, columns, ReluAttributes{true}));
    for (const char* kernel : {"batch_norm_add_apply", "batch_norm_two_apply"})
      all.push_back(by_rows(kernel, rows, columns));
  }
  constexpr kernels::NormPool::Shape stem{images, 112, 112, 64}, small{2, 12, 12, 64};
  constexpr WindowAttributes windows{.window = 3, .stride = 2, .padding = 1};
  for (const char* kernel : {"norm_pool", "norm_pool_gradient", "max_pool", "max_pool_gradient"})
    all.push_back({.kernel = kernel, .shape = stem, .verified = small, .attributes = windows});
  for (const char* kernel : {"mean_pool", "mean_pool_gradient"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::MeanPool::Shape{images, 49, 2048},
                   .verified = kernels::MeanPool::Shape{2, 49, 2048}});
  constexpr std::int64_t numbers = 3 * 224 * 224;
  all.push_back({.kernel = "decode_images",
                 .shape = kernels::DecodeImages::Shape{images, numbers, numbers + 1},
                 .verified = kernels::DecodeImages::Shape{3, numbers, numbers + 1},
                 .attributes = kernels::DecodeImages::Attributes{1000}});
}

// The UNet of 64 x 64 pixels with 128, 256, 256 and 512 channels at a batch of 64: norms of the
// first level alone and beside a skip, and of the last level.
void append_unet(std::vector<BenchShape>& all) {
  constexpr std::int64_t images = 64;
  struct Level {
    std::int64_t side, columns, others;
  };
  for (const auto& [side, columns, others] :
       {Level{64, 128, 0}, {64, 256, 128}, {32, 256, 256}, {8, 512, 256}}) {
    const kernels::GroupNormApply::Shape shape{images, side * side, columns, others, 32};
    const kernels::GroupNormApply::Shape small{2, 64, columns, others, 32};
    const auto parts_of = [](const kernels::GroupNormApply::Shape& of) {
      return kernels::GroupNormSums::Shape{of.samples, of.pixels,
                                           of.columns, of.others,
                                           of.groups,  group_norm_parts(of.samples, of.pixels)};
    };
    const auto append = [&](const char* kernel, KernelAttributes told = {}) {
      all.push_back(
          {.kernel = kernel, .shape = shape, .verified = small, .attributes = std::move(told)});
    };
    const auto append_parts = [&](const char* kernel, KernelAttributes told = {}) {
      all.push_back({.kernel = kernel,
                     .shape = parts_of(shape),
                     .verified = parts_of(small),
                     .attributes = std::move(told)});
    };
    append_parts("group_norm_sums");
    append_parts("group_norm_finish", kernels::GroupNormFinish::Attributes{1e-5});
    append("group_norm_apply", SiluAttributes{true});
    append_parts("group_norm_gradient_sums", SiluAttributes{true});
    append_parts("group_norm_gradient_finish");
    append("group_norm_gradient_apply", kernels::GroupNormGradientApply::Attributes{true, true});
  }
  for (const char* kernel : {"upsample", "upsample_gradient"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::Upsample::Shape{images, 32, 32, 256},
                   .verified = kernels::Upsample::Shape{2, 4, 4, 256}});
  for (const bool back : {false, true})
    all.push_back({.kernel = "change_layout",
                   .shape = back ? kernels::ChangeLayout::Shape{images, 128, 4096}
                                 : kernels::ChangeLayout::Shape{images, 4096, 128},
                   .verified = back ? kernels::ChangeLayout::Shape{2, 128, 64}
                                    : kernels::ChangeLayout::Shape{2, 64, 128}});
  for (const char* kernel : {"time_bias", "residual_bias"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::TimeBias::Shape{images, 4096, 128},
                   .verified = kernels::TimeBias::Shape{2, 64, 128}});
  for (const char* kernel : {"softmax", "softmax_gradient"})
    all.push_back({.kernel = kernel,
                   .shape = MatrixShape{images * 4 * 256, 256},
                   .verified = MatrixShape{256, 256},
                   .attributes = kernels::Softmax::Attributes{0.125}});
  for (const char* kernel : {"add_noise", "time_embedding"})
    all.push_back({.kernel = kernel,
                   .shape = kernels::AddNoise::Shape{images, 3 * 4096},
                   .verified = kernels::AddNoise::Shape{2, 4096}});
  all.push_back(by_rows("squared_error", images * 64, 3 * 64));
  all.push_back({.kernel = "sum_pixels",
                 .shape = kernels::SumPixels::Shape{images, 4096, 128},
                 .verified = kernels::SumPixels::Shape{2, 64, 128}});
}

// The patterns are neighbouring elements, several strides, and one field of records. Records are
// larger, so there are fewer rows of them.
void append_patterns(std::vector<BenchShape>& all) {
  const auto append = [&](std::int64_t rows, std::int64_t stride,
                          const kernels::StridedScale::Attributes& attributes) {
    all.push_back({.kernel = "strided_scale",
                   .shape = kernels::StridedScale::Shape{rows, 4096, stride},
                   .verified = kernels::StridedScale::Shape{verified_rows, 4096, stride},
                   .attributes = attributes});
  };
  for (const std::int64_t stride : {1, 2, 8, 32}) append(16384, stride, {0.5, 1, 1});
  append(8192, 1, {0.5, 6, 6});
}

// Whether each operand has either one number per element of the shape, or a fixed number of
// elements.
bool is_elementwise(const Kernel& row, const TrialRecipe& recipe) {
  if (!recipe.shapes.front().holds<MatrixShape>()) return false;
  bool any = false;
  for (const KernelOperand& operand : row.operands) {
    const auto count = [&](const MatrixShape& shape) {
      return operand.elements(shape, DType::fp32, recipe.attributes.front());
    };
    const bool all = count({2, 3}) == 6 && count({5, 7}) == 35;
    if (!all && count({2, 3}) != count({5, 7})) return false;
    any = any || all;
  }
  return any;
}

// The shape for a kernel without a shape listed above: over all parameters of a model if it is
// element-wise, else the largest shape of its recipe.
BenchShape by_declaration(const Kernel& row) {
  const TrialRecipe& recipe = trial_recipe(row.name);
  BenchShape bench{row.name, {}, {}, recipe.attributes.front()};
  if (is_elementwise(row, recipe)) {
    bench.shape = MatrixShape{1, parameters};
    bench.verified = MatrixShape{1, verified_parameters};
    return bench;
  }
  bench.shape = bench.verified =
      *std::ranges::max_element(recipe.shapes, {}, [&](const KernelShape& shape) {
        const KernelWork work = work_of(row, shape, DType::fp32, bench.attributes);
        return work.bytes_read + work.bytes_written;
      });
  return bench;
}

std::vector<BenchShape> make_shapes() {
  std::vector<BenchShape> all;
  for (const Step& step : steps) append_step(step, all);
  all.push_back({.kernel = "square_sums",
                 .shape = kernels::SquareSums::Shape{parameters, square_sum_pieces(parameters)},
                 .verified = kernels::SquareSums::Shape{verified_parameters,
                                                        square_sum_pieces(verified_parameters)}});
  all.push_back(by_rows("bias_activation", 16384, 4096, kernels::BiasActivation::Attributes{true}));
  all.push_back(by_rows("relu_gradient", 16384, 4096));
  append_patterns(all);
  append_resnet(all);
  append_convolutions(all);
  append_unet(all);
  for (const Kernel& row : kernel_catalogue()) {
    if (std::ranges::find(all, row.name, &BenchShape::kernel) == all.end())
      all.push_back(by_declaration(row));
  }
  return all;
}

}  // namespace

bool uses_tensor_cores(const BenchShape& bench) {
  return kernel(bench.kernel).library.is_gemm() || kernel(bench.kernel).library.is_attention;
}

std::span<const BenchShape> bench_shapes() {
  static const std::vector<BenchShape> all = make_shapes();
  return all;
}

std::string name_of(const BenchShape& bench) {
  return std::string(bench.kernel) + "/" + text_of(bench.shape, "x");
}

}  // namespace stepgate
