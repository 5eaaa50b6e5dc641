// SPDX-License-Identifier: MIT
#include "device/cuda/cuda_device_memory.h"

#include <cuda.h>
#include <fmt/format.h>

#include "device/cuda/check.h"
#include "device/device.h"

namespace stepgate {
namespace {

// The version is CUDA 12; the functions below have had the same signatures since 10.2.
constexpr unsigned driver_version = 12000;

template <class Function>
void find(Function& function, const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &address, driver_version, cudaEnableDefault, &found),
        "look for a function of the driver");
  if (found != cudaDriverEntryPointSuccess || address == nullptr)
    throw DeviceError(fmt::format("the driver has no {}, which expandable segments need", name));
  function = reinterpret_cast<Function>(address);
}

void check_driver(CUresult result, const char* deed) {
  if (result != CUDA_SUCCESS)
    throw DeviceError(
        fmt::format("cannot {}: error {} of the driver", deed, static_cast<int>(result)));
}

// Relaxes the capture mode of this thread while the object lives, since allocation is otherwise not
// allowed during a stream capture.
class BesideCapture {
 public:
  BesideCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;  // then what it was before
};

void* pointer(Address address) {
  return reinterpret_cast<void*>(address);
}

std::size_t size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

}  // namespace

struct CudaDeviceMemory::Driver {
  decltype(&cuMemAddressReserve) address_reserve = nullptr;
  decltype(&cuMemAddressFree) address_free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  Driver() {
    find(address_reserve, "cuMemAddressReserve");
    find(address_free, "cuMemAddressFree");
    find(create, "cuMemCreate");
    find(release, "cuMemRelease");
    find(map, "cuMemMap");
    find(unmap, "cuMemUnmap");
    find(set_access, "cuMemSetAccess");
  }
};

CudaDeviceMemory::CudaDeviceMemory(const StepStreams& streams)
    : driver_(std::make_unique<Driver>()), streams_(streams) {
  check(cudaGetDevice(&device_), "ask for the current device");
}

CudaDeviceMemory::~CudaDeviceMemory() = default;

std::int64_t CudaDeviceMemory::total_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "ask for the free memory");
  return static_cast<std::int64_t>(total);
}

std::int64_t CudaDeviceMemory::free_bytes() const {
  const BesideCapture beside;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "ask for the free memory");
  return static_cast<std::int64_t>(free);
}

std::optional<Address> CudaDeviceMemory::take_segment(std::int64_t bytes) {
  const BesideCapture beside;
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, size(bytes));
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // the next launch must not see it
    return std::nullopt;
  }
  check(status, "take a segment");
  return reinterpret_cast<Address>(memory);
}

// Does not throw, since allocators call it in their destructors. Errors of a failed step were
// reported by its run.
void CudaDeviceMemory::give_back_segment(Address address, std::int64_t) {
  (void)cudaFree(pointer(address));
}

Address CudaDeviceMemory::reserve_addresses(std::int64_t bytes) {
  const BesideCapture beside;
  CUdeviceptr address = 0;
  check_driver(driver_->address_reserve(&address, size(bytes), 0, 0, 0), "reserve addresses");
  return address;
}

void CudaDeviceMemory::release_addresses(Address address, std::int64_t bytes) {
  (void)driver_->address_free(address, size(bytes));
}

bool CudaDeviceMemory::map_page(Address address, std::int64_t page_bytes) {
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  CUmemGenericAllocationHandle page = 0;
  const CUresult made = driver_->create(&page, size(page_bytes), &property, 0);
  if (made == CUDA_ERROR_OUT_OF_MEMORY) return false;
  check_driver(made, "make a page of device memory");
  const CUresult mapped = driver_->map(address, size(page_bytes), 0, page, 0);
  (void)driver_->release(page);  // the mapping keeps it
  check_driver(mapped, "map a page of device memory");
  return true;
}

bool CudaDeviceMemory::map_pages(Address address, std::int64_t bytes, std::int64_t page_bytes) {
  const BesideCapture beside;
  for (std::int64_t mapped = 0; mapped < bytes; mapped += page_bytes) {
    if (map_page(address + static_cast<Address>(mapped), page_bytes)) continue;
    unmap(address, mapped, page_bytes);
    return false;
  }
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  check_driver(driver_->set_access(address, size(bytes), &access, 1), "open mapped memory");
  return true;
}

void CudaDeviceMemory::unmap(Address address, std::int64_t bytes, std::int64_t page_bytes) const {
  for (std::int64_t done = 0; done < bytes; done += page_bytes)
    (void)driver_->unmap(address + static_cast<Address>(done), size(page_bytes));
}

void CudaDeviceMemory::unmap_pages(Address address, std::int64_t bytes, std::int64_t page_bytes,
                                   StreamId id) {
  (void)cudaStreamSynchronize(stream(id));
  unmap(address, bytes, page_bytes);
}

StreamPoint CudaDeviceMemory::record_point(StreamId id) {
  if (unused_.empty()) {
    unused_.push_back(events_.size());
    events_.push_back(make_event(cudaEventDisableTiming));
  }
  const std::size_t event = unused_.back();
  unused_.pop_back();
  check(cudaEventRecord(events_[event].get(), stream(id)), "mark the last use of a block");
  return static_cast<StreamPoint>(event);
}

bool CudaDeviceMemory::has_passed(StreamPoint point) {
  const auto event = static_cast<std::size_t>(point);
  const cudaError_t status = cudaEventQuery(events_[event].get());
  if (status == cudaErrorNotReady) {
    (void)cudaGetLastError();  // must not look like the error of the next launch
    return false;
  }
  check(status, "ask for the last use of a block");
  unused_.push_back(event);
  return true;
}

// Does not throw, since allocators call it in their destructors. An error of the work stays with
// the device and is returned by the next call.
void CudaDeviceMemory::wait_for(StreamPoint point) {
  const auto event = static_cast<std::size_t>(point);
  (void)cudaEventSynchronize(events_[event].get());
  unused_.push_back(event);
}

void CudaDeviceMemory::wait_for_all() {
  (void)cudaDeviceSynchronize();
}

}  // namespace stepgate
