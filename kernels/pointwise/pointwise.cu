// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the pointwise kernels; pointwise.h has their meaning and shapes.
#include "kernels/pointwise/pointwise.h"

#include "kernels/launch.cuh"
#include "kernels/packed_numbers.cuh"
#include "kernels/stream_elementwise.cuh"
#include "kernels/walk_rows.cuh"

namespace stepgate {
namespace {

// Applies Functor to the inputs' numbers at each place. The output may be an input.
template <class Functor, class Number, int inputs>
struct MapOnDevice {
  const Number* from[inputs];
  Number* to;

  template <int count>
  struct Inputs {
    Pack<Number, count> packs[inputs];
  };

  template <int count>
  __device__ Inputs<count> read(std::int64_t first) const {
    Inputs<count> read;
#pragma unroll
    for (int i = 0; i < inputs; ++i) read.packs[i] = load<count>(from[i], first);
    return read;
  }

  template <int count>
  __device__ void finish(std::int64_t first, const Inputs<count>& read) const {
    Pack<Number, count> results;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if constexpr (inputs == 1) {
        results.values[i] = from_float<Number>(Functor{}(number_of(read.packs[0], i)));
      } else {
        results.values[i] =
            from_float<Number>(Functor{}(number_of(read.packs[0], i), number_of(read.packs[1], i)));
      }
    }
    store<count>(to, first, results);
  }

  template <int count>
  __device__ void apply(std::int64_t first) const {
    finish(first, read<count>(first));
  }
};

// A thread of a streaming kernel reads two packs before it writes, for large tensors; one of an
// elementwise kernel reads one, so that small tensors have more threads.
enum class Threads { stream, elementwise };

// Prepares a kernel whose operands are its inputs and then its output, as large as each other.
template <class Functor, int inputs, Threads threads>
Launch prepare_map(std::string_view kernel, const MatrixShape& shape, DType dtype) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [kernel, elements = elements_of(shape)](void* const* buffers, cudaStream_t stream) {
      MapOnDevice<Functor, Number, inputs> element{};
      bool aligned = true;
      for (int i = 0; i < inputs; ++i) {
        element.from[i] = static_cast<const Number*>(buffers[i]);
        aligned = aligned && aligned_to_access(element.from[i]);
      }
      element.to = static_cast<Number*>(buffers[inputs]);
      aligned = aligned && aligned_to_access(element.to);
      if constexpr (threads == Threads::stream)
        launch_stream<count>(kernel, elements, element, aligned, stream);
      else
        launch_elementwise<count>(kernel, elements, element, aligned, stream);
    };
  });
}

struct AddFunctor {
  __device__ float operator()(float x, float branch) const { return x + branch; }
};

}  // namespace

Launch kernels::Add::prepare(const Shape& shape, DType dtype, const Attributes&,
                             const LaunchContext&) {
  return prepare_map<AddFunctor, 2, Threads::stream>(name, shape, dtype);
}

namespace {

// The matrix is processed as one flat array, so that rows of any length keep 16-byte accesses; a
// pack may therefore span two rows. y may be x.
template <class Number>
struct BiasActivationOnDevice {
  const Number* x;
  const Number* bias;
  Number* y;
  std::int64_t columns;
  bool relu;
  bool bias_moves_in_packs;  // aligned, and no pack spans two rows

  template <int count>
  __device__ void apply(std::int64_t first) const {
    auto pack = load<count>(x, first);
    std::int64_t column = first % columns;
    const auto biases = bias_of<count>(column);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float sum = to_float(pack.values[i]) + to_float(biases.values[i]);
      pack.values[i] = from_float<Number>(relu && sum < 0.0f ? 0.0f : sum);
    }
    store<count>(y, first, pack);
  }

  template <int count>
  __device__ Pack<Number, count> bias_of(std::int64_t column) const {
    if (bias_moves_in_packs) return load<count>(bias, column);
    Pack<Number, count> biases;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      biases.values[i] = bias[column];
      if (++column == columns) column = 0;
    }
    return biases;
  }
};

}  // namespace

Launch kernels::BiasActivation::prepare(const Shape& shape, DType dtype,
                                        const Attributes& attributes, const LaunchContext&) {
  const bool relu = attributes.relu;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape, relu](void* const* buffers, cudaStream_t stream) {
      BiasActivationOnDevice<Number> element{static_cast<const Number*>(buffers[0]),
                                             static_cast<const Number*>(buffers[1]),
                                             static_cast<Number*>(buffers[2]),
                                             shape.columns,
                                             relu,
                                             false};
      element.bias_moves_in_packs = shape.columns % count == 0 && aligned_to_access(element.bias);
      launch_elementwise<count>("bias_activation", shape.rows * shape.columns, element,
                                aligned_to_access(element.x, element.y), stream);
    };
  });
}

