// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of group norm; group_norm.h has their meaning and shapes.
#include "kernels/group_norm/group_norm.h"

#include "kernels/batch_norm/finish_columns.cuh"
#include "kernels/walk_rows.cuh"

namespace stepgate {
namespace {

// A part of the image of a thread: eight channels of x or of the other operand. Where an eight
// would lie in both, the image is not `whole`.
template <class Number>
struct Sources {
  const Number* x;
  const Number* other;
  std::int64_t columns, others;

  __device__ Sources of_sample(std::int64_t first_row) const {
    return {x + first_row * columns, other + first_row * others, columns, others};
  }
  template <bool whole>
  __device__ __forceinline__ Octet<Number> at(std::int64_t row, std::int64_t channel,
                                              int count) const {
    if constexpr (whole) {
      return channel < columns ? load<octet>(x, row * columns + channel)
                               : load<octet>(other, row * others + channel - columns);
    } else {
      Octet<Number> numbers{};
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        const std::int64_t c = channel + i;
        if (i < count)
          numbers.values[i] =
              c < columns ? x[row * columns + c] : other[row * others + c - columns];
      }
      return numbers;
    }
  }
  bool aligned() const {
    return columns % octet == 0 && others % octet == 0 && aligned_to_access(x, other);
  }
};

// Where both gradients of the image go.
template <class Number>
struct Targets {
  Number* x;
  Number* other;
  std::int64_t columns, others;

  __device__ Targets of_sample(std::int64_t first_row) const {
    return {x + first_row * columns, other + first_row * others, columns, others};
  }
  __device__ Sources<Number> as_sources() const { return {x, other, columns, others}; }
  template <bool whole>
  __device__ __forceinline__ void set(std::int64_t row, std::int64_t channel, int count,
                                      const Octet<Number>& numbers) const {
    if constexpr (whole) {
      if (channel < columns)
        store<octet>(x, row * columns + channel, numbers);
      else
        store<octet>(other, row * others + channel - columns, numbers);
    } else {
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        const std::int64_t c = channel + i;
        if (i >= count) continue;
        (c < columns ? x[row * columns + c] : other[row * others + c - columns]) =
            numbers.values[i];
      }
    }
  }
};

// Rows whose inputs fit in a thread's registers at once.
template <class Number>
constexpr int rows_read_ahead = sizeof(Number) == 2 ? 4 : 2;

template <class Number>
struct SumsOnDevice {
  static constexpr bool has_sums = true;
  static constexpr int rows_at_once = 2 * rows_read_ahead<Number>, rows_of_thread = 1;
  Sources<Number> image;
  float* first;
  float* partials;
  std::int64_t pixels, parts;

  __device__ std::int64_t channels() const { return image.columns + image.others; }
  __device__ SumsOnDevice of_sample(std::int64_t sample) const {
    return {image.of_sample(sample * pixels), first + sample * channels(),
            partials + sample * parts * 2 * channels(), pixels, parts};
  }
  template <bool whole>
  __device__ Octet<Number> constants(std::int64_t channel, int count) const {
    return image.template at<whole>(0, channel, count);
  }
  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return image.template at<whole>(spot.row, spot.column, spot.count);
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Octet<Number>& of_first, const Octet<Number>& row,
                         ColumnSums& sums) const {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float shifted = number_of(row, i) - number_of(of_first, i);
      sums.first[i] += shifted;
      sums.second[i] = fmaf(shifted, shifted, sums.second[i]);
      if (spot.row == 0 && i < spot.count) first[spot.column + i] = number_of(row, i);
    }
  }
};

// Uses the exponential of the special function unit; where it overflows, the quotient is 0.
__device__ __forceinline__ float logistic(float x) {
  return __fdividef(1.0f, 1.0f + __expf(-x));
}

// The operands of a norm that has its statistics.
template <class Number>
struct NormOnDevice {
  Sources<Number> image;
  const float* statistics;  // of the groups
  const Number *weight, *bias;
  std::int64_t pixels, groups;
  int width;  // channels of a group

