// SPDX-License-Identifier: MIT
// The part of CudaStep that happens once: streams, events, addresses, algorithms and graphs.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/require.h"
#include "device/cuda/check.h"
#include "device/cuda/nccl/nccl_record.h"
#include "device/cuda/step/cuda_step.h"
#include "device/launch_instead.h"
#include "kernels/catalogue.h"
#include "plan/analyse/access.h"
#include "plan/analyse/stays.h"
#include "plugin/cuda_device_facts.h"
#include "plugin/library_call.h"

namespace stepgate {
namespace {

// Ends a stream capture even after an exception. Until then the thread may not make most of the
// calls that cleaning up needs.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    // The mode is thread-local: calls of loader threads of other variants must not invalidate the
    // capture.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "begin to capture the step");
  }
  ~Capture() {
    if (!stream_) return;
    cudaGraph_t graph = nullptr;
    (void)cudaStreamEndCapture(stream_, &graph);
    if (graph) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Counts graph nodes that launch work and were captured since the last call. NCCL also captures
  // nodes that only order captured work with other work. The type of each node is queried once,
  // since a tracer records every such call.
  std::int64_t new_work() {
    cudaStreamCaptureStatus status{};
    cudaGraph_t graph = nullptr;
    check(cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph), "ask what was captured");
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count), "count what was captured");
    if (count == known_.size()) return 0;
    std::vector<cudaGraphNode_t> all(count);
    check(cudaGraphGetNodes(graph, all.data(), &count), "ask for what was captured");
    return std::ranges::count_if(all, [&](cudaGraphNode_t node) {
      return known_.insert(node).second && makes_work_there(node);
    });
  }

  Graph end() {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(std::exchange(stream_, nullptr), &graph),
          "capture the step as a graph");
    return Graph(graph);
  }

 private:
  static bool makes_work_there(cudaGraphNode_t node) {
    cudaGraphNodeType type{};
    check(cudaGraphNodeGetType(node, &type), "ask what a captured node is");
    return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
           type == cudaGraphNodeTypeMemset;
  }

  cudaStream_t stream_;
  std::unordered_set<cudaGraphNode_t> known_;
};

// Whether the operation runs work on the device; allocations in a graph do not.
bool makes_work(const Operation& operation) {
  return std::holds_alternative<LaunchKernel>(operation.action) ||
         std::holds_alternative<CopyBytes>(operation.action) ||
         std::holds_alternative<FillZero>(operation.action) ||
         std::holds_alternative<Collective>(operation.action);
}

// Throws where a library's kernel enqueues more or less in a graph than it says.
void require_its_launches(const Operation& operation, std::int64_t enqueued) {
  const auto* launch = std::get_if<LaunchKernel>(&operation.action);
  if (launch == nullptr || !kernel(launch->kernel).replacement) return;
  const KernelReplacement& with = *kernel(launch->kernel).replacement;
  if (enqueued == with.launches) return;
  throw DeviceError(fmt::format("'{}' of '{}' enqueued {} pieces of work in '{}', and says {}",
                                with.function, with.library, enqueued, operation.name,
                                with.launches));
}

}  // namespace

CudaStep::CudaStep(const StepPlan& plan, const CudaServices& services, const LoadDraw& draw,
                   PersistentMemory* kept, std::shared_ptr<CudaStreams> streams)
    : plan_(plan),
      draw_(draw),
      contents_(services.contents),
      cupti_(services.cupti),
      communicators_(services.communicators),
      always_watches_(services.observer),
      created_streams_(std::move(streams)),
      streams_(created_streams_->of(plan)),
      buffers_(plan, services.contents, kept ? *kept : own_memory_, streams_),
      first_mark_(make_event(cudaEventDefault)),
      last_mark_(make_event(cudaEventDefault)),
      prefetch_depth_(prefetch_depth(plan)),
      first_step_(draw.first_step) {
  // A wait for an event sleeps only if the event says so. The runner's own events never do.
  const unsigned wait =
      plan.wait_style == SyncWait::block ? cudaEventBlockingSync : cudaEventDefault;
  for (const Event& event : plan.events) {
    std::vector<CudaEvent>& slots = events_.emplace_back();
    for (std::int64_t slot = 0; slot < event.slots; ++slot)
      slots.push_back(make_event(cudaEventDisableTiming | wait));
  }
  for (int half = 0; half < 2; ++half) progress_.push_back(make_event(cudaEventDisableTiming));
  limits_ = limits_before(services.limits);
  prepare(services);
  run_first_collectives(services);
  capture_graphs(services);
  begin_steps();
}

