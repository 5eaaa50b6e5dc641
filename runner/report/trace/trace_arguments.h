// SPDX-License-Identifier: MIT
// Writes what a trace says beside each call of the host and each piece of work, under the keys of
// the PyTorch profiler. Every function returns the members of a JSON object, without its braces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "device/device.h"
#include "device/trace.h"

namespace stepgate {

// The numbers that tie a host operation, its call and the work of the device together.
struct TraceLinks {
  std::int64_t operation = 0;    // "External id": a host span, counted from 1; 0: none
  std::int64_t correlation = 0;  // of a call and its work; 0: none
  std::int64_t gpu = 0;          // which one it is of
};

// "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", a kernel's own name.
std::string name_of_work(const DeviceWork&);

// The kind of an explicit wait: "Context Sync", "Stream Sync" or "Event Sync".
std::string_view kind_of_wait(const HostCall&);

std::string arguments_of_call(const HostCall&, TraceLinks);

// `stream`: as written in the file. `operation`: what the plan calls what the work belongs to.
std::string arguments_of_work(const DeviceIdentity&, const DeviceWork&, std::int64_t stream,
                              const std::string& operation, TraceLinks);

// `stream`: that is waited for, -1 for all of them.
std::string arguments_of_wait(const HostCall&, std::int64_t stream, std::int64_t recorded_by,
                              TraceLinks);

}  // namespace stepgate
