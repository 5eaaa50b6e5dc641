// SPDX-License-Identifier: MIT
// The CUDA side of adamw. Meaning and shapes: optimizer.h.
#include "kernels/optimizer/adamw_update.cuh"
#include "kernels/optimizer/update_kernels.cuh"

namespace stepgate {
namespace {

struct AdamwOnDevice {
  using Rates = AdamwRates;
  using Named = kernels::Adamw;

  static Rates rates(const Named::Attributes& rule) { return adamw_rates(rule); }
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

UpdateLaunchers adamw_launchers() {
  return launchers_of<AdamwOnDevice>();
}

}  // namespace stepgate
