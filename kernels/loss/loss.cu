// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the loss; loss.h has their meaning and shapes.
#include "kernels/loss/loss.h"

#include <cuda_pipeline.h>
#include <cfloat>
#include <cmath>

#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int largest_block = 512;
constexpr unsigned whole_warp = 0xffffffffu;
constexpr float log2_e = 1.44269504088896340736f;
constexpr float log_2 = 0.69314718055994530942f;

// Computes 2^x with the special function unit, with a relative error of 2^-22; 2^0 is exactly 1.
__device__ __forceinline__ float power_of_2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

// Computes exp(logit) relative to 2^reference. The argument is rounded once. Whatever rounding the
// reference has, it is the same in the sum and in every probability.
__device__ __forceinline__ float relative_exponential(float logit, float reference) {
  return power_of_2(fmaf(logit, log2_e, -reference));
}

// The sum of exponentials relative to the largest logit so far (Milakov and Gimelshein: Online
// normalizer calculation for softmax, 2018). `largest` is the base-2 logarithm of that logit's
// exponential. It starts at the smallest float, since the difference of two infinities is NaN.
struct Normalizer {
  float largest = -FLT_MAX;
  float sum = 0.0f;

  __device__ void raise_to(float larger) {
    sum *= power_of_2(largest - larger);
    largest = larger;
  }

  __device__ void add(const Normalizer& other) {
    raise_to(fmaxf(largest, other.largest));
    sum += other.sum * power_of_2(other.largest - largest);
  }

  template <class Number, int count>
  __device__ void add(const Pack<Number, count>& logits) {
    float larger = to_float(logits.values[0]);
#pragma unroll
    for (int i = 1; i < count; ++i) larger = fmaxf(larger, to_float(logits.values[i]));
    raise_to(fmaxf(largest, larger * log2_e));
#pragma unroll
    for (int i = 0; i < count; ++i) {
      sum += relative_exponential(to_float(logits.values[i]), largest);
    }
  }
};

// Returns the sum over the block to every thread, by one fixed tree. The block consists of whole
// warps.
__device__ Normalizer sum_over_block(Normalizer own) {
  __shared__ Normalizer of_warp[largest_block / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    own.add(Normalizer{__shfl_xor_sync(whole_warp, own.largest, distance),
                       __shfl_xor_sync(whole_warp, own.sum, distance)});
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  Normalizer all;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all.add(of_warp[warp]);
  return all;
}

template <class Number>
struct Call {
  const Number* logits;
  const std::int32_t* labels;
  const float* scale;  // null if the gradient is not scaled
  Number* gradient;
  float* row_losses;
  std::int64_t columns;
  std::int64_t classes;  // at most the number of columns
  float rows_of_mean;
};

// The pack that begins at column c, with minus infinity in columns beyond the classes: their
// exponentials are 0.
template <class Number, int count>
__device__ __forceinline__ Pack<Number, count> of_classes(Pack<Number, count> pack, std::int64_t c,
                                                          std::int64_t classes) {
  if (c + count > classes) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i >= classes) pack.values[i] = from_float<Number>(-INFINITY);
    }
  }
  return pack;
}

// Numbers that a thread needs to turn logits of its row into gradients.
struct RowGradient {
  Normalizer all;
  float per_row;  // scale / rows
  int label;

  // Turns the pack of logits that begins at column c into gradients. The label's element is
  // computed with a division, so that a probability of 1 gives a gradient of exactly 0.
  template <class Number, int count>
  __device__ void turn(Pack<Number, count>& pack, int c, float factor) const {
    const bool has_label = label >= c && label < c + count;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float power = relative_exponential(to_float(pack.values[i]), all.largest);
      float gradient = power * factor;
      if (has_label && c + i == label) gradient = (power / all.sum - 1.0f) * per_row;
      pack.values[i] = from_float<Number>(gradient);
    }
  }
};

template <class Number>
__device__ __forceinline__ float scale_of(const Call<Number>& call) {
  const float scale = call.scale == nullptr ? 1.0f : *call.scale;
  return scale / call.rows_of_mean;
}

