// SPDX-License-Identifier: MIT
#include "kernels/convolution/cudnn/cudnn_convolution.h"

#include <array>
#include <memory>
#include <vector>

#include "kernels/cudnn/graph.h"
#include "kernels/cudnn/plans.h"

namespace stepgate {
namespace {

// A tensor with these sizes whose second dimension, the channels, lies innermost.
TensorShape channels_last(std::int64_t outer, std::int64_t channels, std::int64_t height,
                          std::int64_t width) {
  return {{outer, channels, height, width},
          {height * width * channels, 1, width * channels, channels}};
}

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::fp16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

// The places of x, w and y among the operands of a kernel.
struct Pass {
  std::string_view kernel;
  ConvolutionPass pass;
  std::size_t x, w, y;
};
constexpr Pass passes[] = {
    {kernels::Convolution::name, ConvolutionPass::forward, 0, 1, 2},
    {kernels::ConvolutionDataGradient::name, ConvolutionPass::data_gradient, 2, 1, 0},
    {kernels::ConvolutionWeightGradient::name, ConvolutionPass::weight_gradient, 0, 2, 1}};

const Pass& pass_of(const ConvolutionRequest& request) {
  const Pass* pass = passes;
  while (pass->kernel != request.kernel) ++pass;
  return *pass;
}

std::string name_of(const ConvolutionRequest& request, std::int64_t workspace_bytes,
                    bool is_chosen) {
  return std::string(request.kernel) + (request.accumulate ? " added " : " ") +
         (is_chosen ? "chosen " : "") + text_of(KernelShape(request.shape)) + ' ' +
         std::string(name_of(request.dtype)) + ' ' + std::to_string(workspace_bytes);
}

Launch launch_of(std::shared_ptr<const CudnnPlan> plan, const Pass& pass, void* workspace) {
  const auto launcher = std::make_shared<PlanLauncher>(std::move(plan));
  return [launcher, workspace, pass](void* const* buffers, CUstream_st* stream) {
    launcher->launch({buffers[pass.x], buffers[pass.w], buffers[pass.y]}, workspace, stream);
  };
}

// cuDNN compiles some plans, each in half a second or more.
constexpr std::size_t most_to_choose_from = 8;

PlanOrReason make_plan(Cudnn& cudnn, const ConvolutionRequest& request, void* workspace,
                       std::int64_t workspace_bytes, const ChooseLaunch& choose) {
  const ConvolutionShape& s = request.shape;
  const cudnnDataType_t type = type_of(request.dtype);
  CudnnGraph graph(cudnn);
  const auto x = graph.buffer(type, channels_last(s.images, s.channels, s.height, s.width));
  const auto w = graph.buffer(type, channels_last(s.outputs, s.channels, s.window, s.window));
  const auto y =
      graph.buffer(type, channels_last(s.images, s.outputs, s.output_height(), s.output_width()));
  graph.convolve(pass_of(request).pass, {.stride = s.stride, .padding = s.padding}, x, w, y,
                 request.accumulate);
  PlanOrReason made;
  std::vector<std::shared_ptr<const CudnnPlan>> plans;
  for (auto& plan : graph.plans(choose ? most_to_choose_from : 1, &made.reason,
                                {.workspace_bytes = workspace_bytes,
                                .needs_equal_bits = true,
                                .keeps_precision = request.dtype == DType::fp32}))
    plans.push_back(std::move(plan));
  std::vector<Launch> launches;
  for (const auto& plan : plans) launches.push_back(launch_of(plan, pass_of(request), workspace));
  if (!plans.empty()) made.plan = plans[plans.size() > 1 ? choose(launches) : 0];
  return made;
}

}  // namespace

std::optional<Launch> cudnn_convolution(Cudnn& cudnn, const ConvolutionRequest& request,
                                        void* workspace, std::int64_t workspace_bytes,
                                        std::string* reason, const ChooseLaunch& choose) {
  const std::string name = name_of(request, workspace_bytes, choose != nullptr);
  const PlanOrReason& made = cudnn.plans().of(
      name, [&] { return make_plan(cudnn, request, workspace, workspace_bytes, choose); });
  if (made.plan == nullptr) {
    *reason = made.reason;
    return std::nullopt;
  }
  // The library keeps the plan, and the plan keeps the library loaded.
  return launch_of({cudnn.shared_from_this(), made.plan.get()}, pass_of(request), workspace);
}

std::vector<std::int64_t> operand_elements(const ConvolutionRequest& request) {
  const ConvolutionShape& s = request.shape;
  const Pass& pass = pass_of(request);
  std::vector<std::int64_t> elements(3);
  elements[pass.x] = s.input_pixels() * s.channels;
  elements[pass.w] = s.outputs * s.depth();
  elements[pass.y] = s.output_pixels() * s.outputs;
  return elements;
}

}  // namespace stepgate
