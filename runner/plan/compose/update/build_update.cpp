// SPDX-License-Identifier: MIT
#include "plan/compose/update/build_update.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/update_control.h"
#include "plan/compose/step_names.h"
#include "plan/compose/update/update_rates.h"
#include "plan/compose/update/update_rule.h"

namespace stepgate {
namespace {

// The initial scale and the growth interval are the defaults of torch.amp.GradScaler.
constexpr double first_loss_scale = 65536;
constexpr double growth_interval = 2000;
constexpr double growth = 2;
constexpr double backoff = 0.5;

// Whether every operation of the rule is a launch. Such launches read the control.
bool launches_passes(const OptimKnobs& knobs) {
  return knobs.impl == OptimImpl::foreach || knobs.impl == OptimImpl::operations;
}

// Whether the global norm is needed: to clip, or to detect numbers that are not finite before they
// reach a transformer's 16-bit weights or their master.
bool needs_norm(const Knobs& knobs) {
  const bool looks_for_infinities =
      knobs.model.kind == ModelKind::transformer && is_16_bit(knobs.model.dtype);
  return knobs.optim.clip > 0 || knobs.optim.master || looks_for_infinities ||
         launches_passes(knobs.optim);
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
      : builder_(builder), knobs_(knobs), parameters_(parameters), buffers_(buffers) {
    if (is_sharded() && !shards_weights(knobs))
      gathered_ = builder.add_event("weights are gathered", 1);
  }

  void build() {
    if (buffers_.control) find_norm();
    switch (knobs_.optim.impl) {
      case OptimImpl::per_tensor:
        for (const ParameterTensor& tensor : parameters_.tensors())
          update(tensor.name + ": update", tensor.first, tensor.elements);
        return;
      case OptimImpl::operations:
        for (const ParameterTensor& tensor : parameters_.tensors())
          launch_passes(tensor.name + ": ", tensor.first, tensor.elements);
        return;
      case OptimImpl::foreach:
        return launch_passes("", 0, parameters_.elements());
      case OptimImpl::fused:
        break;
    }
    if (!is_sharded()) return update("update all parameters", 0, parameters_.elements());
    for (std::size_t bucket = 0; bucket < buffers_.pieces.size(); ++bucket) update_part(bucket);
    if (!shards_weights(knobs_))
      builder_.act("wait until the weights are gathered", StreamWaitsEvent{gathered_});
  }

 private:
  bool is_sharded() const { return shards_the_update(knobs_); }

  void find_norm() {
    std::int64_t parts = 0;
    for (const UpdatedPiece& piece : buffers_.summed) {
      const std::int64_t own = square_sum_pieces(piece.flat.elements);
      builder_.launch<kernels::SquareSums>(
          "gradient norm in parts", {.numbers = piece.flat.elements, .pieces = own},
          {gradients_of(piece), StepBuilder::Operand::from(buffers_.partials, parts)});
      parts += own;
    }
    BufferUse sums = builder_.whole(buffers_.partials);
    if (is_sharded()) {
      sums = builder_.whole(*buffers_.square_sum);
      sum_over_ranks(parts, sums);
      parts = 1;
    }
    builder_.launch<kernels::Clip>(
        "gradient norm", {.partials = parts}, {sums, builder_.whole(*buffers_.control)},
        {.max_norm = knobs_.optim.clip,
         .growth_interval = scales_the_loss(knobs_) ? growth_interval : 0,
         .growth = growth,
         .backoff = backoff});
  }

  // Sums one number over all ranks.
  void sum_over_ranks(std::int64_t parts, const BufferUse& sum) {
    builder_.launch_as<kernels::SumParts>(DType::fp32, "square sum of the rank",
                                          {.columns = 1, .parts = parts},
                                          {builder_.whole(buffers_.partials), sum});
    const int there = builder_.add_event("square sum is there", 1);
    const int reduced = builder_.add_event("square sum is reduced", 1);
    communicate("square sum", there,
                {.from = sum, .to = sum, .dtype = DType::fp32, .reduction = Reduction::sum},
                reduced);
    builder_.act("wait until the square sum is reduced", StreamWaitsEvent{reduced});
  }

  // Enqueues a collective that runs concurrently with what follows on the compute stream.
  void communicate(const std::string& what, int there, const Collective& collective, int done) {
    builder_.act(what + " is there", RecordEvent{there});
    builder_.enter(Phase::optimizer, communication_stream(builder_));
    builder_.act("wait for " + what, StreamWaitsEvent{there});
    builder_.act(std::string(name_of(collective.kind)) + " " + what, collective);
    builder_.act(what + " is communicated", RecordEvent{done});
    builder_.enter(Phase::optimizer);
  }

  // The piece's weights or gradients in the model's storage: in the flat buffer, or in a buffer of
  // only the rank's pieces if `is_packed`.
  BufferUse part_of(int flat, const UpdatedPiece& piece, bool is_packed) const {
    const std::int64_t bytes = bytes_of(builder_.plan().dtype);
    const std::int64_t part = piece.flat.elements * bytes;
    if (is_packed) return StepBuilder::part(flat, piece.packed * bytes, part);
    return {flat, piece.flat.first * bytes, part, piece.flat.rank_stride * bytes};
  }
  BufferUse gradients_of(const UpdatedPiece& piece) const {
    return part_of(buffers_.gradients, piece, shards_gradients(knobs_));
  }

  // Updates the rank's part of a bucket; then all ranks gather the weights if every rank keeps all
  // weights.
  void update_part(std::size_t bucket) {
    const UpdatedPiece& piece = buffers_.pieces[bucket];
    const std::string name = "bucket " + std::to_string(bucket);
    const BufferUse weights = part_of(buffers_.weights, piece, shards_weights(knobs_));
    const auto packed = [&](int flat) { return StepBuilder::Operand::from(flat, piece.packed); };
    UpdateOperands update{.weights = weights,
                          .gradients = gradients_of(piece),
                          .counter = builder_.whole(buffers_.counter)};
    if (buffers_.master) update.master = packed(*buffers_.master);
    for (const int moment : buffers_.moments) update.moments.push_back(packed(moment));
    if (buffers_.control) update.control = builder_.whole(*buffers_.control);
    launch_update(builder_, knobs_.optim.kind, name + ": update", piece.flat, update);
    if (buffers_.average) follow(name + ": average", piece.flat.elements, piece.packed, update);
    if (shards_weights(knobs_)) return;
    const std::int64_t bytes = bytes_of(builder_.plan().dtype);
    const BufferUse all = StepBuilder::part(buffers_.weights, piece.bucket.first * bytes,
                                            piece.bucket.elements * bytes);
    communicate("weights of " + name, builder_.add_event("weights of " + name + " are there", 1),
                {.kind = CollectiveKind::all_gather,
                 .from = weights,
                 .to = all,
                 .dtype = builder_.plan().dtype},
                gathered_);
  }

  void update(const std::string& name, std::int64_t first, std::int64_t count) {
    const auto from = [&](int flat) { return StepBuilder::Operand::from(flat, first); };
    UpdateOperands update{.weights = from(buffers_.weights),
                          .gradients = from(buffers_.gradients),
                          .counter = builder_.whole(buffers_.counter)};
    if (buffers_.master) update.master = from(*buffers_.master);
    for (const int moment : buffers_.moments) update.moments.push_back(from(moment));
    if (buffers_.control) update.control = builder_.whole(*buffers_.control);
    launch_update(builder_, knobs_.optim.kind, name, {first, count}, update);
    if (buffers_.average) follow(name + ", average", count, first, update);
  }

  // Lets the average, from its element `first` on, follow the weights of this update or their
  // master.
  void follow(const std::string& name, std::int64_t count, std::int64_t first,
              const UpdateOperands& update) {
    launch_average(builder_, name, count, knobs_.optim.average,
                   update.master ? DType::fp32 : builder_.plan().dtype,
                   StepBuilder::Operand::from(*buffers_.average, first),
                   update.master.value_or(update.weights));
  }

  // Launches one pass over so many parameters for each operation of the rule, in PyTorch's order.
  void launch_passes(const std::string& prefix, std::int64_t first, std::int64_t count) {
    const auto from = [&](int flat) { return StepBuilder::Operand::from(flat, first); };
    const StepBuilder::Operand weights = from(buffers_.weights);
    const StepBuilder::Operand gradients = from(buffers_.gradients);
    const StepBuilder::Operand m = from(buffers_.moments[0]);
    const StepBuilder::Operand v = from(buffers_.moments[1]);
    const auto denominators = StepBuilder::Operand::from(buffers_.denominator, 0);
    const BufferUse control = builder_.whole(*buffers_.control);
    const auto pass = [&]<ForeachPass of>(const char* name,
                                          const std::vector<StepBuilder::Operand>& operands) {
      builder_.launch<kernels::Foreach<of>>(prefix + name, {.columns = count}, operands,
                                            adamw_rates);
    };
    using enum ForeachPass;
    pass.operator()<unscale>("unscale the gradients", {gradients, control});
    builder_.reads_gradients(0, {first, count});
    pass.operator()<decay>("decay the weights", {weights, control});
    pass.operator()<lerp>("first moments", {m, gradients, control});
    pass.operator()<mul>("decay the second moments", {v, control});
    pass.operator()<addcmul>("second moments", {v, gradients, control});
    pass.operator()<sqrt>("root of the second moments", {denominators, v});
    pass.operator()<div>("correct the bias", {denominators, control});
    pass.operator()<add>("add epsilon", {denominators});
    pass.operator()<addcdiv>("move the weights", {weights, m, denominators, control});
    if (buffers_.average)
      follow(prefix + "average", count, first, {.weights = weights, .gradients = gradients});
  }

  StepBuilder& builder_;
  const Knobs& knobs_;
  const ParameterList& parameters_;
  const UpdateBuffers& buffers_;
  int gathered_ = 0;  // event, of a sharded update
};

std::int64_t largest_of(const ParameterList& parameters) {
  return std::ranges::max(parameters.tensors(), {}, &ParameterTensor::elements).elements;
}

std::int64_t elements_of(const std::vector<UpdatedPiece>& pieces) {
  std::int64_t elements = 0;
  for (const UpdatedPiece& piece : pieces) elements += piece.flat.elements;
  return elements;
}

// The number of partial sums of squares over these pieces; each block of a launch writes one.
std::int64_t square_sums_of(const std::vector<UpdatedPiece>& pieces) {
  std::int64_t sums = 0;
  for (const UpdatedPiece& piece : pieces) sums += square_sum_pieces(piece.flat.elements);
  return sums;
}

// Reading these takes the device as long as a launch takes the host.
constexpr std::int64_t least_summed_bytes = 16LL * 1024 * 1024;

// The pieces whose squares are summed apart: those that are updated. Where whole gradients are
// reduced beside the backward pass, they are neighbouring buckets, each summed as soon as it is
// reduced.
std::vector<UpdatedPiece> summed_pieces(const Knobs& knobs, const ParameterList& parameters,
                                        const std::vector<UpdatedPiece>& updated) {
  if (knobs.ranks.count == 1 || shards_the_update(knobs) ||
      knobs.ranks.overlap != ReduceOverlap::backward)
    return updated;
  std::vector<UpdatedPiece> summed;
  for (const Bucket& bucket : gradient_buckets(knobs, parameters.places(), parameters.elements())) {
    const bool is_enough =
        summed.empty() ||
        summed.back().flat.elements * bytes_of(knobs.model.dtype) >= least_summed_bytes;
    if (is_enough) summed.push_back({.flat = {.first = bucket.first}});
    RankPiece& piece = summed.back().flat;
    piece.first = std::min(piece.first, bucket.first);
    piece.elements += bucket.elements;
  }
  return summed;
}

// `pieces` as the content of a buffer; empty if the buffer has all parameters.
std::vector<RankPiece> pieces_of_content(const Knobs& knobs,
                                         const std::vector<UpdatedPiece>& pieces) {
  std::vector<RankPiece> content;
  if (!shards_the_update(knobs)) return content;
  for (const UpdatedPiece& piece : pieces) content.push_back(piece.flat);
  return content;
}

}  // namespace

void add_update_buffers(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
                        UpdateBuffers& buffers) {
  buffers.pieces = updated_pieces(knobs, parameters.places(), parameters.elements());
  const std::int64_t elements = elements_of(buffers.pieces);
  const auto copy_of_weights = [&](const char* name) {
    return builder.add({.name = name,
                        .purpose = Purpose::optimizer_state,
                        .bytes = elements * word_bytes,
                        .content = Content::weights,
                        .parts = parameters.contents(),
                        .numbers_of = "weights",
                        .pieces = pieces_of_content(knobs, buffers.pieces)});
  };
  if (knobs.optim.master) buffers.master = copy_of_weights("master weights");
  if (knobs.optim.average > 0) buffers.average = copy_of_weights("average weights");
  for (const char* name : moments_of(knobs.optim.kind))
    buffers.moments.push_back(add_state(builder, name, elements));
  if (launches_passes(knobs.optim))
    buffers.denominator =
        add_state(builder, "denominators",
                  knobs.optim.impl == OptimImpl::foreach ? elements : largest_of(parameters));
  if (!needs_norm(knobs)) return;
  buffers.control = builder.add({.name = "update control",
                                 .purpose = Purpose::bookkeeping,
                                 .bytes = update_control::size * word_bytes,
                                 .content = Content::weights,
                                 .parts = first_control(knobs)});
  buffers.summed = summed_pieces(knobs, parameters, buffers.pieces);
  buffers.partials = builder.add({.name = "squares of gradients",
                                  .purpose = Purpose::activations,
                                  .bytes = square_sums_of(buffers.summed) * word_bytes});
  if (shards_the_update(knobs)) {
    buffers.square_sum =
        builder.add({.name = "square sum", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  }
}

void add_learned_buffers(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
                         UpdateBuffers& buffers) {
  const std::int64_t bytes = CheckedSize(parameters.elements()) * bytes_of(knobs.model.dtype);
  builder.plan().param_bytes = bytes;
  buffers.weights = builder.add({.name = "weights",
                                 .purpose = Purpose::weights,
                                 .bytes = bytes,
                                 .content = Content::weights,
                                 .dtype = knobs.model.dtype,
                                 .parts = parameters.contents()});
  buffers.gradients = builder.add({.name = "gradients",
                                   .purpose = Purpose::gradients,
                                   .bytes = bytes,
                                   .dtype = knobs.model.dtype});
  add_update_buffers(builder, knobs, parameters, buffers);
  if (knobs.model.workspace_bytes == 0) return;
  builder.add({.name = "gemm workspace",
               .purpose = Purpose::workspace,
               .bytes = knobs.model.workspace_bytes});
}

BufferUse loss_scale(const UpdateBuffers& buffers) {
  return StepBuilder::part(buffers.control.value(), update_control::loss_scale * word_bytes,
                           word_bytes);
}

void build_update(StepBuilder& builder, const Knobs& knobs, const ParameterList& parameters,
                  const UpdateBuffers& buffers) {
  std::vector<Parameter> learned;
  for (const ParameterTensor& tensor : parameters.tensors())
    learned.push_back({tensor.name, tensor.first, tensor.elements});
  builder.plan().parameters = std::move(learned);
  builder.plan().shards_updates = shards_the_update(knobs);
  Update(builder, knobs, parameters, buffers).build();
}

}  // namespace stepgate
