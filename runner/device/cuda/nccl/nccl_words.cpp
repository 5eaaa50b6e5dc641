// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_words.h"

#include <fmt/format.h>

#include "base/require.h"
#include "device/cuda/nccl/nccl_api.h"

namespace stepgate {
std::string nccl_version_in_words(int version) {
  const int major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

std::optional<std::string> reason_against_nccl(const std::string& file, int version) {
  if (version >= nccl_api::version_of_declarations) return std::nullopt;
  return fmt::format(
      "{} is NCCL {}, and several ranks need {} or newer; {}, and STEPGATE_NCCL names the file",
      file, nccl_version_in_words(version),
      nccl_version_in_words(nccl_api::version_of_declarations), how_to_get_nccl);
}

int nccl_type_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
    case DType::tf32:
      return nccl_api::float32;
    case DType::bf16:
      return nccl_api::bfloat16;
    case DType::fp16:
      return nccl_api::float16;
    case DType::fp64:
      break;
  }
  require(false, "a step's collectives are in no other type");
  return nccl_api::float32;
}

int nccl_operation_of(Reduction reduction) {
  return reduction == Reduction::sum ? nccl_api::sum : nccl_api::average;
}

std::string_view nccl_function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "AllReduce";
    case CollectiveKind::reduce_scatter:
      return "ReduceScatter";
    case CollectiveKind::all_gather:
      return "AllGather";
    case CollectiveKind::broadcast:
      return "Broadcast";
  }
  require(false, "every collective is known");
  return "";
}

std::string_view nccl_name_of(DType dtype) {
  switch (nccl_type_of(dtype)) {
    case nccl_api::bfloat16:
      return "ncclBfloat16";
    case nccl_api::float16:
      return "ncclFloat16";
    default:
      return "ncclFloat32";
  }
}

std::int64_t nccl_elements_of(const Collective& collective) {
  const std::int64_t bytes = collective.kind == CollectiveKind::reduce_scatter
                                 ? collective.to.bytes
                                 : collective.from.bytes;
  return bytes / bytes_of(collective.dtype);
}

std::optional<std::string> reason_against_ranks(const RanksPlan& plan,
                                                const RankMembership& device) {
  if (plan.count == 1) return std::nullopt;
  if (plan.collectives.link_gbps > 0) {
    return fmt::format(
        "the step is that of links of {} GB/s ('ranks.link_gbps'), to which no GPU can be slowed "
        "down; run it with --device simulated",
        plan.collectives.link_gbps);
  }
  if (device.count == 1) {
    return fmt::format(
        "the step is that of {} ranks, and this GPU is alone; several ranks are a "
        "process each, with a GPU each",
        plan.count);
  }
  if (plan.count == device.count && plan.rank == device.rank) return std::nullopt;
  return fmt::format("the step is that of rank {} of {}, and this GPU is rank {} of {}", plan.rank,
                     plan.count, device.rank, device.count);
}

}  // namespace stepgate
