// SPDX-License-Identifier: MIT
#include "plan/compose/build_parts.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/analyse/access.h"
#include "plan/analyse/operation_uses.h"
#include "plan/compose/ranks/buckets.h"
#include "plan/compose/ranks/gather_weights.h"
#include "plan/compose/ranks/inserted_operations.h"
#include "plan/compose/ranks/passes.h"
#include "plan/compose/ranks/shard.h"

namespace stepgate {
namespace {

// A range of the flat buffer of gradients and the buffer that holds it. That is the flat buffer
// itself. If a rank keeps only its part, it is the memory of a bucket until the bucket is reduced.
struct GradientPlace {
  Bucket stretch;
  int buffer = 0;
};

std::int64_t end_of(const Bucket& stretch) {
  return stretch.first + stretch.elements;
}

class BucketPlaces {
 public:
  BucketPlaces(StepBuilder& builder, const LearnedParts& learned, std::vector<Bucket> stretches)
      : builder_(builder),
        learned_(learned),
        element_bytes_(bytes_of(builder.plan().dtype)),
        stretches_(std::move(stretches)) {
    std::ranges::sort(stretches_, {}, &Bucket::first);
  }

  // Joins places, so that the whole range of each operand is within one place.
  void join_for(const BufferUse& use) {
    if (use.buffer != learned_.gradients) return;
    const auto begin = of(use.offset_bytes / element_bytes_);
    const std::int64_t end = (use.offset_bytes + use.bytes) / element_bytes_;
    while (end_of(*begin) < end) {
      begin->elements += std::next(begin)->elements;
      stretches_.erase(std::next(begin));
    }
  }

  std::vector<GradientPlace> add_buffers(const std::string& of_part) {
    for (std::size_t index = 0; index < stretches_.size(); ++index) {
      const std::string name = "gradients in bucket " + std::to_string(index) + of_part;
      places_.push_back(
          {stretches_[index], builder_.add({.name = name,
                                            .purpose = Purpose::activations,
                                            .bytes = stretches_[index].elements * element_bytes_,
                                            .dtype = builder_.plan().dtype})});
    }
    return places_;
  }

  void move(BufferUse& use) const {
    if (use.buffer != learned_.gradients) return;
    const std::int64_t first = use.offset_bytes / element_bytes_;
    const auto place = std::ranges::find_if(
        places_, [&](const GradientPlace& one) { return first < end_of(one.stretch); });
    use.buffer = place->buffer;
    use.offset_bytes -= place->stretch.first * element_bytes_;
  }

  // Replaces a fill of all gradients by a fill of each place.
  std::vector<Operation> fills(const Operation& all) const {
    std::vector<Operation> fills;
    for (const GradientPlace& place : places_) {
      Operation& fill = fills.emplace_back(all);
      fill.action = FillZero{builder_.whole(place.buffer)};
    }
    return fills;
  }

  bool is_of_all(const FillZero& fill) const {
    return fill.what.buffer == learned_.gradients &&
           fill.what.bytes == learned_.elements * element_bytes_;
  }

 private:
  std::vector<Bucket>::iterator of(std::int64_t element) {
    return std::ranges::find_if(stretches_,
                                [&](const Bucket& stretch) { return element < end_of(stretch); });
  }

