// SPDX-License-Identifier: MIT
#include "device/cuda/measure_profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "device/contents.h"
#include "device/cuda/check.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/handles.h"
#include "kernels/catalogue.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::int64_t kibibyte = 1024;
constexpr std::int64_t mebibyte = 1024 * kibibyte;
constexpr int repeats = 21;

std::int64_t median(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median host time of a call in nanoseconds; the device is idle before every call.
std::int64_t host_time(const std::function<void()>& call) {
  std::vector<std::int64_t> times;
  for (int repeat = 0; repeat < repeats + 1; ++repeat) {
    check(cudaDeviceSynchronize(), "wait before a measurement");
    const auto begin = steady_clock::now();
    call();
    if (repeat > 0) times.push_back(nanoseconds(steady_clock::now() - begin).count());
  }
  return median(std::move(times));
}

// The bench: a stream, scratch memory with random content, and small kernels to launch.
class Bench {
 public:
  Bench() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "create a stream");
    stream_.reset(stream);
    cublasLtHandle_t blas = nullptr;
    check(cublasLtCreate(&blas), "start cuBLASLt");
    blas_.reset(blas);
    for (CudaEvent* event : {&begin_, &end_}) {
      cudaEvent_t created = nullptr;
      check(cudaEventCreate(&created), "create an event");
      event->reset(created);
    }
    for (DeviceMemory& memory : scratch_) memory = take(scratch_bytes);
    fill_with_numbers(scratch_[0], DType::fp32);
    fill_with_numbers(scratch_[1], DType::fp32);
    workspace_ = take(workspace_bytes);
    small_ = kernel("accumulate_loss").prepare({}, DType::fp32, {}, {});
  }

  void host_costs(HostCosts& costs) {
    constexpr int launches = 200;
    const std::int64_t many = host_time([&] {
      for (int launch = 0; launch < launches; ++launch) launch_small();
    });
    costs.launch_nanoseconds = many / launches;
    costs.product_nanoseconds = product_call();
    const GraphExec graph = graph_of_small_kernels();
    costs.graph_launch_nanoseconds =
        host_time([&] { check(cudaGraphLaunch(graph.get(), stream_.get()), "launch a graph"); });
    PinnedMemory word;
    void* host = nullptr;
    check(cudaHostAlloc(&host, kibibyte, cudaHostAllocDefault), "allocate pinned memory");
    word.reset(host);
    costs.copy_call_nanoseconds = host_time([&] {
      check(cudaMemcpyAsync(scratch_[2].get(), host, 4, cudaMemcpyHostToDevice, stream_.get()),
            "copy");
    });
    cudaEvent_t untimed = nullptr;
    check(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), "create an event");
    const CudaEvent event(untimed);
    constexpr int records = 100;
    costs.event_nanoseconds = host_time([&] {
                                for (int record = 0; record < records; ++record) {
                                  check(cudaEventRecord(untimed, stream_.get()), "record an event");
                                }
                              }) /
                              records;
    allocation_costs(costs);
    page_lock_costs(costs);
  }

  void compute_costs(ComputeCosts& costs, HostCosts& host) {
    // Launch, wait, and the kernel itself; what is left is latency before and wake-up after, in
    // equal parts.
    const std::int64_t round_trip = host_time([&] {
      launch_small();
      check(cudaStreamSynchronize(stream_.get()), "wait");
    });
    costs.kernel_floor_nanoseconds = time_in_full_queue([&] { launch_small(); }, 200);
    const std::int64_t rest = std::max<std::int64_t>(
        0, round_trip - host.launch_nanoseconds - costs.kernel_floor_nanoseconds);
    costs.launch_latency_nanoseconds = rest / 2;
    host.wake_up_nanoseconds = rest / 2;
    const GraphExec graph = graph_of_small_kernels();
    costs.graph_node_floor_nanoseconds =
        device_time([&] { check(cudaGraphLaunch(graph.get(), stream_.get()), "launch a graph"); }) /
        graph_nodes;
    const std::int64_t copy = device_time([&] {
      check(cudaMemcpyAsync(scratch_[2].get(), scratch_[0].get(), scratch_bytes,
                            cudaMemcpyDeviceToDevice, stream_.get()),
            "copy on the device");
    });
    costs.memory_bytes_per_second =
        2.0 * static_cast<double>(scratch_bytes) / static_cast<double>(copy) * 1e9;
    costs.fp32_flops_per_second = product_rate(DType::fp32, 4096);
    costs.tf32_flops_per_second = product_rate(DType::tf32, 8192);
    costs.bf16_flops_per_second = product_rate(DType::bf16, 8192);
  }

  // Pinned copies are timed on the device, many in a full queue; a pageable copy keeps the host in
  // the call, so its time is the host's, less the call and the wake-up that the model adds itself.
  CopyCost copy_costs(MemoryKind kind, const HostCosts& host) {
    constexpr std::int64_t sizes[] = {4 * kibibyte, 64 * kibibyte, mebibyte, 16 * mebibyte,
                                      128 * mebibyte};
    const auto largest = static_cast<std::size_t>(sizes[std::size(sizes) - 1]);
    HostMemoryBlock pageable(std::aligned_alloc(4096, largest));
    if (!pageable) throw DeviceError("cannot allocate host memory to measure copies");
    std::memset(pageable.get(), 1, largest);
    PageLockOf lock;
    if (kind == MemoryKind::pinned) {
      check(cudaHostRegister(pageable.get(), largest, cudaHostRegisterDefault), "page-lock memory");
      lock.reset(pageable.get());
    }
    CopyCost cost;
    for (const std::int64_t size : sizes) {
      const auto copy = [&] {
        check(cudaMemcpyAsync(scratch_[2].get(), pageable.get(), static_cast<std::size_t>(size),
                              cudaMemcpyHostToDevice, stream_.get()),
              "copy to the device");
      };
      const std::int64_t time =
          kind == MemoryKind::pinned
              ? time_in_full_queue(copy, size < 16 * mebibyte ? 100 : 4)
              : host_time([&] {
                  copy();
                  check(cudaStreamSynchronize(stream_.get()), "wait for a copy");
                }) - host.copy_call_nanoseconds -
                    host.wake_up_nanoseconds;
      cost.bytes.push_back(size);
      cost.nanoseconds.push_back(
          cost.nanoseconds.empty() ? time : std::max(time, cost.nanoseconds.back() + 1));
    }
    return cost;
  }

  // The largest pageable copy that returns while a long kernel holds its stream.
  std::int64_t staging_bytes() {
    constexpr std::int64_t largest = 16 * mebibyte;
    constexpr std::int64_t hold_us = 20000;
    HostMemoryBlock source(std::aligned_alloc(4096, static_cast<std::size_t>(largest)));
    if (!source) throw DeviceError("cannot allocate host memory to measure copies");
    std::memset(source.get(), 1, static_cast<std::size_t>(largest));
    const Launch hold = kernel("spin").prepare({}, DType::fp32, {hold_us}, {});
    const auto returns_at_once = [&](std::int64_t bytes) {
      void* operands[] = {scratch_[2].get()};
      hold(operands, stream_.get());
      const auto begin = steady_clock::now();
      check(cudaMemcpyAsync(static_cast<std::byte*>(scratch_[2].get()) + kibibyte, source.get(),
                            static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_.get()),
            "copy behind a kernel");
      const nanoseconds call = steady_clock::now() - begin;
      check(cudaStreamSynchronize(stream_.get()), "wait for a copy");
      return call < std::chrono::microseconds(hold_us / 2);
    };
    std::int64_t staged = 0;
    for (std::int64_t step = largest; step >= 4 * kibibyte; step /= 2) {
      if (staged + step <= largest && returns_at_once(staged + step)) staged += step;
    }
    return staged;
  }

 private:
  static constexpr std::int64_t scratch_bytes = 512 * mebibyte;
  static constexpr std::int64_t workspace_bytes = 32 * mebibyte;
  static constexpr int graph_nodes = 60;

  static DeviceMemory take(std::int64_t bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "allocate memory to measure with");
    return DeviceMemory(memory);
  }

  // Zeros multiply faster than data.
  static void fill_with_numbers(const DeviceMemory& memory, DType dtype) {
    const Buffer as{.name = "numbers",
                    .bytes = scratch_bytes,
                    .content = Content::weights,
                    .dtype = dtype,
                    .scale = 1};
    std::vector<std::byte> staging(static_cast<std::size_t>(scratch_bytes));
    fill_contents(as, 0, 1, staging);
    check(cudaMemcpy(memory.get(), staging.data(), staging.size(), cudaMemcpyHostToDevice),
          "upload numbers");
  }

  void launch_small() {
    void* operands[] = {scratch_[2].get(), static_cast<std::byte*>(scratch_[2].get()) + 256};
    small_(operands, stream_.get());
  }

  std::int64_t device_time(const std::function<void()>& enqueue) {
    std::vector<std::int64_t> times;
    for (int repeat = 0; repeat < repeats + 1; ++repeat) {
      check(cudaEventRecord(begin_.get(), stream_.get()), "record an event");
      enqueue();
      check(cudaEventRecord(end_.get(), stream_.get()), "record an event");
      check(cudaStreamSynchronize(stream_.get()), "wait");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "read a time");
      if (repeat > 0)
        times.push_back(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6));
    }
    return median(std::move(times));
  }

  // From start to start while the host is far ahead: a long kernel first holds the stream.
  std::int64_t time_in_full_queue(const std::function<void()>& enqueue, int count) {
    const Launch hold = kernel("spin").prepare({}, DType::fp32, {2000}, {});
    std::vector<std::int64_t> times;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      void* operands[] = {scratch_[2].get()};
      hold(operands, stream_.get());
      check(cudaEventRecord(begin_.get(), stream_.get()), "record an event");
      for (int queued = 0; queued < count; ++queued) enqueue();
      check(cudaEventRecord(end_.get(), stream_.get()), "record an event");
      check(cudaStreamSynchronize(stream_.get()), "wait");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()), "read a time");
      times.push_back(static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6) / count);
    }
    return median(std::move(times));
  }

  GraphExec graph_of_small_kernels() {
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
          "begin to capture");
    for (int node = 0; node < graph_nodes; ++node) launch_small();
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_.get(), &graph), "capture");
    const Graph owned(graph);
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph, 0), "instantiate a graph");
    return GraphExec(executable);
  }

  void allocation_costs(HostCosts& costs) {
    std::vector<std::int64_t> mallocs;
    std::vector<std::int64_t> frees;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      check(cudaDeviceSynchronize(), "wait before a measurement");
      const auto begin = steady_clock::now();
      void* memory = nullptr;
      check(cudaMalloc(&memory, mebibyte), "allocate");
      const auto allocated = steady_clock::now();
      check(cudaFree(memory), "free");
      mallocs.push_back(nanoseconds(allocated - begin).count());
      frees.push_back(nanoseconds(steady_clock::now() - allocated).count());
    }
    costs.malloc_nanoseconds = median(std::move(mallocs));
    costs.free_nanoseconds = median(std::move(frees));
    pool_costs(costs);
  }

  void pool_costs(HostCosts& costs) {
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, 0), "ask for the default pool");
    const auto time_pair = [&](std::uint64_t keep) {
      check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
            "set what the pool keeps");
      return host_time([&] {
        void* memory = nullptr;
        check(cudaMallocAsync(&memory, mebibyte, stream_.get()), "allocate from the pool");
        check(cudaFreeAsync(memory, stream_.get()), "free to the pool");
      });
    };
    const std::int64_t kept = time_pair(~0ULL);
    const std::int64_t grown = time_pair(0);
    costs.malloc_async_nanoseconds = kept / 2;
    costs.pool_grow_nanoseconds = std::max<std::int64_t>(grown - kept / 2, kept / 2);
  }

  void page_lock_costs(HostCosts& costs) {
    constexpr std::int64_t bytes = 16 * mebibyte;
    HostMemoryBlock block(std::aligned_alloc(4096, static_cast<std::size_t>(bytes)));
    if (!block) throw DeviceError("cannot allocate host memory to measure page-locking");
    std::memset(block.get(), 1, static_cast<std::size_t>(bytes));
    const Launch hold = kernel("spin").prepare({}, DType::fp32, {2000}, {});
    std::vector<std::int64_t> locks;
    std::vector<std::int64_t> unlocks;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      // Steps page-lock while the device works, which takes longer than on an idle one.
      void* operands[] = {scratch_[2].get()};
      hold(operands, stream_.get());
      const auto begin = steady_clock::now();
      check(cudaHostRegister(block.get(), static_cast<std::size_t>(bytes), cudaHostRegisterDefault),
            "page-lock");
      const auto locked = steady_clock::now();
      check(cudaDeviceSynchronize(), "wait before unlocking");
      const auto idle = steady_clock::now();
      check(cudaHostUnregister(block.get()), "unlock");
      locks.push_back(nanoseconds(locked - begin).count() * mebibyte / bytes);
      unlocks.push_back(nanoseconds(steady_clock::now() - idle).count() * mebibyte / bytes);
    }
    costs.page_lock_nanoseconds_per_mib = median(std::move(locks));
    costs.page_unlock_nanoseconds_per_mib = median(std::move(unlocks));
  }

  // Host time of one call to cuBLASLt for a small product, among many.
  std::int64_t product_call() {
    constexpr int launches = 100;
    const LaunchContext context{blas_.get(), workspace_.get(), workspace_bytes};
    const Launch launch = kernel("matmul").prepare({64, 64, 64}, DType::tf32, {}, context);
    void* operands[] = {scratch_[0].get(), scratch_[1].get(), scratch_[2].get()};
    return host_time([&] {
             for (int call = 0; call < launches; ++call) launch(operands, stream_.get());
           }) /
           launches;
  }

  double product_rate(DType dtype, std::int64_t size) {
    const KernelShape shape{size, size, size};
    if (dtype == DType::bf16) {
      fill_with_numbers(scratch_[0], dtype);
      fill_with_numbers(scratch_[1], dtype);
    }
    const LaunchContext context{blas_.get(), workspace_.get(), workspace_bytes};
    const Kernel& product = kernel("matmul");
    const Launch launch = product.prepare(shape, dtype, {}, context);
    void* operands[] = {scratch_[0].get(), scratch_[1].get(), scratch_[2].get()};
    const std::int64_t time = device_time([&] { launch(operands, stream_.get()); });
    return static_cast<double>(product.work(shape, dtype, {}).flops) / static_cast<double>(time) *
           1e9;
  }

  Stream stream_;
  BlasHandle blas_;
  CudaEvent begin_, end_;
  DeviceMemory scratch_[3];
  DeviceMemory workspace_;
  Launch small_;
};

}  // namespace

DeviceProfile measure_profile() {
  const std::unique_ptr<Device> device = make_cuda_device();
  const DeviceIdentity identity = device->identity();
  DeviceProfile profile;
  profile.name = identity.name;
  profile.driver = identity.driver;
  profile.runtime = identity.runtime;
  profile.compute_capability = identity.compute_capability;
  profile.copy_engines = identity.copy_engines;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
        "count the multiprocessors");
  profile.multiprocessors = multiprocessors;
  profile.memory_bytes = identity.memory_bytes;
  Bench bench;
  bench.host_costs(profile.host);
  bench.compute_costs(profile.compute, profile.host);
  profile.pinned = bench.copy_costs(MemoryKind::pinned, profile.host);
  profile.pageable = bench.copy_costs(MemoryKind::pageable, profile.host);
  profile.staging_bytes = bench.staging_bytes();
  // Not measured here: what segments of steps showed on an H200 (README). A simulation needs some
  // noise, and its gates are judged by planting more.
  profile.noise = {.within_rounds = 0.01,
                   .between_rounds = 0.001,
                   .drift_per_second = 0,
                   .spike_probability = 0.002,
                   .spike_nanoseconds = 30000};
  return profile;
}

}  // namespace stepgate
