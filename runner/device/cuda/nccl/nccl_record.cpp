// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_record.h"

#include <fmt/format.h>
#include <strings.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "device/cuda/nccl/nccl_profiler_api.h"
#include "device/cuda/nccl/nccl_settings.h"

namespace stepgate {
namespace {

// A lock that is held for a few assignments. NCCL calls this from its own threads, in which a mutex
// could throw.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_ = ATOMIC_FLAG_INIT;
};

struct Store {
  SpinLock lock;
  std::unique_ptr<RecordedCollective[]> collectives;  // null: nothing is recorded
  std::size_t used = 0;
  std::int64_t lost = 0;
  int communicators = 0;
  std::string reason_against;
};

// A single global object, never destroyed. NCCL's interface has no user argument before the first
// communicator, and abandoned threads may still call when the process ends.
Store& store() {
  static Store* const the_one = new Store;
  return *the_one;
}

// A dummy handle for calls that exceed the capacity. A null handle would make NCCL continue with
// the previous one.
RecordedCollective nowhere;

int add_communicator(void** context, std::uint64_t, int* chosen_events, const char*, int, int, int,
                     void (*)()) noexcept {
  Store& all = store();
  const std::lock_guard held(all.lock);
  // Stores a number as a pointer, not null, which would mean that there is nothing to finalize.
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(++all.communicators));
  *chosen_events =
      all.collectives == nullptr
          ? 0
          : static_cast<int>(nccl_profiler_api::call_event | nccl_profiler_api::work_event);
  return 0;
}

RecordedCollective* add_call(Store& all, void* context,
                             const nccl_profiler_api::Call& call) noexcept {
  if (all.used == most_recorded) {
    ++all.lost;
    return &nowhere;
  }
  RecordedCollective& added = all.collectives[all.used++];
  added = {.communicator = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1,
           .function = call.function,
           .type = call.type,
           .count = call.count,
           .captured = call.captured};
  return &added;
}

void add_work(Store& all, void* of_call, const nccl_profiler_api::Work& work) noexcept {
  auto* const call = static_cast<RecordedCollective*>(of_call);
  RecordedCollective* const first = all.collectives.get();
  constexpr std::less<> is_before;
  if (is_before(call, first) || !is_before(call, first + all.used)) return;
  call->algorithm = work.algorithm;
  call->protocol = work.protocol;
  call->channels = work.channels;
}

int start_event(void* context, void** handle, nccl_profiler_api::Event* event) noexcept {
  *handle = nullptr;
  Store& all = store();
  const std::lock_guard held(all.lock);
  if (all.collectives == nullptr) return 0;
  if (event->type == nccl_profiler_api::call_event) *handle = add_call(all, context, event->call);
  if (event->type == nccl_profiler_api::work_event) {
    add_work(all, event->parent, event->work);
    *handle = &nowhere;
  }
  return 0;
}

int stop_event(void*) noexcept {
  return 0;
}

int record_event_state(void*, int, void*) noexcept {
  return 0;
}

int end_communicator(void*) noexcept {
  return 0;
}

}  // namespace

void begin_nccl_record() {
  Store& all = store();
  if (all.collectives == nullptr) {
    auto memory = std::make_unique<RecordedCollective[]>(most_recorded);
    const std::lock_guard held(all.lock);
    all.collectives = std::move(memory);
  }
  constexpr const char* name = nccl_profiler_api::plugin_variable;
  constexpr const char* own = nccl_profiler_api::the_program_itself;
  const auto users = nccl_setting(name);
  if (!users) setenv(name, own, 0);
  const bool is_this = !users || strcasecmp(users->value.c_str(), own) == 0;
  all.reason_against =
      is_this ? ""
              : fmt::format("{}{} names '{}'", name,
                            users->file.empty() ? "" : " in " + users->file, users->value);
}

std::string reason_against_nccl_record() {
  return store().reason_against;
}

int recorded_communicators() {
  Store& all = store();
  const std::lock_guard held(all.lock);
  return all.communicators;
}

NcclRecord take_nccl_record() {
  NcclRecord taken;
  taken.collectives.reserve(most_recorded);  // nobody allocates while NCCL may wait
  Store& all = store();
  {
    const std::lock_guard held(all.lock);
    if (all.collectives != nullptr)
      taken.collectives.assign(all.collectives.get(), all.collectives.get() + all.used);
    taken.lost = all.lost;
    all.used = 0;
    all.lost = 0;
  }
  taken.collectives.shrink_to_fit();
  return taken;
}

}  // namespace stepgate

// The linker exports the symbol that NCCL looks for (runner/device/CMakeLists.txt).
extern "C" {
__attribute__((
    visibility("default"))) extern const stepgate::nccl_profiler_api::Plugin ncclProfiler_v5;
const stepgate::nccl_profiler_api::Plugin ncclProfiler_v5 = {
    .name = "stepgate",
    .init = stepgate::add_communicator,
    .start_event = stepgate::start_event,
    .stop_event = stepgate::stop_event,
    .record_event_state = stepgate::record_event_state,
    .finalize = stepgate::end_communicator,
};
}
