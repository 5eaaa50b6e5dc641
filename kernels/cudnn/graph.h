// SPDX-License-Identifier: MIT
// A graph of operations in cuDNN's backend interface, and the plan that executes it. The first
// refusal is kept, and later calls then do nothing.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn/cudnn_library.h"

namespace stepgate {

// Destroys a descriptor with the function of the library that made it.
struct DescriptorDeleter {
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  void operator()(void* descriptor) const noexcept { (void)destroy(descriptor); }
};
using Descriptor = std::unique_ptr<void, DescriptorDeleter>;

struct TensorShape {
  std::array<std::int64_t, 4> sizes;
  std::array<std::int64_t, 4> strides;  // in numbers

  // The shape with the last two dimensions exchanged.
  TensorShape transposed() const;
};

// The shape of a tensor stored in the order of its dimensions, without gaps.
TensorShape packed(std::array<std::int64_t, 4> sizes);

// A finished plan with its descriptors. The library must outlive it.
class CudnnPlan {
 public:
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class CudnnGraph;
  friend class PlanLauncher;

  Cudnn* cudnn_ = nullptr;
  std::shared_ptr<const std::vector<Descriptor>> parts_;  // of the graph, whose plans share them
  std::vector<std::int64_t> buffers_;                     // unique ids
  std::vector<std::int64_t> numbers_;
  std::vector<float> values_;  // of the numbers
  Descriptor plan_;
  std::int64_t workspace_bytes_ = 0;
};

// Launches a plan that other launchers share; launches must not overlap.
class PlanLauncher {
 public:
  explicit PlanLauncher(std::shared_ptr<const CudnnPlan> plan)
      : plan_(std::move(plan)), values_(plan_->values_) {}

  // `pointers` are in the order in which the graph's buffers were added. Throws std::runtime_error
  // where cuDNN refuses the launch.
  void launch(const std::vector<void*>& pointers, void* workspace, cudaStream_t stream);

 private:
  void pack(const std::vector<void*>& pointers, void* workspace);

  std::shared_ptr<const CudnnPlan> plan_;
  std::vector<float> values_;  // cuDNN reads them at each launch
  // Kept from the last launch, since most launches use the same pointers again.
  Descriptor variant_pack_;
  std::vector<void*> packed_pointers_;
};

enum class ConvolutionPass { forward, data_gradient, weight_gradient };

// How a square window moves over an image with zeros around it.
struct WindowSteps {
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};

// Limits of the plans that a graph may get.
struct PlanLimits {
  std::int64_t workspace_bytes = std::numeric_limits<std::int64_t>::max();
  bool needs_equal_bits = false;  // two launches give the same bits
  bool keeps_precision = false;   // factors keep all bits of fp32, without tensor cores
};

class CudnnGraph {
 public:
  using Tensor = cudnnBackendDescriptor_t;

  explicit CudnnGraph(Cudnn& cudnn) : cudnn_(&cudnn) {}

  // A tensor in memory; each launch gives its address.
  Tensor buffer(cudnnDataType_t, const TensorShape&);
  // A constant fp32 number of the graph.
  Tensor number(float value);
  // An intermediate tensor, never in memory.
  Tensor computed(const TensorShape&, cudnnDataType_t = CUDNN_DATA_FLOAT);

  // Each function below adds an operation to the graph and returns `to`.
  Tensor multiply_matrices(Tensor a, Tensor b, Tensor to);
  Tensor reduce(cudnnReduceTensorOp_t, Tensor from, Tensor to);
  Tensor reshape(Tensor from, Tensor to);
  // The inputs are in the order x, b, t of cuDNN's reference.
  Tensor pointwise(cudnnPointwiseMode_t, std::initializer_list<Tensor> inputs, Tensor to,
                   cudnnDataType_t precision = CUDNN_DATA_FLOAT);
  // A pass of a convolution. x has the sizes N, C, H, W, w K, C, R, S, and y N, K, P, Q. With the
  // weight gradient w is added to if `accumulate`.
  void convolve(ConvolutionPass, const WindowSteps&, Tensor x, Tensor w, Tensor y,
                bool accumulate = false);
  // Writes to `to` the index of each number of `like` along an axis.
  Tensor indices(Tensor like, std::int64_t axis, Tensor to);

  // The first supported plan of cuDNN's heuristics, and then of its fallbacks, that is within the
  // limits. nullptr where there is none; *reason then says why. The graph is used up afterwards.
  std::unique_ptr<CudnnPlan> plan(std::string* reason, const PlanLimits& limits = {});
  // As above, at most so many plans of the heuristics, or of the fallbacks where the heuristics
  // have none; empty where there is none.
  std::vector<std::unique_ptr<CudnnPlan>> plans(std::size_t most, std::string* reason,
                                                const PlanLimits& limits);

 private:
  void check(cudnnStatus_t status, std::string_view what);
  bool failed() const { return !failure_.empty(); }
  Descriptor create(cudnnBackendDescriptorType_t, std::string_view what);
  void set(const Descriptor&, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
           std::int64_t count, const void* values, std::string_view what);
  void link(const Descriptor&, cudnnBackendAttributeName_t, cudnnBackendDescriptor_t to,
            std::string_view what);
  void finalize(const Descriptor&, std::string_view what);
  cudnnBackendDescriptor_t keep(Descriptor);

  struct Residence {
    std::int64_t id;
    cudnnBackendAttributeName_t flag;  // attribute to set; CUDNN_ATTR_TENSOR_UNIQUE_ID: none
  };
  Tensor tensor(cudnnDataType_t, const TensorShape&, const Residence&);
  Tensor pointwise(Descriptor mode, std::initializer_list<Tensor> inputs, Tensor to);
  Descriptor pointwise_mode(cudnnPointwiseMode_t, cudnnDataType_t precision);
  void add_operation(Descriptor);

  std::vector<Descriptor> engine_configurations(const Descriptor& graph, cudnnBackendHeurMode_t);
  std::vector<cudnnBackendNumericalNote_t> notes_of(const Descriptor& configuration);
  std::string reason_against(const Descriptor& configuration, const PlanLimits&);
  // nullptr where the configuration has no plan within the limits.
  std::unique_ptr<CudnnPlan> try_configuration(const Descriptor& configuration, const PlanLimits&,
                                               std::string* reason);

  Cudnn* cudnn_;
  std::string failure_;
  std::int64_t next_id_ = 1;
  std::vector<Descriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  std::vector<std::int64_t> buffers_;
  std::vector<std::int64_t> numbers_;
  std::vector<float> values_;
};

}  // namespace stepgate
