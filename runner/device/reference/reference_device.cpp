// SPDX-License-Identifier: MIT
// The loop in which host and streams move in random order, and the reading of results at the end of
// a run. stream_queues.h and host_thread.h have the rules of order.
#include "device/reference/reference_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/require.h"
#include "device/reference/host_thread.h"
#include "device/reference/rank_meetings.h"
#include "device/reference/slot_memory.h"
#include "device/reference/stream_queues.h"
#include "kernels/number_format.h"
#include "plan/derive/plan_of_rank.h"

namespace stepgate {
namespace {

using Actor = int;  // streams by index, then the host; ranks one after the other

// Chooses the actor that moves next. A uniform choice at every moment would hardly ever let a
// stream fall behind by a whole step, and most missing waits show only then. So actors have random
// priorities that hold for some moves (in the manner of Burckhardt et al.: A randomized scheduler
// with probabilistic guarantees of finding bugs, ASPLOS 2010). The number of moves depends on the
// seed and may be one, and every order that the plan permits can happen.
class Schedule {
 public:
  Schedule(std::uint64_t seed, Actor actors)
      : random_(seed),
        mean_moves_(1ULL << (2 * random_.below(5))),
        priorities_(static_cast<std::size_t>(actors)) {
    redraw();
  }

  Actor choose(const std::vector<Actor>& actors) {
    if (random_.below(mean_moves_) == 0) redraw();
    return *std::max_element(actors.begin(), actors.end(), [this](Actor one, Actor other) {
      return priority(one) < priority(other);
    });
  }

 private:
  std::uint64_t priority(Actor actor) const { return priorities_[static_cast<std::size_t>(actor)]; }

  void redraw() {
    for (std::uint64_t& priority : priorities_) priority = random_.bits();
  }

  Random random_;
  std::uint64_t mean_moves_;               // between changes of priority: 1, 4, 16, 64 or 256
  std::vector<std::uint64_t> priorities_;  // by actor
};

// The state of one rank of the step.
class ReferenceRank {
 public:
  ReferenceRank(const StepPlan& plan, int rank, std::uint64_t order_seed, RankMeetings& meetings,
                std::int64_t first_step)
      : plan_(plan_of_rank(plan, rank)),
        memory_(plan_, random_bits(order_seed, 1 + static_cast<std::uint64_t>(rank))),
        queues_(plan_.streams),
        host_(plan_, memory_, queues_, meetings, first_step) {}
  ReferenceRank(const ReferenceRank&) = delete;
  ReferenceRank& operator=(const ReferenceRank&) = delete;

  void run_until(std::int64_t end) { host_.run_until(end); }
  void sketch_gradients(std::int64_t step, std::vector<GradientSketch>* sketches) {
    host_.sketch_gradients(step, sketches);
  }
  void audit(std::int64_t step, std::uint64_t seed, std::vector<LaunchAudit>* found) {
    host_.audit(step, found ? launches_to_audit(plan_, step, seed) : std::vector<int>(), found);
  }
  bool is_done() const { return host_.finished() && queues_.idle(); }

  Actor actors() const { return static_cast<Actor>(plan_.streams.size()) + 1; }
  // Adds the actors that may move now, counted from `first` on.
  void add_ready(std::vector<Actor>& ready, Actor first) const {
    for (const int stream : queues_.ready()) ready.push_back(first + stream);
    if (!host_.finished() && host_.may_go_on()) ready.push_back(first + actors() - 1);
  }
  void move(Actor actor) {
    if (actor == actors() - 1) return host_.go_on();
    queues_.run_next(actor);
  }

  const StepPlan& plan() const { return plan_; }
  SharedBlock block(std::size_t buffer) const { return memory_.block(static_cast<int>(buffer), 0); }

 private:
  StepPlan plan_;
  SlotMemory memory_;
  StreamQueues queues_;
  HostThread host_;
};

// A step with all its ranks in one process; their hosts and streams all move in one random order.
class ReferenceStep final : public LoadedStep {
 public:
  ReferenceStep(const StepPlan& plan, std::uint64_t order_seed, std::int64_t first_step)
      : plan_(&plan), order_seed_(order_seed), first_step_(first_step) {
    begin();
  }

  std::vector<KernelChoice> choices() const override {
    return library_kernels_not_run(*plan_, "the host reference computes it and runs no library");
  }

