// SPDX-License-Identifier: MIT
#include "plugin/library_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/fnv1a.h"
#include "base/text/nearest.h"
#include "include/stepgate/kernel.h"
#include "plugin/elf_reader.h"

namespace stepgate {
namespace {

constexpr std::string_view abi_symbol = "stepgate_kernel_abi";

}  // namespace

std::vector<std::byte> bytes_of_file(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    throw KernelLibraryError(fmt::format(
        "no file '{}'; paths are relative to the folder that stepgate runs in", path.string()));
  }
  if (!std::filesystem::is_regular_file(path, none)) {
    throw KernelLibraryError(
        fmt::format("'{}' is no file; name the library itself", path.string()));
  }
  constexpr std::uintmax_t most_bytes = std::uintmax_t{1} << 30;
  if (std::filesystem::file_size(path, none) > most_bytes) {
    throw KernelLibraryError(fmt::format("'{}' has more than 1 GiB", path.string()),
                             "name a library of kernels");
  }
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) {
    throw KernelLibraryError(
        fmt::format("'{}' cannot be read; look at its permissions", path.string()));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

LibraryFile read_library(const std::filesystem::path& path) {
  return library_of(path.string(), bytes_of_file(path));
}

LibraryFile library_of(std::string path, std::vector<std::byte> bytes) {
  LibraryFile file{.path = std::move(path), .bytes = std::move(bytes), .functions = {}};
  const ElfReader elf(file.bytes);
  if (elf.is_cubin()) {
    throw KernelLibraryError(
        fmt::format("'{}' is a cubin, which says nothing of how it is launched", file.path),
        "write that into a table, mine.toml, and name it instead (docs/kernels.md)");
  }
  if (!elf.is_shared_library()) {
    throw KernelLibraryError(
        fmt::format("'{}' is no 64-bit shared library; link it with -shared", file.path));
  }
  if (!elf.has_sections()) {
    throw KernelLibraryError(fmt::format("'{}' ends before its table of symbols", file.path),
                             "it was cut, or stripped of its sections: link it again");
  }
  std::optional<std::uint32_t> abi;
  for (ElfReader::Symbol& symbol : elf.exported(SHT_DYNSYM)) {
    if (symbol.is_function) {
      // Names of C++ are of templates that the library instantiates.
      if (!symbol.name.empty() && !symbol.name.starts_with("_"))
        file.functions.push_back(std::move(symbol.name));
    } else if (symbol.name == abi_symbol) {
      abi = elf.number_at(symbol.address);
    }
  }
  std::ranges::sort(file.functions);
  if (!abi) {
    throw KernelLibraryError(
        fmt::format("'{}' has no '{}'; write STEPGATE_KERNEL_LIBRARY(); in one of its files",
                    file.path, abi_symbol));
  }
  if (*abi != STEPGATE_KERNEL_ABI) {
    throw KernelLibraryError(
        fmt::format("'{}' was built with stepgate/kernel.h of ABI {}, and this stepgate has ABI "
                    "{}; build it again with the header of this stepgate",
                    file.path, *abi, STEPGATE_KERNEL_ABI));
  }
  return file;
}

std::string identity_of(const LibraryFile& file) {
  return identity_of(file.path, file.bytes);
}

std::string identity_of(const std::filesystem::path& path, const std::vector<std::byte>& bytes,
                        std::string_view also) {
  std::string all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  all += also;
  return fmt::format("{} {:016x}", path.filename().string(), fnv1a(all));
}

void require_function(const LibraryFile& file, std::string_view function) {
  if (std::ranges::find(file.functions, function) != file.functions.end()) return;
  const std::vector<std::string_view> exported(file.functions.begin(), file.functions.end());
  throw KernelLibraryError(fmt::format(
      "'{}' exports no '{}'; {}", file.path, function,
      did_you_mean(function, exported,
                   exported.empty() ? "declare it extern \"C\" STEPGATE_EXPORT"
                                    : fmt::format("it exports {}", fmt::join(exported, ", ")))));
}

}  // namespace stepgate
