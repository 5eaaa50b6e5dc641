// SPDX-License-Identifier: MIT
#include <chrono>
#include <cstring>
#include <iterator>

#include "device/cuda/calibrate/measure_costs.h"
#include "device/cuda/check.h"
#include "device/device.h"

namespace stepgate {
namespace {

constexpr std::int64_t sizes[] = {4 * kibibyte, 64 * kibibyte, mebibyte, 16 * mebibyte,
                                  128 * mebibyte};
constexpr std::int64_t hold_of_a_copy_microseconds = 20000;

HostMemoryBlock take_pages(std::int64_t bytes) {
  HostMemoryBlock block(std::aligned_alloc(4096, static_cast<std::size_t>(bytes)));
  if (!block) throw DeviceError("cannot allocate host memory to measure copies");
  std::memset(block.get(), 1, static_cast<std::size_t>(bytes));
  return block;
}

void enqueue_copy(const CostBench& bench, const HostMemoryBlock& from, std::int64_t bytes) {
  // The copy writes after the word that blocking kernels write.
  check(cudaMemcpyAsync(bench.scratch(2) + kibibyte, from.get(), static_cast<std::size_t>(bytes),
                        cudaMemcpyHostToDevice, bench.stream()),
        "copy to the device");
}

}  // namespace

CopyCost measure_copy_costs(const CostBench& bench, MemoryKind kind, const HostCosts& host) {
  const std::int64_t largest = sizes[std::size(sizes) - 1];
  const HostMemoryBlock source = take_pages(largest);
  RegisteredHostRange lock;
  if (kind == MemoryKind::pinned) {
    check(
        cudaHostRegister(source.get(), static_cast<std::size_t>(largest), cudaHostRegisterDefault),
        "pin memory");
    lock.reset(source.get());
  }
  // Pinned copies are timed on the device, many in a full queue. A pageable copy blocks the host in
  // the call, so its time is host time, minus the call and the wake-up, which the model adds
  // itself.
  const auto pinned_time = [&](std::int64_t size) {
    return bench.time_in_full_queue([&] { enqueue_copy(bench, source, size); },
                                    size < 16 * mebibyte ? 100 : 4);
  };
  const auto pageable_time = [&](std::int64_t size) {
    const std::int64_t call_and_wait = bench.host_time([&] {
      enqueue_copy(bench, source, size);
      check(cudaStreamSynchronize(bench.stream()), "wait for a copy");
    });
    return call_and_wait - host.copy_call_nanoseconds - host.wake_up_nanoseconds;
  };
  CopyCost cost;
  for (const std::int64_t size : sizes) {
    const std::int64_t time = kind == MemoryKind::pinned ? pinned_time(size) : pageable_time(size);
    cost.bytes.push_back(size);
    cost.nanoseconds.push_back(
        cost.nanoseconds.empty() ? time : std::max(time, cost.nanoseconds.back() + 1));
  }
  return cost;
}

std::int64_t measure_staging_bytes(const CostBench& bench) {
  constexpr std::int64_t largest = 16 * mebibyte;
  const HostMemoryBlock source = take_pages(largest);
  const auto returns_at_once = [&](std::int64_t bytes) {
    bench.hold(hold_of_a_copy_microseconds);
    const auto begin = std::chrono::steady_clock::now();
    enqueue_copy(bench, source, bytes);
    const auto call = std::chrono::steady_clock::now() - begin;
    check(cudaStreamSynchronize(bench.stream()), "wait for a copy");
    return call < std::chrono::microseconds(hold_of_a_copy_microseconds / 2);
  };
  std::int64_t staged = 0;
  for (std::int64_t step = largest / 2; step >= 4 * kibibyte; step /= 2) {
    if (returns_at_once(staged + step)) staged += step;
  }
  return staged;
}

}  // namespace stepgate
