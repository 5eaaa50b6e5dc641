// SPDX-License-Identifier: MIT
// Operands, work and host references of the attention kernels; attention.h has their meaning and
// shapes.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto packed_qkv = [](const auto& s) { return s.rows * qkv_columns(s); };
constexpr auto sums_of_heads = [](const auto& s) { return s.rows * s.heads; };
constexpr auto scratch_bytes =
    [](const AttentionShape& shape, DType dtype,
       const kernels::AttentionGradient::Attributes& told) -> CheckedSize {
  return attention_gradient_scratch_bytes(shape, dtype, told.most_scratch, told.order());
};
// Only the visible part of each row counts.
constexpr auto causal_softmax_flops = [](const auto& s) {
  return 5 * s.rows * (s.columns + 1) / 2;
};

constexpr auto attention_operands = operands_of<kernels::Attention>({
    {"qkv", Access::read, packed_qkv},
    {"out", Access::write, extent::elements},
    {"log_sums", Access::write, sums_of_heads, OperandFormat::single},
});

// Turns scores into probabilities; returns the logarithm of the sum of their exponentials.
double softmax(std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
  return largest + std::log(sum);
}

// How many tokens a token sees, the first ones.
std::int64_t seen_by(std::int64_t token, const PackedHeads& heads, bool causal) {
  return causal ? token + 1 : heads.tokens;
}

// The mean of that over all tokens, doubled.
constexpr auto twice_seen = [](const auto& s, bool causal) {
  return causal ? s.tokens + 1 : 2 * s.tokens;
};

// The places of a head of queries, and of the keys and values that it meets, in rows of q | k | v.
struct QkvColumns {
  HeadColumns q, k, v;

  QkvColumns(const AttentionShape& shape, std::int64_t head) {
    const std::int64_t width = shape.columns / shape.heads, row = qkv_columns(shape);
    const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
    q = {head * width, row};
    k = {(shape.heads + kv_head) * width, row};
    v = {(shape.heads + shape.kv_heads + kv_head) * width, row};
  }
};

void attention_reference(const CallOf<kernels::Attention>& call) {
  const PackedHeads heads(call.shape);
  auto* log_sums = static_cast<float*>(call.buffers[2]);
  std::vector<double> scores;
  for (std::int64_t s = 0; s < heads.sequences; ++s) {
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const QkvColumns at(call.shape, h);
      const HeadNumbers q = heads.read(call.buffers[0], call.dtype, s, at.q);
      const HeadNumbers k = heads.turned(heads.read(call.buffers[0], call.dtype, s, at.k));
      const HeadNumbers v = heads.read(call.buffers[0], call.dtype, s, at.v);
      HeadNumbers out(q.size());
      for (std::int64_t token = 0; token < heads.tokens; ++token) {
        const std::int64_t seen = seen_by(token, heads, call.attributes.causal);
        heads.multiply(q.data() + token * heads.width, k, seen, scores);
        for (double& score : scores) score *= heads.scale();
        const double log_sum = softmax(scores);
        log_sums[(s * heads.heads + h) * heads.tokens + token] = static_cast<float>(log_sum);
        for (std::int64_t other = 0; other < seen; ++other) {
          heads.add(out, token, scores[other], v, other);
        }
      }
      heads.write(out, call.buffers[1], call.dtype, s, heads.columns(h));
    }
  }
}

constexpr auto attention_gradient_operands = operands_of<kernels::AttentionGradient>({
    {"qkv", Access::read, packed_qkv},
    {"out", Access::read, extent::elements},
    {"d_out", Access::read, extent::elements},
    {"log_sums", Access::read, sums_of_heads, OperandFormat::single},
    {"scratch", Access::write, scratch_bytes, OperandFormat::scratch},
    {"d_qkv", Access::write, packed_qkv},
});

struct Head {
  HeadNumbers q, k, v, out, d_out;
};

struct HeadGradient {
  HeadNumbers q, k, v;
};

// Adds the gradient of one head of queries to that of its keys and values, which others may share.
void add_gradient(const PackedHeads& heads, bool causal, const Head& head, const float* log_sums,
                  HeadGradient& d) {
  const HeadNumbers k_turned = heads.turned(head.k);
  const HeadNumbers v_turned = heads.turned(head.v);
  std::vector<double> scores, d_probabilities;
  for (std::int64_t token = 0; token < heads.tokens; ++token) {
    const std::int64_t row = token * heads.width, seen = seen_by(token, heads, causal);
    heads.multiply(head.q.data() + row, k_turned, seen, scores);
    heads.multiply(head.d_out.data() + row, v_turned, seen, d_probabilities);
    double dot = 0;
    for (std::int64_t i = row; i < row + heads.width; ++i) dot += head.d_out[i] * head.out[i];
    for (std::int64_t other = 0; other < seen; ++other) {
      const double probability = std::exp(scores[other] * heads.scale() - log_sums[token]);
      const double d_score = probability * (d_probabilities[other] - dot) * heads.scale();
      heads.add(d.v, other, probability, head.d_out, token);
      heads.add(d.q, token, d_score, head.k, other);
      heads.add(d.k, other, d_score, head.q, token);
    }
  }
}

