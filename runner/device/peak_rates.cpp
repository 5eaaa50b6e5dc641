// SPDX-License-Identifier: MIT
#include "device/peak_rates.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stepgate {
namespace {

// Peak rates in TFLOP/s, without sparsity; fp16 is as fast as bf16.
struct PeakRates {
  std::string_view gpu;  // name from its driver
  double fp32;
  double tf32;
  double bf16;
};

// The source is NVIDIA's data sheets of the H200, H100 and A100 Tensor Core GPUs.
constexpr std::array peak_rates{
    PeakRates{.gpu = "NVIDIA H200", .fp32 = 66.9, .tf32 = 494.7, .bf16 = 989.4},
    PeakRates{.gpu = "NVIDIA H100 80GB HBM3", .fp32 = 66.9, .tf32 = 494.7, .bf16 = 989.4},
    PeakRates{.gpu = "NVIDIA H100 PCIe", .fp32 = 51.2, .tf32 = 378, .bf16 = 756},
    PeakRates{.gpu = "NVIDIA A100-SXM4-80GB", .fp32 = 19.5, .tf32 = 156, .bf16 = 312},
    PeakRates{.gpu = "NVIDIA A100-SXM4-40GB", .fp32 = 19.5, .tf32 = 156, .bf16 = 312},
    PeakRates{.gpu = "NVIDIA A100 80GB PCIe", .fp32 = 19.5, .tf32 = 156, .bf16 = 312},
    PeakRates{.gpu = "NVIDIA A100-PCIE-40GB", .fp32 = 19.5, .tf32 = 156, .bf16 = 312}};

constexpr double tera = 1e12;

}  // namespace

std::optional<double> peak_flops_per_second(const DeviceIdentity& device, DType dtype) {
  const auto* const found = std::ranges::find(peak_rates, device.name, &PeakRates::gpu);
  if (found == peak_rates.end()) return std::nullopt;
  if (is_16_bit(dtype)) return tera * found->bf16;
  return tera * (dtype == DType::tf32 ? found->tf32 : found->fp32);
}

}  // namespace stepgate
