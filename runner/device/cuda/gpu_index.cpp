// SPDX-License-Identifier: MIT
#include "device/cuda/gpu_index.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::string_view first_gpu = "cuda";
constexpr std::string_view indexed_gpu = "cuda:";

}  // namespace

std::optional<int> gpu_index_in(std::string_view spec) {
  if (spec == first_gpu) return 0;
  if (!spec.starts_with(indexed_gpu)) return std::nullopt;
  const std::string_view number = spec.substr(indexed_gpu.size());
  int index = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (error != std::errc() || end != number.data() + number.size() || number.front() == '-') {
    throw RequestError(fmt::format("'{}' names no GPU", spec),
                       "GPUs are counted from 0: say cuda:0 or cuda:1");
  }
  return index;
}

std::string spec_of_gpu(int index) {
  return index == 0 ? std::string(first_gpu) : fmt::format("{}{}", indexed_gpu, index);
}

std::optional<NoGpu> reason_against_index(int index, int visible) {
  if (index < visible) return std::nullopt;
  if (visible == 1) {
    return NoGpu{.reason = fmt::format("there is no GPU {}: one is visible", index),
                 .way_out = "say --device cuda"};
  }
  return NoGpu{.reason = fmt::format("there is no GPU {}: {} are visible", index, visible),
               .way_out = fmt::format("say one of cuda:0 to cuda:{}", visible - 1)};
}

}  // namespace stepgate
