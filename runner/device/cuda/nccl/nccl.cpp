// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "device/cuda/nccl/nccl_words.h"
#include "device/device.h"

namespace stepgate {
namespace {

// The error of the last dlopen or dlsym.
std::string loader_error() {
  const char* error = dlerror();
  return error != nullptr ? error : "unknown error of the loader";
}

template <class Function>
bool find_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string file_of(const void* symbol, const std::string& otherwise) {
  Dl_info info{};
  if (dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return otherwise;
  return info.dli_fname;
}

}  // namespace

Nccl::Nccl() {
  const char* named = std::getenv("STEPGATE_NCCL");
  void* library = nullptr;
  for (const NcclPlace& place : nccl_places(named)) {
    file_ = place.file;
    library =
        dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL | (place.only_if_loaded ? RTLD_NOLOAD : 0));
    if (library != nullptr) break;
  }
  if (library == nullptr || !find_functions(library)) {
    unavailable_ = no_nccl_in_words(named, loader_error());
    return;
  }
  file_ = file_of(reinterpret_cast<const void*>(functions_.get_version), file_);
  check_version();
}

bool Nccl::find_functions(void* library) {
  return find_symbol(library, "ncclGetVersion", functions_.get_version) &&
         find_symbol(library, "ncclGetUniqueId", functions_.get_unique_id) &&
         find_symbol(library, "ncclCommInitRankConfig", functions_.comm_init_rank_config) &&
         find_symbol(library, "ncclCommGetAsyncError", functions_.comm_get_async_error) &&
         find_symbol(library, "ncclCommDestroy", functions_.comm_destroy) &&
         find_symbol(library, "ncclCommAbort", functions_.comm_abort) &&
         find_symbol(library, "ncclGetErrorString", functions_.get_error_string) &&
         find_symbol(library, "ncclGetLastError", functions_.get_last_error) &&
         find_symbol(library, "ncclAllReduce", functions_.all_reduce) &&
         find_symbol(library, "ncclReduceScatter", functions_.reduce_scatter) &&
         find_symbol(library, "ncclAllGather", functions_.all_gather);
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
