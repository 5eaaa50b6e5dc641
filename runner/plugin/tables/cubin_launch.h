// SPDX-License-Identifier: MIT
// How a kernel of a cubin is launched in the place of a kernel of the catalogue, as a table says:
//   cubin = "ln.cubin"
//   entry = "ln_fwd"
//   grid = "ceil(rows / 4)"
//   block = 128
//   shared = 0
//   arguments = ["x", "weight", "bias", "y", "statistics", "columns:i32", "epsilon:f32"]
// A cubin has no code for the host, so all that a launch needs is here; cubin.h holds it against
// the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/toml/toml.h"
#include "plugin/tables/launch_table.h"
#include "plugin/tables/supported.h"

namespace stepgate {

struct CubinLaunch {
  std::string cubin;     // the file, as it is written
  std::string metadata;  // Triton's file beside it, which has entry, block and shared; may be empty
  std::string entry;
  // Expressions, up to three each.
  std::vector<std::string> grid;
  std::vector<std::string> block;
  std::string shared = "0";
  std::vector<LaunchArgument> arguments;
  Supported supported;

  bool operator==(const CubinLaunch&) const = default;
};

// "ln_fwd<<<ceil(rows / 4), 128, 0>>>(x, y, columns:i32)"
std::string text_of(const CubinLaunch&);

// Reads the table; adds a fault for everything that is wrong with it by itself, and then returns
// nullopt.
std::optional<CubinLaunch> read_cubin_launch(const TomlTable&, const Place&,
                                             std::vector<Diagnostic>&);

// Sets entry, block and shared from the text of Triton's metadata. Throws KernelLibraryError where
// the kernel needs more than a launch gives it: scratch memory, clusters or tensor maps.
void take_metadata(CubinLaunch&, std::string_view text);

}  // namespace stepgate