  __device__ NormOnDevice of_sample(std::int64_t sample) const {
    NormOnDevice of = *this;
    of.image = image.of_sample(sample * pixels);
    of.statistics = statistics + sample * groups * group_norm_numbers;
    return of;
  }
  bool aligned() const { return image.aligned() && aligned_to_access(statistics, weight, bias); }
};

// Loads the two numbers of the group of each of a thread's channels.
template <bool whole>
__device__ __forceinline__ void load_groups(const float* pairs, std::int64_t channel, int width,
                                            int count, float (&first)[octet],
                                            float (&second)[octet]) {
  int group = static_cast<int>(channel) / width;
  int next = (group + 1) * width - static_cast<int>(channel);
#pragma unroll
  for (int i = 0; i < octet; ++i) {
    if (i == next) {
      ++group;
      next += width;
    }
    if (i >= count) break;
    const float* pair = pairs + group * group_norm_numbers;
    if constexpr (whole) {
      const float2 both = *reinterpret_cast<const float2*>(pair);
      first[i] = both.x;
      second[i] = both.y;
    } else {
      first[i] = pair[0];
      second[i] = pair[1];
    }
  }
}

// The norm of a thread's channels.
struct NormOfChannels {
  float mean[octet], reciprocal[octet];
  float weight[octet], bias[octet];

  template <bool whole, class Number>
  static __device__ __forceinline__ NormOfChannels at(const NormOnDevice<Number>& of,
                                                      std::int64_t channel, int count) {
    const auto weights = load_octet<whole>(of.weight, channel, count);
    const auto biases = load_octet<whole>(of.bias, channel, count);
    NormOfChannels norm{};
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      norm.weight[i] = number_of(weights, i);
      norm.bias[i] = number_of(biases, i);
    }
    load_groups<whole>(of.statistics, channel, of.width, count, norm.mean, norm.reciprocal);
    return norm;
  }
  __device__ __forceinline__ float normalised(float x, int i) const {
    return (x - mean[i]) * reciprocal[i];
  }
  __device__ __forceinline__ float normed(float n, int i) const {
    return fmaf(n, weight[i], bias[i]);
  }
  // d from d_y and the normalised number.
  template <bool silu>
  __device__ __forceinline__ float d(float d_y, float n, int i) const {
    if constexpr (!silu) return d_y;
    const float z = normed(n, i), s = logistic(z);
    return d_y * s * fmaf(z, 1.0f - s, 1.0f);
  }
};

template <class Number, bool silu>
struct ApplyOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = rows_read_ahead<Number>, rows_of_thread = 16;
  NormOnDevice<Number> norm;
  Number* y;

  __device__ ApplyOnDevice of_sample(std::int64_t sample) const {
    const std::int64_t channels = norm.image.columns + norm.image.others;
    return {norm.of_sample(sample), y + sample * norm.pixels * channels};
  }
  template <bool whole>
  __device__ NormOfChannels constants(std::int64_t channel, int count) const {
    return NormOfChannels::at<whole>(norm, channel, count);
  }
  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return norm.image.template at<whole>(spot.row, spot.column, spot.count);
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const NormOfChannels& of, const Octet<Number>& x,
                         ColumnSums&) const {
    float results[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float z = of.normed(of.normalised(number_of(x, i), i), i);
      results[i] = silu ? z * logistic(z) : z;
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(results));
  }
};

template <class Number, bool silu>
struct GradientSumsOnDevice {
  static constexpr bool has_sums = true;
  static constexpr int rows_at_once = rows_read_ahead<Number>, rows_of_thread = 1;
  NormOnDevice<Number> norm;
  const Number* d_y;
  float* partials;
  std::int64_t parts;

  struct Inputs {
    Octet<Number> x, d_y;
  };
  __device__ GradientSumsOnDevice of_sample(std::int64_t sample) const {
    const std::int64_t channels = norm.image.columns + norm.image.others;
    return {norm.of_sample(sample), d_y + sample * norm.pixels * channels,
            partials + sample * parts * 2 * channels, parts};
  }
  template <bool whole>
  __device__ NormOfChannels constants(std::int64_t channel, int count) const {
    return NormOfChannels::at<whole>(norm, channel, count);
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    return {norm.image.template at<whole>(spot.row, spot.column, spot.count),
            load_octet<whole>(d_y, spot.index, spot.count)};
  }
  template <bool whole>
  __device__ void finish(const Spot&, const NormOfChannels& of, const Inputs& inputs,
                         ColumnSums& sums) const {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float n = of.normalised(number_of(inputs.x, i), i);
      const float d = of.template d<silu>(number_of(inputs.d_y, i), n, i);
      sums.first[i] += d;
      sums.second[i] = fmaf(d, n, sums.second[i]);
    }
  }
};

