// SPDX-License-Identifier: MIT
#include "verbs/ranks/plan_digest.h"

#include <bit>

#include "support/fnv1a.h"
#include "support/text/units.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

class Digest {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    (one(parts), ...);
  }
  std::uint64_t value() const { return hash_; }

 private:
  template <class Number>
  requires(std::is_integral_v<Number> || std::is_enum_v<Number>) void one(Number number) {
    hash_ = fnv1a_word(static_cast<std::uint64_t>(number), hash_);
  }
  void one(double number) { one(std::bit_cast<std::uint64_t>(number)); }
  void one(const std::string& text) { one(std::string_view(text)); }
  void one(std::string_view text) { hash_ = fnv1a_word(fnv1a(text), hash_); }
  template <class Value>
  void one(const std::optional<Value>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class Value>
  void one(const std::vector<Value>& values) {
    one(values.size());
    for (const Value& value : values) one(value);
  }

  void one(const Stream& stream) { add(stream.name, stream.kind); }
  void one(const ContentPart& part) { add(part.elements, part.centre, part.scale); }
  void one(const RankPiece& piece) { add(piece.first, piece.elements, piece.rank_stride); }
  void one(const Event& event) { add(event.name, event.slots); }
  void one(const Buffer& buffer) {
    add(buffer.name, buffer.memory, buffer.purpose, buffer.bytes, buffer.slots, buffer.content,
        buffer.dtype, buffer.scale, buffer.parts, buffer.numbers_of, buffer.pieces,
        buffer.first_number, buffer.advice, buffer.allocated_by);
  }
  void one(const BufferUse& use) {
    add(use.buffer, use.offset_bytes, use.bytes, use.rank_stride_bytes);
  }
  void one(const AggregateValue& value) {
    add(value.size());
    for (std::size_t index = 0; index < value.size(); ++index)
      std::visit([this](auto member) { one(member); }, value.member(index));
  }
  void one(const DriverCalls& calls) { add(calls.allocations, calls.frees); }

  void one(const LaunchKernel& launch) {
    add(launch.kernel.name(), launch.shape, launch.dtype, launch.attributes, launch.operands);
  }
  void one(const CopyBytes& copy) { add(copy.to, copy.from, copy.host_waits); }
  void one(const FillZero& fill) { add(fill.what); }
  void one(const HostCopies& copy) { add(copy.to, copy.from); }
  void one(const Prefetch& prefetch) { add(prefetch.what); }
  void one(const Allocate& allocate) { add(allocate.buffer, allocate.driver, allocate.steps); }
  void one(const Release& release) { add(release.buffer); }
  void one(const EmptyCache& empty) { add(empty.driver); }
  void one(const RegisterHost& host) { add(host.buffer); }
  void one(const UnregisterHost& host) { add(host.buffer); }
  void one(const RecordEvent& record) { add(record.event); }
  void one(const StreamWaitsEvent& wait) { add(wait.event); }
  void one(const HostWaits& wait) { add(wait.what, wait.event); }
  void one(const TakeBatch&) {}
  void one(const HostWork& work) { add(work.nanoseconds, work.rank); }
  void one(const Collective& collective) {
    add(collective.kind, collective.from, collective.to, collective.dtype, collective.reduction,
        collective.communicator);
  }
  void one(const Operation& operation) {
    add(operation.name, operation.phase, operation.stream, operation.action.index(),
        operation.every, operation.turn, operation.ahead, operation.captured, operation.model_share,
        operation.keeps);
    visit_action(
        [this]<class Each>(const Each& action) requires(
            !std::is_same_v<Each, ActionOfAnotherKind>) { one(action); },
        operation.action);
  }
  void one(const AllocatorPlan& allocator) {
    const CachingRules& rules = allocator.rules;
    add(allocator.kind, rules.segments, rules.round_divisions, rules.split_max_bytes,
        rules.non_split_rounding_bytes, rules.garbage_collection_threshold, allocator.cap_bytes);
  }

  std::uint64_t hash_ = fnv1a_start;
};

}  // namespace

std::string digest_of(const StepPlan& plan) {
  Digest digest;
  digest.add(plan.seed, plan.streams, plan.buffers, plan.events, plan.operations, plan.ranks.count,
             plan.ranks.rank, plan.ranks.communicators, plan.ranks.max_ctas, plan.ranks.links,
             plan.loader.wait_nanoseconds, plan.loader.jitter, plan.loader.depth,
             plan.loader.workers, plan.loader.restart_every, plan.loader.start_nanoseconds,
             plan.telemetry.losses, plan.telemetry.stamps, plan.telemetry.capacity,
             plan.telemetry.cycles, plan.launch_host_nanoseconds, plan.keep_bytes, plan.cap_bytes,
             plan.pool_cap_bytes, plan.allocator, plan.counted_steps, plan.batch_sizes,
             plan.batch_bytes, plan.dtype, plan.wait_style, plan.gemm_algorithms,
             plan.steps_in_flight);
  return hexadecimal(digest.value());
}

std::vector<NamedPlan> named_plans(std::span<const PlannedStep> plans) {
  std::vector<NamedPlan> named;
  for (const StepPlan& plan : plans)
    named.push_back(
        {.scenario = plan.scenario, .variant = plan.variant, .digest = digest_of(plan)});
  return named;
}

}  // namespace stepgate
