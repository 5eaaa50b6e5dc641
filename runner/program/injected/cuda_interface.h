// SPDX-License-Identifier: MIT
// The part of the interfaces of CUPTI, NVTX and the CUDA driver that the attached library uses,
// declared here since users build it without a CUDA toolkit. cuda_interface_check.cpp compares
// every line with NVIDIA's headers where those are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepgate::attached {

// CUPTI (cupti_callbacks.h).
struct CuptiCallbackData {
  int site;  // 0: the call begins, 1: it returns
  const char* function_name;
  const void* parameters;
  void* return_value;
  const char* symbol_name;
};
constexpr int site_of_return = 1;

struct CuptiResourceData {
  void* context;
  void* handle;
  const void* descriptor;
};
struct CuptiGraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  int node_type;
  void* dependency;
  void* exec;
};
struct CuptiSubscriberParams {
  std::size_t size;
  const char* name;
  char* old_name;
  std::size_t old_name_size;
};
enum CuptiDomain : std::uint32_t { driver_domain = 1, runtime_domain = 2, resource_domain = 3 };
enum CuptiGraphEvent : std::uint32_t {
  graph_was_created = 9,
  graph_was_cloned = 11,
  node_was_created = 13,
  exec_was_created = 18,
  node_was_cloned = 20
};
using CuptiCallback = void (*)(void* user, std::uint32_t domain, std::uint32_t call,
                               const void* data);

// NVTX 2 and 3 (nvToolsExt.h, nvtxDetail/nvtxTypes.h).
struct NvtxExportTable {
  std::size_t size;
  int (*function_table)(int module, void**** table, unsigned* size);
};
using NvtxGetExportTable = const void* (*)(std::uint32_t table);
constexpr std::uint32_t nvtx_callbacks_table = 1;
enum NvtxModule : int { nvtx_core = 1, nvtx_core2 = 5 };
enum NvtxCore : unsigned {
  nvtx_range_start_ex = 4,
  nvtx_range_start_a = 5,
  nvtx_range_push_ex = 8,
  nvtx_range_push_a = 9,
  nvtx_range_push_w = 10,
  nvtx_range_pop = 11
};
enum NvtxCore2 : unsigned {
  nvtx_domain_range_start_ex = 2,
  nvtx_domain_range_push_ex = 4,
  nvtx_domain_range_pop = 5
};
struct NvtxEventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};
constexpr std::int32_t nvtx_message_ascii = 1;
constexpr std::int32_t nvtx_message_unicode = 2;

// CUDA driver (cuda.h).
using PointerGetAttribute = int (*)(void* value, int attribute, std::uint64_t address);
constexpr int attribute_memory_type = 2;
constexpr int memory_is_of_the_host = 1;
constexpr int cuda_success = 0;
constexpr int cuda_invalid_value = 1;

// cudaMemcpyKind (driver_types.h).
enum CopyDirection : std::uint64_t {
  host_to_host,
  host_to_device,
  device_to_host,
  device_to_device,
  by_address
};

}  // namespace stepgate::attached
