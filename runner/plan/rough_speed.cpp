// SPDX-License-Identifier: MIT
#include "plan/rough_speed.h"

#include "kernels/catalogue.h"

namespace stepgate {

double rough_flops_per_second(DType dtype) {
  if (is_narrow(dtype)) return 800e12;
  return dtype == DType::fp32 ? 50e12 : 400e12;
}

RoughKernelTime rough_time_of(const LaunchKernel& launch) {
  const KernelWork work = kernel(launch.kernel).work(launch.shape, launch.dtype, launch.scalars);
  return {
      .math = static_cast<double>(work.flops) / rough_flops_per_second(launch.dtype),
      .memory = static_cast<double>(work.bytes_read + work.bytes_written) / rough_bytes_per_second};
}

}  // namespace stepgate
