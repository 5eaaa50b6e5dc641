// SPDX-License-Identifier: MIT
// Compares the declarations of cuda_interface.h and the positions of call_arguments.cpp with
// NVIDIA's headers. It is compiled where a CUDA toolkit is installed, and never linked.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <nvtx3/nvToolsExt.h>

#include "program/injected/cuda_interface.h"

namespace stepgate::attached {
namespace {

#define SAME_PLACE(ours, own, theirs, member)                      \
  static_assert(offsetof(ours, own) == offsetof(theirs, member) && \
                sizeof(ours::own) == sizeof(theirs::member))

SAME_PLACE(CuptiCallbackData, site, CUpti_CallbackData, callbackSite);
SAME_PLACE(CuptiCallbackData, function_name, CUpti_CallbackData, functionName);
SAME_PLACE(CuptiCallbackData, parameters, CUpti_CallbackData, functionParams);
SAME_PLACE(CuptiCallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME_PLACE(CuptiCallbackData, symbol_name, CUpti_CallbackData, symbolName);
static_assert(site_of_return == CUPTI_API_EXIT);
SAME_PLACE(CuptiResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_PLACE(CuptiGraphData, graph, CUpti_GraphData, graph);
SAME_PLACE(CuptiGraphData, original_graph, CUpti_GraphData, originalGraph);
SAME_PLACE(CuptiGraphData, node, CUpti_GraphData, node);
SAME_PLACE(CuptiGraphData, node_type, CUpti_GraphData, nodeType);
SAME_PLACE(CuptiGraphData, exec, CUpti_GraphData, graphExec);
static_assert(int{driver_domain} == CUPTI_CB_DOMAIN_DRIVER_API);
static_assert(int{runtime_domain} == CUPTI_CB_DOMAIN_RUNTIME_API);
static_assert(int{resource_domain} == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(int{graph_was_created} == CUPTI_CBID_RESOURCE_GRAPH_CREATED);
static_assert(int{graph_was_cloned} == CUPTI_CBID_RESOURCE_GRAPH_CLONED);
static_assert(int{node_was_created} == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
static_assert(int{exec_was_created} == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
static_assert(int{node_was_cloned} == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
SAME_PLACE(CuptiSubscriberParams, size, CUpti_SubscriberParams, structSize);
SAME_PLACE(CuptiSubscriberParams, name, CUpti_SubscriberParams, subscriberName);
SAME_PLACE(CuptiSubscriberParams, old_name, CUpti_SubscriberParams, oldSubscriberName);
SAME_PLACE(CuptiSubscriberParams, old_name_size, CUpti_SubscriberParams, oldSubscriberSize);

SAME_PLACE(NvtxExportTable, size, NvtxExportTableCallbacks, struct_size);
SAME_PLACE(NvtxExportTable, function_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
static_assert(nvtx_callbacks_table == NVTX_ETID_CALLBACKS);
static_assert(int{nvtx_core} == NVTX_CB_MODULE_CORE && int{nvtx_core2} == NVTX_CB_MODULE_CORE2);
static_assert(int{nvtx_range_start_ex} == int{NVTX_CBID_CORE_RangeStartEx});
static_assert(int{nvtx_range_start_a} == int{NVTX_CBID_CORE_RangeStartA});
static_assert(int{nvtx_range_push_ex} == int{NVTX_CBID_CORE_RangePushEx});
static_assert(int{nvtx_range_push_a} == int{NVTX_CBID_CORE_RangePushA});
static_assert(int{nvtx_range_push_w} == int{NVTX_CBID_CORE_RangePushW});
static_assert(int{nvtx_range_pop} == int{NVTX_CBID_CORE_RangePop});
static_assert(int{nvtx_domain_range_start_ex} == int{NVTX_CBID_CORE2_DomainRangeStartEx});
static_assert(int{nvtx_domain_range_push_ex} == int{NVTX_CBID_CORE2_DomainRangePushEx});
static_assert(int{nvtx_domain_range_pop} == int{NVTX_CBID_CORE2_DomainRangePop});
SAME_PLACE(NvtxEventAttributes, message_type, nvtxEventAttributes_t, messageType);
SAME_PLACE(NvtxEventAttributes, message, nvtxEventAttributes_t, message);
static_assert(nvtx_message_ascii == int{NVTX_MESSAGE_TYPE_ASCII});
static_assert(nvtx_message_unicode == int{NVTX_MESSAGE_TYPE_UNICODE});

static_assert(attribute_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(memory_is_of_the_host == CU_MEMORYTYPE_HOST);
static_assert(cuda_success == CUDA_SUCCESS && cuda_invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(int{host_to_device} == cudaMemcpyHostToDevice &&
              int{device_to_host} == cudaMemcpyDeviceToHost &&
              int{device_to_device} == cudaMemcpyDeviceToDevice &&
              int{by_address} == cudaMemcpyDefault);

// Positions of arguments, in multiples of 8 bytes.
#define IS_AT(call, member, position) \
  static_assert(offsetof(call##_params, member) == 8 * std::size_t{position})
IS_AT(cudaLaunchKernel_v7000, func, 0);
IS_AT(cudaLaunchKernelExC_v11060, func, 1);
IS_AT(cuLaunchKernel, f, 0);
IS_AT(cuLaunchKernelEx, f, 1);
IS_AT(cudaGraphLaunch_v10000, graphExec, 0);
IS_AT(cuGraphLaunch, hGraph, 0);
IS_AT(cudaMalloc_v3020, size, 1);
IS_AT(cudaMallocAsync_v11020, size, 1);
IS_AT(cudaMallocHost_v3020, size, 1);
IS_AT(cudaHostAlloc_v3020, size, 1);
IS_AT(cuMemAlloc_v2, bytesize, 1);
IS_AT(cuMemCreate, size, 1);
IS_AT(cudaMemcpyAsync_v3020, dst, 0);
IS_AT(cudaMemcpyAsync_v3020, src, 1);
IS_AT(cudaMemcpyAsync_v3020, count, 2);
IS_AT(cudaMemcpyAsync_v3020, kind, 3);
IS_AT(cudaMemcpyToSymbol_v3020, src, 1);
IS_AT(cudaMemcpyToSymbol_v3020, count, 2);
IS_AT(cudaMemcpyFromSymbol_v3020, dst, 0);
IS_AT(cudaMemcpyFromSymbol_v3020, count, 2);
IS_AT(cudaMemcpyPeerAsync_v4000, count, 4);
IS_AT(cudaMemcpy2DAsync_v3020, dst, 0);
IS_AT(cudaMemcpy2DAsync_v3020, src, 2);
IS_AT(cudaMemcpy2DAsync_v3020, width, 4);
IS_AT(cudaMemcpy2DAsync_v3020, height, 5);
IS_AT(cudaMemcpy2DAsync_v3020, kind, 6);
IS_AT(cuMemcpyHtoDAsync_v2, srcHost, 1);
IS_AT(cuMemcpyHtoDAsync_v2, ByteCount, 2);
IS_AT(cuMemcpyDtoHAsync_v2, dstHost, 0);
IS_AT(cuMemcpyDtoHAsync_v2, ByteCount, 2);
IS_AT(cuMemcpyAsync, src, 1);
IS_AT(cuMemcpyPeerAsync, ByteCount, 4);
static_assert(offsetof(cudaMemcpy3DParms, srcPtr) == 8 * 4);
static_assert(offsetof(cudaMemcpy3DParms, dstPtr) == 8 * 12);
static_assert(offsetof(cudaMemcpy3DParms, extent) == 8 * 16);
static_assert(offsetof(cudaMemcpy3DParms, kind) == 8 * 19);

}  // namespace
}  // namespace stepgate::attached
