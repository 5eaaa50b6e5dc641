// SPDX-License-Identifier: MIT
// The host side of attention: operands, work and the reference. Meaning and shapes: attention.h.
#include "kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/cuda_build.h"
#include "kernels/extents.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand attention_operands[] = {
    {"qkv", Access::read, extent::packed_qkv},
    {"out", Access::write, extent::elements},
    {"log_sums", Access::write, extent::rows_by_groups, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize attention_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape) * (shape.depth + 1);
}

// --- reference -----------------------------------------------------------------------------------

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

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> attention_kernels() {
  // Between its products it has exponentials and sums of rows to do, for which tensor cores wait:
  // bf16 on an H200 reaches 230 to 480 TFLOP/s, by shape, where products have 815 (kernels_bench).
  // Nothing was measured in fp32.
  return {{.name = kernels::Attention::name,
           .operands = attention_operands,
           .flops = attention_flops,
           .reference = attention_reference,
           .prepare = in_cuda_builds<prepare_attention>(),
           .is_attention = true,
           .share_of_rate = 0.4}};
}

}  // namespace stepgate
