// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of batch norm; batch_norm.h has their meaning and shapes.
#include "kernels/batch_norm/batch_norm.h"

#include "kernels/batch_norm/batch_norm.cuh"
#include "kernels/batch_norm/finish_columns.cuh"

namespace stepgate {
namespace {

// The buffers of a launch, in the order of the operands.
struct Buffers {
  void* const* at;

  template <class Element>
  Element* as(int operand) const {
    return static_cast<Element*>(at[operand]);
  }
  float* single(int operand) const { return as<float>(operand); }
};

template <class Number>
struct SumsOnDevice {
  static constexpr bool has_sums = true;
  static constexpr int rows_at_once = 2 * rows_in_flight<Number>, rows_of_thread = 1;
  const Number* x;
  float* partials;

  template <bool whole>
  __device__ Octet<Number> constants(std::int64_t column, int count) const {
    return load_octet<whole>(x, column, count);
  }
  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return load_octet<whole>(x, spot.index, spot.count);
  }
  template <bool whole>
  __device__ void finish(const Spot&, const Octet<Number>& first, const Octet<Number>& row,
                         ColumnSums& sums) const {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float shifted = number_of(row, i) - number_of(first, i);
      sums.first[i] += shifted;
      sums.second[i] = fmaf(shifted, shifted, sums.second[i]);
    }
  }
};

template <class Finish>
__global__ void __launch_bounds__(finish_threads)
    finish_parts(const float* partials, std::int64_t parts, std::int64_t columns,
                 const Finish finish) {
  finish_columns(partials, parts, columns, blockIdx.x, finish);
}

template <class Finish>
void launch_finish(std::string_view kernel, const float* partials, const PartsShape& shape,
                   const Finish& finish, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.columns, finish_block_columns));
  finish_parts<<<blocks, finish_threads, 0, stream>>>(partials, shape.parts, shape.columns, finish);
  check_launch(kernel);
}

template <class Number>
struct StatisticsOnDevice {
  const Number *first_row, *weight, *bias;
  float *running_mean, *running_variance, *statistics;
  std::int64_t columns;
  double rows, epsilon, momentum;

  struct Inputs {
    float first, weight, bias, running_mean, running_variance;
  };
  __device__ Inputs read(std::int64_t c) const {
    return {to_float(first_row[c]), to_float(weight[c]), to_float(bias[c]), running_mean[c],
            running_variance[c]};
  }
  __device__ void operator()(std::int64_t c, const Inputs& of, double sum, double squares) const {
    const double shift = sum / rows;
    const double mean = of.first + shift;
    const double biased = squares / rows - shift * shift;
    const double variance = biased < 0 ? 0 : biased;
    running_mean[c] = taken_in(of.running_mean, mean);
    running_variance[c] = taken_in(of.running_variance, variance * rows / (rows - 1));
    const double reciprocal = 1 / sqrt(variance + epsilon);
    statistics[batch_statistics::mean * columns + c] = static_cast<float>(mean);
    statistics[batch_statistics::reciprocal * columns + c] = static_cast<float>(reciprocal);
    statistics[batch_statistics::scale * columns + c] = static_cast<float>(of.weight * reciprocal);
    statistics[batch_statistics::bias * columns + c] = of.bias;
  }
  __device__ float taken_in(float running, double value) const {
    return static_cast<float>((1 - momentum) * running + momentum * value);
  }
};

// Stores the gradients of the parameters, and the means of d and of d n.
template <class Number>
struct MeansOnDevice {
  ParameterGradients<Number> parameters;
  float* means;
  std::int64_t columns;
  double rows;

  __device__ auto read(std::int64_t c) const { return parameters.read(c); }
  __device__ void operator()(std::int64_t c, const auto& old, double sum, double projection) const {
    parameters(c, old, sum, projection);
    means[c] = static_cast<float>(sum / rows);
    means[columns + c] = static_cast<float>(projection / rows);
  }
};

// A step that follows the norm before the result is stored.
enum class Then { nothing, relu, residual, shortcut };

template <class Number, Then then>
struct ApplyOnDevice {
  static constexpr bool has_sums = false;
  static constexpr bool has_other = then == Then::residual || then == Then::shortcut;
  static constexpr int rows_at_once = rows_in_flight<Number>, rows_of_thread = 16;
  const Number* x;
  const float* statistics;
  Number* y;
  const Number* other = nullptr;  // residual or shortcut
  const float* other_statistics = nullptr;
  std::uint8_t* mask = nullptr;
  std::int64_t columns;