  StepBuilder& builder_;
  const LearnedParts& learned_;
  std::int64_t element_bytes_;
  std::vector<Bucket> stretches_;
  std::vector<GradientPlace> places_;
};

// Returns a place for each bucket, in the order of the flat buffer. Neighbours share one place if
// an operand of a kernel spans them, such as the weight and the bias of a norm. Redirects uses of
// the flat buffer by these operations of backward passes to the places.
std::vector<GradientPlace> give_buckets_their_own(StepBuilder& builder, const LearnedParts& learned,
                                                  std::vector<Bucket> buckets, const Pass& pass,
                                                  const std::string& of_part) {
  StepPlan& plan = builder.plan();
  BucketPlaces places(builder, learned, std::move(buckets));
  const auto fills_all = [&](const Operation& operation) {
    const auto* fill = std::get_if<FillZero>(&operation.action);
    return fill && places.is_of_all(*fill);
  };
  for (std::size_t index = pass.begin; index < pass.end; ++index) {
    if (fills_all(plan.operations[index])) continue;
    if (plan.operations[index].phase == Phase::backward)
      for_each_use(plan.operations[index], [&](BufferUse& use) { places.join_for(use); });
  }
  std::vector<GradientPlace> made = places.add_buffers(of_part);
  std::vector<Operation> moved;
  for (std::size_t index = pass.begin; index < pass.end; ++index) {
    Operation& operation = plan.operations[index];
    if (fills_all(operation)) {
      for (Operation& fill : places.fills(operation)) moved.push_back(std::move(fill));
      continue;
    }
    if (operation.phase == Phase::backward)
      for_each_use(operation, [&](BufferUse& use) { places.move(use); });
    moved.push_back(std::move(operation));
  }
  const auto begin = plan.operations.begin() + static_cast<std::ptrdiff_t>(pass.begin);
  const auto end = plan.operations.begin() + static_cast<std::ptrdiff_t>(pass.end);
  const auto rest = plan.operations.erase(begin, end);
  plan.operations.insert(rest, std::make_move_iterator(moved.begin()),
                         std::make_move_iterator(moved.end()));
  return made;
}

// The places of every part's gradients, where a rank keeps only its part of the sum. All parts of a
// batch add to the same places, unless each is reduced.
std::vector<std::vector<GradientPlace>> places_of_parts(StepBuilder& builder, const Knobs& knobs,
                                                        const LearnedParts& learned,
                                                        const std::vector<Bucket>& buckets,
                                                        std::size_t first) {
  StepPlan& plan = builder.plan();
  plan.buffers[static_cast<std::size_t>(learned.gradients)].bytes /= knobs.ranks.count;
  if (!reduces_every_part_apart(knobs)) {
    const Pass all{first, plan.operations.size()};
    return {give_buckets_their_own(builder, learned, buckets, all, "")};
  }
  std::vector<std::vector<GradientPlace>> places;
  for (std::size_t part = 0; part < backward_passes(plan, first).size(); ++part) {
    places.push_back(give_buckets_their_own(builder, learned, buckets,
                                            backward_passes(plan, first)[part],
                                            " of part " + std::to_string(part)));
  }
  return places;
}

// The place that contains the bucket.
const GradientPlace& place_of(const std::vector<GradientPlace>& places, const Bucket& bucket) {
  const auto place = std::ranges::find_if(
      places, [&](const GradientPlace& one) { return bucket.first < end_of(one.stretch); });
  require(place != places.end(), "every bucket has a place");
  return *place;
}

class GradientReduction {
 public:
  GradientReduction(StepBuilder& builder, const Knobs& knobs, const LearnedParts& learned,
                    std::size_t first)
      : plan_(builder.plan()),
        knobs_(knobs),
        learned_(learned),
        buckets_(gradient_buckets(knobs, learned.tensors, learned.elements)),
        stream_(communication_stream(builder)),
        pieces_(updated_pieces(knobs, learned.tensors, learned.elements)) {
    if (shards_gradients(knobs)) {
      places_ = places_of_parts(builder, knobs, learned, buckets_, first);
    } else {
      places_ = {{{{.elements = learned.elements}, learned.gradients}}};
    }
    const std::int64_t most = std::ranges::max(buckets_, {}, &Bucket::elements).elements;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      ready_.push_back(builder.add_event(name_of(bucket) + " is there", 1));
      reduced_.push_back(builder.add_event(name_of(bucket) + " is reduced", 1));
    }
    if (knobs.ranks.gradient_dtype == GradientDtype::fp32) {
      wire_ = builder.add({.name = "gradients on the wire",
                           .purpose = Purpose::activations,
                           .bytes = most * word_bytes});
    }
    if (knobs.ranks.check_each_bucket) {
      const std::int64_t bytes = square_sum_pieces(most) * word_bytes;
      checked_ = builder.add(
          {.name = "square sums of a bucket", .purpose = Purpose::bookkeeping, .bytes = bytes});
      read_ = builder.add({.name = "square sums that are read",
                           .memory = MemoryKind::pinned,
                           .purpose = Purpose::bookkeeping,
                           .bytes = bytes});
    }
    if (reduces_every_part_apart(knobs)) {
      summand_ = builder.add({.name = "reduced gradients of a part",
                              .purpose = Purpose::activations,
                              .bytes = most / knobs.ranks.count * bytes_of(plan_.dtype),
                              .dtype = plan_.dtype});
    }
    passes_ = backward_passes(plan_, first);
    require(!passes_.empty(), "a model that learns has a backward pass");
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
      if (knobs.ranks.sync_each_part || pass + 1 == passes_.size()) {
        part_ = pass;
        reduce_after(passes_[pass]);
        if (knobs.ranks.spare_sms > 0) spare_multiprocessors(passes_[pass]);
      }
      // Gradients must be reduced before the next part adds to them.
      if (knobs.ranks.sync_each_part && pass + 1 < passes_.size())
        wait(before_[passes_[pass + 1].begin], Phase::backward, reduced_.back());
    }
    wait_before_uses(passes_.back().end);
  }