  StepResult run(const Observe& observe) override {
    StepResult result;
    result.first_step = next_step_;
    result.steps = observe.steps;
    const std::int64_t end = next_step_ + observe.wash_out_steps + observe.steps;
    if (observe.gradients && reason_against_gradients(*plan_).empty()) {
      result.gradients.resize(plan_->parameters.size());
      // If the update is not sharded, every rank has the whole gradient.
      if (!plan_->shards_updates)
        result.other_gradients.resize(ranks_.size() - 1, result.gradients);
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const bool has_own = rank > 0 && !plan_->shards_updates;
        ranks_[rank]->sketch_gradients(
            end - 1, has_own ? &result.other_gradients[rank - 1] : &result.gradients);
      }
    }
    if (observe.audit != 0) {
      for (const auto& rank : ranks_) rank->audit(end - 1, observe.audit, &result.audits);
    }
    while (next_step_ < end) {
      // The ring buffer keeps the last losses only, so at most `capacity` steps run before it is
      // read.
      const std::int64_t capacity = plan_->telemetry.capacity;
      const std::int64_t chunk_end = capacity > 0 ? std::min(end, next_step_ + capacity) : end;
      run_until(chunk_end);
      read_losses(next_step_, chunk_end, result.losses);
      next_step_ = chunk_end;
    }
    for (const auto& rank : ranks_) {
      rank->sketch_gradients(-1, nullptr);
      rank->audit(-1, 0, nullptr);
    }
    if (result.other_gradients.empty()) refuse_other_weights();  // else those say more
    if (observe.tensors) result.tensors = tensors();
    return result;
  }

  bool restart() override {
    begin();
    return true;
  }

 private:
  void begin() {
    ranks_.clear();
    meetings_.emplace(plan_->ranks.count);
    for (int rank = 0; rank < plan_->ranks.count; ++rank)
      ranks_.push_back(
          std::make_unique<ReferenceRank>(*plan_, rank, order_seed_, *meetings_, first_step_));
    schedule_.emplace(random_bits(order_seed_, 0), plan_->ranks.count * ranks_.front()->actors());
    next_step_ = first_step_;
  }

  void run_until(std::int64_t end) {
    for (const auto& rank : ranks_) rank->run_until(end);
    const Actor of_a_rank = ranks_.front()->actors();
    while (!std::ranges::all_of(ranks_, [](const auto& rank) { return rank->is_done(); })) {
      std::vector<Actor> ready;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        ranks_[rank]->add_ready(ready, static_cast<Actor>(rank) * of_a_rank);
      require(!ready.empty(), "every wait is for something that was issued before it");
      const Actor chosen = schedule_->choose(ready);
      ranks_[static_cast<std::size_t>(chosen / of_a_rank)]->move(chosen % of_a_rank);
    }
  }

  // Reads losses from the ring buffer, which is indexed by the steps since the load. With several
  // ranks, a loss is the mean over the ranks, as for one batch with all their samples.
  void read_losses(std::int64_t first, std::int64_t end, std::vector<float>& losses) const {
    const std::int64_t capacity = plan_->telemetry.capacity;
    if (capacity <= 0) return;
    for (std::int64_t step = first; step < end; ++step) {
      double sum = 0;
      for (const auto& rank : ranks_) {
        const SharedBlock ring = rank->block(static_cast<std::size_t>(plan_->telemetry.losses));
        sum += number_at(ring->data(), DType::fp32, (step - first_step_) % capacity);
      }
      losses.push_back(static_cast<float>(sum / static_cast<double>(ranks_.size())));
    }
  }

  void refuse_other_weights() const {
    for (std::size_t index = 0; index < plan_->buffers.size(); ++index) {
      const Buffer& buffer = plan_->buffers[index];
      if (buffer.purpose != Purpose::weights || !is_kept(buffer) || !buffer.pieces.empty())
        continue;
      for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
        if (*ranks_[rank]->block(index) != *ranks_.front()->block(index))
          throw DeviceError(
              fmt::format("the '{}' of rank {} are not those of rank 0", buffer.name, rank));
      }
    }
  }

  // Memory that is allocated and released within a step has no content at the step's end.
  static bool is_kept(const Buffer& buffer) { return buffer.allocated_by == AllocatedBy::the_plan; }

  // Tensors of rank 0.
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    for (std::size_t index = 0; index < plan_->buffers.size(); ++index) {
      const Buffer& buffer = plan_->buffers[index];
      const bool asked_for =
          buffer.purpose == Purpose::weights || buffer.purpose == Purpose::gradients;
      if (!asked_for || !is_kept(buffer)) continue;
      const SharedBlock block = ranks_.front()->block(index);
      all.push_back({buffer.name, floats_of(block->data(), buffer.dtype,
                                            buffer.bytes / bytes_of(buffer.dtype))});
    }
    return all;
  }

  const StepPlan* plan_;
  std::uint64_t order_seed_;
  std::optional<RankMeetings> meetings_;
  std::vector<std::unique_ptr<ReferenceRank>> ranks_;
  std::optional<Schedule> schedule_;
  std::int64_t first_step_;
  std::int64_t next_step_ = 0;
};

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(std::uint64_t order_seed) : order_seed_(order_seed) {}

  DeviceIdentity identity() const override {
    DeviceIdentity identity;
    identity.kind = DeviceKind::reference;
    identity.name = "host reference";
    return identity;
  }

  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return std::make_unique<ReferenceStep>(plan, order_seed_, draw.first_step);
  }

 private:
  std::uint64_t order_seed_;
};

}  // namespace

std::unique_ptr<Device> make_reference_device(std::uint64_t order_seed) {
  return std::make_unique<ReferenceDevice>(order_seed);
}

}  // namespace stepgate
