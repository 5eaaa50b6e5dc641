// SPDX-License-Identifier: MIT
// GPU memory for an allocator: cudaMalloc for segments, the driver's virtual memory for expandable
// segments, and events for the progress of streams.
#pragma once

#include <vector>

#include "device/cuda/handles.h"
#include "plan/allocators/device_memory.h"

namespace stepgate {

// The streams of a step, by their index in the plan.
using StepStreams = std::vector<cudaStream_t>;

class CudaDeviceMemory : public DeviceMemory {
 public:
  // The streams belong to the step and must outlive this object. Throws DeviceError where the
  // driver has no virtual memory management.
  explicit CudaDeviceMemory(const StepStreams&);
  ~CudaDeviceMemory() override;

  std::int64_t total_bytes() const override;
  std::int64_t free_bytes() const override;
  std::optional<Address> take_segment(std::int64_t bytes) override;
  void give_back_segment(Address, std::int64_t bytes) override;
  Address reserve_addresses(std::int64_t bytes) override;
  void release_addresses(Address, std::int64_t bytes) override;
  bool map_pages(Address, std::int64_t bytes, std::int64_t page_bytes) override;
  void unmap_pages(Address, std::int64_t bytes, std::int64_t page_bytes, StreamId) override;
  StreamPoint record_point(StreamId) override;
  bool has_passed(StreamPoint) override;
  void wait_for(StreamPoint) override;
  void wait_for_all() override;

 private:
  struct Driver;  // functions of libcuda that the runtime has no call for

  cudaStream_t stream(StreamId id) const { return streams_[static_cast<std::size_t>(id)]; }
  bool map_page(Address, std::int64_t page_bytes);
  void unmap(Address, std::int64_t bytes, std::int64_t page_bytes) const;

  std::unique_ptr<Driver> driver_;
  int device_ = 0;
  StepStreams streams_;
  std::vector<CudaEvent> events_;    // by point
  std::vector<std::size_t> unused_;  // events whose point has passed and was asked for
};

}  // namespace stepgate