// Combines the sums of all threads and writes the loss, log(sum / exp(label's logit)). A rounding
// error of the reference cancels in it.
template <class Number>
__device__ __forceinline__ RowGradient meet(const Call<Number>& call, const Normalizer& own,
                                            int label, float label_logit) {
  const Normalizer all = sum_over_block(own);
  if (threadIdx.x == 0) {
    const float label_power = fmaf(label_logit, log2_e, -all.largest);
    call.row_losses[blockIdx.x] = log_2 * (log2f(all.sum) - label_power);
  }
  return {all, scale_of(call), label};
}

// Handles a row of padding, whose logits are ignored: its gradient and loss are 0. All threads of
// the block call this.
template <int count, class Number>
__device__ void leave_out(const Call<Number>& call, std::int64_t begin) {
  Pack<Number, count> zeros;
#pragma unroll
  for (int i = 0; i < count; ++i) zeros.values[i] = from_float<Number>(0.0f);
  for (std::int64_t c = threadIdx.x * count; c < call.columns; c += blockDim.x * count)
    store<count>(call.gradient, begin + c, zeros);
  if (threadIdx.x == 0) call.row_losses[blockIdx.x] = 0.0f;
}

// One block processes a row, which the second pass finds in cache. The gradient may overwrite the
// logits: all reads of other threads' columns end before the block's barrier.
template <int count, class Number>
__global__ void __launch_bounds__(largest_block) cross_entropy(const Call<Number> call) {
  const std::int64_t columns = call.columns, begin = blockIdx.x * columns;
  const int label = call.labels[blockIdx.x];
  if (label < 0) return leave_out<count>(call, begin);
  const float label_logit = to_float(call.logits[begin + label]);
  Normalizer own;
  for (std::int64_t c = threadIdx.x * count; c < columns; c += blockDim.x * count) {
    own.add(of_classes(load<count>(call.logits, begin + c), c, call.classes));
  }
  const RowGradient row = meet(call, own, label, label_logit);
  const float factor = row.per_row / row.all.sum;
  for (std::int64_t c = threadIdx.x * count; c < columns; c += blockDim.x * count) {
    auto pack = of_classes(load<count>(call.logits, begin + c), c, call.classes);
    row.turn(pack, static_cast<int>(c), factor);
    store<count>(call.gradient, begin + c, pack);
  }
}

// The copies of a row arrive in this many stages: the first are summed while the last are still in
// flight.
constexpr int stages = 4;

// The number of blocks per multiprocessor for which there are enough registers; shared memory is
// enough for rows of 75 KB.
constexpr int held_blocks = 3;

// Like cross_entropy, for rows that would leave the caches before the second pass. Shared memory
// holds the row, and one block of a multiprocessor reads while another writes. A thread reads only
// packs that it copied itself, so that it waits for its own copies only.
template <int count, class Number>
__global__ void __launch_bounds__(largest_block, held_blocks)
    cross_entropy_held(const Call<Number> call) {
  using Packed = Pack<Number, count>;
  extern __shared__ __align__(access_bytes) unsigned char memory[];
  auto* held = reinterpret_cast<Packed*>(memory);
  const std::int64_t begin = blockIdx.x * call.columns;
  const Number* logits = call.logits + begin;
  const int label = call.labels[blockIdx.x];
  if (label < 0) return leave_out<count>(call, begin);
  const int packs = static_cast<int>(call.columns / count);
  constexpr int row_of_copies = stages * largest_block;
  const int of_stage = (packs + row_of_copies - 1) / row_of_copies * largest_block;
#pragma unroll
  for (int stage = 0; stage < stages; ++stage) {
    const int end = min(packs, (stage + 1) * of_stage);
    for (int pack = stage * of_stage + threadIdx.x; pack < end; pack += largest_block) {
      __pipeline_memcpy_async(held + pack, logits + pack * count, sizeof(Packed));
    }
    __pipeline_commit();
  }
  const float label_logit = to_float(logits[label]);

  Normalizer own;
#pragma unroll
  for (int stage = 0; stage < stages; ++stage) {
    __pipeline_wait_prior(stages - 1 - stage);
    const int end = min(packs, (stage + 1) * of_stage);
    for (int pack = stage * of_stage + threadIdx.x; pack < end; pack += largest_block) {
      own.add(of_classes(held[pack], pack * count, call.classes));
    }
  }
  const RowGradient row = meet(call, own, label, label_logit);
  const float factor = row.per_row / row.all.sum;
#pragma unroll 2
  for (int pack = threadIdx.x; pack < packs; pack += largest_block) {
    Packed turned = of_classes(held[pack], pack * count, call.classes);
    row.turn(turned, pack * count, factor);
    store<count>(call.gradient, begin + pack * count, turned);
  }
}

