// SPDX-License-Identifier: MIT
// The CUDA side of adamw. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw_update.cuh"
#include "kernels/update/update_kernels.cuh"

namespace stepgate {
namespace {

struct AdamwOnDevice {
  using Rates = AdamwRates;
  using Named = kernels::Adamw;

  static __device__ __forceinline__ AdamwCorrections corrections(const AdamwRates& rates,
                                                                 float updates) {
    return adamw_corrections(rates, updates);
  }
  static __device__ __forceinline__ float step(const AdamwRates& rates,
                                               const AdamwCorrections& corrections, float gradient,
                                               float weight, float* moments) {
    return adamw_step(rates, corrections, gradient, weight, moments[0], moments[1]);
  }
};

}  // namespace

Launch prepare_adamw(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                     const LaunchContext&) {
  return prepare_update<AdamwOnDevice, UpdateKind::plain>(kernels::Adamw::name, shape, dtype,
                                                          adamw_rates(attributes));
}

Launch prepare_adamw_clipped(const KernelShape& shape, DType dtype,
                             const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_update<AdamwOnDevice, UpdateKind::clipped>(kernels::AdamwClipped::name, shape,
                                                            dtype, adamw_rates(attributes));
}

Launch prepare_adamw_master(const KernelShape& shape, DType dtype,
                            const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_update<AdamwOnDevice, UpdateKind::master>(kernels::AdamwMaster::name, shape, dtype,
                                                           adamw_rates(attributes));
}

}  // namespace stepgate
