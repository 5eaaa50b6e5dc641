// SPDX-License-Identifier: MIT
#include "plan/compose/build_parts.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/require.h"
#include "kernels/kernels.h"
#include "plan/compose/build_input.h"

namespace stepgate {
namespace {

constexpr std::int64_t most_kept_losses = 1 << 16;

int add_word(StepBuilder& builder, const char* name, MemoryKind memory, std::int64_t slots = 1) {
  return builder.add({.name = name,
                      .memory = memory,
                      .purpose = Purpose::bookkeeping,
                      .bytes = word_bytes,
                      .slots = slots});
}

void read_now(StepBuilder& builder, int from) {
  const int word = add_word(builder, "logged loss", MemoryKind::pinned);
  builder.act("read the loss", CopyBytes{builder.whole(word), builder.whole(from)});
  builder.act("wait for the loss", HostWaits{WaitFor::stream});
}

// Logs the mean loss since the last log line. The device accumulates it, and the host reads it when
// a line is due.
void log_mean(StepBuilder& builder, int loss, std::int64_t every) {
  const int sum = add_word(builder, "sum of losses", MemoryKind::device);
  const int mean = add_word(builder, "mean loss", MemoryKind::device);
  builder.launch_as<kernels::AccumulateLoss>(DType::fp32, "add the loss", {},
                                             {builder.whole(loss), builder.whole(sum)});
  builder.only_every(every);
  builder.launch_as<kernels::MeanLoss>(DType::fp32, "mean loss", {},
                                       {builder.whole(sum), builder.whole(mean)}, {.count = every});
  read_now(builder, mean);
}

// Reads the loss one step late, when its copy is complete and the host need not wait.
void log_late(StepBuilder& builder, int loss) {
  const int word = add_word(builder, "logged loss", MemoryKind::pinned, 2);
  const int copied = builder.add_event("loss copied", 2);
  builder.act("copy the loss", CopyBytes{builder.whole(word), builder.whole(loss)});
  builder.act("loss is copied", RecordEvent{copied});
  builder.look_ahead(-1);
  builder.act("ask for the loss of the step before", HostWaits{WaitFor::poll, copied});
}

// Simulates the list of device scalars that many training loops keep by mistake: each log line
// allocates one, which is never released.
void log_kept(StepBuilder& builder, const Knobs& knobs, int loss) {
  const int kept = add_word(builder, "kept losses", MemoryKind::device, most_kept_losses);
  const AllocatedBy allocator = allocated_by(knobs.alloc.with);
  builder.plan().buffers[static_cast<std::size_t>(kept)].allocated_by =
      allocator == AllocatedBy::the_plan ? AllocatedBy::cuda_async : allocator;
  builder.act("allocate a place for the loss", Allocate{kept});
  builder.act("keep the loss", CopyBytes{builder.whole(kept), builder.whole(loss)});
}

// Builds the operations of one wait; the builder's plan is used as temporary storage.
class Waits {
 public:
  Waits(StepBuilder& builder, const SyncKnobs& knobs, int loss)
      : builder_(builder), how_(knobs.how), every_(knobs.every), times_(knobs.times), loss_(loss) {
    if (how_ == SyncHow::item)
      word_ = add_word(builder, "value read at the wait", MemoryKind::pinned);
    if (how_ == SyncHow::memcpy)
      word_ = add_word(builder, "value read at the wait", MemoryKind::pageable);
    if (how_ == SyncHow::event || how_ == SyncHow::poll)
      event_ = builder.add_event("reached the wait", 1);
  }

  void append(int stream) {
    for (std::int64_t time = 0; time < times_; ++time) append_one(stream);
  }

 private:
  void append_one(int stream) {
    builder_.enter(Phase::sync, stream);
    builder_.only_every(every_);
    switch (how_) {
      case SyncHow::device:
        return builder_.act("wait for the device", HostWaits{WaitFor::device});
      case SyncHow::stream:
        return builder_.act("wait for the stream", HostWaits{WaitFor::stream});
      case SyncHow::event:
        builder_.act("mark the wait", RecordEvent{event_});
        return builder_.act("wait for the event", HostWaits{WaitFor::event, event_});
      case SyncHow::poll:
        builder_.act("mark the wait", RecordEvent{event_});
        return builder_.act("poll the event", HostWaits{WaitFor::poll, event_});
      case SyncHow::item:
        builder_.act("read the loss", CopyBytes{builder_.whole(word_), builder_.whole(loss_)});
        return builder_.act("wait for the loss", HostWaits{WaitFor::stream});
      case SyncHow::memcpy:
        builder_.enter(Phase::sync, builder_.add_stream(stream_of(CopyStream::legacy)));
        builder_.only_every(every_);
        return builder_.act("read the loss, waiting",
                            CopyBytes{builder_.whole(word_), builder_.whole(loss_), true});
    }
    require(false, "every way to wait is built");
  }