template <class Number, bool silu, bool accumulate>
struct GradientApplyOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = rows_read_ahead<Number> / 2, rows_of_thread = 16;
  NormOnDevice<Number> norm;
  const Number* d_y;
  const float* means;
  Targets<Number> gradients;

  struct Constants {
    NormOfChannels of;
    float mean[octet], projection[octet];
  };
  struct Inputs {
    Octet<Number> x, d_y, old;
  };
  __device__ GradientApplyOnDevice of_sample(std::int64_t sample) const {
    const std::int64_t channels = norm.image.columns + norm.image.others;
    return {norm.of_sample(sample), d_y + sample * norm.pixels * channels,
            means + sample * norm.groups * group_norm_numbers,
            gradients.of_sample(sample * norm.pixels)};
  }
  template <bool whole>
  __device__ Constants constants(std::int64_t channel, int count) const {
    Constants made{NormOfChannels::at<whole>(norm, channel, count), {}, {}};
    load_groups<whole>(means, channel, norm.width, count, made.mean, made.projection);
    return made;
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    Inputs inputs;
    inputs.x = norm.image.template at<whole>(spot.row, spot.column, spot.count);
    inputs.d_y = load_octet<whole>(d_y, spot.index, spot.count);
    if constexpr (accumulate)
      inputs.old = gradients.as_sources().template at<whole>(spot.row, spot.column, spot.count);
    return inputs;
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Constants& column, const Inputs& inputs,
                         ColumnSums&) const {
    float results[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float n = column.of.normalised(number_of(inputs.x, i), i);
      const float d = column.of.template d<silu>(number_of(inputs.d_y, i), n, i);
      const float inner = fmaf(column.of.weight[i], d, -column.mean[i]) - n * column.projection[i];
      results[i] = column.of.reciprocal[i] * inner;
      if constexpr (accumulate) results[i] += number_of(inputs.old, i);
    }
    gradients.template set<whole>(spot.row, spot.column, spot.count, packed<Number>(results));
  }
};

constexpr int warp_size = 32;

__device__ __forceinline__ double over_warp(double value) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// Both sums over the parts of a channel of a sample, for each lane of a warp that has one. Several
// lanes share a channel where a group has few; the first of them gets the sums. `channel` counts
// from the group's first.
struct PartsOfGroup {
  const float* partials;  // of the sample and the group's first channel
  std::int64_t parts, channels;
  int width;

  // Calls with(read(channel), both sums) for each channel, which is read before its parts are.
  template <class Read, class Function>
  __device__ __forceinline__ void for_each_channel(Read read, Function with) const {
    const int lane = threadIdx.x % warp_size;
    const int lanes = width < warp_size ? width : warp_size, sharing = warp_size / lanes;
    for (int from = 0; from < width; from += lanes) {
      const int channel = from + lane % lanes, share = lane / lanes;
      double first = 0, second = 0;
      float of_channel = 0;
      if (channel < width && share < sharing) {
        of_channel = read(channel);
        add_parts(partials + channel, share, sharing, parts, channels, first, second);
      }
      double sum = first, other_sum = second;
      for (int other = 1; other < sharing; ++other) {
        sum += __shfl_down_sync(0xffffffffu, first, other * lanes);
        other_sum += __shfl_down_sync(0xffffffffu, second, other * lanes);
      }
      if (channel < width && share == 0) with(of_channel, sum, other_sum);
    }
  }
};

constexpr int group_threads = 256;