  struct Constants {
    NormOfColumns norm, other;
  };
  struct Inputs {
    Octet<Number> x, other;
  };
  template <bool whole>
  __device__ Constants constants(std::int64_t column, int count) const {
    Constants of;
    of.norm = NormOfColumns::at<whole>(statistics, columns, column, count);
    if constexpr (then == Then::shortcut)
      of.other = NormOfColumns::at<whole>(other_statistics, columns, column, count);
    return of;
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    Inputs of;
    of.x = load_octet<whole>(x, spot.index, spot.count);
    if constexpr (has_other) of.other = load_octet<whole>(other, spot.index, spot.count);
    return of;
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Constants& column, const Inputs& inputs,
                         ColumnSums&) const {
    float results[octet];
    unsigned positive = 0;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      float value = column.norm.normed(number_of(inputs.x, i), i);
      if constexpr (then == Then::residual) value += number_of(inputs.other, i);
      if constexpr (then == Then::shortcut)
        value += column.other.normed(number_of(inputs.other, i), i);
      if (value > 0.0f && i < spot.count) positive |= 1u << i;
      // A NaN stays a NaN.
      results[i] = then != Then::nothing && value <= 0.0f ? 0.0f : value;
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(results));
    if constexpr (has_other)
      mask[spot.row * ((columns + octet - 1) / octet) + spot.column / octet] =
          static_cast<std::uint8_t>(positive);
  }
};

template <class Number, bool relu>
struct StoredGradient {
  static constexpr bool has_relu = relu;
  static constexpr int rows_at_once = rows_in_flight<Number>;
  const Number* d_y;

  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return load_octet<whole>(d_y, spot.index, spot.count);
  }
  __device__ float at(const Octet<Number>& d, int i) const { return number_of(d, i); }
  template <bool whole>
  __device__ void keep(const Spot&, const float (&)[octet]) const {}
};

// d_y where the mask is set; it is kept as d_sum.
template <class Number>
struct MaskedGradient {
  static constexpr bool has_relu = false;
  static constexpr int rows_at_once = rows_in_flight<Number>;
  const Number* d_y;
  const std::uint8_t* mask;
  Number* d_sum;
  std::int64_t mask_columns;

  struct Inputs {
    Octet<Number> d;
    unsigned mask;
  };
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    return {load_octet<whole>(d_y, spot.index, spot.count),
            mask[spot.row * mask_columns + spot.column / octet]};
  }
  __device__ float at(const Inputs& inputs, int i) const {
    return (inputs.mask >> i & 1u) != 0 ? number_of(inputs.d, i) : 0.0f;
  }
  template <bool whole>
  __device__ void keep(const Spot& spot, const float (&d)[octet]) const {
    store_octet<whole>(d_sum, spot.index, spot.count, packed<Number>(d));
  }
};

// Sums d and d n by parts; keep<whole>(spot, d) of the Source stores d where someone reads it
// later.
template <class Number, class Source>
struct GradientSumsOnDevice {
  static constexpr bool has_sums = true;
  static constexpr int rows_at_once = Source::rows_at_once, rows_of_thread = 1;
  Source source;
  const Number* x;
  const float* statistics;
  float* partials;
  std::int64_t columns;

  template <bool whole>
  __device__ GradientOfColumns constants(std::int64_t column, int count) const {
    return GradientOfColumns::at<whole>(statistics, columns, column, count);
  }
  template <bool whole>
  __device__ GradientInputs<Number, Source> read(const Spot& spot) const {
    return {load_octet<whole>(x, spot.index, spot.count), source.template read<whole>(spot)};
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const GradientOfColumns& column,
                         const GradientInputs<Number, Source>& inputs, ColumnSums& sums) const {
    float d[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      d[i] = inputs.d(source, column.norm, i);
      sums.first[i] += d[i];
      sums.second[i] = fmaf(d[i], column.normalised(number_of(inputs.x, i), i), sums.second[i]);
    }
    source.template keep<whole>(spot, d);
  }
};

template <Then then>
Launch prepare_apply(std::string_view name, const MatrixShape& shape, DType dtype) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      ApplyOnDevice<Number, then> element{.columns = shape.columns};
      element.x = at.as<Number>(0);
      element.statistics = at.single(1);
      int next = 2;
      if constexpr (element.has_other) element.other = at.as<Number>(next++);
      if constexpr (then == Then::shortcut) element.other_statistics = at.single(next++);
      element.y = at.as<Number>(next++);
      if constexpr (element.has_other) element.mask = at.as<std::uint8_t>(next);
      const bool aligned = aligned_to_access(element.x, element.statistics, element.other,
                                             element.other_statistics, element.y);
      launch_walk(name, element, {shape.rows, shape.columns}, aligned, stream);
    };
  });
}

}  // namespace