void CudaStep::begin_steps() {
  next_step_ = first_step_;
  harvested_ = first_step_;
  const bool takes_batches = std::ranges::any_of(plan_.operations, [](const Operation& operation) {
    return std::holds_alternative<TakeBatch>(operation.action);
  });
  loader_.reset();
  if (takes_batches) loader_.emplace(plan_.loader, loader_seed(plan_, draw_), first_step_);
  check(cudaDeviceSynchronize(), "finish loading the step");
}

// A stream that waits for an event of an earlier run continues at once, as with an event that was
// never recorded.
bool CudaStep::restart() {
  if (!gives_back_everything(plan_)) return false;
  try {
    require(!running_, "only a step whose runs have ended begins again");
    check(cudaDeviceSynchronize(), "end the steps before a restart");
    for (int buffer = 0; buffer < std::ssize(plan_.buffers); ++buffer)
      buffers_.fill_again(buffer, contents_, stream(compute_stream));
    begin_steps();
  } catch (...) {
    rethrow_from_gpu(place());
  }
  return true;
}

CudaStep::~CudaStep() {
  // All work, also on the legacy stream, must end before the buffers are freed. The run has already
  // reported its errors, which must not appear at the next step's launches.
  (void)cudaDeviceSynchronize();
  (void)cudaGetLastError();
}

void CudaStep::prepare(const CudaServices& services) {
  context_ = {.blas = services.blas,
              .dnn = services.dnn,
              .cudnn_unavailable_reason = services.cudnn_unavailable_reason,
              .choices = &choices_};
  if (plan_.gemm_algorithms == GemmChoice::autotune)
    context_.gemm_autotuner = services.gemm_autotuner;
  for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
    if (plan_.buffers[index].purpose != Purpose::workspace ||
        plan_.library_workspace == static_cast<int>(index))
      continue;
    context_.workspace = buffers_.address(static_cast<int>(index), 0);
    context_.workspace_bytes = plan_.buffers[index].bytes;
  }
  for (const Operation& operation : plan_.operations) {
    Prepared& prepared = prepared_.emplace_back();
    prepared.operation = &operation;
    prepared.stream = stream(operation.stream);
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (!launch) continue;
    prepared.launch = prepare_launch(static_cast<int>(prepared_.size()) - 1, *launch, services);
    bind_operands(prepared, *launch);
  }
  context_.choices = nullptr;  // what is prepared later is not the step's
  const auto identity = [&](const Kernel& row) { return services.kernel_of_user(row).identity; };
  for (KernelChoice& choice : choices_instead(plan_, identity, unsupported_))
    choices_.push_back(std::move(choice));
}

Launch CudaStep::launch_of_user(int operation, const LaunchKernel& launch,
                                const CudaServices& services) {
  const Kernel& row = kernel(launch.kernel);
  library_call().operation = nullptr;  // of an earlier step
  const KernelRequest request{.kernel = row,
                              .shape = launch.shape,
                              .dtype = launch.dtype,
                              .attributes = launch.attributes,
                              .workspace = plan_.library_workspace
                                               ? buffers_.address(*plan_.library_workspace, 0)
                                               : nullptr,
                              .workspace_bytes = row.replacement->workspace_bytes};
  LaunchInstead made = launch_instead(
      services.kernel_of_user(row), request, facts_of_cuda_device(services.gpu), [&] {
        return kernel(row.name).prepare(launch.shape, launch.dtype, launch.attributes, context_);
      });
  if (!made.unsupported.empty()) unsupported_.emplace(operation, std::move(made.unsupported));
  return std::move(made.launch);
}

