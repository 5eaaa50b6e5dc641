// SPDX-License-Identifier: MIT
// Implements Device on the local NVIDIA GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/cuda/cuda_failure.h"
#include "device/device.h"

namespace stepgate {

enum class Recording { off, on };
// Whether steps may launch kernels of libraries, which a process opens that no verdict depends on.
enum class KernelLibraries { refused, opened };

// Opens the visible GPU with that index and makes it current for the calling thread; only this
// thread may use the device. Throws DeviceError when there is no driver or no such GPU. A device
// that records must be created before the process uses CUDA in any other way.
std::unique_ptr<Device> make_cuda_device(Recording = Recording::off, int index = 0,
                                         KernelLibraries = KernelLibraries::refused);

// Returns why that GPU cannot be used; nullopt when it can. Does not throw.
std::optional<NoGpu> reason_against_local_gpu(int index = 0);

// The number of visible GPUs; 0 where none can be used. Does not throw.
int visible_gpus();

}  // namespace stepgate
