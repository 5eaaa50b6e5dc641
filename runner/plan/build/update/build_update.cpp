// SPDX-License-Identifier: MIT
#include "plan/build/update/build_update.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/update_control.h"
#include "plan/build/update/update_rates.h"
#include "plan/build/update/update_rule.h"

namespace stepgate {
namespace {

// What torch.amp.GradScaler begins with and how it goes on.
constexpr double first_loss_scale = 65536;
constexpr double growth_interval = 2000;
constexpr double growth = 2;
constexpr double backoff = 0.5;

// The norm is needed to clip, and to see numbers that are not finite before they reach a
// transformer's weights in 16 bits or their master.
bool needs_norm(const Knobs& knobs) {
  const bool looks_for_infinities =
      knobs.model.kind == ModelKind::transformer && is_16_bit(knobs.model.dtype);
  return knobs.optim.clip > 0 || knobs.optim.master || looks_for_infinities ||
         knobs.optim.impl == OptimImpl::foreach;
}

int add_state(StepBuilder& builder, const char* name, std::int64_t elements) {
  return builder.add(
      {.name = name, .purpose = Purpose::optimizer_state, .bytes = elements * word_bytes});
}

std::vector<ContentPart> first_control(const Knobs& knobs) {
  std::vector<ContentPart> parts(update_control::size, ContentPart{.elements = 1});
  parts[update_control::loss_scale].centre = scales_the_loss(knobs) ? first_loss_scale : 1;
  return parts;
}

class Update {
 public:
  Update(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
         const UpdateBuffers& buffers)
      : builder_(builder), knobs_(knobs), parameters_(parameters), buffers_(buffers) {}

  void build() {
    if (buffers_.control) find_norm();
    if (knobs_.optim.impl == OptimImpl::per_tensor) {
      for (const ParameterTensor& tensor : parameters_.tensors())
        update(tensor.name + ": update", tensor.first, tensor.elements);
      return;
    }
    if (knobs_.optim.impl == OptimImpl::foreach) return foreach_passes();
    update("update all parameters", 0, parameters_.elements());
  }

 private:
  void find_norm() {
    const std::int64_t elements = parameters_.elements();
    const std::int64_t parts = square_sum_pieces(elements);
    builder_.launch<kernels::SquareSums>(
        "gradient norm in parts", {.columns = elements, .depth = parts},
        {builder_.whole(buffers_.gradients), builder_.whole(buffers_.partials)});
    builder_.launch<kernels::Clip>(
        "gradient norm", {.depth = parts},
        {builder_.whole(buffers_.partials), builder_.whole(*buffers_.control)},
        {.max_norm = knobs_.optim.clip,
         .growth_interval = scales_the_loss(knobs_) ? growth_interval : 0,
         .growth = growth,
         .backoff = backoff});
  }

  void update(const std::string& name, std::int64_t first, std::int64_t count) {
    const auto from = [&](int flat) { return StepBuilder::Operand::from(flat, first); };
    UpdateOperands update{.weights = from(buffers_.weights),
                          .gradients = from(buffers_.gradients),
                          .counter = builder_.whole(buffers_.counter)};
    if (buffers_.master) update.master = from(*buffers_.master);
    for (const int moment : buffers_.moments) update.moments.push_back(from(moment));
    if (buffers_.control) update.control = builder_.whole(*buffers_.control);
    launch_update(builder_, knobs_.optim.kind, name, count, update);
  }

  template <ForeachPass pass>
  void foreach_pass(const std::string& name, const std::vector<StepBuilder::Operand>& operands) {
    builder_.launch<kernels::Foreach<pass>>(name, {.columns = parameters_.elements()}, operands,
                                            adamw_rates);
  }

  // One pass over everything for each operation of the rule, in PyTorch's order.
  void foreach_passes() {
    const BufferUse weights = builder_.whole(buffers_.weights);
    const BufferUse gradients = builder_.whole(buffers_.gradients);
    const BufferUse m = builder_.whole(buffers_.moments[0]);
    const BufferUse v = builder_.whole(buffers_.moments[1]);
    const BufferUse denominators = builder_.whole(buffers_.denominator);
    const BufferUse control = builder_.whole(*buffers_.control);
    foreach_pass<ForeachPass::unscale>("unscale the gradients", {gradients, control});
    foreach_pass<ForeachPass::decay>("decay the weights", {weights, control});
    foreach_pass<ForeachPass::lerp>("first moments", {m, gradients, control});
    foreach_pass<ForeachPass::mul>("decay the second moments", {v, control});
    foreach_pass<ForeachPass::addcmul>("second moments", {v, gradients, control});
    foreach_pass<ForeachPass::sqrt>("root of the second moments", {denominators, v});
    foreach_pass<ForeachPass::div>("correct the bias", {denominators, control});
    foreach_pass<ForeachPass::add>("add epsilon", {denominators});
    foreach_pass<ForeachPass::addcdiv>("move the weights", {weights, m, denominators, control});
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  const ParameterList& parameters_;
  const UpdateBuffers& buffers_;
};

}  // namespace

void add_update_buffers(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
                        UpdateBuffers& buffers) {
  const std::int64_t elements = parameters.elements();
  if (knobs.optim.master) {
    buffers.master = builder.add({.name = "master weights",
                                  .purpose = Purpose::optimizer_state,
                                  .bytes = elements * word_bytes,
                                  .content = Content::weights,
                                  .parts = parameters.contents(),
                                  .numbers_of = "weights"});
  }
  for (const char* name : moments_of(knobs.optim.kind))
    buffers.moments.push_back(add_state(builder, name, elements));
  if (knobs.optim.impl == OptimImpl::foreach)
    buffers.denominator = add_state(builder, "denominators", elements);
  if (!needs_norm(knobs)) return;
  buffers.control = builder.add({.name = "update control",
                                 .purpose = Purpose::bookkeeping,
                                 .bytes = update_control::size * word_bytes,
                                 .content = Content::weights,
                                 .parts = first_control(knobs)});
  buffers.partials = builder.add({.name = "squares of gradients",
                                  .purpose = Purpose::activations,
                                  .bytes = square_sum_pieces(elements) * word_bytes});
}

BufferUse loss_scale(const UpdateBuffers& buffers) {
  return StepBuilder::part(buffers.control.value(), update_control::loss_scale * word_bytes,
                           word_bytes);
}

void build_update(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
                  const UpdateBuffers& buffers) {
  Update(builder, knobs, parameters, buffers).build();
}

}  // namespace stepgate