Launch CudaStep::prepare_launch(int operation, const LaunchKernel& launch,
                                const CudaServices& services) {
  // Layers of one shape share a prepared launch.
  for (int index = 0; index < operation; ++index) {
    const Prepared& earlier = prepared_[static_cast<std::size_t>(index)];
    if (!earlier.launch) continue;
    const auto& other = std::get<LaunchKernel>(earlier.operation->action);
    if (other.kernel == launch.kernel && other.shape == launch.shape &&
        other.dtype == launch.dtype && other.attributes == launch.attributes) {
      const auto found = unsupported_.find(index);
      if (found != unsupported_.end()) unsupported_.emplace(operation, found->second);
      return earlier.launch;
    }
  }
  const Kernel& launched = kernel(launch.kernel);
  if (launched.replacement) return launch_of_user(operation, launch, services);
  require(launched.prepare != nullptr, "the CUDA build has a launcher for every kernel");
  return launched.prepare(launch.shape, launch.dtype, launch.attributes, context_);
}

void CudaStep::bind_operands(Prepared& prepared, const LaunchKernel& launch) {
  prepared.operand_count = static_cast<std::int64_t>(launch.operands.size());
  bool fixed = true;
  for (const BufferUse& use : launch.operands) {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(use.buffer)];
    fixed = fixed && buffer.allocated_by == AllocatedBy::the_plan;
    prepared.period = std::lcm(prepared.period, buffer.slots);
  }
  if (!fixed) return;
  for (std::int64_t step = 0; step < prepared.period; ++step) {
    for (const BufferUse& use : launch.operands) prepared.operands.push_back(address(use, step));
  }
}

// All ranks must be able to launch their graphs, or none does, since a launch waits for the other
// ranks.
void CudaStep::capture_graphs(const CudaServices& services) {
  std::int64_t period = 1;
  bool any = false;
  for (const Operation& operation : plan_.operations) {
    if (!operation.captured) continue;
    any = true;
    for (const BufferAccess& access : accesses_of(plan_, operation)) {
      period = std::lcm(period, plan_.buffers[static_cast<std::size_t>(access.use.buffer)].slots);
    }
  }
  if (!any) return;
  const bool is_of_several = plan_.ranks.count > 1;
  if (is_of_several) services.agreement->begin();
  // NCCL reports collectives only while they are captured, and not when the graph is launched.
  const bool is_told_by_nccl = cupti_ && is_of_several;
  if (is_told_by_nccl) (void)take_nccl_record();
  for (std::int64_t step = 0; step < period; ++step) {
    buffers_.begin_capture();
    Capture capture(stream(compute_stream));
    graph_work_.clear();
    for (std::size_t index = 0; index < prepared_.size(); ++index) {
      if (!prepared_[index].operation->captured) continue;
      issue(prepared_[index], step);
      if (!cupti_) continue;  // only traces need the operation of a node
      const std::int64_t works = capture.new_work();
      if (!makes_work(*prepared_[index].operation)) continue;
      require_its_launches(*prepared_[index].operation, works);
      graph_work_.insert(graph_work_.end(), static_cast<std::size_t>(works),
                         static_cast<int>(index));
    }
    const Graph graph = capture.end();
    buffers_.end_capture();
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph.get(), 0), "instantiate the step's graph");
    graphs_.emplace_back(executable);
    check(cudaGraphUpload(executable, stream(compute_stream)), "upload the step's graph");
  }
  if (is_told_by_nccl) captured_record_ = take_nccl_record();
  if (is_of_several && !services.agreement->all_can(true))
    throw DeviceError("another rank cannot capture it");
}

}  // namespace stepgate
