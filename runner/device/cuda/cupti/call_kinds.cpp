// SPDX-License-Identifier: MIT
// The table that gives CUDA calls their meanings.
#include "device/cuda/cupti/call_kinds.h"

#include <algorithm>
#include <array>

namespace stepgate {
namespace {

constexpr bool blocks = true;
constexpr bool returns = false;

struct Row {
  std::string_view name;  // or its beginning, when it ends with a star
  CallKind kind;
  bool always_can_block;
};

// The first matching row counts, so longer names come before their prefixes.
constexpr std::array call_rows{
    Row{"cudaLaunchKernel*", CallKind::launch, returns},
    Row{"cudaLaunchCooperativeKernel*", CallKind::launch, returns},
    Row{"cuLaunch*", CallKind::launch, returns},
    Row{"cudaGraphLaunch", CallKind::graph_launch, returns},
    Row{"cuGraphLaunch", CallKind::graph_launch, returns},

    Row{"cudaDeviceSynchronize", CallKind::wait_for_device, blocks},
    Row{"cudaThreadSynchronize", CallKind::wait_for_device, blocks},
    Row{"cuCtxSynchronize*", CallKind::wait_for_device, blocks},
    Row{"cudaStreamSynchronize", CallKind::wait_for_stream, blocks},
    Row{"cuStreamSynchronize", CallKind::wait_for_stream, blocks},
    Row{"cudaEventSynchronize", CallKind::wait_for_event, blocks},
    Row{"cuEventSynchronize", CallKind::wait_for_event, blocks},
    Row{"cudaEventQuery", CallKind::poll, returns},
    Row{"cuEventQuery", CallKind::poll, returns},
    Row{"cudaStreamQuery", CallKind::poll, returns},
    Row{"cuStreamQuery", CallKind::poll, returns},

    Row{"cudaMallocAsync", CallKind::allocate, returns},
    Row{"cudaMallocFromPoolAsync", CallKind::allocate, returns},
    Row{"cudaMallocHost", CallKind::pin, blocks},
    Row{"cudaMallocArray", CallKind::allocate, returns},
    Row{"cudaMallocManaged", CallKind::allocate, returns},
    Row{"cudaMallocPitch", CallKind::allocate, returns},
    Row{"cudaMalloc3D*", CallKind::allocate, returns},
    Row{"cudaMalloc", CallKind::allocate, returns},
    Row{"cuMemCreate", CallKind::allocate, returns},
    Row{"cuMemUnmap", CallKind::release, blocks},
    Row{"cuMemAllocAsync", CallKind::allocate, returns},
    Row{"cuMemAllocFromPoolAsync", CallKind::allocate, returns},
    Row{"cuMemAllocHost*", CallKind::pin, blocks},
    Row{"cuMemAlloc*", CallKind::allocate, returns},
    Row{"cudaFreeAsync", CallKind::release, returns},
    Row{"cudaFreeHost", CallKind::unpin, blocks},
    Row{"cudaFree*", CallKind::release, blocks},
    Row{"cuMemFreeAsync", CallKind::release, returns},
    Row{"cuMemFreeHost", CallKind::unpin, blocks},
    Row{"cuMemFree*", CallKind::release, blocks},
    Row{"cudaHostAlloc", CallKind::pin, blocks},
    Row{"cudaHostRegister", CallKind::pin, returns},
    Row{"cudaHostUnregister", CallKind::unpin, blocks},
    Row{"cuMemHostAlloc", CallKind::pin, blocks},
    Row{"cuMemHostRegister*", CallKind::pin, returns},
    Row{"cuMemHostUnregister", CallKind::unpin, blocks},
};

// There are too many variants of copies and fills to list: parts of their names tell them apart.
CallMeaning meaning_of_transfer(std::string_view name) {
  const bool asynchronous = name.find("Async") != std::string_view::npos;
  if (name.starts_with("cudaMemset") || name.starts_with("cuMemset")) {
    return {CallKind::fill, returns};  // of device memory; asynchronous for the host either way
  }
  const bool copies = name.starts_with("cudaMemcpy") || name.starts_with("cuMemcpy");
  return copies ? CallMeaning{CallKind::copy, !asynchronous} : CallMeaning{};
}

bool fits(const Row& row, std::string_view name) {
  if (!row.name.ends_with('*')) return row.name == name;
  return name.starts_with(row.name.substr(0, row.name.size() - 1));
}

bool is_version(std::string_view part) {
  return part.size() >= 2 && part.front() == 'v' &&
         part.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

std::string plain_call_name(std::string_view name) {
  for (auto cut = name.rfind('_'); cut != std::string_view::npos && cut > 0;
       cut = name.rfind('_')) {
    const std::string_view part = name.substr(cut + 1);
    if (part != "ptsz" && part != "ptds" && !is_version(part)) break;
    name = name.substr(0, cut);
  }
  return std::string(name);
}

CallMeaning meaning_of_call(std::string_view name) {
  const auto found = std::find_if(call_rows.begin(), call_rows.end(),
                                  [&](const Row& row) { return fits(row, name); });
  if (found != call_rows.end()) return {found->kind, found->always_can_block};
  return meaning_of_transfer(name);
}

}  // namespace stepgate
