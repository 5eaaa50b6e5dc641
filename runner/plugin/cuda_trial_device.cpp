// SPDX-License-Identifier: MIT
#include "plugin/cuda_trial_device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/device_limits.h"
#include "kernels/probes/probes.h"
#include "kernels/trial/cuda_trial.h"
#include "plugin/cuda_device_facts.h"

namespace stepgate {
namespace {

// Pinned memory, since a copy from it is asynchronous.
class PinnedBytes {
 public:
  explicit PinnedBytes(const std::vector<std::byte>& content) : size_(content.size()) {
    check_cuda(cudaMallocHost(&memory_, std::max<std::size_t>(size_, 1)), "pin host memory");
    std::memcpy(memory_, content.data(), size_);
  }
  PinnedBytes(PinnedBytes&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}
  PinnedBytes& operator=(PinnedBytes&&) = delete;
  ~PinnedBytes() { (void)cudaFreeHost(memory_); }

  const void* data() const { return memory_; }
  std::size_t size() const { return size_; }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};

class CudaOperands : public PlacedOperands {
 public:
  CudaOperands(const KernelTrial& trial, const PlacedAs& as, cudaStream_t stream)
      : operands_(trial,
                  {.offset_bytes = as.offset_bytes,
                   .every_second = as.every_second,
                   .output = as.in_place ? Placement::Output::in_place : Placement::Output::apart}),
        stream_(stream) {}

  void* const* pointers() const override { return operands_.pointers(); }
  KernelTrial read_back() const override { return operands_.read_back(); }
  bool guards_are_untouched() const override { return operands_.guards_are_untouched(); }

  void write(const KernelTrial& trial) override {
    for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
      check_cuda(cudaMemcpyAsync(pointers()[operand], trial.operands[operand].data(),
                                 trial.operands[operand].size(), cudaMemcpyHostToDevice, stream_),
                 "write an operand");
    }
    check_cuda(cudaStreamSynchronize(stream_), "write the operands");
  }

  void write_later(const KernelTrial& trial, std::chrono::microseconds delay) override {
    const kernels::Spin::Attributes spin{.microseconds = static_cast<double>(delay.count())};
    spun_ = make_word();
    void* word = spun_.get();
    kernel(kernels::Spin::name).prepare(KernelShape{}, DType::fp32, spin, {})(&word, stream_);
    for (std::size_t operand = 0; operand < trial.operands.size(); ++operand) {
      const PinnedBytes& from = arriving_.emplace_back(trial.operands[operand]);
      check_cuda(cudaMemcpyAsync(pointers()[operand], from.data(), from.size(),
                                 cudaMemcpyHostToDevice, stream_),
                 "write an operand later");
    }
  }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
  };
  static std::unique_ptr<void, Free> make_word() {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, sizeof(std::uint64_t)), "allocate a word");
    return std::unique_ptr<void, Free>(memory);
  }

  DeviceOperands operands_;
  cudaStream_t stream_;
  std::unique_ptr<void, Free> spun_;
  std::vector<PinnedBytes> arriving_;
};

class CudaTrialDevice : public TrialDevice {
 public:
  explicit CudaTrialDevice(int index) : index_(index) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count <= index) {
      (void)cudaGetLastError();
      throw KernelLibraryError(fmt::format(
          "there is no GPU {} to try the kernel on; run the check where there is one", index));
    }
    check_cuda(cudaSetDevice(index), "choose the GPU");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create a stream");
  }
  ~CudaTrialDevice() override {
    (void)cudaFree(workspace_);
    (void)cudaStreamDestroy(stream_);
  }
  CudaTrialDevice(const CudaTrialDevice&) = delete;
  CudaTrialDevice& operator=(const CudaTrialDevice&) = delete;

  DeviceFacts facts() const override { return facts_of_cuda_device(index_); }

  CUstream_st* stream() const override { return stream_; }

  std::unique_ptr<PlacedOperands> place(const KernelTrial& trial, const PlacedAs& as) override {
    auto operands = std::make_unique<CudaOperands>(trial, as, stream_);
    // Uploads ran on the legacy stream, for which the trial's stream does not wait.
    check_cuda(cudaDeviceSynchronize(), "place the operands");
    return operands;
  }

  void* workspace(std::int64_t bytes) override {
    if (bytes <= workspace_bytes_) return workspace_;
    (void)cudaFree(std::exchange(workspace_, nullptr));
    check_cuda(cudaMalloc(&workspace_, static_cast<std::size_t>(bytes)), "allocate a workspace");
    constexpr int not_a_number = 0xff;
    check_cuda(cudaMemset(workspace_, not_a_number, static_cast<std::size_t>(bytes)),
               "fill the workspace");
    workspace_bytes_ = bytes;
    return workspace_;
  }

  std::string finish() override {
    const cudaError_t own = cudaStreamSynchronize(stream_);
    const cudaError_t all = cudaDeviceSynchronize();
    (void)cudaGetLastError();
    const cudaError_t failed = own != cudaSuccess ? own : all;
    return failed == cudaSuccess ? std::string() : in_words_of(failed);
  }

  CapturedWork capture(const std::function<void()>& call) override {
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), "begin a capture");
    call();
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    if (status != cudaSuccess || graph == nullptr) return {.problem = in_words_of(status)};
    CapturedWork work;
    std::size_t count = 0;
    check_cuda(cudaGraphGetNodes(graph, nullptr, &count), "count what was captured");
    std::vector<cudaGraphNode_t> nodes(count);
    check_cuda(cudaGraphGetNodes(graph, nodes.data(), &count), "list what was captured");
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      check_cuda(cudaGraphNodeGetType(node, &type), "ask what was captured");
      work.nodes += type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
                    type == cudaGraphNodeTypeMemset;
    }
    (void)cudaGraphDestroy(graph);
    return work;
  }

  std::int64_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "ask for the free memory");
    return static_cast<std::int64_t>(free);
  }

  std::string limits() const override { return in_words(device_limits()); }

 private:
  std::string in_words_of(cudaError_t status) const {
    const DeviceFacts own = facts();
    return own.in_words(static_cast<int>(status), own.capability);
  }

  int index_;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  std::int64_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<TrialDevice> make_cuda_trial_device(int index) {
  return std::make_unique<CudaTrialDevice>(index);
}

}  // namespace stepgate
