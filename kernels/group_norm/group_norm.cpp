// SPDX-License-Identifier: MIT
// Operands, work and host references of group norm; group_norm.h has their meaning and shapes.
#include "kernels/group_norm/group_norm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto of_x = [](const auto& s) { return s.samples * s.pixels * s.columns; };
constexpr auto of_other = [](const auto& s) { return s.samples * s.pixels * s.others; };
constexpr auto of_both = [](const auto& s) { return s.samples * s.pixels * s.channels(); };
constexpr auto of_channels = [](const auto& s) { return s.channels(); };
constexpr auto of_group_samples = [](const auto& s) { return s.samples * s.channels(); };
constexpr auto of_groups = [](const auto& s) { return s.samples * s.groups * group_norm_numbers; };
constexpr auto of_parts = [](const auto& s) { return s.samples * s.parts * 2 * s.channels(); };

// The image of both operands side by side.
struct Sources {
  const void* x;
  const void* other;
  DType dtype;
  std::int64_t columns, others;

  Sources(const auto& call, std::size_t first)
      : x(call.buffers[first]),
        other(call.buffers[first + 1]),
        dtype(call.dtype),
        columns(call.shape.columns),
        others(call.shape.others) {}
  double at(std::int64_t row, std::int64_t channel) const {
    return channel < columns ? number_at(x, dtype, row * columns + channel)
                             : number_at(other, dtype, row * others + channel - columns);
  }
};

// The sum over the parts of a sample's channel, in the first or the second vector of the partials.
double sum_of_parts(const void* partials, DType single, const GroupNormPartsShape& shape,
                    std::int64_t sample, std::int64_t vector, std::int64_t channel) {
  double sum = 0;
  for (std::int64_t part = 0; part < shape.parts; ++part)
    sum += number_at(partials, single,
                     ((sample * shape.parts + part) * 2 + vector) * shape.channels() + channel);
  return sum;
}

constexpr auto group_sums_operands = operands_of<kernels::GroupNormSums>({
    {"x", Access::read, of_x},
    {"other", Access::read, of_other},
    {"first", Access::write, of_group_samples, OperandFormat::single},
    {"partials", Access::write, of_parts, OperandFormat::single},
});

// Writes the sums over each part of a sample of both terms(sample, row, channel).
template <class Terms>
void sum_by_parts(const GroupNormPartsShape& shape, DType dtype, void* partials, Terms terms) {
  const std::int64_t channels = shape.channels();
  std::vector<double> sums(static_cast<std::size_t>(2 * channels));
  for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
    for (std::int64_t part = 0; part < shape.parts; ++part) {
      std::ranges::fill(sums, 0.0);
      for (std::int64_t pixel = part; pixel < shape.pixels; pixel += shape.parts) {
        for (std::int64_t channel = 0; channel < channels; ++channel) {
          const auto [first, second] = terms(sample, sample * shape.pixels + pixel, channel);
          sums[static_cast<std::size_t>(channel)] += first;
          sums[static_cast<std::size_t>(channels + channel)] += second;
        }
      }
      for (std::int64_t i = 0; i < 2 * channels; ++i)
        set_number(partials, single_of(dtype), (sample * shape.parts + part) * 2 * channels + i,
                   sums[static_cast<std::size_t>(i)]);
    }
  }
}

void group_sums_reference(const CallOf<kernels::GroupNormSums>& call) {
  const Sources image(call, 0);
  const auto& shape = call.shape;
  for (std::int64_t i = 0; i < shape.samples * shape.channels(); ++i)
    set_number(call.buffers[2], single_of(call.dtype), i,
               image.at(i / shape.channels() * shape.pixels, i % shape.channels()));
  sum_by_parts(shape, call.dtype, call.buffers[3],
               [&](std::int64_t sample, std::int64_t row, std::int64_t channel) {
                 const double shifted =
                     image.at(row, channel) - image.at(sample * shape.pixels, channel);
                 return std::pair{shifted, shifted * shifted};
               });
}

constexpr auto group_finish_operands = operands_of<kernels::GroupNormFinish>({
    {"first", Access::read, of_group_samples, OperandFormat::single},
    {"partials", Access::read, of_parts, OperandFormat::single},
    {"statistics", Access::write, of_groups, OperandFormat::single},
});

// The variance of a group is that within its channels and that of their means.
void group_finish_reference(const CallOf<kernels::GroupNormFinish>& call) {
  const auto& shape = call.shape;
  const DType single = single_of(call.dtype);
  const std::int64_t channels = shape.channels(), width = channels / shape.groups;
  const auto pixels = static_cast<double>(shape.pixels);
  for (std::int64_t i = 0; i < shape.samples * shape.groups; ++i) {
    const std::int64_t sample = i / shape.groups, from = i % shape.groups * width;
    const auto mean_of = [&](std::int64_t channel) {
      return number_at(call.buffers[0], single, sample * channels + channel) +
             sum_of_parts(call.buffers[1], single, shape, sample, 0, channel) / pixels;
    };
    double mean = 0;
    for (std::int64_t channel = from; channel < from + width; ++channel) mean += mean_of(channel);
    mean /= static_cast<double>(width);
    double variance = 0;
    for (std::int64_t channel = from; channel < from + width; ++channel) {
      const double sum = sum_of_parts(call.buffers[1], single, shape, sample, 0, channel);
      const double squares = sum_of_parts(call.buffers[1], single, shape, sample, 1, channel);
      const double apart = mean_of(channel) - mean;
      variance += squares / pixels - sum / pixels * (sum / pixels) + apart * apart;
    }
    variance = std::max(variance / static_cast<double>(width), 0.0);
    set_number(call.buffers[2], single, 2 * i, mean);
    set_number(call.buffers[2], single, 2 * i + 1,
               1 / std::sqrt(variance + call.attributes.epsilon));
  }
}

