// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/nccl_words.h"

#include <gtest/gtest.h>

namespace stepgate {
namespace {

TEST(NcclWords, AVersionIsThreeNumbers) {
  EXPECT_EQ(nccl_version_in_words(22809), "2.28.9");
  EXPECT_EQ(nccl_version_in_words(21903), "2.19.3");
  EXPECT_EQ(nccl_version_in_words(2804), "2.8.4");
}

TEST(NcclWords, AnOldLibraryIsRefusedWithAWayOut) {
  EXPECT_FALSE(reason_against_nccl("libnccl.so.2", 21900));
  EXPECT_EQ(reason_against_nccl("/usr/lib/libnccl.so.2", 21805).value_or(""),
            "/usr/lib/libnccl.so.2 is NCCL 2.18.5, and several ranks need 2.19.0 or newer; "
            "`pip install nvidia-nccl-cu13` has it, and STEPGATE_NCCL names the file");
}

TEST(NcclWords, NumbersOfAPlanHaveTypesOfNccl) {
  EXPECT_EQ(nccl_type_of(DType::fp32), 7);
  EXPECT_EQ(nccl_type_of(DType::tf32), 7);  // stored as fp32
  EXPECT_EQ(nccl_type_of(DType::bf16), 9);
  EXPECT_EQ(nccl_type_of(DType::fp16), 6);
  EXPECT_EQ(nccl_operation_of(Reduction::sum), 0);
  EXPECT_EQ(nccl_operation_of(Reduction::average), 4);
}

TEST(NcclWords, AProfilerPluginIsToldThemInWords) {
  EXPECT_EQ(nccl_function_of(CollectiveKind::all_reduce), "AllReduce");
  EXPECT_EQ(nccl_function_of(CollectiveKind::reduce_scatter), "ReduceScatter");
  EXPECT_EQ(nccl_function_of(CollectiveKind::all_gather), "AllGather");
  EXPECT_EQ(nccl_function_of(CollectiveKind::broadcast), "Broadcast");
  EXPECT_EQ(nccl_name_of(DType::fp32), "ncclFloat32");
  EXPECT_EQ(nccl_name_of(DType::tf32), "ncclFloat32");
  EXPECT_EQ(nccl_name_of(DType::bf16), "ncclBfloat16");
  EXPECT_EQ(nccl_name_of(DType::fp16), "ncclFloat16");
}

TEST(NcclWords, OfAPartOnlyTheRanksOwnElementsCount) {
  const BufferUse whole{0, 0, 4096};
  const BufferUse part{0, 1024, 1024};
  EXPECT_EQ(nccl_elements_of({.from = whole, .to = whole}), 1024);
  EXPECT_EQ(nccl_elements_of({.kind = CollectiveKind::reduce_scatter,
                              .from = whole,
                              .to = part,
                              .dtype = DType::bf16}),
            512);
  EXPECT_EQ(nccl_elements_of({.kind = CollectiveKind::all_gather, .from = part, .to = whole}), 256);
}

TEST(NcclWords, ARankCarriesOutItsOwnPlanAlone) {
  EXPECT_FALSE(reason_against_ranks({}, {}));
  EXPECT_FALSE(reason_against_ranks({}, {.rank = 1, .count = 2}));
  EXPECT_FALSE(reason_against_ranks({.count = 2, .rank = 1}, {.rank = 1, .count = 2}));
  EXPECT_EQ(reason_against_ranks({.count = 2, .collectives = {.link_gbps = 12.5}}, {.count = 2}),
            "the step is that of links of 12.5 GB/s ('ranks.link_gbps'), to which no GPU can be "
            "slowed down; run it with --device simulated");
  EXPECT_EQ(reason_against_ranks({.count = 2}, {}).value_or(""),
            "the step is that of 2 ranks, and this GPU is alone; several ranks are a process each, "
            "with a GPU each");
  EXPECT_EQ(reason_against_ranks({.count = 2, .rank = 0}, {.rank = 1, .count = 2}).value_or(""),
            "the step is that of rank 0 of 2, and this GPU is rank 1 of 2");
  EXPECT_EQ(reason_against_ranks({.count = 4, .rank = 1}, {.rank = 1, .count = 2}).value_or(""),
            "the step is that of rank 1 of 4, and this GPU is rank 1 of 2");
}

}  // namespace
}  // namespace stepgate
