// SPDX-License-Identifier: MIT
#include "measure/planned_subject.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/gradients.h"
#include "device/planned_memory.h"
#include "kernels/kernels.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

// That of GEMMs.
std::int64_t workspace_bytes_of(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (int index = 0; index < std::ssize(plan.buffers); ++index) {
    const Buffer& buffer = buffer_at(plan, index);
    if (buffer.purpose == Purpose::workspace && plan.library_workspace != index)
      bytes += buffer.bytes;
  }
  return bytes;
}

// A library adds in another order than the catalogue's kernel.
std::string name_of_work(const Kernel& launched) {
  const auto& with = launched.replacement;
  return with ? fmt::format("{} by '{}' of '{}'", launched.name, with->function, with->library)
              : std::string(launched.name);
}

ModelWork work_of(const LaunchKernel& launch) {
  return {.name = name_of_work(kernel(launch.kernel)),
          .shape = launch.shape,
          .dtype = launch.dtype,
          .attributes = launch.attributes};
}

ModelWork work_of(const Collective& collective) {
  const bool averages = collective.reduction == Reduction::average;
  return {.name = fmt::format("{} {}", averages ? "average" : "sum", name_of(collective.kind)),
          .dtype = collective.dtype,
          .payload_bytes = payload_bytes(collective)};
}

void add_operation(const Operation& operation, Arithmetic& to) {
  const bool is_update = operation.phase == Phase::optimizer;
  const bool is_of_the_model =
      operation.phase == Phase::forward || operation.phase == Phase::backward;
  if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) {
    const std::string name(launch->kernel.name());
    if (name == kernels::ChangeLayout::name) return;  // its copy has the same bits
    if (is_of_the_model || is_update) to.kernels.insert(name);
    if (is_of_the_model) to.model_work.push_back(work_of(*launch));
    if (to.rows_of_norm == 0 && name == kernels::BatchNormFinish::name)
      to.rows_of_norm = launch->shape.to<PartsShape>().rows;
    if (name == kernels::QuantizeFp8::name) {
      const auto matrix = launch->shape.to<PartsShape>();
      to.scaled_matrices.emplace(matrix.rows, matrix.columns);
    } else if (name == kernels::QuantizeFp8Delayed::name) {
      const auto matrix = launch->shape.to<MatrixShape>();
      to.scaled_matrices.emplace(matrix.rows, matrix.columns);
    }
    const std::pair each(name, launch->attributes);
    if (is_update && std::ranges::find(to.update, each) == to.update.end())
      to.update.push_back(each);
  } else if (const auto* collective = std::get_if<Collective>(&operation.action)) {
    if (is_of_the_model) to.model_work.push_back(work_of(*collective));
  }
}

Arithmetic arithmetic_of(const StepPlan& plan) {
  Arithmetic arithmetic{
      .seed = plan.seed,
      .batch_sizes = plan.batch_sizes,
      .lengths = plan.lengths,
      .model = plan.model,
      .workspace_bytes = workspace_bytes_of(plan),
      .kernels = {},
      .update = {},
      .gemm_algorithms = plan.gemm_algorithms,
      .attention_sums = plan.attention_sums,
      .model_work = {},
      .rows = plan.tokens_per_sample > 0 ? mean_tokens(plan) : mean_batch_size(plan),
      .parameters = {},
      .against_gradients = reason_against_gradients(plan)};
  for (const Operation& operation : plan.operations) add_operation(operation, arithmetic);
  for (const Parameter& parameter : plan.parameters)
    arithmetic.parameters.push_back(parameter.name);
  return arithmetic;
}

}  // namespace

std::int64_t loader_turn(const LoaderKnobs& loader) {
  return loader.depth > 0 && loader.wait_us > 0 ? loader.workers : 1;
}

Subject subject_of(const PlannedStep& step) {
  const StepPlan& plan = step;
  const PlanFacts& facts = step.facts();
  Subject subject{.name = plan.variant,
                  .ranks = plan.ranks.count,
                  .batch_size = mean_batch_size(plan),
                  .tokens = mean_tokens(plan),
                  .model_flops = facts.model_flops,
                  .dtype = plan.dtype,
                  .batch_bytes = plan.batch_bytes,
                  .param_bytes = plan.param_bytes,
                  .counts = facts.counts,
                  .phases = facts.phases,
                  .periodic = facts.periodic,
                  .anchor = facts.anchor,
                  .against_interleaving = facts.against_interleaving,
                  .steps_in_flight = plan.steps_in_flight,
                  .loader_depth = plan.loader.depth,
                  .loader_turn = loader_turn(plan.loader),
                  .prefetch_depth = facts.prefetch_depth,
                  .libraries = {},
                  .planned_memory = planned_memory(plan, facts.held),
                  .allocator_simulation = plan.allocator_simulation,
                  .arithmetic = arithmetic_of(plan)};
  for (const Operation& operation : plan.operations) {
    if (operation.captured) subject.in_graph[static_cast<std::size_t>(operation.phase)] = true;
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    subject.has_replaced_kernels |= launch != nullptr && is_replaced(*launch);
  }
  return subject;
}

std::vector<Subject> subjects_of(std::span<const PlannedStep> plans) {
  std::vector<Subject> subjects;
  for (const PlannedStep& plan : plans) subjects.push_back(subject_of(plan));
  return subjects;
}

Measurement measure(Device& device, std::span<const PlannedStep> plans,
                    const MeasureRequest& request) {
  std::vector<Subject> subjects = subjects_of(plans);
  for (std::size_t index = 0; index < plans.size(); ++index)
    subjects[index].libraries = device.libraries_for(plans[index]);
  const LoadSubject load = [&](std::size_t index, int slot, const LoadDraw& draw) {
    return device.load_into(slot, plans[index], draw);
  };
  return measure(device, subjects, load, request);
}

}  // namespace stepgate
