// SPDX-License-Identifier: MIT
// Files that are no libraries of kernels are refused without running anything of them.
#include "plugin/library_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "base/files/temporary_folder.h"
#include "plugin/testing/contains.h"

namespace stepgate {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string words_against(const std::filesystem::path& path) {
  try {
    (void)read_library(path);
  } catch (const KernelLibraryError& error) {
    return error.what();
  }
  return {};
}

class LibraryFiles : public testing::Test {
 protected:
  std::filesystem::path written(const std::string& bytes) {
    const auto path = folder_.path() / "lib.so";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(LibraryFiles, HasItsFunctionsAndIdentity) {
  const LibraryFile file = read_library(STEPGATE_FAKE_KERNELS);
  for (const char* function : {"layer_norm", "add", "crashes"})
    EXPECT_TRUE(contains(file.functions, function));
  EXPECT_TRUE(contains(identity_of(file), "kernels.so "));
  EXPECT_EQ(identity_of(file).size() - identity_of(file).find(' '), 17U);
  EXPECT_NO_THROW(require_function(file, "layer_norm"));
  try {
    require_function(file, "layernorm");
    ADD_FAILURE() << "found";
  } catch (const KernelLibraryError& error) {
    EXPECT_TRUE(contains(error.what(), "exports no 'layernorm'; did you mean 'layer_norm'?"));
  }
}

TEST_F(LibraryFiles, AnotherByteIsAnotherIdentity) {
  std::string bytes = bytes_of(STEPGATE_FAKE_KERNELS);
  const std::string first = identity_of(read_library(written(bytes)));
  bytes += '\0';
  EXPECT_NE(identity_of(read_library(written(bytes))), first);
}

TEST_F(LibraryFiles, WhatIsNoLibraryIsRefused) {
  EXPECT_TRUE(contains(words_against(folder_.path() / "nowhere.so"), "no file '"));
  EXPECT_TRUE(contains(words_against(folder_.path()), "is no file"));
  EXPECT_TRUE(contains(words_against(written("no library")), "link it with -shared"));
  EXPECT_TRUE(contains(words_against(written("")), "link it with -shared"));
  // A shared library of something else.
  EXPECT_TRUE(contains(words_against(STEPGATE_FAKE_LIBRARY), "STEPGATE_KERNEL_LIBRARY"));
}

TEST_F(LibraryFiles, AnotherInterfaceIsRefused) {
  EXPECT_TRUE(contains(words_against(STEPGATE_OTHER_KERNELS),
                       "of ABI 99, and this stepgate has ABI 1; build it again"));
}

// Whatever is written over a byte, nothing is read beyond the file.
TEST_F(LibraryFiles, DamagedFilesAreReadOrRefused) {
  const std::string whole = bytes_of(STEPGATE_FAKE_KERNELS);
  constexpr std::size_t header = 64;
  for (std::size_t place = 0; place < header; ++place) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0xff);
    (void)words_against(written(damaged));
  }
  for (const std::size_t bytes : {std::size_t{1}, header - 1, header, whole.size() / 2}) {
    EXPECT_NE(words_against(written(whole.substr(0, bytes))), "") << bytes;
  }
}

}  // namespace
}  // namespace stepgate