  StepBuilder& builder_;
  SyncHow how_;
  std::int64_t every_;
  std::int64_t times_;
  int loss_;
  int word_ = 0;
  int event_ = 0;
};

bool is_work(const Operation& operation) {
  return std::holds_alternative<LaunchKernel>(operation.action) ||
         std::holds_alternative<CopyBytes>(operation.action) ||
         std::holds_alternative<FillZero>(operation.action);
}

bool ends_phase(const Operation& operation, const Operation* next) {
  return !next || next->phase != operation.phase;
}

// Whether the operation reports the loss of a step whose backward pass is over, which is no forward
// pass of its own.
bool reports_late(const Operation& operation, const Operation* next) {
  const auto* launch = std::get_if<LaunchKernel>(&operation.action);
  return launch != nullptr && launch->kernel.name() == kernels::ReportLoss::name && next &&
         next->phase == Phase::optimizer;
}

bool waits_after(SyncWhere where, const Operation& operation, const Operation* next) {
  switch (where) {
    case SyncWhere::none:
    case SyncWhere::step:
      return false;
    case SyncWhere::micro:
      return operation.phase == Phase::backward && ends_phase(operation, next);
    case SyncWhere::phase:
      return is_work(operation) && ends_phase(operation, next);
    case SyncWhere::forward:
      return operation.phase == Phase::forward && ends_phase(operation, next) &&
             !reports_late(operation, next);
    case SyncWhere::backward:
      return (operation.phase == Phase::backward && next && next->phase == Phase::optimizer) ||
             reports_late(operation, next);
    case SyncWhere::update:
      return operation.phase == Phase::optimizer && ends_phase(operation, next);
    case SyncWhere::parameter:  // after the first kernel of its update
      return operation.reads_gradients.has_value();
    case SyncWhere::op:
      return is_work(operation);
  }
  return false;
}

// Updates that wait for a copy of the state begin with that wait, which is no phase of its own
// here.
const Operation* first_not_saving(std::span<const Operation> operations, std::size_t from) {
  const auto found = std::ranges::find_if(operations.subspan(from), [](const Operation& operation) {
    return operation.phase != Phase::save;
  });
  return found == operations.end() ? nullptr : &*found;
}

}  // namespace

void build_log(StepBuilder& builder, const Knobs& knobs, int loss) {
  if (knobs.log.every == 0) return;
  builder.enter(Phase::log);
  if (knobs.log.via == LogVia::mean_on_device) return log_mean(builder, loss, knobs.log.every);
  builder.only_every(knobs.log.every);
  switch (knobs.log.via) {
    case LogVia::item:
      return read_now(builder, loss);
    case LogVia::late_pinned:
      return log_late(builder, loss);
    case LogVia::keep_on_device:
      return log_kept(builder, knobs, loss);
    case LogVia::mean_on_device:
      break;
  }
  require(false, "every way to log is built");
}

void build_sync(StepBuilder& builder, const Knobs& knobs, int loss) {
  if (knobs.sync.where == SyncWhere::none) return;
  Waits waits(builder, knobs.sync, loss);
  if (knobs.sync.where == SyncWhere::step) return waits.append(compute_stream);
  const std::vector<Operation> before = std::exchange(builder.plan().operations, {});
  for (std::size_t index = 0; index < before.size(); ++index) {
    const Operation& operation = before[index];
    const Operation* next = index + 1 < before.size() ? &before[index + 1] : nullptr;
    const Operation* after_saving = first_not_saving(before, index + 1);
    std::vector<Operation>& operations = builder.plan().operations;
    operations.push_back(operation);
    if (!waits_after(knobs.sync.where, operation, after_saving)) continue;
    const std::size_t first = operations.size();
    waits.append(operation.stream);
    // Between two captured operations a wait is captured too, which find_capture_errors then
    // refuses.
    for (std::size_t added = first; added < operations.size(); ++added) {
      operations[added].captured = operation.captured && next && next->captured;
      operations[added].ahead = operation.ahead;
      if (operation.every != 1) {  // of a turn; the wait acts in the same steps
        operations[added].every = operation.every;
        operations[added].turn = operation.turn;
      }
    }
  }
}

}  // namespace stepgate