namespace {

// Adds the bias and a vector of the sample, or a residual of each row.
template <class Number, bool of_rows>
struct BiasOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = sizeof(Number) == 2 ? 4 : 2, rows_of_thread = 16;
  const Number *x, *bias, *third;
  Number* y;
  std::int64_t pixels, columns;

  struct Constants {
    float added[octet];
  };
  struct Inputs {
    Octet<Number> x, residual;
  };
  __device__ BiasOnDevice of_sample(std::int64_t sample) const {
    const std::int64_t image = sample * pixels * columns;
    return {x + image, bias,   third + (of_rows ? image : sample * columns),
            y + image, pixels, columns};
  }
  template <bool whole>
  __device__ Constants constants(std::int64_t column, int count) const {
    const auto biases = load_octet<whole>(bias, column, count);
    Octet<Number> vector{};
    if constexpr (!of_rows) vector = load_octet<whole>(third, column, count);
    Constants made;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      made.added[i] = number_of(biases, i);
      if constexpr (!of_rows) made.added[i] += number_of(vector, i);
    }
    return made;
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    Inputs inputs;
    inputs.x = load_octet<whole>(x, spot.index, spot.count);
    if constexpr (of_rows) inputs.residual = load_octet<whole>(third, spot.index, spot.count);
    return inputs;
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Constants& column, const Inputs& inputs,
                         ColumnSums&) const {
    float results[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      results[i] = number_of(inputs.x, i) + column.added[i];
      if constexpr (of_rows) results[i] += number_of(inputs.residual, i);
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(results));
  }
};

// A residual has no samples: its image is one with all pixels.
template <bool of_rows>
Launch prepare_bias(std::string_view name, const kernels::TimeBias::Shape& shape, DType dtype) {
  const std::int64_t samples = of_rows ? 1 : shape.samples;
  const std::int64_t pixels = of_rows ? shape.samples * shape.pixels : shape.pixels;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=, columns = shape.columns](void* const* buffers, cudaStream_t stream) {
      const BiasOnDevice<Number, of_rows> element{static_cast<const Number*>(buffers[0]),
                                                  static_cast<const Number*>(buffers[1]),
                                                  static_cast<const Number*>(buffers[2]),
                                                  static_cast<Number*>(buffers[3]),
                                                  pixels,
                                                  columns};
      launch_walk(name, element, {pixels, columns},
                  aligned_to_access(element.x, element.bias, element.third, element.y), stream,
                  samples);
    };
  });
}

}  // namespace

Launch kernels::TimeBias::prepare(const Shape& shape, DType dtype, const Attributes&,
                                  const LaunchContext&) {
  return prepare_bias<false>(name, shape, dtype);
}

Launch kernels::ResidualBias::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  return prepare_bias<true>(name, shape, dtype);
}

namespace {

constexpr int bias_gradient_block_threads = 1024;
constexpr int bias_gradient_block_columns = 32;
constexpr int bias_gradient_warps = bias_gradient_block_threads / 32;

// A block sums all rows of 32 columns, so a wide matrix fills the device (128 blocks at 4096
// columns) and one launch suffices. 32 / count neighbouring threads read 32 columns of one row, and
// the other threads of the block read other rows. The order of the sum is fixed: a thread's rows,
// then the rows of its warp, then the bias_gradient_warps.
template <int count, class Number>
__global__ void __launch_bounds__(bias_gradient_block_threads)
    bias_gradient(const Number* dy, Number* db, std::int64_t rows, std::int64_t columns,
                  bool accumulate) {
  constexpr int threads_per_row = bias_gradient_block_columns / count;
  constexpr int rows_at_once = bias_gradient_block_threads / threads_per_row;
  __shared__ float partial[bias_gradient_warps][bias_gradient_block_columns];
  const int lane_column = (threadIdx.x % threads_per_row) * count;
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x) * bias_gradient_block_columns + lane_column;

  float sums[count] = {};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.x / threads_per_row; row < rows; row += rows_at_once) {
      const auto pack = load<count>(dy, row * columns + column);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += to_float(pack.values[i]);
    }
  }