// A warp finishes a group of a sample. The means of its channels are counted from the first pixel
// of its first channel.
__global__ void __launch_bounds__(group_threads)
    finish_groups(const float* first, const float* partials, float* statistics,
                  const GroupNormPartsShape shape, double epsilon) {
  const std::int64_t index =
      static_cast<std::int64_t>(blockIdx.x) * (group_threads / warp_size) + threadIdx.x / warp_size;
  if (index >= shape.samples * shape.groups) return;
  const std::int64_t channels = shape.columns + shape.others, sample = index / shape.groups;
  const int width = static_cast<int>(channels / shape.groups);
  const std::int64_t from = index % shape.groups * width;
  const float* of_first = first + sample * channels + from;
  const PartsOfGroup group{partials + sample * shape.parts * 2 * channels + from, shape.parts,
                           channels, width};
  const double pixels = static_cast<double>(shape.pixels);
  const double base = of_first[0];
  double means = 0, squared_means = 0, variances = 0;
  const auto first_of = [&](int channel) { return of_first[channel]; };
  group.for_each_channel(first_of, [&](float of_channel, double sum, double squares) {
    const double shift = sum / pixels;
    const double mean = of_channel - base + shift;
    means += mean;
    squared_means += mean * mean;
    variances += squares / pixels - shift * shift;
  });
  const double mean = over_warp(means) / width;
  const double variance = (over_warp(variances) + over_warp(squared_means)) / width - mean * mean;
  if (threadIdx.x % warp_size != 0) return;
  statistics[index * group_norm_numbers] = static_cast<float>(base + mean);
  statistics[index * group_norm_numbers + 1] =
      static_cast<float>(1 / sqrt((variance < 0 ? 0 : variance) + epsilon));
}

// The first blocks finish the gradients of the parameters, whose parts are those of all samples.
// Each warp of the others finishes the means of a group of a sample.
template <class Number>
__global__ void __launch_bounds__(finish_threads)
    finish_gradients(const float* partials, const Number* weight, float* means,
                     const GroupNormPartsShape shape, const ParameterGradients<Number> parameters) {
  const std::int64_t channels = shape.columns + shape.others;
  const std::int64_t blocks = (channels + finish_block_columns - 1) / finish_block_columns;
  if (blockIdx.x < blocks) {
    finish_columns(partials, shape.samples * shape.parts, channels, blockIdx.x, parameters);
    return;
  }
  const std::int64_t index =
      (blockIdx.x - blocks) * (finish_threads / warp_size) + threadIdx.x / warp_size;
  if (index >= shape.samples * shape.groups) return;
  const std::int64_t sample = index / shape.groups;
  const int width = static_cast<int>(channels / shape.groups);
  const std::int64_t from = index % shape.groups * width;
  const PartsOfGroup group{partials + sample * shape.parts * 2 * channels + from, shape.parts,
                           channels, width};
  double mean = 0, projection = 0;
  const auto weight_of = [&](int channel) { return to_float(weight[from + channel]); };
  group.for_each_channel(weight_of, [&](double factor, double sum, double of_projections) {
    mean += factor * sum;
    projection += factor * of_projections;
  });
  mean = over_warp(mean);
  projection = over_warp(projection);
  if (threadIdx.x % warp_size != 0) return;
  const double numbers = static_cast<double>(shape.pixels * width);
  means[index * group_norm_numbers] = static_cast<float>(mean / numbers);
  means[index * group_norm_numbers + 1] = static_cast<float>(projection / numbers);
}

template <class Number>
Sources<Number> sources_of(const auto& shape, void* const* buffers) {
  return {static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[1]),
          shape.columns, shape.others};
}

// The norm whose operands begin with x.
template <class Number>
NormOnDevice<Number> norm_of(const auto& shape, void* const* buffers) {
  return {sources_of<Number>(shape, buffers),
          static_cast<const float*>(buffers[2]),
          static_cast<const Number*>(buffers[3]),
          static_cast<const Number*>(buffers[4]),
          shape.pixels,
          shape.groups,
          static_cast<int>(shape.channels() / shape.groups)};
}

// Calls with(zero, constant) with a number of the storage type, and with std::true_type or
// std::false_type.
template <class Function>
Launch with_storage_and(DType dtype, bool constant, Function with) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    return constant ? with(zero, std::true_type{}) : with(zero, std::false_type{});
  });
}

}  // namespace

