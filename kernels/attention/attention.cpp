// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr KernelOperand attention_operands[] = {
    {"qkv", Access::read, extent::packed_qkv},
    {"out", Access::write, extent::elements},
    {"log_sums", Access::write, extent::rows_by_groups, OperandFormat::single},
};

CheckedSize attention_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape) * (shape.depth + 1);
}

// Turns scores into probabilities; returns the logarithm of the sum of their exponentials.
double softmax(std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
  return largest + std::log(sum);
}

void attention_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  auto* log_sums = static_cast<float*>(call.buffers[2]);
  std::vector<double> scores;
  for (std::int64_t s = 0; s < heads.sequences; ++s) {
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const HeadNumbers q = heads.read(call.buffers[0], call.dtype, s, h, 0, 3);
      const HeadNumbers k = heads.turned(heads.read(call.buffers[0], call.dtype, s, h, 1, 3));
      const HeadNumbers v = heads.read(call.buffers[0], call.dtype, s, h, 2, 3);
      HeadNumbers out(q.size());
      for (std::int64_t token = 0; token < heads.tokens; ++token) {
        heads.multiply(q.data() + token * heads.width, k, token + 1, scores);
        for (double& score : scores) score *= heads.scale();
        const double log_sum = softmax(scores);
        log_sums[(s * heads.heads + h) * heads.tokens + token] = static_cast<float>(log_sum);
        for (std::int64_t other = 0; other <= token; ++other) {
          heads.add(out, token, scores[other], v, other);
        }
      }
      heads.write(out, call.buffers[1], call.dtype, s, h, 0, 1);
    }
  }
}

CheckedSize scratch_bytes(const CheckedShape& shape, DType dtype,
                          const KernelAttributes& attributes) {
  return attention_gradient_scratch_bytes({shape.rows, shape.columns, shape.depth, shape.groups},
                                          dtype,
                                          attributes.as<kernels::AttentionGradient>().most_scratch);
}

constexpr KernelOperand attention_gradient_operands[] = {
    {"qkv", Access::read, extent::packed_qkv},
    {"out", Access::read, extent::elements},
    {"d_out", Access::read, extent::elements},
    {"log_sums", Access::read, extent::rows_by_groups, OperandFormat::single},
    {"scratch", Access::write, scratch_bytes, OperandFormat::scratch},
    {"d_qkv", Access::write, extent::packed_qkv},
};

CheckedSize attention_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * elements_of(shape) * (shape.depth + 1);
}

struct Head {
  HeadNumbers q, k, v, out, d_out;
};

struct HeadGradient {
  HeadNumbers q, k, v;
};

HeadGradient gradient_of(const PackedHeads& heads, const Head& head, const float* log_sums) {
  const HeadNumbers k_turned = heads.turned(head.k);
  const HeadNumbers v_turned = heads.turned(head.v);
  HeadGradient d{HeadNumbers(head.q.size()), HeadNumbers(head.q.size()),
                 HeadNumbers(head.q.size())};
  std::vector<double> scores, d_probabilities;
  for (std::int64_t token = 0; token < heads.tokens; ++token) {
    const std::int64_t row = token * heads.width;
    heads.multiply(head.q.data() + row, k_turned, token + 1, scores);
    heads.multiply(head.d_out.data() + row, v_turned, token + 1, d_probabilities);
    double dot = 0;
    for (std::int64_t i = row; i < row + heads.width; ++i) dot += head.d_out[i] * head.out[i];
    for (std::int64_t other = 0; other <= token; ++other) {
      const double probability = std::exp(scores[other] * heads.scale() - log_sums[token]);
      const double d_score = probability * (d_probabilities[other] - dot) * heads.scale();
      heads.add(d.v, other, probability, head.d_out, token);
      heads.add(d.q, token, d_score, head.k, other);
      heads.add(d.k, other, d_score, head.q, token);
    }
  }
  return d;
}

