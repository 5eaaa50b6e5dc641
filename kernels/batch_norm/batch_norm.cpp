// SPDX-License-Identifier: MIT
// Operands, work and host references of batch norm; batch_norm.h has their meaning and shapes.
#include "kernels/batch_norm/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "kernels/batch_norm/batch_statistics.h"

namespace stepgate {
namespace {

constexpr auto mask_bytes = [](const auto& s) { return s.rows * mask_bytes_of_row(s.columns); };

template <class Kernel>
constexpr OperandOf<Kernel> statistics_operand = {"statistics", Access::read,
                                                  extent::batch_statistics, OperandFormat::single};
template <class Kernel>
constexpr OperandOf<Kernel> partials_operand = {"partials", Access::write, extent::batch_partials,
                                                OperandFormat::single};

constexpr auto sums_operands = operands_of<kernels::BatchNormSums>({
    {"x", Access::read, extent::elements},
    partials_operand<kernels::BatchNormSums>,
});

void sums_reference(const CallOf<kernels::BatchNormSums>& call) {
  const auto [rows, columns, parts] = call.shape;
  const auto x = [&](std::int64_t i) { return number_at(call.buffers[0], call.dtype, i); };
  std::vector<double> sums(static_cast<std::size_t>(parts * 2 * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    double* part = sums.data() + row % parts * 2 * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double shifted = x(row * columns + c) - x(c);
      part[c] += shifted;
      part[columns + c] += shifted * shifted;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    set_number(call.buffers[1], single_of(call.dtype), static_cast<std::int64_t>(i), sums[i]);
}

constexpr auto finish_operands = operands_of<kernels::BatchNormFinish>({
    {"first_row", Access::read, extent::columns},
    {"partials", Access::read, extent::batch_partials, OperandFormat::single},
    {"weight", Access::read, extent::columns},
    {"bias", Access::read, extent::columns},
    {"running_mean", Access::read_write, extent::columns, OperandFormat::single},
    {"running_variance", Access::read_write, extent::columns, OperandFormat::single},
    {"statistics", Access::write, extent::batch_statistics, OperandFormat::single},
});

// The sums over all parts of a column's pair of partials.
struct ColumnPair {
  double first = 0, second = 0;
};

ColumnPair sum_of_parts(const void* partials, DType single, const PartsShape& shape,
                        std::int64_t column) {
  ColumnPair sum;
  for (std::int64_t part = 0; part < shape.parts; ++part) {
    const std::int64_t i = part * 2 * shape.columns + column;
    sum.first += number_at(partials, single, i);
    sum.second += number_at(partials, single, i + shape.columns);
  }
  return sum;
}

void finish_reference(const CallOf<kernels::BatchNormFinish>& call) {
  const auto& at = call.buffers;
  const DType single = single_of(call.dtype);
  const std::int64_t columns = call.shape.columns;
  const auto rows = static_cast<double>(call.shape.rows);
  const auto [epsilon, momentum] = call.attributes;
  for (std::int64_t c = 0; c < columns; ++c) {
    const auto [sum, squares] = sum_of_parts(at[1], single, call.shape, c);
    const double mean = number_at(at[0], call.dtype, c) + sum / rows;
    const double variance = std::max(squares / rows - sum / rows * (sum / rows), 0.0);
    const auto take_in = [&, momentum = momentum](void* running, double value) {
      const double old = number_at(running, single, c);
      set_number(running, single, c, (1 - momentum) * old + momentum * value);
    };
    take_in(at[4], mean);
    take_in(at[5], variance * rows / (rows - 1));
    const double reciprocal = 1 / std::sqrt(variance + epsilon);
    const auto set = [&](std::int64_t vector, double value) {
      set_number(at[6], single, vector * columns + c, value);
    };
    set(batch_statistics::mean, mean);
    set(batch_statistics::reciprocal, reciprocal);
    set(batch_statistics::scale, number_at(at[2], call.dtype, c) * reciprocal);
    set(batch_statistics::bias, number_at(at[3], call.dtype, c));
  }
}

constexpr auto apply_operands = operands_of<kernels::BatchNormApply>({
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormApply>,
    {"y", Access::write, extent::elements},
});

void apply_reference(const CallOf<kernels::BatchNormApply>& call) {
  const auto [x, statistics, y] = std::tuple{call.buffers[0], call.buffers[1], call.buffers[2]};
  const HostStatistics norm{statistics, single_of(call.dtype), call.shape.columns};
  for (std::int64_t i = 0; i < elements_of(call.shape); ++i) {
    const double value = norm.normed(number_at(x, call.dtype, i), i % call.shape.columns);
    set_number(y, call.dtype, i, call.attributes.relu && value <= 0 ? 0.0 : value);
  }
}

constexpr auto add_apply_operands = operands_of<kernels::BatchNormAddApply>({
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormAddApply>,
    {"residual", Access::read, extent::elements},
    {"y", Access::write, extent::elements},
    {"mask", Access::write, mask_bytes, OperandFormat::byte},
});

constexpr auto two_apply_operands = operands_of<kernels::BatchNormTwoApply>({
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormTwoApply>,
    {"shortcut", Access::read, extent::elements},
    {"shortcut_statistics", Access::read, extent::batch_statistics, OperandFormat::single},
    {"y", Access::write, extent::elements},
    {"mask", Access::write, mask_bytes, OperandFormat::byte},
});

bool is_masked_in(const void* mask, const MatrixShape& shape, std::int64_t i) {
  const std::int64_t row = i / shape.columns, c = i % shape.columns;
  const auto byte = static_cast<const std::uint8_t*>(mask)[row * ((shape.columns + 7) / 8) + c / 8];
  return (byte >> c % 8 & 1) != 0;
}

// Writes relu(norm(x) + other) and its mask; `other` returns the second summand of an element.
template <class Other>
void apply_sum(const MatrixShape& shape, DType dtype, const void* x, const void* statistics,
               void* y, void* mask, Other other) {
  const HostStatistics norm{statistics, single_of(dtype), shape.columns};
  auto* bytes = static_cast<std::uint8_t*>(mask);
  std::fill_n(bytes, static_cast<std::int64_t>(mask_bytes(shape)), std::uint8_t{0});
  for (std::int64_t i = 0; i < elements_of(shape); ++i) {
    const std::int64_t row = i / shape.columns, c = i % shape.columns;
    const double value = norm.normed(number_at(x, dtype, i), c) + other(i);
    set_number(y, dtype, i, std::max(value, 0.0));
    if (value > 0)
      bytes[row * ((shape.columns + 7) / 8) + c / 8] |= static_cast<std::uint8_t>(1 << c % 8);
  }
}

void add_apply_reference(const CallOf<kernels::BatchNormAddApply>& call) {
  const auto& at = call.buffers;
  apply_sum(call.shape, call.dtype, at[0], at[1], at[3], at[4],
            [&](std::int64_t i) { return number_at(at[2], call.dtype, i); });
}

void two_apply_reference(const CallOf<kernels::BatchNormTwoApply>& call) {
  const auto& at = call.buffers;
  const HostStatistics shortcut{at[3], single_of(call.dtype), call.shape.columns};
  apply_sum(call.shape, call.dtype, at[0], at[1], at[4], at[5], [&](std::int64_t i) {
    return shortcut.normed(number_at(at[2], call.dtype, i), i % call.shape.columns);
  });
}

// Writes the sums of d and of d n by parts; d(i) returns d of element i.
template <class Gradient>
void sum_batch_gradient(const PartsShape& shape, DType dtype, const void* x, const void* statistics,
                        void* partials, Gradient d) {
  const auto [rows, columns, parts] = shape;
  const DType single = single_of(dtype);
  const HostStatistics norm{statistics, single, columns};
  std::vector<double> sums(static_cast<std::size_t>(parts * 2 * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    double* part = sums.data() + row % parts * 2 * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double gradient = d(row * columns + c);
      part[c] += gradient;
      part[columns + c] += gradient * norm.normalised(number_at(x, dtype, row * columns + c), c);
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    set_number(partials, single, static_cast<std::int64_t>(i), sums[i]);
}

constexpr auto gradient_sums_operands = operands_of<kernels::BatchNormGradientSums>({
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormGradientSums>,
    partials_operand<kernels::BatchNormGradientSums>,
});

// Returns d of element i: d_y, or with a relu 0 where the norm of x is not positive.
double gradient_before_relu(bool relu, const void* d_y, const void* x, DType dtype,
                            const HostStatistics& norm, std::int64_t i) {
  const bool passes = !relu || norm.normed(number_at(x, dtype, i), i % norm.columns) > 0;
  return passes ? number_at(d_y, dtype, i) : 0;
}

void gradient_sums_reference(const CallOf<kernels::BatchNormGradientSums>& call) {
  const auto& at = call.buffers;
  const HostStatistics norm{at[2], single_of(call.dtype), call.shape.columns};
  sum_batch_gradient(call.shape, call.dtype, at[1], at[2], at[3], [&](std::int64_t i) {
    return gradient_before_relu(call.attributes.relu, at[0], at[1], call.dtype, norm, i);
  });
}

constexpr auto add_gradient_sums_operands = operands_of<kernels::BatchNormAddGradientSums>({
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormAddGradientSums>,
    {"mask", Access::read, mask_bytes, OperandFormat::byte},
    {.name = "d_sum", .access = Access::write, .elements = extent::elements, .may_replace = 0},
    partials_operand<kernels::BatchNormAddGradientSums>,
});

void add_gradient_sums_reference(const CallOf<kernels::BatchNormAddGradientSums>& call) {
  const auto& at = call.buffers;
  sum_batch_gradient(call.shape, call.dtype, at[1], at[2], at[5], [&](std::int64_t i) {
    const bool passes = is_masked_in(at[3], {call.shape.rows, call.shape.columns}, i);
    const double d = passes ? number_at(at[0], call.dtype, i) : 0;
    set_number(at[4], call.dtype, i, d);
    return d;
  });
}

constexpr auto gradient_finish_operands = operands_of<kernels::BatchNormGradientFinish>({
    {"partials", Access::read, extent::batch_partials, OperandFormat::single},
    {.name = "d_weight",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates},
    {.name = "d_bias",
     .access = Access::read_write,
     .elements = extent::columns,
     .accumulates = accumulates},
    {"means", Access::write, extent::batch_means, OperandFormat::single},
});

void gradient_finish_reference(const CallOf<kernels::BatchNormGradientFinish>& call) {
  const auto& at = call.buffers;
  const DType single = single_of(call.dtype);
  const auto rows = static_cast<double>(call.shape.rows);
  for (std::int64_t c = 0; c < call.shape.columns; ++c) {
    const auto [sum, projection] = sum_of_parts(at[0], single, call.shape, c);
    const auto add = [&](void* to, double value) {
      set_number(to, call.dtype, c,
                 value + (call.attributes.accumulate ? number_at(to, call.dtype, c) : 0));
    };
    add(at[1], projection);
    add(at[2], sum);
    set_number(at[3], single, c, sum / rows);
    set_number(at[3], single, call.shape.columns + c, projection / rows);
  }
}

constexpr auto gradient_apply_operands = operands_of<kernels::BatchNormGradientApply>({
    {"d_y", Access::read, extent::elements},
    {"x", Access::read, extent::elements},
    statistics_operand<kernels::BatchNormGradientApply>,
    {"means", Access::read, extent::batch_means, OperandFormat::single},
    {.name = "d_x", .access = Access::write, .elements = extent::elements, .may_replace = 1},
});

void gradient_apply_reference(const CallOf<kernels::BatchNormGradientApply>& call) {
  const auto& at = call.buffers;
  const HostStatistics norm{at[2], single_of(call.dtype), call.shape.columns};
  apply_batch_gradient(call.shape, call.dtype, at[1], at[2], at[3], at[4], [&](std::int64_t i) {
    return gradient_before_relu(call.attributes.relu, at[0], at[1], call.dtype, norm, i);
  });
}

// Flops of `an_element` for each element, and with a relu as many as `with_relu` more.
template <std::int64_t an_element, std::int64_t with_relu>
constexpr auto flops_with_relu = [](const auto& shape, const ReluAttributes& told) {
  return (an_element + (told.relu ? with_relu : 0)) * elements_of(shape);
};

// Flops for each part of each column, and for each column.
template <std::int64_t a_part, std::int64_t a_column>
constexpr auto flops_of_finish =
    [](const auto& shape) { return (a_part * shape.parts + a_column) * shape.columns; };

}  // namespace

// A norm takes 3 flops: subtract, scale, add the bias. A relu takes 1, and the gradients compute
// the norm again to know it.
// The shares of a device's speed are those of a ResNet-50's step on an H200. Sums wait for each
// other in their blocks, and what finishes them has few threads and a chain of loads.
std::vector<Kernel> batch_norm_kernels() {
  using namespace kernels;
  return {row<BatchNormSums, sums_reference>(sums_operands, flops_an_element<4>, {},
                                             {.share_of_rate = 0.85}),
          row<BatchNormFinish, finish_reference>(finish_operands, flops_of_finish<2, 17>, {},
                                                 {.share_of_rate = 0.34}),
          row<BatchNormApply, apply_reference>(apply_operands, flops_with_relu<3, 1>),
          row<BatchNormAddApply, add_apply_reference>(add_apply_operands, flops_an_element<5>),
          row<BatchNormTwoApply, two_apply_reference>(two_apply_operands, flops_an_element<8>),
          row<BatchNormGradientSums, gradient_sums_reference>(
              gradient_sums_operands, flops_with_relu<5, 3>, {}, {.share_of_rate = 0.85}),
          row<BatchNormAddGradientSums, add_gradient_sums_reference>(
              add_gradient_sums_operands, flops_an_element<5>, {}, {.share_of_rate = 0.93}),
          row<BatchNormGradientFinish, gradient_finish_reference>(
              gradient_finish_operands, flops_of_finish<2, 2>, {}, {.share_of_rate = 0.28}),
          row<BatchNormGradientApply, gradient_apply_reference>(gradient_apply_operands,
                                                                flops_with_relu<6, 3>)};
}

}  // namespace stepgate
