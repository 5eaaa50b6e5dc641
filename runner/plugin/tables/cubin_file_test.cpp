// SPDX-License-Identifier: MIT
// The facts of a cubin are read as data, and what is none is refused.
#include "plugin/tables/cubin_file.h"

#include <gtest/gtest.h>

#include <string>

#include "plugin/library_file.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/small_cubin.h"

namespace stepgate {
namespace {

std::string fault_of(std::vector<std::byte> bytes) {
  try {
    (void)cubin_of("ln.cubin", std::move(bytes));
  } catch (const KernelLibraryError& error) {
    return error.what();
  }
  return {};
}

TEST(CubinFiles, HaveTheFactsOfTheirKernels) {
  SmallCubin small{.shared_bytes = 1024 + 160, .more_facts = fact_of_three(0x05, 128)};
  const CubinFile file = cubin_of("ln.cubin", bytes_of(small));
  EXPECT_EQ(file.capability, 90U);
  ASSERT_EQ(file.entries.size(), 1U);
  const CubinEntry& entry = entry_named(file, "ln_fwd");
  EXPECT_EQ(entry.parameter_bytes, (std::vector<std::int64_t>{8, 8, 8, 8, 8, 4, 4}));
  EXPECT_EQ(entry.shared_bytes, 160);
  EXPECT_EQ(entry.most_threads, 128);
  EXPECT_EQ(entry.threads, 0);
  EXPECT_EQ(entry.registers, 40);
  EXPECT_FALSE(entry.is_in_clusters);
  small.more_facts = fact_of_three(0x10, 64);
  EXPECT_EQ(cubin_of("a", bytes_of(small)).entries.front().threads, 64);
}

// Triton 3.4's ptxas still writes them with the architecture in the first byte.
TEST(CubinFiles, OfTheOlderAbiAreRead) {
  const CubinFile file =
      cubin_of("a", bytes_of({.flags = 0x500550, .abi = 7, .shared_bytes = 160}));
  EXPECT_EQ(file.capability, 80U);
  EXPECT_EQ(file.entries.front().shared_bytes, 160);
}

TEST(CubinFiles, ClustersAreSeen) {
  const auto is_in_clusters = [](std::vector<std::uint32_t> facts) {
    return cubin_of("a", bytes_of({.more_facts = std::move(facts)})).entries.front().is_in_clusters;
  };
  EXPECT_TRUE(is_in_clusters(fact_of_three(0x3d, 2)));
  EXPECT_FALSE(is_in_clusters(fact_of_three(0x3d, 1)));
  EXPECT_TRUE(is_in_clusters({0x00003e01}));
}

TEST(CubinFiles, WhatIsNoCubinIsRefused) {
  EXPECT_TRUE(contains(fault_of({}), "'ln.cubin' is no cubin; compile it with nvcc -cubin"));
  std::vector<std::byte> whole = bytes_of(SmallCubin{});
  for (std::size_t bytes = 0; bytes < sizeof(Elf64_Ehdr) + 6 * sizeof(Elf64_Shdr); ++bytes) {
    EXPECT_NE(fault_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)}), "")
        << bytes;
  }
  // Parameters that do not add up to what the kernel says of all are of another form.
  EXPECT_TRUE(contains(fault_of(bytes_of({.more_facts = {0x000c1704U, 0U, 9U, 8U << 18}})),
                       "tells the parameters of 'ln_fwd' in a form that this stepgate does not"));
}

TEST(CubinFiles, ALibraryIsExpectedNotACubin) {
  try {
    (void)library_of("ln.cubin", bytes_of(SmallCubin{}));
    ADD_FAILURE() << "taken";
  } catch (const KernelLibraryError& error) {
    EXPECT_TRUE(contains(error.what(), "is a cubin, which says nothing of how it is launched"));
  }
}

// Whatever is written over a byte, nothing beyond the file is read.
TEST(CubinFiles, DamagedFilesAreReadOrRefused) {
  const std::vector<std::byte> whole = bytes_of(SmallCubin{});
  int refused = 0;
  for (std::size_t place = 0; place < whole.size(); ++place) {
    std::vector<std::byte> damaged = whole;
    damaged[place] ^= std::byte{0xff};
    refused += !fault_of(std::move(damaged)).empty();
  }
  EXPECT_GT(refused, 100);
}

TEST(CubinFiles, AnotherNameIsRefusedWithTheNearest) {
  const CubinFile file = cubin_of("ln.cubin", bytes_of(SmallCubin{}));
  try {
    (void)entry_named(file, "ln_fdw");
    ADD_FAILURE() << "found";
  } catch (const KernelLibraryError& error) {
    EXPECT_TRUE(
        contains(error.what(), "'ln.cubin' has no kernel 'ln_fdw'; did you mean 'ln_fwd'?"));
  }
}

}  // namespace
}  // namespace stepgate
