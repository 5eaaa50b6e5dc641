// SPDX-License-Identifier: MIT
// A kernel of a cubin in the place of one of the catalogue: whether its launch fits, and the
// numbers of a launch. open_cubin.h loads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "plugin/open_library.h"
#include "plugin/tables/cubin_file.h"
#include "plugin/tables/cubin_launch.h"

namespace stepgate {

// The numbers of one launch.
struct CubinCall {
  struct Argument {
    std::size_t operand = no_operand;  // whose address it is; no_operand: the bits below
    std::uint64_t bits = 0;            // the lower ones, as many as the parameter has
  };
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  // that are asked for beside those that a block has anyway
  std::vector<Argument> arguments;
};

// A kernel of a cubin whose launch fits it: known as data, loaded nowhere.
class Cubin {
 public:
  // Throws KernelLibraryError where the launch does not fit the cubin, or the kernel of the
  // catalogue that it stands for.
  Cubin(CubinLaunch, CubinFile, const Kernel&);

  const CubinFile& file() const { return file_; }
  const CubinLaunch& launch() const { return launch_; }
  // The file's name and a digest of its bytes and of the launch.
  std::string identity() const;

  // Throws KernelUnsupported for a shape, attribute or dtype beyond what the table says, and
  // KernelLibraryError for a launch that the device cannot make.
  CubinCall call(const KernelRequest&, const DeviceFacts&) const;
  // The same where no device that runs the cubin could make the launch.
  void require_launchable(const KernelRequest&) const;

 private:
  const CubinEntry& entry() const { return entry_named(file_, launch_.entry); }
  void require_parameters() const;
  void require_runs_on(const DeviceFacts&) const;
  void require_resources(const CubinCall&, const KernelRequest&, const DeviceFacts&) const;
  std::string who() const;

  CubinLaunch launch_;
  CubinFile file_;
};

// Reads the cubin, and Triton's metadata where the launch names some; paths are relative to the
// folder. Nothing is loaded. Throws KernelLibraryError.
Cubin read_cubin_of(CubinLaunch, const std::filesystem::path& folder, const Kernel&);

}  // namespace stepgate
