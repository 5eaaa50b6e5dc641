// SPDX-License-Identifier: MIT
// The loop that lets host and streams move in random order, and what it reads from memory at the
// end. The rules of order are stream_queues.h's and host_thread.h's.
#include "device/reference/reference_device.h"

#include <algorithm>
#include <utility>

#include "device/reference/host_thread.h"
#include "device/reference/slot_memory.h"
#include "device/reference/stream_queues.h"
#include "kernels/number_format.h"
#include "support/random.h"
#include "support/require.h"

namespace stepgate {
namespace {

using Actor = int;  // a stream's index, or behind them the host

// Who moves next. A uniform choice at every moment would hardly ever let a stream fall behind by a
// whole step, and most missing waits show only then. So actors have random priorities that hold for
// a while (in the manner of Burckhardt et al.: A randomized scheduler with probabilistic guarantees
// of finding bugs, ASPLOS 2010). How long differs from seed to seed, down to a single move, and
// every order that the plan permits can happen.
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

class ReferenceStep final : public LoadedStep {
 public:
  ReferenceStep(const StepPlan& plan, std::uint64_t order_seed, std::int64_t first_step)
      : plan_(&plan),
        host_actor_(static_cast<Actor>(plan.streams.size())),
        schedule_(random_bits(order_seed, 0), host_actor_ + 1),
        memory_(plan, random_bits(order_seed, 1)),
        queues_(plan.streams),
        host_(plan, memory_, queues_, first_step),
        first_step_(first_step),
        next_step_(first_step) {}

  StepResult run(const Observe& observe) override {
    StepResult result;
    result.first_step = next_step_;
    result.steps = observe.steps;
    const std::int64_t end = next_step_ + observe.wash_out_steps + observe.steps;
    while (next_step_ < end) {
      // The ring of losses forgets; so no more steps at once than it holds.
      const std::int64_t capacity = plan_->telemetry.capacity;
      const std::int64_t chunk_end = capacity > 0 ? std::min(end, next_step_ + capacity) : end;
      run_until(chunk_end);
      read_losses(next_step_, chunk_end, result.losses);
      next_step_ = chunk_end;
    }
    if (observe.tensors) result.tensors = tensors();
    return result;
  }

 private:
  void run_until(std::int64_t end) {
    host_.run_until(end);
    while (!host_.finished() || !queues_.idle()) {
      std::vector<Actor> actors = queues_.ready();
      if (!host_.finished() && host_.may_go_on()) actors.push_back(host_actor_);
      require(!actors.empty(), "every wait is for something that was issued before it");
      move(schedule_.choose(actors));
    }
  }

  void move(Actor chosen) {
    if (chosen == host_actor_) return host_.go_on();
    queues_.run_next(chosen);
  }

  // The ring counts the steps since the load.
  void read_losses(std::int64_t first, std::int64_t end, std::vector<float>& losses) const {
    const std::int64_t capacity = plan_->telemetry.capacity;
    if (capacity <= 0) return;
    const SharedBlock ring = memory_.block(plan_->telemetry.losses, 0);
    for (std::int64_t step = first; step < end; ++step) {
      losses.push_back(static_cast<float>(
          number_at(ring->data(), DType::fp32, (step - first_step_) % capacity)));
    }
  }

  // Memory that comes and goes within a step has no content at its end.
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> all;
    for (std::size_t index = 0; index < plan_->buffers.size(); ++index) {
      const Buffer& buffer = plan_->buffers[index];
      const bool asked_for =
          buffer.purpose == Purpose::weights || buffer.purpose == Purpose::gradients;
      if (!asked_for || buffer.allocated_by != AllocatedBy::the_plan) continue;
      const SharedBlock block = memory_.block(static_cast<int>(index), 0);
      all.push_back({buffer.name, floats_of(block->data(), buffer.dtype,
                                            buffer.bytes / bytes_of(buffer.dtype))});
    }
    return all;
  }

  const StepPlan* plan_;
  Actor host_actor_;
  Schedule schedule_;
  SlotMemory memory_;
  StreamQueues queues_;
  HostThread host_;
  std::int64_t first_step_;
  std::int64_t next_step_;
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
