// SPDX-License-Identifier: MIT
// Facts about NCCL that can be known without it: its versions, its usual file, and the NCCL
// constants for parts of a plan. Needs no library and no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"
#include "kernels/kernel.h"
#include "plan/step_plan.h"

namespace stepgate {

// Returns "2.28.9" for 22809 and "2.8.4" for 2804: up to 2.8 the major version is multiplied by a
// thousand.
std::string nccl_version_in_words(int version);

// Returns why that version of the library cannot be used, with a hint; nullopt if it can.
std::optional<std::string> reason_against_nccl(const std::string& file, int version);

// The usual file of NCCL, and how to install it.
inline constexpr const char* usual_nccl = "libnccl.so.2";
inline constexpr const char* how_to_get_nccl = "`pip install nvidia-nccl-cu13` has it";

// Returns the ncclDataType_t of numbers as they are stored.
int nccl_type_of(DType);
// Returns the ncclRedOp_t of a reduction.
int nccl_operation_of(Reduction);

// The strings that NCCL passes to profiler plugins: "AllReduce", "ncclBfloat16".
std::string_view nccl_function_of(CollectiveKind);
std::string_view nccl_name_of(DType);

// The element count to pass to NCCL: all elements for all_reduce, one rank's part for the others.
std::int64_t nccl_elements_of(const Collective&);

// Returns why the device of this rank cannot run the plan; nullopt if it can. Plans of one rank
// suit every device.
std::optional<std::string> reason_against_ranks(const RanksPlan&, const RankMembership&);

}  // namespace stepgate
