// SPDX-License-Identifier: MIT
// Tests that the GPU and the host make the same contents, bit for bit. Fails, never skips, where
// there is no GPU.
#include "device/cuda/step/fill_on_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "device/contents.h"
#include "device/cuda/check.h"
#include "device/cuda/handles.h"

namespace stepgate {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array dtypes{DType::fp32, DType::tf32, DType::bf16, DType::fp16};
// Most element counts are not multiples of the sizes of words and blocks.
constexpr std::array<std::int64_t, 12> element_counts{1,   2,    3,    7,       255,     256,
                                                      257, 1023, 4096, 100'003, 524'288, 1'234'567};
constexpr std::int64_t guard_bytes = 512;

Bytes on_the_host(const Buffer& buffer, std::int64_t slot, std::uint64_t seed) {
  Bytes bytes(static_cast<std::size_t>(buffer.bytes));
  fill_contents(buffer, slot, seed, bytes);
  return bytes;
}

// Fills memory that held other bytes, and checks that no byte beyond it is written.
Bytes on_the_device(const Buffer& buffer, std::int64_t slot, std::uint64_t seed) {
  constexpr int before = 0xa5;
  const auto bytes = static_cast<std::size_t>(buffer.bytes);
  const DeviceMemoryBlock memory = make_device_memory(buffer.bytes + guard_bytes);
  const CudaStream stream = make_stream();
  check(cudaMemsetAsync(memory.get(), before, bytes + guard_bytes, stream.get()), "spoil memory");
  check(fill_on_device(buffer, slot, seed, memory.get(), stream.get()), "fill a buffer");
  Bytes read(bytes + guard_bytes);
  check(
      cudaMemcpyAsync(read.data(), memory.get(), read.size(), cudaMemcpyDeviceToHost, stream.get()),
      "read a buffer back");
  check(cudaStreamSynchronize(stream.get()), "read a buffer back");
  EXPECT_EQ(std::count(read.begin() + buffer.bytes, read.end(), std::byte{before}), guard_bytes)
      << "bytes behind the buffer were written";
  read.resize(bytes);
  return read;
}

void expect_same_bits(const Buffer& buffer, std::int64_t slot, std::uint64_t seed) {
  const Bytes expected = on_the_host(buffer, slot, seed);
  const Bytes got = on_the_device(buffer, slot, seed);
  const auto [one, other] = std::mismatch(expected.begin(), expected.end(), got.begin());
  EXPECT_EQ(one, expected.end()) << buffer.bytes << " bytes of dtype "
                                 << static_cast<int>(buffer.dtype) << ", slot " << slot << ", seed "
                                 << seed << ": byte " << one - expected.begin() << " differs";
}

std::uint64_t random_seed() {
  return (std::uint64_t{std::random_device{}()} << 32) + std::random_device{}();
}

TEST(FillOnDevice, WritesZeros) {
  for (const std::int64_t bytes : {1, 4, 4099, 1 << 20}) {
    expect_same_bits({.name = "zeros", .bytes = bytes, .content = Content::zeros}, 0, 1);
  }
}

TEST(FillOnDevice, WritesTheChainOfTheHost) {
  for (const std::int64_t bytes : {512, 16 << 10, 64 << 20}) {
    expect_same_bits({.name = "chain", .bytes = bytes, .content = Content::chain}, 0,
                     random_seed());
  }
}

TEST(FillOnDevice, WritesTheWeightsOfTheHostInEveryType) {
  const std::uint64_t seed = random_seed();
  for (const DType dtype : dtypes) {
    for (const std::int64_t elements : element_counts) {
      for (const double scale : {0.25, 0.0, 1.0 / 3, 1 / std::sqrt(768.0)}) {
        const Buffer buffer{.name = "layer 0 weights",
                            .bytes = elements * bytes_of(dtype),
                            .content = Content::weights,
                            .dtype = dtype,
                            .scale = scale};
        expect_same_bits(buffer, 0, seed);
        if (HasFailure()) return;
      }
    }
  }
}

// Tests that numbers that are subnormal or too large for fp16 are rounded as on the host.
TEST(FillOnDevice, RoundsWhatHardlyFitsTheType) {
  const std::uint64_t seed = random_seed();
  for (const DType dtype : dtypes) {
    for (const double scale : {1e-45, 1e-40, 3e-8, 1e-6, 6e-5, 65'504.0, 131'000.0, 3e38, 1e39}) {
      const Buffer buffer{.name = "hard",
                          .bytes = 200'001 * bytes_of(dtype),
                          .content = Content::weights,
                          .dtype = dtype,
                          .scale = scale};
      expect_same_bits(buffer, 0, seed);
    }
  }
}

// With centres, a missing rounding between multiplication and addition would show.
TEST(FillOnDevice, WritesTheWeightsOfEveryPart) {
  const std::uint64_t seed = random_seed();
  std::mt19937_64 random(seed);
  const auto number = [&](double most) {
    return std::uniform_real_distribution<double>(-most, most)(random);
  };
  for (const DType dtype : dtypes) {
    for (const int parts : {1, 2, 7, 63, 64, 65, 128, 300}) {
      Buffer buffer{.name = "parameters", .content = Content::weights, .dtype = dtype};
      std::int64_t elements = 0;
      for (int part = 0; part < parts; ++part) {
        // Some parts are empty, most small, a few larger than one wave of blocks.
        const auto size =
            static_cast<std::int64_t>(random() % 8 == 0 ? random() % 100'000 : random() % 50);
        buffer.parts.push_back({size, part % 3 == 0 ? 0.0 : number(2), number(0.5)});
        elements += size;
      }
      // Elements that no part covers are zero.
      buffer.bytes = (elements + (parts % 2)) * bytes_of(dtype);
      SCOPED_TRACE(std::to_string(parts) + " parts");
      expect_same_bits(buffer, 0, seed);
      if (HasFailure()) return;
    }
  }
}

TEST(FillOnDevice, WritesTheNumbersOfAnotherBuffer) {
  Buffer buffer{.name = "masters",
                .bytes = 1001 * 4,
                .content = Content::weights,
                .scale = 0.5,
                .numbers_of = "weights"};
  expect_same_bits(buffer, 0, 3);
  const Bytes masters = on_the_device(buffer, 0, 3);
  buffer.name = "weights";
  buffer.numbers_of.clear();
  EXPECT_EQ(on_the_device(buffer, 0, 3), masters);
}

TEST(FillOnDevice, WritesThePayloadOfEverySlot) {
  const std::uint64_t seed = random_seed();
  for (const std::int64_t elements : element_counts) {
    for (const std::int64_t slot : {0, 1, 5}) {
      expect_same_bits({.name = "batch", .bytes = 4 * elements, .content = Content::payload}, slot,
                       seed);
    }
  }
  // Bytes after the last whole word are zero. A payload is fp32, whatever the dtype of the buffer.
  for (const std::int64_t bytes : {1, 3, 4098, 4099}) {
    expect_same_bits(
        {.name = "batch", .bytes = bytes, .content = Content::payload, .dtype = DType::bf16}, 1,
        seed);
  }
  EXPECT_NE(on_the_device({.name = "batch", .bytes = 64, .content = Content::payload}, 0, seed),
            on_the_device({.name = "batch", .bytes = 64, .content = Content::payload}, 1, seed));
}

// Each thread of the largest grid writes several elements.
TEST(FillOnDevice, WritesLargeBuffers) {
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    const Buffer buffer{.name = "large",
                        .bytes = 40'000'003 * bytes_of(dtype),
                        .content = Content::weights,
                        .dtype = dtype,
                        .scale = 0.02};
    expect_same_bits(buffer, 0, 1);
  }
}

TEST(FillOnDevice, WritesNothingWhereThereIsNothing) {
  EXPECT_EQ(fill_on_device({.name = "empty", .content = Content::weights}, 0, 1, nullptr, nullptr),
            cudaSuccess);
}

}  // namespace
}  // namespace stepgate