// A thread gets at least two packs where possible, since the barrier costs more with every warp.
unsigned block_for(std::int64_t packs) {
  unsigned threads = 32;
  while (threads < largest_block && 2 * threads < packs) threads *= 2;
  return threads;
}

// Shorter rows stay in the L1 cache, even with all blocks of a multiprocessor.
constexpr std::int64_t least_held_bytes = 32 << 10;

// Whether rows of that size are kept in shared memory. If so, raises the kernel's limit of shared
// memory to the maximum, so that other shapes may use it too.
template <class Function>
bool may_hold(Function* function, std::int64_t row_bytes, const LaunchContext& context) {
  const std::int64_t most = most_dynamic_shared_bytes(function, context);
  return row_bytes >= least_held_bytes && row_bytes <= most &&
         take_shared_memory("cross_entropy", function, most, Carveout::most_shared, context);
}

template <class Number>
void launch(std::string_view name, const Call<Number>& call, std::int64_t rows, bool hold,
            cudaStream_t stream) {
  constexpr int count = access_bytes / sizeof(Number);
  const auto blocks = static_cast<unsigned>(rows);
  const bool packs = call.columns % count == 0 && aligned_to_access(call.logits, call.gradient);
  if (packs && hold) {
    const auto bytes = static_cast<std::size_t>(call.columns) * sizeof(Number);
    cross_entropy_held<count><<<blocks, largest_block, bytes, stream>>>(call);
  } else if (packs) {
    cross_entropy<count><<<blocks, block_for(call.columns / count), 0, stream>>>(call);
  } else {
    cross_entropy<1><<<blocks, block_for(call.columns), 0, stream>>>(call);
  }
  check_launch(name);
}

enum class Scale { none, operand };

Launch launch_of(std::string_view name, const MatrixShape& shape, DType dtype,
                 const kernels::CrossEntropy::Attributes& attributes, Scale scale,
                 const LaunchContext& context) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    const bool hold = may_hold(cross_entropy_held<count, Number>,
                               shape.columns * static_cast<std::int64_t>(sizeof(Number)), context);
    return [=](void* const* buffers, cudaStream_t stream) {
      const bool scaled = scale == Scale::operand;
      const int output = scaled ? 3 : 2;
      const Call<Number> call{static_cast<const Number*>(buffers[0]),
                              static_cast<const std::int32_t*>(buffers[1]),
                              scaled ? static_cast<const float*>(buffers[2]) : nullptr,
                              static_cast<Number*>(buffers[output]),
                              static_cast<float*>(buffers[output + 1]),
                              shape.columns,
                              classes_of(shape, attributes),
                              static_cast<float>(rows_of_mean(shape, attributes))};
      launch(name, call, shape.rows, hold, stream);
    };
  });
}

}  // namespace

Launch kernels::CrossEntropy::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                      const LaunchContext& context) {
  return launch_of("cross_entropy", shape, dtype, attributes, Scale::none, context);
}

Launch kernels::ScaledCrossEntropy::prepare(const Shape& shape, DType dtype,
                                            const Attributes& attributes,
                                            const LaunchContext& context) {
  return launch_of("scaled_cross_entropy", shape, dtype, attributes, Scale::operand, context);
}

namespace {

constexpr int squared_error_threads = 256;

// A warp sums the squared errors of a row, in an order that depends on the columns alone.
template <class Number>
__global__ void __launch_bounds__(squared_error_threads)
    squared_error(const Number* prediction, const Number* target, Number* gradient,
                  float* row_losses, const MatrixShape shape) {
  constexpr int warp_size = 32;
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (squared_error_threads / warp_size) +
      threadIdx.x / warp_size;
  if (row >= shape.rows) return;
  const float slope = static_cast<float>(2 / static_cast<double>(shape.rows * shape.columns));
  float sum = 0.0f;
  for (std::int64_t c = threadIdx.x % warp_size; c < shape.columns; c += warp_size) {
    const std::int64_t i = row * shape.columns + c;
    const float error = to_float(prediction[i]) - to_float(target[i]);
    sum = fmaf(error, error, sum);
    gradient[i] = from_float<Number>(slope * error);
  }
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(whole_warp, sum, distance);
  if (threadIdx.x % warp_size == 0) row_losses[row] = sum / static_cast<float>(shape.columns);
}

}  // namespace

