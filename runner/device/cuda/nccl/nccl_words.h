// SPDX-License-Identifier: MIT
// Facts about NCCL that can be known without it: its versions, where it is looked for, and which of
// its numbers parts of a plan become. Needs no library and no GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "device/device.h"
#include "kernels/kernel.h"
#include "plan/step_plan.h"

namespace stepgate {

// "2.28.9" of 22809, "2.8.4" of 2804: up to 2.8 a thousand stood for a major version.
std::string nccl_version_in_words(int version);

// Why that version of the library cannot be used, with a hint; nullopt if it can.
std::optional<std::string> reason_against_nccl(const std::string& file, int version);

// The usual file of NCCL, and how to install it.
inline constexpr const char* usual_nccl = "libnccl.so.2";
inline constexpr const char* how_to_get_nccl = "`pip install nvidia-nccl-cu13` has it";

// ncclDataType_t of numbers as they are stored.
int nccl_type_of(DType);
// ncclRedOp_t.
int nccl_operation_of(Reduction);

// The strings that NCCL passes to profiler plugins: "AllReduce", "ncclBfloat16".
std::string_view nccl_function_of(CollectiveKind);
std::string_view nccl_name_of(DType);

// The element count to pass to NCCL: all elements for all_reduce, one rank's part for the others.
std::int64_t nccl_elements_of(const Collective&);

// Why the device of this rank cannot run the plan; nothing if it can. Plans of one rank suit every
// device.
std::optional<std::string> reason_against_ranks(const RanksPlan&, const RankMembership&);

}  // namespace stepgate
