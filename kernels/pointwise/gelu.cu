// SPDX-License-Identifier: MIT
// The CUDA side of gelu, gelu_gradient and bias_gelu. Meaning and shapes: pointwise.h.
#include "kernels/pointwise/pointwise.h"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)): one exponential and one reciprocal of the special
// function units, where tanhf takes a branch and a division. The exponential of 2 is off by 2^-22
// of itself, its argument by 2^-24 of itself, which stays below 4e-6 of gelu(x) for x above -8;
// further down gelu(x) is below 1e-17. Where the exponential overflows, the quotient is 0.
__device__ __forceinline__ float logistic_of_inner(float x) {
  constexpr float log2_e = 1.44269504088896340736f;
  constexpr float linear = -2.0f * static_cast<float>(gelu_slope) * log2_e;
  constexpr float cubic = linear * static_cast<float>(gelu_cubic);
  const float argument = x * fmaf(cubic, x * x, linear);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(argument));
  return __fdividef(1.0f, 1.0f + power);
}

__device__ __forceinline__ float gelu(float x) {
  return x * logistic_of_inner(x);
}

// With s the logistic of 2 u: s + x s (1 - s) 2 u'.
__device__ __forceinline__ float gelu_slope_at(float x) {
  constexpr float linear = 2.0f * static_cast<float>(gelu_slope);
  constexpr float quadratic = 3.0f * linear * static_cast<float>(gelu_cubic);
  const float s = logistic_of_inner(x);
  return fmaf(x * s * (1.0f - s), fmaf(quadratic, x * x, linear), s);
}

template <class Number>
struct Gelu {
  const Number* x;
  Number* y;

  template <int count>
  __device__ Pack<Number, count> read(std::int64_t first) const {
    return load<count>(x, first);
  }

  template <int count>
  __device__ void finish(std::int64_t first, Pack<Number, count> pack) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      pack.values[i] = from_float<Number>(gelu(to_float(pack.values[i])));
    }
    store<count>(y, first, pack);
  }
};

template <class Number>
struct GeluGradient {
  const Number* x;
  const Number* d_y;
  Number* d_x;

  template <int count>
  struct Inputs {
    Pack<Number, count> x, d_y;
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    return {load<count>(x, first), load<count>(d_y, first)};
  }

  template <int count>
  __device__ void finish(std::int64_t first, Inputs<count> inputs) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      inputs.x.values[i] = from_float<Number>(to_float(inputs.d_y.values[i]) *
                                              gelu_slope_at(to_float(inputs.x.values[i])));
    }
    store<count>(d_x, first, inputs.x);
  }
};

// Walks the matrix as one flat array, so that rows of any length keep 16-byte accesses; a pack may
// therefore span two rows.
template <class Number>
struct BiasGelu {
  const Number* x;
  const Number* bias;
  Number* pre;
  Number* y;
  std::int64_t columns;
  bool bias_moves_in_packs;  // aligned, and no pack spans two rows
  bool indices_fit_32_bits;  // whose remainder takes half the time

  template <int count>
  struct Inputs {
    Pack<Number, count> x, bias;
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    Inputs<count> inputs;
    inputs.x = load<count>(x, first);
    std::int64_t column = indices_fit_32_bits ? static_cast<std::uint32_t>(first) %
                                                    static_cast<std::uint32_t>(columns)
                                              : first % columns;
    if (bias_moves_in_packs) {
      inputs.bias = load<count>(bias, column);
      return inputs;
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      inputs.bias.values[i] = bias[column];
      if (++column == columns) column = 0;
    }
    return inputs;
  }

  template <int count>
  __device__ void finish(std::int64_t first, Inputs<count> inputs) const {
    Pack<Number, count> activations;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      inputs.x.values[i] =
          from_float<Number>(to_float(inputs.x.values[i]) + to_float(inputs.bias.values[i]));
      activations.values[i] = from_float<Number>(gelu(to_float(inputs.x.values[i])));
    }
    store<count>(pre, first, inputs.x);
    store<count>(y, first, activations);
  }
};

}  // namespace

Launch prepare_gelu(const KernelShape& shape, DType dtype, const KernelAttributes&,
                    const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const Gelu<Number> element{static_cast<const Number*>(buffers[0]),
                                 static_cast<Number*>(buffers[1])};
      launch_stream<count>("gelu", shape.rows * shape.columns, element,
                           aligned_to_access(element.x, element.y), stream);
    };
  });
}

Launch prepare_gelu_gradient(const KernelShape& shape, DType dtype, const KernelAttributes&,
                             const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const GeluGradient<Number> element{static_cast<const Number*>(buffers[0]),
                                         static_cast<const Number*>(buffers[1]),
                                         static_cast<Number*>(buffers[2])};
      launch_stream<count>("gelu_gradient", shape.rows * shape.columns, element,
                           aligned_to_access(element.x, element.d_y, element.d_x), stream);
    };
  });
}

Launch prepare_bias_gelu(const KernelShape& shape, DType dtype, const KernelAttributes&,
                         const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const std::int64_t elements = shape.rows * shape.columns;
      BiasGelu<Number> element{static_cast<const Number*>(buffers[0]),
                               static_cast<const Number*>(buffers[1]),
                               static_cast<Number*>(buffers[2]),
                               static_cast<Number*>(buffers[3]),
                               shape.columns,
                               false,
                               elements >> 32 == 0};
      element.bias_moves_in_packs = shape.columns % count == 0 && aligned_to_access(element.bias);
      launch_stream<count>("bias_gelu", elements, element,
                           aligned_to_access(element.x, element.pre, element.y), stream);
    };
  });
}

}  // namespace stepgate
