// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_communicator.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/require.h"
#include "device/cuda/nccl/nccl_record.h"
#include "device/cuda/nccl/nccl_words.h"
#include "plan/compose/step_names.h"

namespace stepgate {
namespace {

using std::chrono::steady_clock;

// Runs a call that may wait for other processes in another thread. Returns its result, or nullopt
// after the limit. The thread is then abandoned, so the call must own all that it uses. It must not
// throw.
std::optional<int> call_within(std::chrono::nanoseconds limit, std::function<int()> call) {
  std::packaged_task<int()> task(std::move(call));
  std::future<int> answer = task.get_future();
  std::thread thread(std::move(task));
  if (answer.wait_for(limit) != std::future_status::ready) {
    thread.detach();
    return std::nullopt;
  }
  thread.join();
  return answer.get();
}

constexpr int thread_has_no_gpu = -1;  // not a result code of NCCL

nccl_api::UniqueId id_in(const std::string& rendezvous) {
  nccl_api::UniqueId id{};
  if (rendezvous.size() != sizeof id.bytes) {
    throw DeviceError(fmt::format("ranks find each other by {} bytes of NCCL's, not by {}",
                                  sizeof id.bytes, rendezvous.size()));
  }
  std::memcpy(id.bytes, rendezvous.data(), sizeof id.bytes);
  return id;
}

nccl_api::Result issue_on(const nccl_api::Functions& call, nccl_api::Handle handle,
                          const CollectiveCall& what, nccl_api::Stream stream) {
  const auto count = static_cast<std::size_t>(what.elements);
  const int type = nccl_type_of(what.dtype);
  const int operation = nccl_operation_of(what.reduction);
  switch (what.kind) {
    case CollectiveKind::all_reduce:
      return call.all_reduce(what.from, what.to, count, type, operation, handle, stream);
    case CollectiveKind::reduce_scatter:
      return call.reduce_scatter(what.from, what.to, count, type, operation, handle, stream);
    case CollectiveKind::all_gather:
      return call.all_gather(what.from, what.to, count, type, handle, stream);
    case CollectiveKind::broadcast: {
      constexpr int from_rank = 0;
      return call.broadcast(what.from, what.to, count, type, from_rank, handle, stream);
    }
  }
  require(false, "every collective is known");
  return nccl_api::success;
}

}  // namespace

struct NcclCommunicator::Connection {
  nccl_api::Handle handle = nullptr;
};

NcclCommunicator::NcclCommunicator(const Nccl& nccl, const RankMembership& membership,
                                   std::function<void()> choose_gpu,
                                   const CommunicatorLimits& limits)
    : nccl_(nccl),
      membership_(membership),
      limits_(limits),
      choose_gpu_(std::move(choose_gpu)),
      connection_(std::make_shared<Connection>()) {
  if (!nccl.unavailable().empty()) throw DeviceError(nccl.unavailable());
  constexpr std::string_view what = "join the other ranks";
  const int recorded_before = recorded_communicators();
  const auto result = call_within(
      limits.deadline, on_gpu([call = nccl.call(), id = id_in(membership.rendezvous), membership,
                               connection = connection_, knobs = limits.collectives] {
        nccl_api::Config config;
        config.blocking = 1;
        if (knobs.max_ctas) config.most_ctas = static_cast<int>(*knobs.max_ctas);
        return call.comm_init_rank_config(&connection->handle, membership.count, id,
                                          membership.rank, &config);
      }));
  // While a call uses the communicator, no other thread may touch its result.
  if (!result) {
    connection_ = std::make_shared<Connection>();
    fail_at_deadline(what);
  }
  check(*result, what);
  working_ = true;
  if (recorded_communicators() == recorded_before + 1) recorded_as_ = recorded_before;
}

// Destroying the communicator waits for the queues, which would never end if another rank has gone.
NcclCommunicator::~NcclCommunicator() {
  if (connection_->handle == nullptr) return;
  (void)(working_ ? nccl_.call().comm_destroy : nccl_.call().comm_abort)(connection_->handle);
}

// Wraps the call for another thread, which must select the GPU first.
std::function<int()> NcclCommunicator::on_gpu(std::function<int()> call) const {
  return [choose_gpu = choose_gpu_, call = std::move(call)] {
    try {
      choose_gpu();
    } catch (const std::exception&) {
      return thread_has_no_gpu;
    }
    return call();
  };
}

void NcclCommunicator::issue(const CollectiveCall& call, nccl_api::Stream stream) {
  require_working();
  const nccl_api::Result result = issue_on(nccl_.call(), connection_->handle, call, stream);
  if (result != nccl_api::success) check(result, name_of(call.kind));
}

void NcclCommunicator::issue_first(const CollectiveCall& call, nccl_api::Stream stream) {
  require_working();
  const auto result = call_within(
      limits_.deadline, on_gpu([functions = nccl_.call(), call, stream, connection = connection_] {
        return issue_on(functions, connection->handle, call, stream);
      }));
  if (!result) {
    connection_ = std::make_shared<Connection>();
    fail_at_deadline(name_of(call.kind));
  }
  check(*result, name_of(call.kind));
}

void NcclCommunicator::check_while_waiting(steady_clock::time_point since, std::string_view what) {
  require_working();
  nccl_api::Result state = nccl_api::success;
  const nccl_api::Result asked = nccl_.call().comm_get_async_error(connection_->handle, &state);
  if (asked != nccl_api::success) fail(nccl_.describe(asked, what, connection_->handle));
  if (state != nccl_api::success && state != nccl_api::in_progress)
    fail(nccl_.describe(state, what, connection_->handle));
  if (steady_clock::now() - since > limits_.deadline) fail_at_deadline(what);
}

// With NCCL_COMM_BLOCKING=0 calls return before they are done, whatever the configuration says.
void NcclCommunicator::check(nccl_api::Result result, std::string_view what) {
  const auto begin = steady_clock::now();
  while (result == nccl_api::in_progress) {
    const nccl_api::Result asked = nccl_.call().comm_get_async_error(connection_->handle, &result);
    if (asked != nccl_api::success) fail(nccl_.describe(asked, what, connection_->handle));
    if (result == nccl_api::in_progress && steady_clock::now() - begin > limits_.deadline)
      fail_at_deadline(what);
    std::this_thread::yield();
  }
  if (result == thread_has_no_gpu) fail("it cannot choose its GPU on a second thread");
  if (result != nccl_api::success) fail(nccl_.describe(result, what, connection_->handle));
}

// Aborts, which ends GPU work that waits for missing ranks. NCCL's abort returns only after graphs
// with its collectives are destroyed, and this thread may still have such graphs.
void NcclCommunicator::fail(std::string words) {
  working_ = false;
  if (connection_->handle != nullptr) {
    (void)call_within(limits_.abort, [abort = nccl_.call().comm_abort,
                                      handle = std::exchange(connection_->handle, nullptr)] {
      return abort(handle);
    });
  }
  throw DeviceError(fmt::format("{}: {}", rank_in_words(), words));
}

void NcclCommunicator::fail_at_deadline(std::string_view what) {
  fail(
      fmt::format("it cannot {}: the other ranks have not come within {:g} s; look whether all "
                  "are there, NCCL_DEBUG=INFO says what NCCL waits for",
                  what, std::chrono::duration<double>(limits_.deadline).count()));
}

void NcclCommunicator::require_working() const {
  if (working_) return;
  throw DeviceError(
      fmt::format("{} has lost the others in an earlier call and must join anew", rank_in_words()));
}

std::string NcclCommunicator::rank_in_words() const {
  return fmt::format("rank {} of {}", membership_.rank, membership_.count);
}

}  // namespace stepgate
