// SPDX-License-Identifier: MIT
#include "plugin/library_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "base/fnv1a.h"
#include "base/text/nearest.h"
#include "include/stepgate/kernel.h"

namespace stepgate {
namespace {

constexpr std::string_view abi_symbol = "stepgate_kernel_abi";

// Reads structs and texts at offsets that the file itself gives, which may be anything.
class ElfReader {
 public:
  explicit ElfReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
  std::optional<Value> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(Value)) return std::nullopt;
    Value value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  // The text that ends with a zero; empty where there is none.
  std::string_view text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
    const auto* end = static_cast<const char*>(std::memchr(begin, 0, bytes_.size() - offset));
    return end == nullptr ? std::string_view() : std::string_view(begin, end);
  }

  bool is_shared_library() const {
    const auto header = at<Elf64_Ehdr>(0);
    return header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_type == ET_DYN;
  }

  bool has_sections() const {
    const auto header = at<Elf64_Ehdr>(0);
    return header->e_shnum > 0 && section(*header, header->e_shnum - 1U);
  }

  struct Symbol {
    std::string name;
    std::uint64_t address = 0;
    bool is_function = false;
  };

  // The symbols that the library defines for others.
  std::vector<Symbol> exported() const {
    std::vector<Symbol> all;
    const auto header = at<Elf64_Ehdr>(0);
    for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
      const auto table = section(*header, index);
      if (!table || table->sh_type != SHT_DYNSYM) continue;
      const auto names = section(*header, table->sh_link);
      if (!names) continue;
      const std::uint64_t count =
          std::min(table->sh_size, std::uint64_t{bytes_.size()}) / sizeof(Elf64_Sym);
      for (std::uint64_t symbol = 0; symbol < count; ++symbol) {
        const auto read = at<Elf64_Sym>(table->sh_offset + symbol * sizeof(Elf64_Sym));
        if (!read || read->st_shndx == SHN_UNDEF) continue;
        if (ELF64_ST_BIND(read->st_info) == STB_LOCAL) continue;
        const unsigned type = ELF64_ST_TYPE(read->st_info);
        if (type != STT_FUNC && type != STT_OBJECT) continue;
        all.push_back({.name = std::string(text(names->sh_offset + read->st_name)),
                       .address = read->st_value,
                       .is_function = type == STT_FUNC});
      }
    }
    return all;
  }

  // The number at an address of the loaded library.
  std::optional<std::uint32_t> number_at(std::uint64_t address) const {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::uint64_t index = 0; index < header->e_phnum; ++index) {
      const auto segment = at<Elf64_Phdr>(header->e_phoff + index * sizeof(Elf64_Phdr));
      if (!segment || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      const std::uint64_t within = address - segment->p_vaddr;
      if (within < segment->p_filesz) return at<std::uint32_t>(segment->p_offset + within);
    }
    return std::nullopt;
  }

 private:
  std::optional<Elf64_Shdr> section(const Elf64_Ehdr& header, std::uint64_t index) const {
    return at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::span<const std::byte> bytes_;
};

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

}  // namespace

LibraryFile read_library(const std::filesystem::path& path) {
  return library_of(path.string(), bytes_of_file(path));
}

LibraryFile library_of(std::string path, std::vector<std::byte> bytes) {
  LibraryFile file{.path = std::move(path), .bytes = std::move(bytes), .functions = {}};
  const ElfReader elf(file.bytes);
  if (!elf.is_shared_library()) {
    throw KernelLibraryError(
        fmt::format("'{}' is no 64-bit shared library; link it with -shared", file.path));
  }
  if (!elf.has_sections()) {
    throw KernelLibraryError(fmt::format("'{}' ends before its table of symbols", file.path),
                             "it was cut, or stripped of its sections: link it again");
  }
  std::optional<std::uint32_t> abi;
  for (ElfReader::Symbol& symbol : elf.exported()) {
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
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  return fmt::format("{} {:016x}", std::filesystem::path(file.path).filename().string(),
                     fnv1a(bytes));
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
