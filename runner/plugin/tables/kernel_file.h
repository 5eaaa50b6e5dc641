// SPDX-License-Identifier: MIT
// The file of a user's kernel, as scenarios and `stepgate kernel check` name it: a library with a
// function, or the table of a launch of a cubin or for tvm-ffi. It is read as data; nothing of it
// runs.
#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kernel.h"
#include "plugin/library_file.h"
#include "plugin/tables/cubin.h"
#include "plugin/tables/tvm_ffi.h"

namespace stepgate {

using LaunchOfTable = std::variant<CubinLaunch, TvmFfiLaunch>;

// A cubin, and a library of tvm-ffi, is given by the table of its launch; another library by
// itself.
bool is_table(const std::filesystem::path&);

// Throws RequestError, with all faults of the table at their places.
LaunchOfTable read_launch(const std::filesystem::path& table);

// The file itself, and those that a table names, which lie beside it. Throws as read_launch.
std::vector<std::filesystem::path> files_of_kernel(const std::filesystem::path&);

using KernelFile = std::variant<LibraryFile, Cubin, TvmFfi>;

// The file with the kernel that stands for this one of the catalogue. A table names its function
// itself, and `function` is the kernel's name then. Throws RequestError where the file has no such
// kernel: KernelLibraryError, or the faults of a table.
KernelFile read_kernel(const std::filesystem::path&, const std::string& function, const Kernel&);

// Throws KernelLibraryError, and KernelUnsupported, where the sizes that a table says are none of
// this launch, or none that any device could launch. A library answers for itself, when it runs.
void require_launchable(const KernelFile&, const KernelRequest&);

// The name of the file, or of the one that a table names, and a digest of all that makes it another
// kernel.
std::string identity_of(const KernelFile&);

// The name of the file, and a digest of its bytes and of those that it names, whatever kernels it
// has. Throws RequestError where it is no library and no table.
std::string identity_of_files(const std::filesystem::path&);
// The digest alone, hexadecimal.
std::string digest_of_files(const std::filesystem::path&);

}  // namespace stepgate