Launch kernels::SquaredError::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  const auto blocks =
      static_cast<unsigned>(ceiling_quotient(shape.rows, squared_error_threads / 32));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      squared_error<<<blocks, squared_error_threads, 0, stream>>>(
          static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[1]),
          static_cast<Number*>(buffers[2]), static_cast<float*>(buffers[3]), shape);
      check_launch(name);
    };
  });
}

namespace {

__global__ void mean_loss(float* sum, float* mean, float count) {
  *mean = *sum / count;
  *sum = 0.0f;
}

}  // namespace

Launch kernels::MeanLoss::prepare(const Shape&, DType, const Attributes& attributes,
                                  const LaunchContext&) {
  const auto count = static_cast<float>(attributes.count);
  return [count](void* const* buffers, cudaStream_t stream) {
    mean_loss<<<1, 1, 0, stream>>>(static_cast<float*>(buffers[0]), static_cast<float*>(buffers[1]),
                                   count);
    check_launch("mean_loss");
  };
}

namespace {

__global__ void accumulate_loss(const float* loss, float* sum) {
  *sum += *loss;
}

}  // namespace

Launch kernels::AccumulateLoss::prepare(const Shape&, DType, const Attributes&,
                                        const LaunchContext&) {
  return [](void* const* buffers, cudaStream_t stream) {
    accumulate_loss<<<1, 1, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                         static_cast<float*>(buffers[1]));
    check_launch("accumulate_loss");
  };
}

namespace {

constexpr int block_threads = 256;

__device__ std::uint64_t device_clock_nanoseconds() {
  std::uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

__device__ std::uint64_t multiprocessor_number() {
  std::uint32_t number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return number;
}

// One block sums: thread t adds rows t, t + 256, ..., then a fixed tree adds the threads.
__global__ void __launch_bounds__(block_threads)
    report_loss(const float* row_losses, float* loss, float* history, std::uint64_t* stamps,
                std::uint64_t* counter, std::uint64_t* cycles, std::int64_t rows,
                float rows_of_mean, std::uint64_t capacity) {
  __shared__ float partial[block_threads];
  float sum = 0.0f;
  for (std::int64_t row = threadIdx.x; row < rows; row += block_threads) sum += row_losses[row];
  partial[threadIdx.x] = sum;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x != 0) return;
  const float mean = partial[0] / rows_of_mean;
  const std::uint64_t step = *counter;
  *loss = mean;
  history[step % capacity] = mean;
  // The two clocks are read one after the other, so that their readings belong together.
  const std::uint64_t stamp = device_clock_nanoseconds();
  const auto cycle = static_cast<std::uint64_t>(clock64());
  stamps[step % capacity] = stamp;
  cycles[2 * (step % capacity)] = cycle;
  cycles[2 * (step % capacity) + 1] = multiprocessor_number();
  *counter = step + 1;
}

}  // namespace

Launch kernels::ReportLoss::prepare(const Shape& shape, DType, const Attributes& attributes,
                                    const LaunchContext&) {
  const auto capacity = static_cast<std::uint64_t>(attributes.capacity);
  const auto rows_of_mean = static_cast<float>(rows_of_loss(shape, attributes));
  return [rows = shape.rows, rows_of_mean, capacity](void* const* buffers, cudaStream_t stream) {
    report_loss<<<1, block_threads, 0, stream>>>(
        static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]),
        static_cast<float*>(buffers[2]), static_cast<std::uint64_t*>(buffers[3]),
        static_cast<std::uint64_t*>(buffers[4]), static_cast<std::uint64_t*>(buffers[5]), rows,
        rows_of_mean, capacity);
    check_launch("report_loss");
  };
}

}  // namespace stepgate
