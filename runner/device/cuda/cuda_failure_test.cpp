// SPDX-License-Identifier: MIT
// Tests the message for every error that the program knows. Needs no GPU.
#include "device/cuda/cuda_failure.h"

#include <gtest/gtest.h>

#include "base/text/units.h"

namespace stepgate {
namespace {

using namespace cuda_codes;

const CudaFailure trapped{launch_failure, "cudaErrorLaunchFailure", "unspecified launch failure"};
const CudaFailure too_old{insufficient_driver, "cudaErrorInsufficientDriver",
                          "CUDA driver version is insufficient for CUDA runtime version"};

TEST(CudaFailure, OfALostDeviceIsOneSentenceWithWhatToDo) {
  EXPECT_EQ(lost_in_words("variant 'fix', step 12, 'update': launch of adamw: unspecified launch "
                          "failure",
                          trapped),
            "variant 'fix', step 12, 'update': launch of adamw: unspecified launch failure; "
            "cudaErrorLaunchFailure: unspecified launch failure; the device answers every call of "
            "this process with that error from now on; a kernel did something that it must not, "
            "and not always the one at which it shows: run this scenario alone under "
            "`compute-sanitizer --target-processes application-only`, and look for an Xid in the "
            "log of the machine");
}

TEST(CudaFailure, IsNamedOnce) {
  const std::string words = lost_in_words(
      "cannot wait for the device: cudaErrorLaunchFailure: unspecified launch failure", trapped);
  EXPECT_EQ(words.find("cudaErrorLaunchFailure"), words.rfind("cudaErrorLaunchFailure")) << words;
}

TEST(CudaFailure, ThatNobodyKnowsIsStillToldWhole) {
  EXPECT_EQ(lost_in_words("cannot copy", {4711, "cudaErrorOfTheFuture", "so it is"}),
            "cannot copy; cudaErrorOfTheFuture: so it is; the device answers every call of this "
            "process with that error from now on");
}

TEST(CudaFailure, HasAWayOutOfItsKind) {
  struct Row {
    int code;
    const char* words;
  };
  for (const Row& row :
       {Row{illegal_address, "compute-sanitizer"}, Row{assertion, "compute-sanitizer"},
        Row{hardware_stack, "compute-sanitizer"}, Row{illegal_instruction, "compute-sanitizer"},
        Row{misaligned_address, "compute-sanitizer"},
        Row{invalid_address_space, "compute-sanitizer"}, Row{invalid_pc, "compute-sanitizer"},
        Row{launch_failure, "compute-sanitizer"}, Row{launch_timeout, "watchdog"},
        Row{ecc_uncorrectable, "reset the GPU"}, Row{nvlink_uncorrectable, "reset the GPU"},
        Row{no_device, "is gone"}, Row{unknown, "is gone"},
        Row{devices_unavailable, "compute mode"}, Row{memory_allocation, "other processes"},
        Row{system_not_ready, "fabric manager"}, Row{mps_connection_failed, "MPS"},
        Row{mps_client_terminated, "MPS"}}) {
    EXPECT_NE(way_out_of(row.code).find(row.words), std::string_view::npos)
        << row.code << ": " << way_out_of(row.code);
  }
  EXPECT_EQ(way_out_of(0), "");
}

TEST(DriverFailure, NamesBothVersions) {
  const NoGpu old = reason_of({too_old, 12040, 13000, "550.54.15"});
  EXPECT_EQ(old.reason,
            "the NVIDIA driver 550.54.15 supports CUDA up to 12.4, and this build is of CUDA 13.0");
  EXPECT_EQ(old.way_out, "update the driver, or build with the toolkit of CUDA 12.4");
  EXPECT_TRUE(old.is_fault);
  for (const int code : {system_driver_mismatch, compat_not_supported}) {
    const NoGpu mixed = reason_of({{code, "cudaErrorX", "x"}, 13020, 13000, "570.1"});
    EXPECT_TRUE(mixed.is_fault) << code;
    EXPECT_NE(mixed.reason.find("13.2"), std::string::npos) << mixed.reason;
    EXPECT_NE(mixed.reason.find("13.0"), std::string::npos) << mixed.reason;
    EXPECT_NE(mixed.reason.find("570.1"), std::string::npos) << mixed.reason;
    EXPECT_NE(mixed.way_out, "") << code;
  }
}

TEST(DriverFailure, IsNoneWhereThereIsNoDriverOrNoGpu) {
  const NoGpu none = reason_of({too_old, 0, 13000, ""});
  EXPECT_EQ(none.reason, "there is no NVIDIA driver");
  EXPECT_FALSE(none.is_fault);
  EXPECT_FALSE(reason_of({{no_device, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
                          13000,
                          13000,
                          ""})
                   .is_fault);
  EXPECT_FALSE(
      reason_of({{stub_library, "cudaErrorStubLibrary", "stub"}, 13000, 13000, ""}).is_fault);
}

TEST(DriverFailure, OfAnyOtherKindIsAFaultWithItsNameAndText) {
  const NoGpu gone = reason_of({{unknown, "cudaErrorUnknown", "unknown error"}, 13000, 13000, ""});
  EXPECT_EQ(gone.reason, "cudaErrorUnknown: unknown error");
  EXPECT_TRUE(gone.is_fault);
}

TEST(MemoryHolders, AreNamedTheLargestFirst) {
  const ComputeProcesses processes{.others = {{.pid = 1, .memory_bytes = 2 * gibibyte},
                                              {.pid = 2, .memory_bytes = std::nullopt},
                                              {.pid = 3, .memory_bytes = 130 * gibibyte}}};
  EXPECT_EQ(held_by_others_in_words({140 * gibibyte, gibibyte, 0, processes}),
            "; of 143360 MiB other processes hold 135168 MiB: process 3 has 133120 MiB, process 1 "
            "has 2048 MiB");
}

// Inside a container the list may contain this process under another number.
TEST(MemoryHolders, AreNotNamedWhereThisProcessIsNotListed) {
  const ComputeProcesses elsewhere{.others = {{.pid = 1, .memory_bytes = 100 * gibibyte}},
                                   .self_is_listed = false};
  const char* words =
      "; of 143360 MiB this process keeps 10240 MiB for its steps, and 132096 MiB are in use "
      "besides, by other processes or the driver";
  EXPECT_EQ(held_by_others_in_words({140 * gibibyte, gibibyte, 10 * gibibyte, elsewhere}), words);
  EXPECT_EQ(held_by_others_in_words({140 * gibibyte, gibibyte, 10 * gibibyte, std::nullopt}),
            words);
}

TEST(MemoryHolders, AreNotToldWhereNobodyElseHasMuch) {
  EXPECT_EQ(
      held_by_others_in_words({140 * gibibyte, 139 * gibibyte + gibibyte / 2, 0, std::nullopt}),
      "");
}

}  // namespace
}  // namespace stepgate
