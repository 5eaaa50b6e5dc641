// SPDX-License-Identifier: MIT
// A shared library of kernels as a file: its bytes, what it exports and which interface it was
// built with (include/stepgate/kernel.h). Nothing of the library runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {

// A library that cannot be used, and the way out.
class KernelLibraryError : public RequestError {
 public:
  explicit KernelLibraryError(std::string fact, std::string way_out = {})
      : RequestError(std::move(fact), std::move(way_out)) {}
};

struct LibraryFile {
  std::string path;  // as it was given, for messages
  std::vector<std::byte> bytes;
  // Exported for anybody under a name of C, in alphabetical order.
  std::vector<std::string> functions;
};

// The library that these bytes are: a 64-bit ELF shared library with `stepgate_kernel_abi` of the
// interface that this build has. `path` is for messages. Throws KernelLibraryError.
LibraryFile library_of(std::string path, std::vector<std::byte> bytes);

// The bytes of a file of at most 1 GiB. Throws KernelLibraryError.
std::vector<std::byte> bytes_of_file(const std::filesystem::path&);

// Reads the file as data; the path is never searched for in a loader's folders. Throws
// KernelLibraryError.
LibraryFile read_library(const std::filesystem::path&);

// The file's name and a digest of its bytes, "libmine.so 1f0a33c2e0d94b55": two builds differ.
std::string identity_of(const LibraryFile&);
// The same of any file: the name of the path, and a digest of the bytes and of what else makes it
// another kernel.
std::string identity_of(const std::filesystem::path&, const std::vector<std::byte>&,
                        std::string_view also = {});

// Throws KernelLibraryError, with the nearest name, if the library exports no such function.
void require_function(const LibraryFile&, std::string_view function);

}  // namespace stepgate
