// SPDX-License-Identifier: MIT
// A function of tvm-ffi in the place of a kernel of the catalogue: tensors and numbers in the order
// of its arguments, outputs among them, as a table says:
//   library = "libmine.so"
//   abi = "tvm-ffi"
//   function = "layer_norm"
//   arguments = ["x[rows, columns]", "weight[columns]", "y[rows, columns]", "epsilon:f64"]
// The facts of the interface are those of tvm-ffi's c_api.h and c_env_api.h. Its library is opened
// at run time: STEPGATE_TVM_FFI names it, or else the loader finds libtvm_ffi.so.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"
#include "kernels/kernel.h"
#include "plugin/library_file.h"
#include "plugin/open_library.h"
#include "plugin/tables/launch_table.h"
#include "plugin/tables/supported.h"

namespace stepgate {

struct TvmFfiLaunch {
  std::string library;  // the file, as it is written
  std::string function;
  // A tensor is an operand and the expressions of its dimensions, "x[rows, columns]"; numbers are
  // i64 or f64.
  std::vector<LaunchArgument> arguments;
  Supported supported;

  bool operator==(const TvmFfiLaunch&) const = default;
};

// Reads the table; adds a fault for everything that is wrong with it by itself, and then returns
// nullopt.
std::optional<TvmFfiLaunch> read_tvm_ffi_launch(const TomlTable&, const Place&,
                                                std::vector<Diagnostic>&);

// Reads the library as data; its functions are those for tvm-ffi, by the names without a prefix.
// Throws KernelLibraryError.
LibraryFile read_tvm_ffi_library(const std::filesystem::path&);

// A function that fits its launch. It is known as data until the first launch is prepared, which
// opens the library, and the one of tvm-ffi.
class TvmFfi {
 public:
  // The library's path is relative to the folder. Throws KernelLibraryError where the launch does
  // not fit the library, or the kernel of the catalogue that it stands for.
  TvmFfi(TvmFfiLaunch, const std::filesystem::path& folder, const Kernel&);

  // The file's name and a digest of its bytes and of the launch.
  std::string identity() const;

  // Throws KernelLibraryError, KernelUnsupported where the table's sizes are none of this launch.
  void require_launchable(const KernelRequest&) const;
  // Throws KernelLibraryError, KernelUnsupported. A launch throws KernelLibraryError, with the
  // function's own words, where the function fails or returns a tensor.
  PreparedKernel prepare(const KernelRequest&, const DeviceFacts&);

 private:
  struct Opened;

  std::string who() const;

  TvmFfiLaunch launch_;
  LibraryFile file_;
  std::shared_ptr<const Opened> opened_;
};

}  // namespace stepgate
