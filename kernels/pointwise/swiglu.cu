// SPDX-License-Identifier: MIT
// The CUDA side of swiglu and swiglu_gradient. Meaning and shapes: pointwise.h.
#include "kernels/pointwise/pointwise.h"
#include "kernels/stream_elementwise.cuh"

namespace stepgate {
namespace {

// The exponential of the special function units; where it overflows, the quotient is 0.
__device__ __forceinline__ float logistic(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// Each row has F gates, then F ups; the result's rows have F numbers.
struct GateRows {
  std::int64_t columns;      // F
  bool indices_fit_32_bits;  // whose quotient takes half the time

  // Where the gate of element i of the result lies; its up lies `columns` further.
  __device__ __forceinline__ std::int64_t gate_of(std::int64_t i) const {
    const std::int64_t row =
        indices_fit_32_bits ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(columns)
                            : i / columns;
    return i + row * columns;
  }
};

template <class Number>
struct Swiglu {
  const Number* x;
  Number* y;
  GateRows rows;

  template <int count>
  struct Inputs {
    Pack<Number, count> gate, up;
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    const std::int64_t gate = rows.gate_of(first);
    return {load<count>(x, gate), load<count>(x, gate + rows.columns)};
  }

  template <int count>
  __device__ void finish(std::int64_t first, Inputs<count> inputs) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float gate = to_float(inputs.gate.values[i]);
      inputs.gate.values[i] =
          from_float<Number>(gate * logistic(gate) * to_float(inputs.up.values[i]));
    }
    store<count>(y, first, inputs.gate);
  }
};

template <class Number>
struct SwigluGradient {
  const Number* x;
  const Number* d_y;
  Number* d_x;
  GateRows rows;

  template <int count>
  struct Inputs {
    Pack<Number, count> gate, up, d_y;
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    const std::int64_t gate = rows.gate_of(first);
    return {load<count>(x, gate), load<count>(x, gate + rows.columns), load<count>(d_y, first)};
  }

  template <int count>
  __device__ void finish(std::int64_t first, Inputs<count> inputs) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float gate = to_float(inputs.gate.values[i]);
      const float d_y = to_float(inputs.d_y.values[i]);
      const float s = logistic(gate);
      const float slope = s * fmaf(gate, 1.0f - s, 1.0f);
      inputs.gate.values[i] = from_float<Number>(d_y * to_float(inputs.up.values[i]) * slope);
      inputs.up.values[i] = from_float<Number>(d_y * gate * s);
    }
    const std::int64_t gate = rows.gate_of(first);
    store<count>(d_x, gate, inputs.gate);
    store<count>(d_x, gate + rows.columns, inputs.up);
  }
};

GateRows gate_rows(const KernelShape& shape) {
  return {shape.columns, shape.rows * shape.columns >> 32 == 0};
}

}  // namespace

// A pack never spans two rows: its gates would not lie together.
Launch prepare_swiglu(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const Swiglu<Number> element{static_cast<const Number*>(buffers[0]),
                                   static_cast<Number*>(buffers[1]), gate_rows(shape)};
      launch_stream<count>("swiglu", shape.rows * shape.columns, element,
                           shape.columns % count == 0 && aligned_to_access(element.x, element.y),
                           stream);
    };
  });
}

Launch prepare_swiglu_gradient(const KernelShape& shape, DType dtype, const KernelAttributes&,
                               const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const SwigluGradient<Number> element{static_cast<const Number*>(buffers[0]),
                                           static_cast<const Number*>(buffers[1]),
                                           static_cast<Number*>(buffers[2]), gate_rows(shape)};
      launch_stream<count>(
          "swiglu_gradient", shape.rows * shape.columns, element,
          shape.columns % count == 0 && aligned_to_access(element.x, element.d_y, element.d_x),
          stream);
    };
  });
}

}  // namespace stepgate
