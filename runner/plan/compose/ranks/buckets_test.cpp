// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/buckets.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace stepgate {
namespace {

constexpr std::int64_t fp32_bytes = 4;

std::vector<FlatTensor> one_behind_the_other(const std::vector<std::int64_t>& sizes) {
  std::vector<FlatTensor> tensors;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    tensors.push_back({first, size});
    first += size;
  }
  return tensors;
}

std::int64_t end_of(const std::vector<FlatTensor>& tensors) {
  return tensors.back().first + tensors.back().elements;
}

std::vector<std::int64_t> bytes_of_buckets(const std::vector<FlatTensor>& tensors,
                                           const BucketLimits& limits) {
  std::vector<std::int64_t> bytes;
  for (const Bucket& bucket : buckets_of(tensors, end_of(tensors), fp32_bytes, limits))
    bytes.push_back(bucket.elements * fp32_bytes);
  return bytes;
}

using Sizes = std::vector<std::int64_t>;

// Parameters of torchvision's ResNet-18 in the order of their registration: a stem, four stages,
// and a classifier (He et al., 2015). A stage has two blocks of two convolutions of 3 x 3, each
// followed by a norm's weight and bias. The first block of stages 2 to 4 also has a convolution of
// 1 x 1.
Sizes resnet18() {
  Sizes sizes;
  const auto convolution = [&](std::int64_t out, std::int64_t in, std::int64_t kernel) {
    for (const std::int64_t size : {out * in * kernel * kernel, out, out}) sizes.push_back(size);
  };
  convolution(64, 3, 7);
  std::int64_t in = 64;
  for (const std::int64_t out : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      convolution(out, in, 3);
      convolution(out, out, 3);
      if (in != out) convolution(out, in, 1);
      in = out;
    }
  }
  sizes.push_back(512 * 1000);
  sizes.push_back(1000);
  return sizes;
}

// DistributedDataParallel logs these sizes with 1 MiB for the first bucket and 25 MiB for others.
TEST(Buckets, OfResNet18AreThoseOfPyTorch) {
  const std::vector<FlatTensor> tensors = one_behind_the_other(resnet18());
  ASSERT_EQ(end_of(tensors), 11'689'512);
  EXPECT_EQ(bytes_of_buckets(tensors, {.first_bytes = 1 << 20, .bytes = 25 << 20}),
            (Sizes{2'052'000, 28'852'224, 15'853'824}));
  // With one limit for all buckets, as with an explicit bucket_cap_mb, the classifier has no bucket
  // of its own.
  EXPECT_EQ(bytes_of_buckets(tensors, {.first_bytes = 25 << 20, .bytes = 25 << 20}).size(), 2u);
}

TEST(Buckets, CloseWhereTheirBytesReachTheLimit) {
  const std::vector<FlatTensor> tensors = one_behind_the_other({4, 2, 2, 1});
  EXPECT_EQ(bytes_of_buckets(tensors, {.first_bytes = 12, .bytes = 12}), (Sizes{12, 24}));
  EXPECT_EQ(bytes_of_buckets(tensors, {.first_bytes = 13, .bytes = 12}), (Sizes{20, 16}));
  EXPECT_EQ(bytes_of_buckets(tensors, {.first_bytes = 1000, .bytes = 12}), (Sizes{36}));
}

TEST(Buckets, WithoutALimitAreTheParameters) {
  const std::vector<FlatTensor> tensors = one_behind_the_other({4, 2, 2, 1});
  EXPECT_EQ(bytes_of_buckets(tensors, {}), (Sizes{4, 8, 8, 16}));
  EXPECT_EQ(bytes_of_buckets(tensors, {.order = BucketOrder::forward}), (Sizes{16, 8, 8, 4}));
}

// Every element of the flat buffer is in exactly one bucket, including padding between tensors.
TEST(Buckets, CoverTheFlatBufferWithItsGaps) {
  const std::vector<FlatTensor> tensors = {{0, 3}, {8, 5}, {16, 2}};
  for (const BucketOrder order : {BucketOrder::reverse, BucketOrder::forward}) {
    std::vector<Bucket> buckets =
        buckets_of(tensors, 24, fp32_bytes, {.first_bytes = 8, .bytes = 8, .order = order});
    ASSERT_EQ(buckets.size(), 3u);
    if (order == BucketOrder::reverse) std::swap(buckets.front(), buckets.back());
    std::int64_t end = 0;
    for (const Bucket& bucket : buckets) {
      EXPECT_EQ(bucket.first, end);
      EXPECT_EQ(bucket.elements, 8);
      end += bucket.elements;
    }
  }
}

TEST(Buckets, OfNothingAreNone) {
  EXPECT_TRUE(buckets_of({}, 0, fp32_bytes, {}).empty());
}

}  // namespace
}  // namespace stepgate
