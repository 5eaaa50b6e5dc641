// SPDX-License-Identifier: MIT
// The local NVIDIA GPU as a Device.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/cuda/cuda_failure.h"
#include "device/device.h"

namespace stepgate {

enum class Recording { off, on };

// The visible GPU of that index, which becomes that of the calling thread; the device is for this
// thread alone. Throws DeviceError when there is no driver or no such GPU. A device that records
// must be the first thing in its process that uses CUDA.
std::unique_ptr<Device> make_cuda_device(Recording = Recording::off, int index = 0);

// Why that GPU cannot be used; nothing when it can. Does not throw.
std::optional<NoGpu> reason_against_local_gpu(int index = 0);

// 0 where none can be used. Does not throw.
int visible_gpus();

}  // namespace stepgate
