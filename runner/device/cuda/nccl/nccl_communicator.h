// SPDX-License-Identifier: MIT
// A rank's communicator. Its NCCL calls are blocking: since NCCL 2.20, non-blocking calls start a
// thread for every collective, which costs the host several times as much as the collective.
// Instead, calls that wait for other ranks have a deadline.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "device/cuda/nccl/nccl.h"
#include "device/device.h"
#include "kernels/kernel.h"
#include "plan/step_plan.h"

namespace stepgate {

// A collective with the addresses of its buffers.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t elements = 0;  // of all_reduce all of them, of the others one rank's part
  DType dtype = DType::fp32;
  Reduction reduction = Reduction::average;
};

struct CommunicatorLimits {
  // Calls that wait for other ranks end earlier than the parent of a rank does (RankedSettings), as
  // the rank can say which call it was.
  std::chrono::nanoseconds deadline{std::chrono::seconds(40)};
  std::chrono::nanoseconds abort{std::chrono::seconds(5)};  // of aborting a failed communicator
  CollectiveKnobs collectives = {};
};

class NcclCommunicator {
 public:
  // Returns when all ranks have joined. `choose_gpu` selects the rank's GPU in the calling thread.
  // The library must outlive this object. Throws DeviceError, also at the deadline: then the
  // waiting thread is abandoned, and the process should end.
  NcclCommunicator(const Nccl&, const RankMembership&, std::function<void()> choose_gpu,
                   const CommunicatorLimits& = {});
  // Its enqueued work must be done and graphs with its collectives destroyed, unless it has failed.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Enqueues the collective on the stream. Throws DeviceError.
  void issue(const CollectiveCall&, nccl_api::Stream);
  // Like issue(), for the first collective of a kind: may connect and allocate, and so wait for
  // other ranks.
  void issue_first(const CollectiveCall&, nccl_api::Stream);

  // Callers poll this during waits. Throws DeviceError when NCCL reports a failure, or when the
  // wait exceeds the deadline; enqueued work then ends.
  void check_while_waiting(std::chrono::steady_clock::time_point since, std::string_view what);

  // The communicator's number in NCCL's record (nccl_record.h); nullopt where NCCL keeps no record.
  std::optional<int> recorded_as() const { return recorded_as_; }
  const std::string& nccl_version() const { return nccl_.version(); }

 private:
  struct Connection;

  std::function<int()> on_gpu(std::function<int()>) const;
  void check(nccl_api::Result, std::string_view what);
  [[noreturn]] void fail(std::string words);
  [[noreturn]] void fail_at_deadline(std::string_view what);
  void require_working() const;
  std::string rank_in_words() const;

  const Nccl& nccl_;
  RankMembership membership_;
  CommunicatorLimits limits_;
  std::function<void()> choose_gpu_;
  // This state is shared with an abandoned call.
  std::shared_ptr<Connection> connection_;
  bool working_ = false;
  std::optional<int> recorded_as_;
};

}  // namespace stepgate