Launch kernels::BatchNormSums::prepare(const Shape& shape, DType dtype, const Attributes&,
                                       const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      const SumsOnDevice<Number> element{at.as<Number>(0), at.single(1)};
      launch_walk(name, element, shape, aligned_to_access(element.x), stream);
    };
  });
}

Launch kernels::BatchNormFinish::prepare(const Shape& shape, DType dtype,
                                         const Attributes& attributes, const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      const StatisticsOnDevice<Number> finish{
          at.as<Number>(0),   at.as<Number>(2),   at.as<Number>(3), at.single(4),
          at.single(5),       at.single(6),       shape.columns,    static_cast<double>(shape.rows),
          attributes.epsilon, attributes.momentum};
      launch_finish(name, at.single(1), shape, finish, stream);
    };
  });
}

Launch kernels::BatchNormApply::prepare(const Shape& shape, DType dtype,
                                        const Attributes& attributes, const LaunchContext&) {
  return attributes.relu ? prepare_apply<Then::relu>(name, shape, dtype)
                         : prepare_apply<Then::nothing>(name, shape, dtype);
}

Launch kernels::BatchNormAddApply::prepare(const Shape& shape, DType dtype, const Attributes&,
                                           const LaunchContext&) {
  return prepare_apply<Then::residual>(name, shape, dtype);
}

Launch kernels::BatchNormTwoApply::prepare(const Shape& shape, DType dtype, const Attributes&,
                                           const LaunchContext&) {
  return prepare_apply<Then::shortcut>(name, shape, dtype);
}

namespace {

// The launcher of a gradient kernel whose d passes a relu or not; `launch` is called with a Source
// type.
template <class Function>
Launch with_stored_gradient(DType dtype, bool relu, Function launch) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    if (relu) return launch(zero, StoredGradient<Number, true>{});
    return launch(zero, StoredGradient<Number, false>{});
  });
}

}  // namespace

Launch kernels::BatchNormGradientSums::prepare(const Shape& shape, DType dtype,
                                               const Attributes& attributes, const LaunchContext&) {
  return with_stored_gradient(dtype, attributes.relu, [&](auto zero, auto source) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      GradientSumsOnDevice<Number, decltype(source)> element{
          {at.as<Number>(0)}, at.as<Number>(1), at.single(2), at.single(3), shape.columns};
      const bool aligned = aligned_to_access(element.source.d_y, element.x, element.statistics);
      launch_walk(name, element, shape, aligned, stream);
    };
  });
}

Launch kernels::BatchNormAddGradientSums::prepare(const Shape& shape, DType dtype,
                                                  const Attributes&, const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      const MaskedGradient<Number> source{at.as<Number>(0), at.as<std::uint8_t>(3),
                                          at.as<Number>(4), (shape.columns + octet - 1) / octet};
      const GradientSumsOnDevice<Number, MaskedGradient<Number>> element{
          source, at.as<Number>(1), at.single(2), at.single(5), shape.columns};
      const bool aligned =
          aligned_to_access(source.d_y, source.d_sum, element.x, element.statistics);
      launch_walk(name, element, shape, aligned, stream);
    };
  });
}

Launch kernels::BatchNormGradientFinish::prepare(const Shape& shape, DType dtype,
                                                 const Attributes& attributes,
                                                 const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      const MeansOnDevice<Number> finish{
          {at.as<Number>(1), at.as<Number>(2), attributes.accumulate},
          at.single(3),
          shape.columns,
          static_cast<double>(shape.rows)};
      launch_finish(name, at.single(0), shape, finish, stream);
    };
  });
}

Launch kernels::BatchNormGradientApply::prepare(const Shape& shape, DType dtype,
                                                const Attributes& attributes,
                                                const LaunchContext&) {
  return with_stored_gradient(dtype, attributes.relu, [&](auto zero, auto source) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Buffers at{buffers};
      GradientApplyOnDevice<Number, decltype(source)> element{{at.as<Number>(0)}, at.as<Number>(1),
                                                              at.single(2),       at.single(3),
                                                              at.as<Number>(4),   shape.columns};
      const bool aligned = aligned_to_access(element.source.d_y, element.x, element.statistics,
                                             element.means, element.d_x);
      launch_walk(name, element, {shape.rows, shape.columns}, aligned, stream);
    };
  });
}

}  // namespace stepgate
