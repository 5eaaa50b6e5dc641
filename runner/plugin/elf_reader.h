// SPDX-License-Identifier: MIT
// Reads structs and texts of an ELF file, which may be anything, at offsets that the file itself
// gives. Nothing beyond its bytes is read.
#pragma once

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stepgate {

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
    const auto header = header_of_64_bits();
    return header && header->e_type == ET_DYN;
  }
  // Machine code for a GPU of NVIDIA.
  bool is_cubin() const {
    const auto header = header_of_64_bits();
    return header && header->e_type == ET_EXEC && header->e_machine == EM_CUDA;
  }

  // Whether the table of sections is within the file.
  bool has_sections() const {
    const auto header = header_of_64_bits();
    return header && header->e_shnum > 0 && section(*header, header->e_shnum - 1U);
  }

  struct Section {
    std::string_view name;
    Elf64_Shdr header;
  };
  std::vector<Section> sections() const {
    std::vector<Section> all;
    const auto header = header_of_64_bits();
    if (!header) return all;
    const auto names = section(*header, header->e_shstrndx);
    for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
      const auto one = section(*header, index);
      if (!one) continue;
      all.push_back({names ? text(names->sh_offset + one->sh_name) : std::string_view(), *one});
    }
    return all;
  }

  struct Symbol {
    std::string name;
    std::uint64_t index = 0;  // in its table
    std::uint64_t address = 0;
    bool is_function = false;
    unsigned char other = 0;  // st_other: a machine's own flags among it
  };

  // The symbols that are defined here, and not for this file alone, in tables of that type.
  std::vector<Symbol> exported(std::uint32_t type_of_table) const {
    std::vector<Symbol> all;
    const auto header = header_of_64_bits();
    if (!header) return all;
    for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
      const auto table = section(*header, index);
      if (!table || table->sh_type != type_of_table) continue;
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
                       .index = symbol,
                       .address = read->st_value,
                       .is_function = type == STT_FUNC,
                       .other = read->st_other});
      }
    }
    return all;
  }

  // The number at an address of the loaded library.
  std::optional<std::uint32_t> number_at(std::uint64_t address) const {
    const auto header = header_of_64_bits();
    for (std::uint64_t index = 0; header && index < header->e_phnum; ++index) {
      const auto segment = at<Elf64_Phdr>(header->e_phoff + index * sizeof(Elf64_Phdr));
      if (!segment || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      const std::uint64_t within = address - segment->p_vaddr;
      if (within < segment->p_filesz) return at<std::uint32_t>(segment->p_offset + within);
    }
    return std::nullopt;
  }

  // The header of a little-endian file of 64 bits.
  std::optional<Elf64_Ehdr> header_of_64_bits() const {
    const auto header = at<Elf64_Ehdr>(0);
    const bool is_one = header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
                        header->e_ident[EI_CLASS] == ELFCLASS64 &&
                        header->e_ident[EI_DATA] == ELFDATA2LSB;
    return is_one ? header : std::nullopt;
  }

 private:
  std::optional<Elf64_Shdr> section(const Elf64_Ehdr& header, std::uint64_t index) const {
    return at<Elf64_Shdr>(header.e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::span<const std::byte> bytes_;
};

}  // namespace stepgate
