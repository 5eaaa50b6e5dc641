// SPDX-License-Identifier: MIT
// libFuzzer: reads bytes as a cubin, as Triton's metadata beside it or as an expression of its
// launch, whichever they begin like. Whatever they are, nothing beyond them is read.
#include <cstring>
#include <string_view>
#include <vector>

#include "base/require.h"
#include "plugin/library_file.h"
#include "plugin/tables/cubin_file.h"
#include "plugin/tables/cubin_launch.h"
#include "plugin/tables/size_expression.h"
#include "plugin/testing/small_cubin.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

constexpr std::string_view metadata =
    R"({"name": "ln_fwd", "num_warps": 4, "shared": 2048, "num_ctas": 1, "global_scratch_size": 0})";

void read_as_cubin(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  const CubinFile file = cubin_of("fuzzed", {bytes, bytes + text.size()});
  for (const CubinEntry& entry : file.entries) {
    require(!entry.name.empty() && entry.name.size() < text.size(), "a name is within the file");
    require(entry.shared_bytes >= 0 && entry.threads >= 0 && entry.most_threads >= 0,
            "numbers of a kernel are not negative");
    require(entry.parameter_bytes.size() < text.size(), "every parameter is within the file");
  }
}

void read_as_metadata(std::string_view text) {
  CubinLaunch launch{.metadata = "fuzzed"};
  take_metadata(launch, text);
  require(launch.block.size() == 1 && value_of(launch.block.front(), {}) >= 0 &&
              value_of(launch.shared, {}) >= 0,
          "a launch has the numbers of its metadata");
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int seed) {
  static const std::vector<std::byte> cubin = bytes_of(SmallCubin{});
  constexpr std::string_view expression = "max(ceil(rows / 4), 2 * (columns - 1))";
  if (size > 1 || cubin.size() > most) return LLVMFuzzerMutate(data, size, most);
  constexpr unsigned kinds = 3;
  const void* const from[kinds] = {cubin.data(), metadata.data(), expression.data()};
  const std::size_t sizes[kinds] = {cubin.size(), metadata.size(), expression.size()};
  std::memcpy(data, from[seed % kinds], sizes[seed % kinds]);
  return sizes[seed % kinds];
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool begins = [] {
    require(cubin_of("whole", bytes_of(SmallCubin{})).entries.size() == 1,
            "the first input is taken");
    read_as_metadata(metadata);
    return true;
  }();
  require(begins, "the first input is taken");
  const std::string_view text = fuzzed_text(data, size);
  const std::vector<NamedNumber> names{{"rows", 10}, {"columns", 768}};
  try {
    if (text.starts_with(ELFMAG))
      read_as_cubin(text);
    else if (text.starts_with('{'))
      read_as_metadata(text);
    else
      (void)value_of(text, names);
  } catch (const KernelLibraryError& error) {
    require(error.what()[0] != 0, "a refusal says why");
  }
  return 0;
}
