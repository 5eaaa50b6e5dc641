// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/call_kinds.h"

#include <gtest/gtest.h>

#include "device/cuda/cupti/kernel_name.h"

namespace stepgate {
namespace {

TEST(CallKinds, NamesLoseTheVersionAndTheDefaultStreamTheyWereCompiledFor) {
  EXPECT_EQ(plain_call_name("cudaMemcpyAsync_v3020"), "cudaMemcpyAsync");
  EXPECT_EQ(plain_call_name("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
  EXPECT_EQ(plain_call_name("cuLaunchKernelEx_ptsz"), "cuLaunchKernelEx");
  EXPECT_EQ(plain_call_name("cuCtxSynchronize_v2"), "cuCtxSynchronize");
  EXPECT_EQ(plain_call_name("cuMemcpyHtoDAsync_v2"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(plain_call_name("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
  EXPECT_EQ(plain_call_name("cudaMalloc"), "cudaMalloc");
  EXPECT_EQ(plain_call_name("_v1"), "_v1");
  EXPECT_EQ(plain_call_name(""), "");
}

struct Known {
  const char* name;
  CallKind kind;
  bool blocks;
};

// Expected values from the section "what blocks the host behind a pending kernel" of the
// measurements on an H200.
TEST(CallKinds, CallsBlockAsTheyDidBehindAPendingKernel) {
  for (const Known& known : {Known{"cudaDeviceSynchronize", CallKind::wait_for_device, true},
                             Known{"cuCtxSynchronize", CallKind::wait_for_device, true},
                             Known{"cudaStreamSynchronize", CallKind::wait_for_stream, true},
                             Known{"cudaEventSynchronize", CallKind::wait_for_event, true},
                             Known{"cudaEventQuery", CallKind::poll, false},
                             Known{"cudaStreamQuery", CallKind::poll, false},
                             Known{"cudaStreamWaitEvent", CallKind::other, false},
                             Known{"cudaEventRecord", CallKind::other, false},
                             Known{"cudaMemcpy", CallKind::copy, true},
                             Known{"cudaMemcpy2D", CallKind::copy, true},
                             Known{"cudaMemcpyAsync", CallKind::copy, false},
                             Known{"cudaMemcpyToSymbol", CallKind::copy, true},
                             Known{"cudaMemcpyBatchAsync", CallKind::copy, false},
                             Known{"cuMemcpyHtoD", CallKind::copy, true},
                             Known{"cudaMemset", CallKind::fill, false},
                             Known{"cudaMemsetAsync", CallKind::fill, false},
                             Known{"cudaMalloc", CallKind::allocate, false},
                             Known{"cudaMallocAsync", CallKind::allocate, false},
                             Known{"cudaMallocFromPoolAsync", CallKind::allocate, false},
                             Known{"cudaFree", CallKind::release, true},
                             Known{"cudaFreeAsync", CallKind::release, false},
                             Known{"cudaMallocHost", CallKind::pin, true},
                             Known{"cudaHostAlloc", CallKind::pin, true},
                             Known{"cudaHostRegister", CallKind::pin, false},
                             Known{"cudaHostUnregister", CallKind::unpin, true},
                             Known{"cudaFreeHost", CallKind::unpin, true},
                             Known{"cudaLaunchKernel", CallKind::launch, false},
                             Known{"cudaLaunchKernelExC", CallKind::launch, false},
                             Known{"cuLaunchKernel", CallKind::launch, false},
                             Known{"cudaGraphLaunch", CallKind::graph_launch, false}}) {
    const CallMeaning meaning = meaning_of_call(known.name);
    EXPECT_EQ(meaning.kind, known.kind) << known.name;
    EXPECT_EQ(meaning.always_can_block, known.blocks) << known.name;
  }
}

TEST(KernelName, IsWithoutResultParametersAndAnonymousNamespaces) {
  EXPECT_EQ(readable_kernel_name("_ZN8stepgate12_GLOBAL__N_15twiceEPfl"), "stepgate::twice");
  EXPECT_EQ(readable_kernel_name("_ZN8stepgate5scaleIfEEvPT_l"), "stepgate::scale<float>");
  // Parentheses within template arguments do not start the parameters.
  EXPECT_EQ(readable_kernel_name("_ZN8stepgate5scaleILi4EEEvPf"), "stepgate::scale<4>");
}

TEST(KernelName, IsTheSymbolWhereThatIsNoCpp) {
  EXPECT_EQ(readable_kernel_name("sm90_xmma_gemm_f32f32"), "sm90_xmma_gemm_f32f32");
  EXPECT_EQ(readable_kernel_name(nullptr), "");
}

}  // namespace
}  // namespace stepgate
