// SPDX-License-Identifier: MIT
// Numbers copied from one format to another, one kernel for each direction since an operand's
// format and access belong to the kernel. In fp32 and tf32 both are copies.
// No plan launches them: kernels of a step read and round storage numbers themselves, adamw_master
// the weights that it stores.
//   shape     rows x columns numbers
//   operands  narrow: wide (fp32), stored;  widen: stored, wide (fp32)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// fp32 to the storage type, rounded to the nearest, ties to even.
Kernel narrow_kernel();

// The storage type to fp32; exact.
Kernel widen_kernel();

// Only in CUDA builds.
Launch prepare_narrow(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);
Launch prepare_widen(const KernelShape&, DType, const KernelScalars&, const LaunchContext&);

}  // namespace stepgate
