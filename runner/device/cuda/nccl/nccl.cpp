// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl.h"

#include <fmt/format.h>

#include <algorithm>

#include "device/cuda/nccl/nccl_words.h"
#include "device/device.h"
#include "kernels/dynamic_library.h"

namespace stepgate {

// A second copy of NCCL in one process would have its own state, so a copy that is already loaded
// is preferred.
Nccl::Nccl() {
  DynamicLibrary library({.name = "NCCL",
                          .variable = "STEPGATE_NCCL",
                          .places = {{usual_nccl, true}, {usual_nccl}},
                          .way_out = how_to_get_nccl});
  nccl_api::Functions& to = functions_;
  library.bind({{"ncclGetVersion", &to.get_version},
                {"ncclGetUniqueId", &to.get_unique_id},
                {"ncclCommInitRankConfig", &to.comm_init_rank_config},
                {"ncclCommGetAsyncError", &to.comm_get_async_error},
                {"ncclCommDestroy", &to.comm_destroy},
                {"ncclCommAbort", &to.comm_abort},
                {"ncclGetErrorString", &to.get_error_string},
                {"ncclGetLastError", &to.get_last_error},
                {"ncclAllReduce", &to.all_reduce},
                {"ncclReduceScatter", &to.reduce_scatter},
                {"ncclAllGather", &to.all_gather},
                {"ncclBroadcast", &to.broadcast}});
  file_ = library.file();
  unavailable_ = library.unavailable();
  if (unavailable_.empty()) check_version();
}

void Nccl::check_version() {
  int version = 0;
  const nccl_api::Result result = functions_.get_version(&version);
  if (result != nccl_api::success) {
    unavailable_ =
        fmt::format("{} does not say its version: {}", file_, functions_.get_error_string(result));
    return;
  }
  version_ = nccl_version_in_words(version);
  unavailable_ = reason_against_nccl(file_, version).value_or("");
}

std::string Nccl::make_unique_id() const {
  if (!unavailable_.empty()) throw DeviceError(unavailable_);
  nccl_api::UniqueId id{};
  const nccl_api::Result result = functions_.get_unique_id(&id);
  if (result != nccl_api::success)
    throw DeviceError(describe(result, "make the id of a communicator"));
  return std::string(id.bytes, sizeof id.bytes);
}

std::string Nccl::describe(nccl_api::Result result, std::string_view what,
                           nccl_api::Handle communicator) const {
  std::string words =
      fmt::format("NCCL {} cannot {}: {}", version_, what, functions_.get_error_string(result));
  const char* last = functions_.get_last_error(communicator);
  if (last != nullptr && *last != '\0') words += fmt::format(": {}", last);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words;
}

}  // namespace stepgate