void attention_gradient_reference(const CallOf<kernels::AttentionGradient>& call) {
  const PackedHeads heads(call.shape);
  const DType dtype = call.dtype;
  const void* qkv = call.buffers[0];
  const auto* log_sums = static_cast<const float*>(call.buffers[3]);
  const std::int64_t sharing = call.shape.heads / call.shape.kv_heads;
  for (std::int64_t s = 0; s < heads.sequences; ++s) {
    const HeadNumbers zeros(static_cast<std::size_t>(heads.tokens * heads.width));
    HeadGradient d;
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const QkvColumns at(call.shape, h);
      const Head head{heads.read(qkv, dtype, s, at.q), heads.read(qkv, dtype, s, at.k),
                      heads.read(qkv, dtype, s, at.v),
                      heads.read(call.buffers[1], dtype, s, heads.columns(h)),
                      heads.read(call.buffers[2], dtype, s, heads.columns(h))};
      d.q = zeros;
      if (h % sharing == 0) d.k = d.v = zeros;
      add_gradient(heads, call.attributes.causal, head,
                   log_sums + (s * heads.heads + h) * heads.tokens, d);
      heads.write(d.q, call.buffers[5], dtype, s, at.q);
      if ((h + 1) % sharing != 0) continue;
      heads.write(d.k, call.buffers[5], dtype, s, at.k);
      heads.write(d.v, call.buffers[5], dtype, s, at.v);
    }
  }
}

constexpr auto softmax_operands = operands_of<kernels::Softmax>({
    {"scores", Access::read, extent::elements},
    {.name = "probabilities",
     .access = Access::write,
     .elements = extent::elements,
     .may_replace = 0},
});

template <bool causal>
void softmax_reference(const CallOf<kernels::Softmax>& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.scale;
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t visible = causal ? row % columns + 1 : columns;
    // The scores are copied, since the probabilities may overwrite them.
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

constexpr auto softmax_gradient_operands = operands_of<kernels::SoftmaxGradient>({
    {"probabilities", Access::read, extent::elements},
    {"d_probabilities", Access::read, extent::elements},
    {.name = "d_scores", .access = Access::write, .elements = extent::elements, .may_replace = 1},
});

template <bool causal>
void softmax_gradient_reference(const CallOf<kernels::SoftmaxGradient>& call) {
  const std::int64_t columns = call.shape.columns;
  const double scale = call.attributes.scale;
  const auto at = [&](std::size_t operand, std::int64_t index) {
    return number_at(call.buffers[operand], call.dtype, index);
  };
  for (std::int64_t row = 0; row < call.shape.rows; ++row) {
    const std::int64_t first = row * columns;
    const std::int64_t visible = causal ? row % columns + 1 : columns;
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
  return {
      // Tensor cores wait for exponentials and sums of rows between the GEMMs. In bf16 an H200
      // reaches 230 to 480 TFLOP/s, by shape, where GEMMs reach 815 (kernels_bench). Nothing was
      // measured in fp32.
      row<kernels::Attention, attention_reference>(attention_operands,
                                                   [](const auto& s, const auto& told) {
                                                     return 2 * elements_of(s) *
                                                            twice_seen(s, told.causal);
                                                   },
                                                   {.is_attention = true}, {.share_of_rate = 0.4}),

      // The gradient is limited like attention itself: 175 to 240 TFLOP/s where GEMMs reach 815. 12
      // launches for 4 samples of 4096 tokens took an H200 16.75 ms; in any order the step was 4.5
      // ms
      // shorter.
      row<kernels::AttentionGradient, attention_gradient_reference>(
          attention_gradient_operands,
          [](const auto& s, const auto& told) {
            return 5 * elements_of(s) * twice_seen(s, told.causal);
          },
          {.is_attention = true},
          {.share_by_attributes =
               [](const KernelAttributes& told) {
                 return told.as<kernels::AttentionGradient>().any_order ? 0.34 : 0.25;
               }}),
      row<kernels::CausalSoftmax, softmax_reference<true>>(softmax_operands, causal_softmax_flops),
      row<kernels::CausalSoftmaxGradient, softmax_gradient_reference<true>>(
          softmax_gradient_operands, causal_softmax_flops),
      row<kernels::Softmax, softmax_reference<false>>(softmax_operands, flops_an_element<5>, {},
                                                      {.share_of_rate = 0.38}),
      row<kernels::SoftmaxGradient, softmax_gradient_reference<false>>(
          softmax_gradient_operands, flops_an_element<5>, {}, {.share_of_rate = 0.58})};
}

}  // namespace stepgate
