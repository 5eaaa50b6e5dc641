// SPDX-License-Identifier: MIT
#include "kernels/cudnn/graph.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace stepgate {
namespace {

constexpr std::int64_t byte_alignment = 16;

}  // namespace

TensorShape TensorShape::transposed() const {
  TensorShape shape = *this;
  std::swap(shape.sizes[2], shape.sizes[3]);
  std::swap(shape.strides[2], shape.strides[3]);
  return shape;
}

TensorShape packed(std::array<std::int64_t, 4> sizes) {
  return {sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}};
}

void CudnnGraph::check(cudnnStatus_t status, std::string_view what) {
  if (status != CUDNN_STATUS_SUCCESS && !failed()) failure_ = cudnn_->describe(status, what);
}

Descriptor CudnnGraph::create(cudnnBackendDescriptorType_t type, std::string_view what) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  if (!failed()) check(cudnn_->call().create_descriptor(type, &descriptor), what);
  return Descriptor(descriptor, {cudnn_->call().destroy_descriptor});
}

void CudnnGraph::set(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, std::int64_t count, const void* values,
                     std::string_view what) {
  if (failed()) return;
  check(cudnn_->call().set_attribute(descriptor.get(), name, type, count, values), what);
}

void CudnnGraph::link(const Descriptor& descriptor, cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptor_t to, std::string_view what) {
  set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to, what);
}

void CudnnGraph::finalize(const Descriptor& descriptor, std::string_view what) {
  if (failed()) return;
  check(cudnn_->call().finalize(descriptor.get()), what);
}

cudnnBackendDescriptor_t CudnnGraph::keep(Descriptor descriptor) {
  parts_.push_back(std::move(descriptor));
  return parts_.back().get();
}

CudnnGraph::Tensor CudnnGraph::tensor(cudnnDataType_t type, const TensorShape& shape,
                                      const Residence& residence) {
  constexpr std::string_view what = "describe a tensor";
  constexpr bool yes = true;
  Descriptor made = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  set(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, what);
  set(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape.sizes.data(), what);
  set(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape.strides.data(), what);
  set(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &residence.id, what);
  set(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &byte_alignment, what);
  if (residence.flag != CUDNN_ATTR_TENSOR_UNIQUE_ID) {
    set(made, residence.flag, CUDNN_TYPE_BOOLEAN, 1, &yes, what);
  }
  finalize(made, "finalize a tensor");
  return keep(std::move(made));
}

CudnnGraph::Tensor CudnnGraph::buffer(cudnnDataType_t type, const TensorShape& shape) {
  buffers_.push_back(next_id_);
  return tensor(type, shape, {next_id_++, CUDNN_ATTR_TENSOR_UNIQUE_ID});
}

CudnnGraph::Tensor CudnnGraph::number(float value) {
  numbers_.push_back(next_id_);
  values_.push_back(value);
  return tensor(CUDNN_DATA_FLOAT, packed({1, 1, 1, 1}),
                {next_id_++, CUDNN_ATTR_TENSOR_IS_BY_VALUE});
}

CudnnGraph::Tensor CudnnGraph::computed(const TensorShape& shape, cudnnDataType_t type) {
  return tensor(type, shape, {next_id_++, CUDNN_ATTR_TENSOR_IS_VIRTUAL});
}

void CudnnGraph::add_operation(Descriptor operation) {
  finalize(operation, "finalize an operation");
  operations_.push_back(keep(std::move(operation)));
}

CudnnGraph::Tensor CudnnGraph::multiply_matrices(Tensor a, Tensor b, Tensor to) {
  constexpr std::string_view what = "describe a product of matrices";
  constexpr cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  Descriptor mode = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR, what);
  set(mode, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
  finalize(mode, what);
  Descriptor operation = create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, what);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a, what);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b, what);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, to, what);
  link(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, keep(std::move(mode)), what);
  add_operation(std::move(operation));
  return to;
}

CudnnGraph::Tensor CudnnGraph::reduce(cudnnReduceTensorOp_t reduction, Tensor from, Tensor to) {
  constexpr std::string_view what = "describe a reduction";
  constexpr cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  Descriptor mode = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what);
  set(mode, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
  set(mode, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &reduction, what);
  finalize(mode, what);
  Descriptor operation = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, what);
  link(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, from, what);
  link(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to, what);
  link(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, keep(std::move(mode)), what);
  add_operation(std::move(operation));
  return to;
}

CudnnGraph::Tensor CudnnGraph::reshape(Tensor from, Tensor to) {
  constexpr std::string_view what = "describe a reshape";
  Descriptor operation = create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, what);
  link(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, from, what);
  link(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to, what);
  add_operation(std::move(operation));
  return to;
}

