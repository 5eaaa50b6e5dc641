// SPDX-License-Identifier: MIT
// Operands, work and host references of diffusion; diffusion.h has their meaning and shapes.
#include "kernels/diffusion/diffusion.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto numbers_of_samples = [](const auto& s) { return s.samples; };
constexpr auto of_features = [](const auto& s) { return s.samples * s.features; };
constexpr auto all_times = [](const auto&) -> CheckedSize { return diffusion_times; };

constexpr auto add_noise_operands = operands_of<kernels::AddNoise>({
    {"x", Access::read, of_features},
    {.name = "times",
     .access = Access::read,
     .elements = numbers_of_samples,
     .format = OperandFormat::index,
     .below = all_times},
    {"counter", Access::read, extent::one, OperandFormat::count},
    {"noisy", Access::write, of_features},
    {"noise", Access::write, of_features},
});

// The share of the sample that is left at a time.
double signal_at(std::int64_t time) {
  const auto angle = [](double share) {
    return (share + schedule_offset) / (1 + schedule_offset) * std::numbers::pi / 2;
  };
  const double share = static_cast<double>(time + 1) / static_cast<double>(diffusion_times);
  return std::cos(angle(share)) / std::cos(angle(0));
}

void add_noise_reference(const CallOf<kernels::AddNoise>& call) {
  const auto& at = call.buffers;
  const std::uint64_t step = *static_cast<const std::uint64_t*>(at[2]);
  for (std::int64_t i = 0; i < of_features(call.shape); ++i) {
    const std::int32_t time = static_cast<const std::int32_t*>(at[1])[i / call.shape.features];
    const NoiseDraw draw(noise_bits(noise_bits(step, static_cast<std::uint64_t>(time)),
                                    static_cast<std::uint64_t>(i)));
    set_number(at[4], call.dtype, i,
               std::sqrt(-2 * std::log(double{draw.radius})) *
                   std::cos(2 * std::numbers::pi * draw.angle));
    const double signal = signal_at(time);
    set_number(at[3], call.dtype, i,
               signal * number_at(at[0], call.dtype, i) +
                   std::sqrt(1 - signal * signal) * number_at(at[4], call.dtype, i));
  }
}

constexpr auto time_embedding_operands = operands_of<kernels::TimeEmbedding>({
    {.name = "times",
     .access = Access::read,
     .elements = numbers_of_samples,
     .format = OperandFormat::index,
     .below = all_times},
    {"y", Access::write, of_features},
});

void time_embedding_reference(const CallOf<kernels::TimeEmbedding>& call) {
  const std::int64_t half = call.shape.features / 2;
  for (std::int64_t i = 0; i < of_features(call.shape); ++i) {
    const std::int64_t place = i % call.shape.features;
    const double exponent = static_cast<double>(place % half) / static_cast<double>(half);
    const double time = static_cast<const std::int32_t*>(call.buffers[0])[i / call.shape.features];
    const double angle = time * std::pow(embedding_base, -exponent);
    set_number(call.buffers[1], call.dtype, i, place < half ? std::cos(angle) : std::sin(angle));
  }
}

}  // namespace

// A sine, a cosine, a logarithm, a root and a power count 1 each; random bits count nothing.
std::vector<Kernel> diffusion_kernels() {
  using namespace kernels;
  return {row<AddNoise, add_noise_reference>(add_noise_operands,
                                             [](const auto& s) { return 9 * of_features(s); }),
          row<TimeEmbedding, time_embedding_reference>(
              time_embedding_operands, [](const auto& s) { return 3 * of_features(s); })};
}

}  // namespace stepgate