// The norm of a number of the image, from the operands of a launch: x, other, statistics, weight
// and bias from `first` on.
struct Norm {
  Sources image;
  const void* statistics;
  const void* weight;
  const void* bias;
  DType dtype;
  std::int64_t pixels, groups, width;

  Norm(const auto& call, std::size_t first)
      : image(call, first),
        statistics(call.buffers[first + 2]),
        weight(call.buffers[first + 3]),
        bias(call.buffers[first + 4]),
        dtype(call.dtype),
        pixels(call.shape.pixels),
        groups(call.shape.groups),
        width(call.shape.channels() / call.shape.groups) {}

  // Index of the first number of the group of an element, in statistics and means.
  std::int64_t group(std::int64_t row, std::int64_t channel) const {
    return (row / pixels * groups + channel / width) * group_norm_numbers;
  }
  double reciprocal(std::int64_t row, std::int64_t channel) const {
    return number_at(statistics, single_of(dtype), group(row, channel) + 1);
  }
  double normalised(std::int64_t row, std::int64_t channel) const {
    const double mean = number_at(statistics, single_of(dtype), group(row, channel));
    return (image.at(row, channel) - mean) * reciprocal(row, channel);
  }
  double normed(std::int64_t row, std::int64_t channel) const {
    return normalised(row, channel) * number_at(weight, dtype, channel) +
           number_at(bias, dtype, channel);
  }
  // d of an element, from d_y.
  double d(bool silu, double d_y, std::int64_t row, std::int64_t channel) const {
    if (!silu) return d_y;
    const double z = normed(row, channel), s = 1 / (1 + std::exp(-z));
    return d_y * s * (1 + z * (1 - s));
  }
};

constexpr auto group_apply_operands = operands_of<kernels::GroupNormApply>({
    {"x", Access::read, of_x},
    {"other", Access::read, of_other},
    {"statistics", Access::read, of_groups, OperandFormat::single},
    {"weight", Access::read, of_channels},
    {"bias", Access::read, of_channels},
    {"y", Access::write, of_both},
});

void group_apply_reference(const CallOf<kernels::GroupNormApply>& call) {
  const Norm norm(call, 0);
  const std::int64_t channels = call.shape.channels();
  for (std::int64_t i = 0; i < of_both(call.shape); ++i) {
    const double z = norm.normed(i / channels, i % channels);
    set_number(call.buffers[5], call.dtype, i, call.attributes.silu ? z / (1 + std::exp(-z)) : z);
  }
}

constexpr auto group_gradient_sums_operands = operands_of<kernels::GroupNormGradientSums>({
    {"d_y", Access::read, of_both},
    {"x", Access::read, of_x},
    {"other", Access::read, of_other},
    {"statistics", Access::read, of_groups, OperandFormat::single},
    {"weight", Access::read, of_channels},
    {"bias", Access::read, of_channels},
    {"partials", Access::write, of_parts, OperandFormat::single},
});

void group_gradient_sums_reference(const CallOf<kernels::GroupNormGradientSums>& call) {
  const Norm norm(call, 1);
  const std::int64_t channels = call.shape.channels();
  sum_by_parts(call.shape, call.dtype, call.buffers[6],
               [&](std::int64_t, std::int64_t row, std::int64_t channel) {
                 const double d_y =
                     number_at(call.buffers[0], call.dtype, row * channels + channel);
                 const double d = norm.d(call.attributes.silu, d_y, row, channel);
                 return std::pair{d, d * norm.normalised(row, channel)};
               });
}

constexpr auto group_gradient_finish_operands = operands_of<kernels::GroupNormGradientFinish>({
    {"partials", Access::read, of_parts, OperandFormat::single},
    {"weight", Access::read, of_channels},
    {.name = "d_weight",
     .access = Access::read_write,
     .elements = of_channels,
     .accumulates = accumulates},
    {.name = "d_bias",
     .access = Access::read_write,
     .elements = of_channels,
     .accumulates = accumulates},
    {"means", Access::write, of_groups, OperandFormat::single},
});

