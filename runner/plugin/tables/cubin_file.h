// SPDX-License-Identifier: MIT
// A cubin as a file: machine code for GPUs of one architecture, with the facts of its kernels that
// a launch must agree with. Nothing of it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

struct CubinEntry {
  std::string name;
  std::vector<std::int64_t> parameter_bytes;  // in the order of the parameters
  std::int64_t shared_bytes = 0;              // that every block has without asking
  std::int64_t most_threads = 0;              // of a block; 0: as many as a device may have
  std::int64_t threads = 0;                   // that a block must have; 0: any number
  std::int64_t registers = 0;                 // of a thread; 0: the file does not say
  bool is_in_clusters = false;
};

struct CubinFile {
  std::string path;  // as it was given, for messages
  std::vector<std::byte> bytes;
  std::uint32_t capability = 0;  // 90: it runs on 9.0 and later 9.x
  std::vector<CubinEntry> entries;
};

// The cubin that these bytes are. `path` is for messages. Throws KernelLibraryError.
CubinFile cubin_of(std::string path, std::vector<std::byte> bytes);

// Reads the file as data. Throws KernelLibraryError.
CubinFile read_cubin(const std::filesystem::path&);

// Throws KernelLibraryError, with the nearest name, if the cubin has no such kernel.
const CubinEntry& entry_named(const CubinFile&, std::string_view name);

}  // namespace stepgate