#pragma unroll
  for (int distance = 16; distance >= threads_per_row; distance /= 2) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], distance);
  }
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 < threads_per_row) {
#pragma unroll
    for (int i = 0; i < count; ++i) partial[warp][lane_column + i] = sums[i];
  }
  __syncthreads();

  const std::int64_t own =
      static_cast<std::int64_t>(blockIdx.x) * bias_gradient_block_columns + threadIdx.x;
  if (threadIdx.x >= bias_gradient_block_columns || own >= columns) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < bias_gradient_warps; ++i) sum += partial[i][threadIdx.x];
  if (accumulate) sum += to_float(db[own]);
  db[own] = from_float<Number>(sum);
}

constexpr int wide_threads = 256;

// Like bias_gradient, for few rows of many columns: a thread sums all rows of a pack of columns,
// with eight loads in flight.
template <int count, class Number>
__global__ void __launch_bounds__(wide_threads)
    bias_gradient_wide(const Number* dy, Number* db, std::int64_t rows, std::int64_t columns,
                       bool accumulate) {
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x) * wide_threads + threadIdx.x) * count;
  if (column >= columns) return;
  float sums[count] = {};
#pragma unroll 8
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto pack = load<count>(dy, row * columns + column);
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += number_of(pack, i);
  }
  if (accumulate) {
    const auto old = load<count>(db, column);
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += number_of(old, i);
  }
  store<count>(db, column, packed<Number>(sums));
}

}  // namespace

namespace {

// Whether there are too few rows for the threads of a block, and enough packs of columns for all
// threads of the device.
constexpr bool is_wide(std::int64_t rows, std::int64_t packs) {
  constexpr std::int64_t most_rows = 256, least_packs = 8192;
  return rows <= most_rows && packs >= least_packs;
}

}  // namespace

Launch kernels::BiasGradient::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                      const LaunchContext&) {
  const bool accumulate = attributes.accumulate;
  const auto blocks =
      static_cast<unsigned>(ceiling_quotient(shape.columns, bias_gradient_block_columns));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* dy = static_cast<const Number*>(buffers[0]);
      auto* db = static_cast<Number*>(buffers[1]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(dy);
      if (packs && aligned_to_access(db) && is_wide(shape.rows, shape.columns / count)) {
        const std::int64_t threads = shape.columns / count;
        const auto wide_blocks = static_cast<unsigned>(ceiling_quotient(threads, wide_threads));
        bias_gradient_wide<count><<<wide_blocks, wide_threads, 0, stream>>>(
            dy, db, shape.rows, shape.columns, accumulate);
        return check_launch("bias_gradient");
      }
      auto* const kernel = packs ? bias_gradient<count, Number> : bias_gradient<1, Number>;
      kernel<<<blocks, bias_gradient_block_threads, 0, stream>>>(dy, db, shape.rows, shape.columns,
                                                                 accumulate);
      check_launch("bias_gradient");
    };
  });
}

namespace {

constexpr int column_parts_block_threads = 256;
constexpr int column_parts_block_columns = static_cast<int>(columns_of_part);

template <class Number>
struct Call {
  const Number* dy;
  float* partials;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;
};

// A block sums 256 columns of a part. column_parts_block_columns / count neighbouring threads read
// one row, and the other threads of the block read other rows of the part. The order of the sum is
// a thread's rows, then the threads of a column.
template <int count, class Number>
__global__ void __launch_bounds__(column_parts_block_threads)
    column_parts_of(const Call<Number> call) {
  constexpr int threads_per_row = column_parts_block_columns / count;
  constexpr int rows_at_once = column_parts_block_threads / threads_per_row;
  __shared__ float partial[rows_at_once][column_parts_block_columns];
  const int row_of_block = threadIdx.x / threads_per_row;
  const int column_of_block = threadIdx.x % threads_per_row * count;
  const std::int64_t first_column =
      static_cast<std::int64_t>(blockIdx.y) * column_parts_block_columns;
  const std::int64_t column = first_column + column_of_block;

  float sums[count] = {};
  if (column < call.columns) {
    const std::int64_t step = rows_at_once * call.parts;
#pragma unroll 4
    for (std::int64_t row = blockIdx.x + row_of_block * call.parts; row < call.rows; row += step) {
      const auto pack = load<count>(call.dy, row * call.columns + column);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += to_float(pack.values[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) partial[row_of_block][column_of_block + i] = sums[i];
  __syncthreads();

  const std::int64_t own = first_column + threadIdx.x;
  if (own >= call.columns) return;
  float sum = 0.0f;
#pragma unroll
  for (int row = 0; row < rows_at_once; ++row) sum += partial[row][threadIdx.x];
  call.partials[blockIdx.x * call.columns + own] = sum;
}

}  // namespace

Launch kernels::ColumnParts::prepare(const Shape& shape, DType dtype, const Attributes&,
                                     const LaunchContext&) {
  static_assert(column_parts_block_threads == column_parts_block_columns,
                "the last step gives every thread a column");
  const dim3 blocks(
      static_cast<unsigned>(shape.parts),
      static_cast<unsigned>(ceiling_quotient(shape.columns, column_parts_block_columns)));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, blocks](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const Call<Number> call{static_cast<const Number*>(buffers[0]),
                              static_cast<float*>(buffers[1]), shape.rows, shape.columns,
                              shape.parts};
      const bool packs = shape.columns % count == 0 && aligned_to_access(call.dy);
      auto* const kernel = packs ? column_parts_of<count, Number> : column_parts_of<1, Number>;
      kernel<<<blocks, column_parts_block_threads, 0, stream>>>(call);
      check_launch("column_parts");
    };
  });
}