Launch kernels::GroupNormSums::prepare(const Shape& shape, DType dtype, const Attributes&,
                                       const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const SumsOnDevice<Number> element{
          sources_of<Number>(shape, buffers), static_cast<float*>(buffers[2]),
          static_cast<float*>(buffers[3]), shape.pixels, shape.parts};
      launch_walk(name, element, {shape.pixels, shape.channels(), shape.parts},
                  element.image.aligned(), stream, shape.samples);
    };
  });
}

Launch kernels::GroupNormFinish::prepare(const Shape& shape, DType, const Attributes& attributes,
                                         const LaunchContext&) {
  const auto blocks = static_cast<unsigned>(
      ceiling_quotient(shape.samples * shape.groups, group_threads / warp_size));
  return [=](void* const* buffers, cudaStream_t stream) {
    finish_groups<<<blocks, group_threads, 0, stream>>>(
        static_cast<const float*>(buffers[0]), static_cast<const float*>(buffers[1]),
        static_cast<float*>(buffers[2]), shape, attributes.epsilon);
    check_launch(name);
  };
}

Launch kernels::GroupNormApply::prepare(const Shape& shape, DType dtype,
                                        const Attributes& attributes, const LaunchContext&) {
  return with_storage_and(dtype, attributes.silu, [&](auto zero, auto silu) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const ApplyOnDevice<Number, silu.value> element{norm_of<Number>(shape, buffers),
                                                      static_cast<Number*>(buffers[5])};
      launch_walk(name, element, {shape.pixels, shape.channels()},
                  element.norm.aligned() && aligned_to_access(element.y), stream, shape.samples);
    };
  });
}

Launch kernels::GroupNormGradientSums::prepare(const Shape& shape, DType dtype,
                                               const Attributes& attributes, const LaunchContext&) {
  return with_storage_and(dtype, attributes.silu, [&](auto zero, auto silu) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const GradientSumsOnDevice<Number, silu.value> element{
          norm_of<Number>(shape, buffers + 1), static_cast<const Number*>(buffers[0]),
          static_cast<float*>(buffers[6]), shape.parts};
      launch_walk(name, element, {shape.pixels, shape.channels(), shape.parts},
                  element.norm.aligned() && aligned_to_access(element.d_y), stream, shape.samples);
    };
  });
}

Launch kernels::GroupNormGradientFinish::prepare(const Shape& shape, DType dtype,
                                                 const Attributes& attributes,
                                                 const LaunchContext&) {
  const auto blocks = static_cast<unsigned>(
      ceiling_quotient(shape.channels(), finish_block_columns) +
      ceiling_quotient(shape.samples * shape.groups, finish_threads / warp_size));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const ParameterGradients<Number> parameters{static_cast<Number*>(buffers[2]),
                                                  static_cast<Number*>(buffers[3]),
                                                  attributes.accumulate};
      finish_gradients<<<blocks, finish_threads, 0, stream>>>(
          static_cast<const float*>(buffers[0]), static_cast<const Number*>(buffers[1]),
          static_cast<float*>(buffers[4]), shape, parameters);
      check_launch(name);
    };
  });
}

Launch kernels::GroupNormGradientApply::prepare(const Shape& shape, DType dtype,
                                                const Attributes& attributes,
                                                const LaunchContext&) {
  return with_storage_and(dtype, attributes.silu, [&](auto zero, auto silu) -> Launch {
    using Number = decltype(zero);
    const auto launch = [&](auto accumulate) -> Launch {
      return [=](void* const* buffers, cudaStream_t stream) {
        const Targets<Number> gradients{static_cast<Number*>(buffers[7]),
                                        static_cast<Number*>(buffers[8]), shape.columns,
                                        shape.others};
        const GradientApplyOnDevice<Number, silu.value, accumulate.value> element{
            norm_of<Number>(shape, buffers + 1), static_cast<const Number*>(buffers[0]),
            static_cast<const float*>(buffers[6]), gradients};
        launch_walk(name, element, {shape.pixels, shape.channels()},
                    element.norm.aligned() &&
                        aligned_to_access(element.d_y, element.means, gradients.x, gradients.other),
                    stream, shape.samples);
      };
    };
    return attributes.accumulate ? launch(std::true_type{}) : launch(std::false_type{});
  });
}

}  // namespace stepgate
