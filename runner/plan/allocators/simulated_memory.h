// SPDX-License-Identifier: MIT
// Simulated device memory: a capacity, increasing addresses, and streams that progress as the
// caller says. Scenarios without a GPU, replay and tests use it.
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "plan/allocators/device_memory.h"

namespace stepgate {

class SimulatedMemory : public DeviceMemory {
 public:
  explicit SimulatedMemory(std::int64_t capacity_bytes);

  std::int64_t total_bytes() const override { return capacity_bytes_; }
  std::int64_t free_bytes() const override { return capacity_bytes_ - used_bytes_; }

  // Takes the lowest sufficient address range; refuses when fewer bytes are free. Since devices
  // page memory, fragmentation of physical memory does not cause refusals.
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

  // Simulates that all work issued on the stream so far is done.
  void finish(StreamId);
  // The number of times that the host blocked for a stream or the device.
  std::int64_t waits() const { return waits_; }

 private:
  struct RecordedPoint {
    StreamId stream;
    std::uint64_t number;  // counted for each stream
  };

  Address place(std::int64_t bytes);
  void finish_up_to(StreamId, std::uint64_t number);

  std::int64_t capacity_bytes_;
  std::int64_t used_bytes_ = 0;
  std::map<Address, std::int64_t> occupied_;  // segments and reservations
  std::set<Address> mapped_pages_;
  std::unordered_map<std::uint64_t, RecordedPoint> points_;
  std::map<StreamId, std::uint64_t> recorded_, finished_;  // points by stream
  std::uint64_t next_point_ = 0;
  std::int64_t waits_ = 0;
};

}  // namespace stepgate
