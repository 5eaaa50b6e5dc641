// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of diffusion; diffusion.h has their meaning and shapes.
#include "kernels/diffusion/diffusion.h"

#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int threads_of_block = 256;

__device__ __forceinline__ std::int64_t own_index() {
  return static_cast<std::int64_t>(blockIdx.x) * threads_of_block + threadIdx.x;
}

unsigned blocks_for(const kernels::AddNoise::Shape& shape) {
  return static_cast<unsigned>(ceiling_quotient(shape.samples * shape.features, threads_of_block));
}

// The share of the sample that is left; cos(pi / 2 y) is cospi(y / 2). In fp32 the share of the
// noise, sqrt(1 - signal^2), would lose most of its bits where little is added.
__device__ __forceinline__ double signal_at(int time) {
  const auto half_turns = [](double share) {
    return (share + schedule_offset) / (1 + schedule_offset) / 2;
  };
  const double share = (time + 1) / static_cast<double>(diffusion_times);
  return cospi(half_turns(share)) / cospi(half_turns(0));
}

template <class Number>
__global__ void __launch_bounds__(threads_of_block)
    add_noise(const Number* x, const std::int32_t* times, const std::uint64_t* counter,
              Number* noisy, Number* noise, const kernels::AddNoise::Shape shape) {
  const std::int64_t i = own_index();
  if (i >= shape.samples * shape.features) return;
  const std::int32_t time = times[i / shape.features];
  const NoiseDraw draw(noise_bits(noise_bits(*counter, static_cast<std::uint64_t>(time)),
                                  static_cast<std::uint64_t>(i)));
  noise[i] = from_float<Number>(sqrtf(-2.0f * logf(draw.radius)) * cospif(2.0f * draw.angle));
  const double signal = signal_at(time);
  const auto share = static_cast<float>(sqrt(1 - signal * signal));
  noisy[i] =
      from_float<Number>(static_cast<float>(signal) * to_float(x[i]) + share * to_float(noise[i]));
}

template <class Number>
__global__ void __launch_bounds__(threads_of_block)
    time_embedding(const std::int32_t* times, Number* y, const kernels::AddNoise::Shape shape) {
  const std::int64_t i = own_index();
  if (i >= shape.samples * shape.features) return;
  const std::int64_t half = shape.features / 2, place = i % shape.features;
  const double exponent = static_cast<double>(place % half) / static_cast<double>(half);
  const double angle = times[i / shape.features] * pow(embedding_base, -exponent);
  y[i] = from_float<Number>(static_cast<float>(place < half ? cos(angle) : sin(angle)));
}

}  // namespace

Launch kernels::AddNoise::prepare(const Shape& shape, DType dtype, const Attributes&,
                                  const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      add_noise<<<blocks_for(shape), threads_of_block, 0, stream>>>(
          static_cast<const Number*>(buffers[0]), static_cast<const std::int32_t*>(buffers[1]),
          static_cast<const std::uint64_t*>(buffers[2]), static_cast<Number*>(buffers[3]),
          static_cast<Number*>(buffers[4]), shape);
      check_launch(name);
    };
  });
}

Launch kernels::TimeEmbedding::prepare(const Shape& shape, DType dtype, const Attributes&,
                                       const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      time_embedding<<<blocks_for(shape), threads_of_block, 0, stream>>>(
          static_cast<const std::int32_t*>(buffers[0]), static_cast<Number*>(buffers[1]), shape);
      check_launch(name);
    };
  });
}

}  // namespace stepgate
