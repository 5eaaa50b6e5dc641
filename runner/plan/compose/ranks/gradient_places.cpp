// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/gradient_places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plan/analyse/operation_uses.h"
#include "support/require.h"

namespace stepgate {
namespace {

std::int64_t end_of(const Bucket& stretch) {
  return stretch.first + stretch.elements;
}

class Places {
 public:
  Places(StepBuilder& builder, const LearnedParts& learned, std::vector<Bucket> stretches)
      : builder_(builder),
        learned_(learned),
        element_bytes_(bytes_of(builder.plan().dtype)),
        stretches_(std::move(stretches)) {
    std::ranges::sort(stretches_, {}, &Bucket::first);
  }

  // So that whatever one operand touches lies in one of them.
  void join_for(const BufferUse& use) {
    if (use.buffer != learned_.gradients) return;
    const auto begin = of(use.offset_bytes / element_bytes_);
    const std::int64_t end = (use.offset_bytes + use.bytes) / element_bytes_;
    while (end_of(*begin) < end) {
      begin->elements += std::next(begin)->elements;
      stretches_.erase(std::next(begin));
    }
  }

  std::vector<GradientPlace> add_buffers() {
    for (std::size_t index = 0; index < stretches_.size(); ++index) {
      places_.push_back(
          {stretches_[index], builder_.add({.name = "gradients in bucket " + std::to_string(index),
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

  // One fill of all gradients is one of each place.
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

}  // namespace

std::vector<GradientPlace> give_buckets_their_own(StepBuilder& builder, const LearnedParts& learned,
                                                  std::vector<Bucket> buckets, std::size_t first,
                                                  std::int64_t ranks) {
  StepPlan& plan = builder.plan();
  Places places(builder, learned, std::move(buckets));
  const auto fills_all = [&](const Operation& operation) {
    const auto* fill = std::get_if<FillZero>(&operation.action);
    return fill && places.is_of_all(*fill);
  };
  for (std::size_t index = first; index < plan.operations.size(); ++index) {
    if (fills_all(plan.operations[index])) continue;
    if (plan.operations[index].phase == Phase::backward)
      for_each_use(plan.operations[index], [&](BufferUse& use) { places.join_for(use); });
  }
  std::vector<GradientPlace> made = places.add_buffers();
  std::vector<Operation> moved;
  for (std::size_t index = first; index < plan.operations.size(); ++index) {
    Operation& operation = plan.operations[index];
    if (fills_all(operation)) {
      for (Operation& fill : places.fills(operation)) moved.push_back(std::move(fill));
      continue;
    }
    if (operation.phase == Phase::backward)
      for_each_use(operation, [&](BufferUse& use) { places.move(use); });
    moved.push_back(std::move(operation));
  }
  plan.operations.resize(first);
  plan.operations.insert(plan.operations.end(), std::make_move_iterator(moved.begin()),
                         std::make_move_iterator(moved.end()));
  plan.buffers[static_cast<std::size_t>(learned.gradients)].bytes /= ranks;
  return made;
}

const GradientPlace& place_of(const std::vector<GradientPlace>& places, const Bucket& bucket) {
  const auto place = std::ranges::find_if(
      places, [&](const GradientPlace& one) { return bucket.first < end_of(one.stretch); });
  require(place != places.end(), "every bucket has a place");
  return *place;
}

}  // namespace stepgate