namespace {

template <class From, class To>
struct Convert {
  const From* from;
  To* to;

  template <int count>
  __device__ Pack<From, count> read(std::int64_t first) const {
    return load<count>(from, first);
  }

  template <int count>
  __device__ void finish(std::int64_t first, const Pack<From, count>& read) const {
    Pack<To, count> pack;
#pragma unroll
    for (int i = 0; i < count; ++i) pack.values[i] = from_float<To>(to_float(read.values[i]));
    store<count>(to, first, pack);
  }
};

// A pack has as many numbers as an access holds of the wider type.
template <class From, class To>
Launch launch_of(std::string_view kernel, std::int64_t numbers) {
  constexpr int count = access_bytes / sizeof(float);
  return [kernel, numbers](void* const* buffers, cudaStream_t stream) {
    const Convert<From, To> element{static_cast<const From*>(buffers[0]),
                                    static_cast<To*>(buffers[1])};
    launch_stream<count>(kernel, numbers, element, aligned_to_access(element.from, element.to),
                         stream);
  };
}

}  // namespace

Launch kernels::Widen::prepare(const Shape& shape, DType dtype, const Attributes&,
                               const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    return launch_of<decltype(zero), float>(name, shape.numbers);
  });
}

Launch kernels::Narrow::prepare(const Shape& shape, DType dtype, const Attributes&,
                                const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    return launch_of<float, decltype(zero)>(name, shape.numbers);
  });
}

namespace {

// Computes (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)). It takes one exponential and one reciprocal of
// the special function unit, where tanhf takes a branch and a division. The exponential has a
// relative error of 2^-22, its argument one of 2^-24. The error stays below 4e-6 of gelu(x) for x
// above -8; below -8 gelu(x) is less than 1e-17. Where the exponential overflows, the quotient is
// 0.
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

// The derivative of gelu, s + x s (1 - s) 2 u' with s = logistic(2 u).
__device__ __forceinline__ float gelu_slope_at(float x) {
  constexpr float linear = 2.0f * static_cast<float>(gelu_slope);
  constexpr float quadratic = 3.0f * linear * static_cast<float>(gelu_cubic);
  const float s = logistic_of_inner(x);
  return fmaf(x * s * (1.0f - s), fmaf(quadratic, x * x, linear), s);
}

struct GeluFunctor {
  __device__ float operator()(float x) const { return gelu(x); }
};
struct GeluGradientFunctor {
  __device__ float operator()(float x, float d_y) const { return d_y * gelu_slope_at(x); }
};

// Processes the matrix as one flat array, so that rows of any length keep 16-byte accesses; a pack
// may therefore span two rows.
template <class Number>
struct BiasGeluOnDevice {
  const Number* x;
  const Number* bias;
  Number* pre;
  Number* y;
  std::int64_t columns;
  bool bias_moves_in_packs;  // aligned, and no pack spans two rows
  bool indices_fit_32_bits;  // 32-bit remainders take half the time

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

Launch kernels::Gelu::prepare(const Shape& shape, DType dtype, const Attributes&,
                              const LaunchContext&) {
  return prepare_map<GeluFunctor, 1, Threads::stream>(name, shape, dtype);
}

Launch kernels::GeluGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  return prepare_map<GeluGradientFunctor, 2, Threads::stream>(name, shape, dtype);
}

Launch kernels::BiasGelu::prepare(const Shape& shape, DType dtype, const Attributes&,
                                  const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const std::int64_t elements = shape.rows * shape.columns;
      BiasGeluOnDevice<Number> element{static_cast<const Number*>(buffers[0]),
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

namespace {

// Uses the exponential of the special function unit; where it overflows, the quotient is 0.
__device__ __forceinline__ float logistic(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

struct SiluFunctor {
  __device__ float operator()(float x) const { return x * logistic(x); }
};
struct SiluGradientFunctor {
  __device__ float operator()(float x, float d_y) const {
    const float s = logistic(x);
    return d_y * s * fmaf(x, 1.0f - s, 1.0f);
  }
};
struct ReluFunctor {
  __device__ float operator()(float x) const { return x < 0.0f ? 0.0f : x; }
};
struct ReluGradientFunctor {
  __device__ float operator()(float y, float d_y) const { return y > 0.0f ? d_y : 0.0f; }
};

}  // namespace

Launch kernels::Silu::prepare(const Shape& shape, DType dtype, const Attributes&,
                              const LaunchContext&) {
  return prepare_map<SiluFunctor, 1, Threads::elementwise>(name, shape, dtype);
}

Launch kernels::SiluGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  return prepare_map<SiluGradientFunctor, 2, Threads::elementwise>(name, shape, dtype);
}

Launch kernels::Relu::prepare(const Shape& shape, DType dtype, const Attributes&,
                              const LaunchContext&) {
  return prepare_map<ReluFunctor, 1, Threads::elementwise>(name, shape, dtype);
}

Launch kernels::ReluGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  return prepare_map<ReluGradientFunctor, 2, Threads::elementwise>(name, shape, dtype);
}

namespace {

constexpr int sum_parts_block_threads = 1024;
constexpr int sum_parts_block_columns = 32;
constexpr int sum_parts_warps = sum_parts_block_threads / 32;

// A block sums 32 columns; a warp reads 32 neighbouring columns of a part. The partials are a few
// MB that were just written, so they come from the L2 cache. For speed, all loads of a thread must
// be in flight at once. The order of the sum is a warp's parts, then the sum_parts_warps.
template <class Number>
__global__ void __launch_bounds__(sum_parts_block_threads)
    sum_parts(const float* partials, Number* sums, std::int64_t parts, std::int64_t columns,
              bool accumulate) {
  __shared__ float of_warp[sum_parts_warps][sum_parts_block_columns];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x) * sum_parts_block_columns + lane;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t part = warp; part < parts; part += sum_parts_warps) {
      sum += partials[part * columns + column];
    }
  }
  of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < sum_parts_warps; ++i) sum += of_warp[i][lane];
  if (accumulate) sum += to_float(sums[column]);
  sums[column] = from_float<Number>(sum);
}

}  // namespace