void group_gradient_finish_reference(const CallOf<kernels::GroupNormGradientFinish>& call) {
  const auto& at = call.buffers;
  const auto& shape = call.shape;
  const DType single = single_of(call.dtype);
  const std::int64_t channels = shape.channels(), width = channels / shape.groups;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (const std::int64_t vector : {0, 1}) {
      void* const to = vector == 0 ? at[3] : at[2];
      double sum = call.attributes.accumulate ? number_at(to, call.dtype, channel) : 0;
      for (std::int64_t sample = 0; sample < shape.samples; ++sample)
        sum += sum_of_parts(at[0], single, shape, sample, vector, channel);
      set_number(to, call.dtype, channel, sum);
    }
  }
  for (std::int64_t i = 0; i < of_groups(shape); ++i) {
    const std::int64_t group = i / group_norm_numbers % shape.groups;
    const std::int64_t sample = i / group_norm_numbers / shape.groups;
    double sum = 0;
    for (std::int64_t channel = group * width; channel < (group + 1) * width; ++channel)
      sum += number_at(at[1], call.dtype, channel) *
             sum_of_parts(at[0], single, shape, sample, i % group_norm_numbers, channel);
    set_number(at[4], single, i, sum / static_cast<double>(shape.pixels * width));
  }
}

constexpr auto group_gradient_apply_operands = operands_of<kernels::GroupNormGradientApply>({
    {"d_y", Access::read, of_both},
    {"x", Access::read, of_x},
    {"other", Access::read, of_other},
    {"statistics", Access::read, of_groups, OperandFormat::single},
    {"weight", Access::read, of_channels},
    {"bias", Access::read, of_channels},
    {"means", Access::read, of_groups, OperandFormat::single},
    {.name = "d_x", .access = Access::read_write, .elements = of_x, .accumulates = accumulates},
    {.name = "d_other",
     .access = Access::read_write,
     .elements = of_other,
     .accumulates = accumulates},
});

void group_gradient_apply_reference(const CallOf<kernels::GroupNormGradientApply>& call) {
  const auto& at = call.buffers;
  const Norm norm(call, 1);
  const DType single = single_of(call.dtype);
  const std::int64_t channels = call.shape.channels(), columns = call.shape.columns;
  for (std::int64_t i = 0; i < of_both(call.shape); ++i) {
    const std::int64_t row = i / channels, channel = i % channels;
    const std::int64_t group = norm.group(row, channel);
    const double d = norm.d(call.attributes.silu, number_at(at[0], call.dtype, i), row, channel);
    const double inner = number_at(at[4], call.dtype, channel) * d -
                         number_at(at[6], single, group) -
                         norm.normalised(row, channel) * number_at(at[6], single, group + 1);
    void* const to = channel < columns ? at[7] : at[8];
    const std::int64_t place =
        channel < columns ? row * columns + channel : row * call.shape.others + channel - columns;
    const double old = call.attributes.accumulate ? number_at(to, call.dtype, place) : 0;
    set_number(to, call.dtype, place, old + norm.reciprocal(row, channel) * inner);
  }
}

// Flops of `an_element` for each element, and with a SiLU as many as `with_silu` more.
template <std::int64_t an_element, std::int64_t with_silu>
constexpr auto flops_with_silu = [](const auto& shape, const auto& told) {
  return (an_element + (told.silu ? with_silu : 0)) * of_both(shape);
};

// Flops for each part of each channel of each sample, and for each of these channels.
template <std::int64_t a_part, std::int64_t a_channel>
constexpr auto flops_of_group_finish =
    [](const auto& shape) { return (a_part * shape.parts + a_channel) * of_group_samples(shape); };

}  // namespace

// A norm takes 4 flops: subtract, scale twice, add the bias. A SiLU takes 4 (negate, exponential,
// add, divide), and its slope 8 besides the norm, which is computed again.
// The shares of a device's speed are those of a UNet's step on an H200. Sums wait for each other in
// their blocks, and what finishes them has few threads and a chain of loads.
std::vector<Kernel> group_norm_kernels() {
  using namespace kernels;
  return {
      row<GroupNormSums, group_sums_reference>(group_sums_operands,
                                               [](const auto& s) { return 4 * of_both(s); }, {},
                                               {.share_of_rate = 0.74}),
      row<GroupNormFinish, group_finish_reference>(
          group_finish_operands, flops_of_group_finish<2, 11>, {}, {.share_of_rate = 0.37}),
      row<GroupNormApply, group_apply_reference>(group_apply_operands, flops_with_silu<4, 4>, {},
                                                 {.share_of_rate = 0.7}),
      row<GroupNormGradientSums, group_gradient_sums_reference>(
          group_gradient_sums_operands, flops_with_silu<5, 10>, {}, {.share_of_rate = 0.72}),
      row<GroupNormGradientFinish, group_gradient_finish_reference>(
          group_gradient_finish_operands, flops_of_group_finish<2, 6>, {}, {.share_of_rate = 0.3}),
      row<GroupNormGradientApply, group_gradient_apply_reference>(
          group_gradient_apply_operands,
          [](const auto& s, const auto& told) {
            return (7 + (told.silu ? 10 : 0) + (told.accumulate ? 1 : 0)) * of_both(s);
          },
          {}, {.share_of_rate = 0.75})};
}

}  // namespace stepgate
