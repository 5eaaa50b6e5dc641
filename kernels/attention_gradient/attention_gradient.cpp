// SPDX-License-Identifier: MIT
// The host side of attention_gradient: operands, work and the reference. Meaning and shapes:
// attention_gradient.h.
#include "kernels/attention_gradient/attention_gradient.h"

#include <cmath>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

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

// --- work ----------------------------------------------------------------------------------------

CheckedSize attention_gradient_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 5 * elements_of(shape) * (shape.depth + 1);
}

// --- reference -----------------------------------------------------------------------------------

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

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> attention_gradient_kernels() {
  // As attention: 175 to 240 TFLOP/s where products have 815.
  return {{.name = kernels::AttentionGradient::name,
           .operands = attention_gradient_operands,
           .flops = attention_gradient_flops,
           .reference = attention_gradient_reference,
           .prepare = in_cuda_builds<prepare_attention_gradient>(),
           .is_attention = true,
           .share_of_rate = 0.25}};
}

}  // namespace stepgate
