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

// The first visible GPU. Throws DeviceError when there is no driver or no GPU. A device that
// records must be the first thing in its process that uses CUDA.
std::unique_ptr<Device> make_cuda_device(Recording = Recording::off);

// Why no GPU can be used; nothing when one can. Does not throw.
std::optional<NoGpu> reason_against_local_gpu();

}  // namespace stepgate