void attention_gradient_reference(const KernelCall& call) {
  const PackedHeads heads(call.shape);
  const DType dtype = call.dtype;
  const void* qkv = call.buffers[0];
  const auto* log_sums = static_cast<const float*>(call.buffers[3]);
  for (std::int64_t s = 0; s < heads.sequences; ++s) {
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const Head head{heads.read(qkv, dtype, s, h, 0, 3), heads.read(qkv, dtype, s, h, 1, 3),
                      heads.read(qkv, dtype, s, h, 2, 3),
                      heads.read(call.buffers[1], dtype, s, h, 0, 1),
                      heads.read(call.buffers[2], dtype, s, h, 0, 1)};
      const HeadGradient d =
          gradient_of(heads, head, log_sums + (s * heads.heads + h) * heads.tokens);
      heads.write(d.q, call.buffers[5], dtype, s, h, 0, 3);
      heads.write(d.k, call.buffers[5], dtype, s, h, 1, 3);
      heads.write(d.v, call.buffers[5], dtype, s, h, 2, 3);
    }
  }
}

constexpr KernelOperand causal_softmax_operands[] = {
    {"scores", Access::read, extent::elements},
    {.name = "probabilities",
     .access = Access::write,
     .elements = extent::elements,
     .may_replace = 0},
};

CheckedSize causal_softmax_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * shape.rows * (shape.columns + 1) / 2;
}

void causal_softmax_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.as<kernels::CausalSoftmax>().scale;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t visible = row % columns + 1;
    // A copy, since the probabilities may be written over the scores.
    std::vector<double> scores;
    for (std::int64_t c = 0; c < visible; ++c) {
      scores.push_back(scale * number_at(call.buffers[0], call.dtype, row * columns + c));
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - largest);
    for (std::int64_t c = 0; c < columns; ++c) {
      set_number(call.buffers[1], call.dtype, row * columns + c,
                 c < visible ? std::exp(scores[c] - largest) / sum : 0.0);
    }
  }
}

constexpr KernelOperand causal_softmax_gradient_operands[] = {
    {"probabilities", Access::read, extent::elements},
    {"d_probabilities", Access::read, extent::elements},
    {.name = "d_scores", .access = Access::write, .elements = extent::elements, .may_replace = 1},
};

CheckedSize causal_softmax_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * shape.rows * (shape.columns + 1) / 2;
}

void causal_softmax_gradient_reference(const KernelCall& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.as<kernels::CausalSoftmaxGradient>().scale;
  const auto at = [&](std::size_t operand, std::int64_t index) {
    return number_at(call.buffers[operand], call.dtype, index);
  };
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t first = row * columns;
    const std::int64_t visible = row % columns + 1;
    double dot = 0;
    for (std::int64_t i = first; i < first + visible; ++i) dot += at(0, i) * at(1, i);
    for (std::int64_t i = first; i < first + columns; ++i) {
      const bool is_visible = i < first + visible;
      set_number(call.buffers[2], call.dtype, i,
                 is_visible ? scale * at(0, i) * (at(1, i) - dot) : 0.0);
    }
  }
}

}  // namespace

std::vector<Kernel> attention_kernels() {
  return {// Between its products it has exponentials and sums of rows to do, for which tensor cores
          // wait:
          // bf16 on an H200 reaches 230 to 480 TFLOP/s, by shape, where products have 815
          // (kernels_bench).
          // Nothing was measured in fp32.
          {.name = kernels::Attention::name,
           .operands = attention_operands,
           .flops = attention_flops,
           .reference = attention_reference,
           .prepare = in_cuda_builds<prepare_attention>(),
           .is_attention = true,
           .share_of_rate = 0.4},

          // As attention: 175 to 240 TFLOP/s where products have 815.
          {.name = kernels::AttentionGradient::name,
           .operands = attention_gradient_operands,
           .flops = attention_gradient_flops,
           .reference = attention_gradient_reference,
           .prepare = in_cuda_builds<prepare_attention_gradient>(),
           .is_attention = true,
           .share_of_rate = 0.25},
          {kernels::CausalSoftmax::name, causal_softmax_operands, causal_softmax_flops,
           causal_softmax_reference, in_cuda_builds<prepare_causal_softmax>()},
          {kernels::CausalSoftmaxGradient::name, causal_softmax_gradient_operands,
           causal_softmax_gradient_flops, causal_softmax_gradient_reference,
           in_cuda_builds<prepare_causal_softmax_gradient>()}};
}

}  // namespace stepgate
