// SPDX-License-Identifier: MIT
#include "plan/build/build_update.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/square_sums/square_sums.h"
#include "kernels/update_control.h"
#include "plan/build/adamw_scalars.h"

namespace stepgate {
namespace {

// What torch.amp.GradScaler begins with and how it goes on.
constexpr double first_loss_scale = 65536;
constexpr double growth_interval = 2000;
constexpr double growth = 2;
constexpr double backoff = 0.5;

// The norm is needed to clip, and to see numbers that are not finite before they reach weights in
// 16 bits or their master.
bool needs_norm(const Knobs& knobs) {
  return knobs.optim.clip > 0 || knobs.optim.master || is_narrow(knobs.model.dtype) ||
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
  Update(StepBuilder& builder, const Knobs& knobs, const ParameterTable& table,
         const UpdateBuffers& buffers)
      : builder_(builder), knobs_(knobs), table_(table), buffers_(buffers) {}

  void build() {
    if (buffers_.control) find_norm();
    if (knobs_.optim.impl == OptimImpl::per_tensor) {
      for (const ParameterTensor& tensor : table_.tensors())
        update(tensor.name + ": update", tensor.first, tensor.elements);
      return;
    }
    if (knobs_.optim.impl == OptimImpl::foreach) return foreach_passes();
    update("update all parameters", 0, table_.elements());
  }

 private:
  void find_norm() {
    const std::int64_t elements = table_.elements();
    const std::int64_t parts = square_sum_pieces(elements);
    builder_.launch("gradient norm in parts", "square_sums", {.columns = elements, .depth = parts},
                    {builder_.whole(buffers_.gradients), builder_.whole(buffers_.partials)});
    builder_.launch(
        "gradient norm", "clip", {.depth = parts},
        {builder_.whole(buffers_.partials), builder_.whole(*buffers_.control)},
        {knobs_.optim.clip, scales_the_loss(knobs_) ? growth_interval : 0, growth, backoff});
  }

  BufferUse range(int flat, std::int64_t first, std::int64_t count,
                  std::int64_t element_bytes = word_bytes) const {
    return StepBuilder::part(flat, first * element_bytes, count * element_bytes);
  }

  void update(const std::string& name, std::int64_t first, std::int64_t count) {
    const std::int64_t element = bytes_of(knobs_.model.dtype);
    std::vector<BufferUse> operands = {range(buffers_.weights, first, count, element),
                                       range(buffers_.gradients, first, count, element)};
    if (buffers_.master) operands.push_back(range(*buffers_.master, first, count));
    operands.push_back(range(buffers_.m, first, count));
    operands.push_back(range(buffers_.v, first, count));
    operands.push_back(builder_.whole(buffers_.control.value_or(buffers_.counter)));
    const std::string_view kernel = buffers_.master    ? "adamw_master"
                                    : buffers_.control ? "adamw_clipped"
                                                       : "adamw";
    builder_.launch(name, kernel, {.columns = count}, operands, adamw_scalars);
  }

  // One pass over everything for each operation of the rule, in PyTorch's order.
  void foreach_passes() {
    const std::int64_t count = table_.elements();
    const BufferUse weights = builder_.whole(buffers_.weights);
    const BufferUse gradients = builder_.whole(buffers_.gradients);
    const BufferUse m = range(buffers_.m, 0, count);
    const BufferUse v = range(buffers_.v, 0, count);
    const BufferUse denominators = range(buffers_.denominator, 0, count);
    const BufferUse control = builder_.whole(*buffers_.control);
    const auto pass = [&](const char* name, const char* kernel, std::vector<BufferUse> operands) {
      builder_.launch(name, kernel, {.columns = count}, std::move(operands), adamw_scalars);
    };
    pass("unscale the gradients", "foreach_unscale", {gradients, control});
    pass("decay the weights", "foreach_decay", {weights, control});
    pass("first moments", "foreach_lerp", {m, gradients, control});
    pass("decay the second moments", "foreach_mul", {v, control});
    pass("second moments", "foreach_addcmul", {v, gradients, control});
    pass("root of the second moments", "foreach_sqrt", {denominators, v});
    pass("correct the bias", "foreach_div", {denominators, control});
    pass("add epsilon", "foreach_add", {denominators});
    pass("move the weights", "foreach_addcdiv", {weights, m, denominators, control});
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  const ParameterTable& table_;
  const UpdateBuffers& buffers_;
};

}  // namespace

void add_update_buffers(StepBuilder& builder, const Knobs& knobs, const ParameterTable& table,
                        UpdateBuffers& buffers) {
  const std::int64_t elements = table.elements();
  if (knobs.optim.master) {
    buffers.master = builder.add({.name = "master weights",
                                  .purpose = Purpose::optimizer_state,
                                  .bytes = elements * word_bytes,
                                  .content = Content::weights,
                                  .parts = table.contents(),
                                  .numbers_of = "weights"});
  }
  buffers.m = add_state(builder, "first moments", elements);
  buffers.v = add_state(builder, "second moments", elements);
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

void build_update(StepBuilder& builder, const Knobs& knobs, const ParameterTable& table,
                  const UpdateBuffers& buffers) {
  Update(builder, knobs, table, buffers).build();
}

}  // namespace stepgate
