// SPDX-License-Identifier: MIT
// How a kernel of a cubin is launched in the place of a kernel of the catalogue, as a table says:
//   cubin = "ln.cubin"
//   entry = "ln_fwd"
//   grid = "ceil(rows / 4)"
//   block = 128
//   shared = 0
//   arguments = ["x", "weight", "bias", "y", "statistics", "columns:i32", "epsilon:f32"]
// A cubin has no code for the host, so all that a launch needs is here or is asked of the file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"
#include "kernels/kernel.h"
#include "plugin/cubin_file.h"
#include "plugin/open_library.h"

namespace stepgate {

enum class ArgumentType { pointer, i32, i64, u32, u64, f32, f64 };

// "x" is the address of that operand and "null" no address; "columns:i32" is the value of an
// expression (size_expression.h) in that type.
struct CubinArgument {
  std::string value;
  ArgumentType type = ArgumentType::pointer;

  bool operator==(const CubinArgument&) const = default;
};

// A size or attribute that the kernel supports within limits.
struct CubinLimits {
  std::string name;
  double at_least = -std::numeric_limits<double>::infinity();
  double at_most = std::numeric_limits<double>::infinity();
  std::int64_t multiple_of = 1;

  bool operator==(const CubinLimits&) const = default;
};

struct CubinLaunch {
  std::string cubin;     // the file, as it is written
  std::string metadata;  // Triton's file beside it, which has entry, block and shared; may be empty
  std::string entry;
  // Expressions, up to three each.
  std::vector<std::string> grid;
  std::vector<std::string> block;
  std::string shared = "0";
  std::vector<CubinArgument> arguments;
  std::vector<DType> dtypes;          // that it supports; empty: all
  std::vector<CubinLimits> supports;  // of sizes and attributes that have limits

  bool operator==(const CubinLaunch&) const = default;
};

// Reads the table; adds a fault for everything that is wrong with it by itself, and then returns
// nullopt.
std::optional<CubinLaunch> read_cubin_launch(const TomlTable&, const Place&,
                                             std::vector<Diagnostic>&);

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
  // "ln_fwd<<<ceil(rows / 4), 128, 0>>>(x, y, columns:i32)"
  std::string in_words() const;

  // Throws KernelUnsupported for a shape, attribute or dtype beyond what the table says, and
  // KernelLibraryError for a launch that the device cannot make.
  CubinCall call(const KernelRequest&, const DeviceFacts&) const;

 private:
  const CubinEntry& entry() const { return entry_named(file_, launch_.entry); }

  CubinLaunch launch_;
  CubinFile file_;
};

// Reads the cubin, and Triton's metadata where the launch names some; paths are relative to the
// folder. Nothing is loaded. Throws KernelLibraryError.
Cubin read_cubin_of(CubinLaunch, const std::filesystem::path& folder, const Kernel&);

// Sets entry, block and shared from the text of Triton's metadata. Throws KernelLibraryError where
// the kernel needs more than a launch gives it: scratch memory, clusters or tensor maps.
void take_metadata(CubinLaunch&, std::string_view text);

}  // namespace stepgate
