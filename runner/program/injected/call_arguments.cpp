// SPDX-License-Identifier: MIT
// Positions follow generated_cuda_runtime_api_meta.h and generated_cuda_meta.h of CUDA 12 and 13.
#include "program/injected/call_arguments.h"

#include <cstring>

namespace stepgate::attached {
namespace {

constexpr std::int8_t none = no_argument;
constexpr CallArguments at(std::string_view name, std::int8_t number) {
  return {.name = name, .numbers = {number, none, none}};
}
constexpr CallArguments copy(std::string_view name, std::int8_t target, std::int8_t source,
                             std::int8_t bytes, std::int8_t direction = none) {
  return {.name = name,
          .numbers = {bytes, none, none},
          .source = source,
          .target = target,
          .direction = direction};
}

// The first row that fits counts.
constexpr CallArguments rows[] = {
    at("cudaLaunchKernelExC*", 1),
    at("cudaLaunchKernel*", 0),
    at("__cudaLaunchKernel*", 0),
    at("cudaLaunchCooperativeKernel*", 0),
    at("cuLaunchKernelEx*", 1),
    at("cuLaunchKernel*", 0),
    at("cuLaunchCooperativeKernel*", 0),
    at("cudaGraphLaunch", 0),
    at("cuGraphLaunch", 0),

    at("cudaMalloc", 1),
    at("cudaMallocAsync", 1),
    at("cudaMallocFromPoolAsync", 1),
    at("cudaMallocManaged", 1),
    at("cudaMallocHost", 1),
    at("cudaHostAlloc", 1),
    at("cudaHostRegister", 1),
    at("cuMemAlloc", 1),
    at("cuMemAllocAsync", 1),
    at("cuMemAllocFromPoolAsync", 1),
    at("cuMemAllocManaged", 1),
    at("cuMemAllocHost", 1),
    at("cuMemHostAlloc", 1),
    at("cuMemHostRegister", 1),
    at("cuMemCreate", 1),

    copy("cudaMemcpy", 0, 1, 2, 3),
    copy("cudaMemcpyAsync", 0, 1, 2, 3),
    copy("cudaMemcpyToSymbol*", none, 1, 2),
    copy("cudaMemcpyFromSymbol*", 0, none, 2),
    copy("cudaMemcpyPeer*", none, none, 4),
    {.name = "cudaMemcpy2D", .numbers = {4, 5, none}, .source = 2, .target = 0, .direction = 6},
    {.name = "cudaMemcpy2DAsync",
     .numbers = {4, 5, none},
     .source = 2,
     .target = 0,
     .direction = 6},
    {.name = "cudaMemcpy3D",
     .numbers = {16, 17, 18},
     .source = 4,
     .target = 12,
     .direction = 19,
     .is_indirect = true},
    {.name = "cudaMemcpy3DAsync",
     .numbers = {16, 17, 18},
     .source = 4,
     .target = 12,
     .direction = 19,
     .is_indirect = true},
    copy("cuMemcpyHtoD*", none, 1, 2),
    copy("cuMemcpyDtoH*", 0, none, 2),
    copy("cuMemcpyDtoD*", none, none, 2),
    copy("cuMemcpyPeer*", none, none, 4),
    copy("cuMemcpy", 0, 1, 2),
    copy("cuMemcpyAsync", 0, 1, 2),
};

}  // namespace

const CallArguments* arguments_of(std::string_view plain_name) {
  for (const CallArguments& row : rows) {
    const bool begins = row.name.ends_with('*');
    std::string_view name = row.name;
    if (begins) name.remove_suffix(1);
    if (begins ? plain_name.starts_with(name) : plain_name == name) return &row;
  }
  return nullptr;
}

std::uint64_t argument(const CallArguments& arguments, const void* parameters,
                       std::int8_t position) {
  const char* members = static_cast<const char*>(parameters);
  if (arguments.is_indirect) {
    std::memcpy(&members, parameters, sizeof members);
    if (members == nullptr) return 0;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, members + std::size_t{8} * static_cast<std::size_t>(position), sizeof value);
  return value;
}

}  // namespace stepgate::attached