Descriptor CudnnGraph::pointwise_mode(cudnnPointwiseMode_t mode, cudnnDataType_t precision) {
  constexpr std::string_view what = "describe a pointwise mode";
  Descriptor made = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what);
  set(made, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode, what);
  set(made, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
  return made;
}

CudnnGraph::Tensor CudnnGraph::pointwise(Descriptor mode, std::initializer_list<Tensor> inputs,
                                         Tensor to) {
  constexpr std::string_view what = "describe a pointwise operation";
  constexpr cudnnBackendAttributeName_t names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                                   CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                                   CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  finalize(mode, what);
  Descriptor operation = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, what);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(mode)), what);
  const cudnnBackendAttributeName_t* name = names;
  for (const Tensor input : inputs) link(operation, *name++, input, what);
  link(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to, what);
  add_operation(std::move(operation));
  return to;
}

CudnnGraph::Tensor CudnnGraph::pointwise(cudnnPointwiseMode_t mode,
                                         std::initializer_list<Tensor> inputs, Tensor to,
                                         cudnnDataType_t precision) {
  return pointwise(pointwise_mode(mode, precision), inputs, to);
}

CudnnGraph::Tensor CudnnGraph::indices(Tensor like, std::int64_t axis, Tensor to) {
  Descriptor mode = pointwise_mode(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT);
  set(mode, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis, "set the axis of indices");
  return pointwise(std::move(mode), {like}, to);
}

void CudnnGraph::convolve(ConvolutionPass pass, const WindowSteps& steps, Tensor x, Tensor w,
                          Tensor y, bool accumulate) {
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, mode, x, w, y;
  };
  constexpr Names names_of_passes[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  constexpr std::string_view what = "describe a convolution";
  constexpr cudnnDataType_t precision = CUDNN_DATA_FLOAT;
  constexpr cudnnConvolutionMode_t kind = CUDNN_CROSS_CORRELATION;
  constexpr std::int64_t dimensions = 2, ones[] = {1, 1};
  const std::int64_t strides[] = {steps.stride, steps.stride};
  const std::int64_t paddings[] = {steps.padding, steps.padding};
  Descriptor mode = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &precision, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &kind, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, paddings, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, paddings, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones, what);
  set(mode, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides, what);
  finalize(mode, what);
  const Names& names = names_of_passes[static_cast<std::size_t>(pass)];
  const float alpha = 1, beta = accumulate ? 1 : 0;
  Descriptor operation = create(names.type, what);
  set(operation, names.alpha, CUDNN_TYPE_FLOAT, 1, &alpha, what);
  set(operation, names.beta, CUDNN_TYPE_FLOAT, 1, &beta, what);
  link(operation, names.mode, keep(std::move(mode)), what);
  link(operation, names.x, x, what);
  link(operation, names.w, w, what);
  link(operation, names.y, y, what);
  add_operation(std::move(operation));
}

std::vector<Descriptor> CudnnGraph::engine_configurations(const Descriptor& graph,
                                                          cudnnBackendHeurMode_t mode) {
  constexpr std::string_view what = "ask the heuristics for engines";
  Descriptor heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
  link(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get(), what);
  set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, what);
  finalize(heuristics, what);
  std::vector<Descriptor> configurations;
  if (failed()) return configurations;
  const auto ask = [&](std::int64_t room, std::int64_t* count, void* to) {
    check(cudnn_->call().get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, room, count, to),
          what);
  };
  std::int64_t count = 0;
  ask(0, &count, nullptr);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count && !failed(); ++i) {
    configurations.push_back(create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, what));
    raw.push_back(configurations.back().get());
  }
  if (!raw.empty() && !failed()) ask(count, &count, raw.data());
  if (count < std::ssize(configurations)) configurations.resize(static_cast<std::size_t>(count));
  if (configurations.empty() && !failed()) {
    failure_ = cudnn_->describe(CUDNN_STATUS_NOT_SUPPORTED, "no engine carries out this graph");
  }
  return configurations;
}

std::vector<cudnnBackendNumericalNote_t> CudnnGraph::notes_of(const Descriptor& configuration) {
  constexpr std::string_view what = "ask for the notes of an engine";
  Descriptor engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, what);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  if (failed()) return {};
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  check(cudnn_->call().get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw),
        what);
  if (!failed())
    check(cudnn_->call().get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, std::ssize(notes), &count,
                                       notes.data()),
          what);
  notes.resize(failed() ? 0 : static_cast<std::size_t>(count));
  return notes;
}

