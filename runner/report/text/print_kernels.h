// SPDX-License-Identifier: MIT
// Prints kernels of the catalogue, libraries that have them, and whether such a kernel is the one
// that it stands for.
#pragma once

#include <iosfwd>
#include <string>

#include "kernels/kernel.h"
#include "plugin/check_kernel.h"
#include "plugin/library_file.h"
#include "plugin/tables/cubin_file.h"

namespace stepgate {

// A line for every kernel: its name, sizes and operands.
void print_kernels(std::ostream&);

// Prints what the kernel computes, and the sizes, attributes and operands that a library is told
// of it.
void print_kernel(std::ostream&, const Kernel&);

// Prints a CUDA source to begin with: a library whose kernel compiles, supports bf16 and computes
// nothing yet.
void print_new_kernel(std::ostream&, const Kernel&);

// Prints the CMakeLists.txt of a project with that source.
void print_new_project(std::ostream&, const Kernel&);

// Prints what the library exports, without running anything of it.
void print_library(std::ostream&, const LibraryFile&);

// Prints the kernels of the cubin and what they are launched with.
void print_cubin(std::ostream&, const CubinFile&);

// A line for every fault, and the verdict in the last one.
void print_kernel_check(std::ostream&, const KernelCheck&);

// Writes one JSON object, a kernel_check_line of docs/json_schema.json.
void write_kernel_check_json(std::ostream&, const KernelCheck&);

}  // namespace stepgate