Launch kernels::SumParts::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                  const LaunchContext&) {
  const bool accumulate = attributes.accumulate;
  const auto blocks =
      static_cast<unsigned>(ceiling_quotient(shape.columns, sum_parts_block_columns));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      sum_parts<<<blocks, sum_parts_block_threads, 0, stream>>>(
          static_cast<const float*>(buffers[0]), static_cast<Number*>(buffers[1]), shape.parts,
          shape.columns, accumulate);
      check_launch("sum_parts");
    };
  });
}

namespace {

// Positions in rows of F gates followed by F ups; rows of the result have F numbers.
struct GateRows {
  std::int64_t columns;      // F
  bool indices_fit_32_bits;  // 32-bit quotients take half the time

  // Returns the index of the gate of element i of the result; the up is `columns` elements further.
  __device__ __forceinline__ std::int64_t gate_of(std::int64_t i) const {
    const std::int64_t row =
        indices_fit_32_bits ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(columns)
                            : i / columns;
    return i + row * columns;
  }
};

template <class Number>
struct SwigluOnDevice {
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
struct SwigluGradientOnDevice {
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

GateRows gate_rows(const MatrixShape& shape) {
  return {shape.columns, shape.rows * shape.columns >> 32 == 0};
}

}  // namespace

// Packs are used only if none spans two rows, as its gates would not be contiguous.
Launch kernels::Swiglu::prepare(const Shape& shape, DType dtype, const Attributes&,
                                const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const SwigluOnDevice<Number> element{static_cast<const Number*>(buffers[0]),
                                           static_cast<Number*>(buffers[1]), gate_rows(shape)};
      launch_stream<count>("swiglu", shape.rows * shape.columns, element,
                           shape.columns % count == 0 && aligned_to_access(element.x, element.y),
                           stream);
    };
  });
}

Launch kernels::SwigluGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                        const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape](void* const* buffers, cudaStream_t stream) {
      const SwigluGradientOnDevice<Number> element{
          static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[1]),
          static_cast<Number*>(buffers[2]), gate_rows(shape)};
      launch_stream<count>(
          "swiglu_gradient", shape.rows * shape.columns, element,
          shape.columns % count == 0 && aligned_to_access(element.x, element.d_y, element.d_x),
          stream);
    };
  });
}

}  // namespace stepgate