// The limit that the engine of this configuration breaks; empty where it breaks none.
std::string CudnnGraph::reason_against(const Descriptor& configuration, const PlanLimits& limits) {
  if (!limits.needs_equal_bits && !limits.keeps_precision) return {};
  for (const cudnnBackendNumericalNote_t note : notes_of(configuration)) {
    if (limits.needs_equal_bits && note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
      return "its engine gives other bits every time";
    const bool rounds = note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                        note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                        note == CUDNN_NUMERICAL_NOTE_FFT || note == CUDNN_NUMERICAL_NOTE_WINOGRAD;
    if (limits.keeps_precision && rounds) return "its engine rounds the factors";
  }
  return {};
}

std::unique_ptr<CudnnPlan> CudnnGraph::try_configuration(const Descriptor& configuration,
                                                         const PlanLimits& limits,
                                                         std::string* reason) {
  constexpr std::string_view what = "finalize an execution plan";
  *reason = reason_against(configuration, limits);
  if (!reason->empty()) return nullptr;
  auto made = std::make_unique<CudnnPlan>();
  CudnnPlan& plan = *made;
  cudnnHandle_t handle = cudnn_->handle();
  std::int64_t count = 0;
  plan.plan_ = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, what);
  set(plan.plan_, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, what);
  link(plan.plan_, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.get(), what);
  finalize(plan.plan_, what);
  if (!failed()) {
    check(cudnn_->call().get_attribute(plan.plan_.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &count, &plan.workspace_bytes_),
          "ask for the size of the workspace");
  }
  *reason = std::exchange(failure_, {});  // the next configuration may work
  if (reason->empty() && plan.workspace_bytes_ > limits.workspace_bytes)
    *reason = "it needs a workspace of " + std::to_string(plan.workspace_bytes_) + " B, and has " +
              std::to_string(limits.workspace_bytes);
  return reason->empty() ? std::move(made) : nullptr;
}

std::unique_ptr<CudnnPlan> CudnnGraph::plan(std::string* reason, const PlanLimits& limits) {
  auto made = plans(1, reason, limits);
  return made.empty() ? nullptr : std::move(made.front());
}

std::vector<std::unique_ptr<CudnnPlan>> CudnnGraph::plans(std::size_t most, std::string* reason,
                                                          const PlanLimits& limits) {
  constexpr std::string_view what = "finalize the graph of operations";
  cudnnHandle_t handle = cudnn_->handle();
  Descriptor graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, what);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, what);
  set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::ssize(operations_),
      operations_.data(), what);
  finalize(graph, what);
  std::vector<std::unique_ptr<CudnnPlan>> made;
  std::vector<Descriptor> configurations;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    configurations = engine_configurations(graph, mode);
    for (const Descriptor& configuration : configurations) {
      if (failed() || made.size() == most) break;
      auto plan = try_configuration(configuration, limits, reason);
      if (plan != nullptr) made.push_back(std::move(plan));
    }
    if (!made.empty() || failed()) break;
  }
  if (failed()) *reason = failure_;
  if (made.empty()) return made;
  keep(std::move(graph));
  for (Descriptor& configuration : configurations) keep(std::move(configuration));
  const auto parts = std::make_shared<const std::vector<Descriptor>>(std::move(parts_));
  for (const std::unique_ptr<CudnnPlan>& plan : made) {
    plan->cudnn_ = cudnn_;
    plan->parts_ = parts;
    plan->buffers_ = buffers_;
    plan->numbers_ = numbers_;
    plan->values_ = values_;
  }
  return made;
}

void PlanLauncher::pack(const std::vector<void*>& pointers, void* workspace) {
  std::vector<std::int64_t> ids = plan_->buffers_;
  ids.insert(ids.end(), plan_->numbers_.begin(), plan_->numbers_.end());
  std::vector<void*> data = pointers;
  for (float& value : values_) data.push_back(&value);
  const Cudnn& cudnn = *plan_->cudnn_;
  const CudnnFunctions& call = cudnn.call();
  cudnnBackendDescriptor_t made = nullptr;
  const auto check = [&](cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw std::runtime_error(cudnn.describe(status, "name the operands of a launch"));
  };
  check(call.create_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &made));
  Descriptor descriptor(made, {call.destroy_descriptor});
  check(call.set_attribute(made, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
                           std::ssize(ids), ids.data()));
  check(call.set_attribute(made, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                           std::ssize(data), data.data()));
  check(call.set_attribute(made, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
                           &workspace));
  check(call.finalize(made));
  variant_pack_ = std::move(descriptor);
}

void PlanLauncher::launch(const std::vector<void*>& pointers, void* workspace,
                          cudaStream_t stream) {
  std::vector<void*> wanted = pointers;
  wanted.push_back(workspace);
  if (variant_pack_ == nullptr || wanted != packed_pointers_) {
    pack(pointers, workspace);
    packed_pointers_ = std::move(wanted);
  }
  const Cudnn& cudnn = *plan_->cudnn_;
  const CudnnFunctions& call = cudnn.call();
  cudnnStatus_t status = call.set_stream(cudnn.handle(), stream);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = call.execute(cudnn.handle(), plan_->plan_.get(), variant_pack_.get());
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    throw std::runtime_error(cudnn.describe(status, "launch a plan"));
  }
}

}  // namespace stepgate