  void insert() { before_.put_into(plan_.operations); }

 private:
  static std::string name_of(std::size_t bucket) { return "bucket " + std::to_string(bucket); }

  // The index after the last operation of the pass that writes a gradient of the bucket.
  std::size_t end_of(const Bucket& bucket, const Pass& pass) const {
    const BufferUse whole = written(bucket);
    for (std::size_t index = pass.end; index-- > pass.begin;) {
      for (const auto& [use, access] : accesses_of(plan_, plan_.operations[index]))
        if (overlap(use, whole) && access != Access::read) return index + 1;
    }
    require(false, "the backward pass writes every gradient");
    return pass.end;
  }

  void reduce_after(const Pass& pass) {
    std::size_t place = pass.begin;
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      place = knobs_.ranks.overlap == ReduceOverlap::none
                  ? pass.end
                  : std::max(place, end_of(buckets_[bucket], pass));
      reduce(bucket, before_[place]);
    }
  }

  // From the first reduction on, GEMMs leave multiprocessors to concurrent reductions.
  void spare_multiprocessors(const Pass& pass) {
    for (std::size_t index = end_of(buckets_.front(), pass); index < pass.end; ++index) {
      auto* launch = std::get_if<LaunchKernel>(&plan_.operations[index].action);
      if (launch == nullptr) continue;
      if (const auto sparing = kernel(launch->kernel).library.sparing)
        launch->attributes = sparing(launch->attributes, static_cast<int>(knobs_.ranks.spare_sms));
    }
  }

  void reduce(std::size_t bucket, std::vector<Operation>& into) {
    const std::string name = name_of(bucket);
    const auto act = [&](int stream, std::string words, Action action) {
      into.push_back({.name = std::move(words),
                      .phase = Phase::backward,
                      .stream = stream,
                      .action = std::move(action)});
    };
    if (checked_) {
      const LaunchKernel sums = square_sums(bucket);
      const std::int64_t bytes = sums.shape.as<kernels::SquareSums>().pieces * word_bytes;
      act(compute_stream, "square sums of " + name, sums);
      act(compute_stream, "read the square sums of " + name,
          CopyBytes{StepBuilder::part(*read_, 0, bytes), StepBuilder::part(*checked_, 0, bytes)});
      act(compute_stream, "wait to see that " + name + " is finite", HostWaits{WaitFor::stream});
    }
    act(compute_stream, name + " is there", RecordEvent{ready_[bucket]});
    act(stream_, "wait for " + name, StreamWaitsEvent{ready_[bucket]});
    if (wire_) act(stream_, "widen " + name, widen(bucket));
    if (divides_before()) act(stream_, "divide " + name + " by the ranks", divided(bucket));
    act(stream_, "reduce " + name, collective(bucket));
    if (wire_) act(stream_, "narrow " + name, narrow(bucket));
    if (adds_to_earlier_parts()) act(stream_, "add " + name + " to the sum", addition(bucket));
    act(stream_, name + " is reduced", RecordEvent{reduced_[bucket]});
    if (knobs_.ranks.overlap == ReduceOverlap::early_wait)
      act(compute_stream, "wait until " + name + " is reduced", StreamWaitsEvent{reduced_[bucket]});
  }

  // The range in which the backward pass leaves the bucket's gradients.
  BufferUse written(const Bucket& bucket) const {
    const GradientPlace& place = place_of(places_[std::min(part_, places_.size() - 1)], bucket);
    return elements_of(place.buffer, bucket.first - place.stretch.first, bucket.elements, 0);
  }

  // The rank's part of the reduced bucket: in place, or separate where buckets have their own
  // memory.
  BufferUse kept(std::size_t index) const {
    if (knobs_.ranks.shard == Shard::none) return written(buckets_[index]);
    const UpdatedPiece& piece = pieces_[index];
    return shards_gradients(knobs_)
               ? elements_of(learned_.gradients, piece.packed, piece.flat.elements, 0)
               : elements_of(learned_.gradients, piece.flat.first, piece.flat.elements,
                             piece.flat.rank_stride);
  }

  bool adds_to_earlier_parts() const { return summand_ && part_ > 0; }

  // The range to which a reduction brings the rank's part.
  BufferUse reduced(std::size_t index) const {
    return adds_to_earlier_parts() ? elements_of(*summand_, 0, pieces_[index].flat.elements, 0)
                                   : kept(index);
  }

  LaunchKernel addition(std::size_t index) const {
    const BufferUse sum = kept(index);
    return {.kernel = KernelRef(kernels::Add::name),
            .shape = kernels::Add::Shape{1, pieces_[index].flat.elements},
            .dtype = plan_.dtype,
            .operands = {sum, reduced(index), sum}};
  }

  // The bucket in the wider dtype of communication; all buckets use one buffer in turns.
  BufferUse whole_on_wire(std::size_t index) const {
    return StepBuilder::part(*wire_, 0, buckets_[index].elements * word_bytes);
  }
  BufferUse kept_on_wire(std::size_t index) const {
    if (knobs_.ranks.shard == Shard::none) return whole_on_wire(index);
    const std::int64_t part = pieces_[index].flat.elements * word_bytes;
    return {*wire_, 0, part, part};
  }

  Collective collective(std::size_t index) const {
    return {.kind = knobs_.ranks.shard == Shard::none ? CollectiveKind::all_reduce
                                                      : CollectiveKind::reduce_scatter,
            .from = wire_ ? whole_on_wire(index) : written(buckets_[index]),
            .to = wire_ ? kept_on_wire(index) : reduced(index),
            .dtype = wire_ ? DType::fp32 : plan_.dtype,
            .reduction = divides_before() ? Reduction::sum : Reduction::average};
  }

  bool divides_before() const { return knobs_.ranks.average == Averaging::before; }

  // The launch that divides the bucket by the number of ranks, in place and in the dtype of
  // communication.
  LaunchKernel divided(std::size_t index) const {
    const BufferUse all = wire_ ? whole_on_wire(index) : written(buckets_[index]);
    return {.kernel = KernelRef(kernels::StridedScale::name),
            .shape = kernels::StridedScale::Shape{.columns = buckets_[index].elements},
            .dtype = wire_ ? DType::fp32 : plan_.dtype,
            .attributes =
                kernels::StridedScale::Attributes{
                    .factor = 1.0 / static_cast<double>(knobs_.ranks.count)},
            .operands = {all, all}};
  }

  template <class Kernel>
  LaunchKernel conversion(std::vector<BufferUse> operands, std::int64_t numbers) const {
    return {.kernel = KernelRef(Kernel::name),
            .shape = typename Kernel::Shape{numbers},
            .dtype = plan_.dtype,
            .operands = std::move(operands)};
  }
  LaunchKernel widen(std::size_t index) const {
    return conversion<kernels::Widen>({written(buckets_[index]), whole_on_wire(index)},
                                      buckets_[index].elements);
  }
  LaunchKernel narrow(std::size_t index) const {
    const BufferUse to = reduced(index);
    return conversion<kernels::Narrow>({kept_on_wire(index), to}, to.bytes / bytes_of(plan_.dtype));
  }

  // Computes a sum of squares, which is not finite if any gradient is not finite.
  LaunchKernel square_sums(std::size_t index) const {
    const std::int64_t numbers = buckets_[index].elements;
    const std::int64_t pieces = square_sum_pieces(numbers);
    return {.kernel = KernelRef(kernels::SquareSums::name),
            .shape = kernels::SquareSums::Shape{numbers, pieces},
            .dtype = plan_.dtype,
            .operands = {written(buckets_[index]),
                         StepBuilder::part(*checked_, 0, pieces * word_bytes)}};
  }

  BufferUse elements_of(int flat, std::int64_t first, std::int64_t count,
                        std::int64_t rank_stride) const {
    const std::int64_t bytes = bytes_of(plan_.dtype);
    return {flat, first * bytes, count * bytes, rank_stride * bytes};
  }

  // A wait for one collective is also one for those before it, since the stream runs them in order.
  static void wait(std::vector<Operation>& into, Phase phase, int reduced) {
    into.push_back({.name = "wait until the gradients are reduced",
                    .phase = phase,
                    .action = StreamWaitsEvent{reduced}});
  }

  // For each reduced bucket, the index of the first operation from `begin` on that uses it.
  std::vector<std::size_t> first_uses(std::size_t begin) const {
    std::vector<BufferUse> wholes;
    std::vector<std::size_t> missing, uses(buckets_.size());
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      wholes.push_back(kept(bucket));
      missing.push_back(bucket);
    }
    for (std::size_t index = begin; index < plan_.operations.size() && !missing.empty(); ++index) {
      for (const auto& [use, access] : accesses_of(plan_, plan_.operations[index])) {
        std::erase_if(missing, [&, &used = use](std::size_t bucket) {
          if (!overlap(used, wholes[bucket])) return false;
          uses[bucket] = index;
          return true;
        });
      }
    }
    require(missing.empty(), "the update reads every gradient");
    return uses;
  }

  // The compute stream waits for a bucket before the first operation from `begin` on that uses it.
  // Thus the norm of earlier buckets is computed beside the reduction of the last ones. Without
  // overlap it waits for all at once.
  void wait_before_uses(std::size_t begin) {
    if (knobs_.ranks.overlap == ReduceOverlap::none)
      return wait(before_[begin], Phase::optimizer, reduced_.back());
    const std::vector<std::size_t> places = first_uses(begin);
    std::size_t waits_for_later = plan_.operations.size();
    for (std::size_t bucket = buckets_.size(); bucket-- > 0;) {
      if (places[bucket] >= waits_for_later) continue;
      wait(before_[places[bucket]], Phase::optimizer, reduced_[bucket]);
      waits_for_later = places[bucket];
    }
  }

  StepPlan& plan_;
  const Knobs& knobs_;
  const LearnedParts& learned_;
  std::vector<Bucket> buckets_;
  int stream_;
  std::vector<UpdatedPiece> pieces_;  // by bucket, where a rank updates only its part
  // By part of the batch; one for all unless each part is reduced apart.
  std::vector<std::vector<GradientPlace>> places_;
  std::size_t part_ = 0;               // whose reductions are being inserted
  std::optional<int> wire_;            // buffer, where gradients are converted
  std::optional<int> summand_;         // buffer, where every part is reduced apart
  std::optional<int> checked_, read_;  // buffers, where the host checks every bucket
  std::vector<int> ready_, reduced_;   // events, by bucket
  std::vector<Pass> passes_;
  InsertedOperations before_;
};

}  // namespace

void build_reduction(StepBuilder& builder, const Knobs& knobs, const LearnedParts& learned,
                     std::size_t first) {
  if (knobs.ranks.count == 1) return;
  if (shards_weights(knobs)) gather_weights(builder, knobs, learned, first);
  GradientReduction(builder, knobs, learned, first).insert();
}

}  // namespace stepgate
