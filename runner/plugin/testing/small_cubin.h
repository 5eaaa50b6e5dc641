// SPDX-License-Identifier: MIT
// The bytes of the smallest cubin with one kernel, laid out as nvcc 13.0 does and without code.
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stepgate {

struct SmallCubin {
  std::string entry = "ln_fwd";
  std::vector<std::uint32_t> parameter_bytes = {8, 8, 8, 8, 8, 4, 4};
  std::uint32_t flags = 0x6005a04;  // compute capability 9.0
  unsigned char abi = 8;
  std::uint64_t shared_bytes = 1024;  // of which 1024 are the system's
  std::vector<std::uint32_t> more_facts = {};
  std::uint32_t registers = 40;  // of a thread
};

// A fact of three numbers of .nv.info: the most threads (0x05), the threads (0x10), the blocks of a
// cluster (0x3d).
inline std::vector<std::uint32_t> fact_of_three(std::uint32_t fact, std::uint32_t first) {
  return {0x000c0004U | fact << 8, first, 1, 1};
}

inline std::vector<std::byte> bytes_of(const SmallCubin& cubin) {
  std::vector<std::uint32_t> info = cubin.more_facts;
  std::uint32_t offset = 0;
  for (std::size_t index = 0; index < cubin.parameter_bytes.size(); ++index) {
    const std::uint32_t bytes = cubin.parameter_bytes[index];
    offset = (offset + bytes - 1) / bytes * bytes;
    info.insert(info.end(), {0x000c1704U, 0U, static_cast<std::uint32_t>(index) | offset << 16,
                             bytes << 18 | 0x1f000U});
    offset += bytes;
  }
  info.push_back(0x1903U | offset << 16);

  std::string names(1, '\0');
  const auto named = [&](const std::string& name) {
    const std::size_t at = names.size();
    names += name + '\0';
    return static_cast<std::uint32_t>(at);
  };
  constexpr std::size_t sections = 6, symbols = 2, strings = 1;
  std::array<Elf64_Shdr, sections> section{};
  std::array<Elf64_Sym, symbols> symbol{};
  symbol[1].st_name = named(cubin.entry);
  symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol[1].st_other = 0x10;
  symbol[1].st_shndx = 3;
  section[strings].sh_name = named(".strtab");
  section[strings].sh_type = SHT_STRTAB;
  section[2].sh_name = named(".symtab");
  section[2].sh_type = SHT_SYMTAB;
  section[2].sh_link = strings;
  section[2].sh_size = sizeof symbol;
  section[3].sh_name = named(".nv.info." + cubin.entry);
  section[3].sh_type = SHT_LOPROC;
  section[3].sh_size = info.size() * sizeof(std::uint32_t);
  section[4].sh_name = named(".nv.shared." + cubin.entry);
  section[4].sh_type = SHT_NOBITS;
  section[4].sh_size = cubin.shared_bytes;
  const std::array<std::uint32_t, 3> of_all{0x00082f04U, 1U, cubin.registers};  // of symbol 1
  section[5].sh_name = named(".nv.info");
  section[5].sh_type = SHT_LOPROC;
  section[5].sh_size = sizeof of_all;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = cubin.abi;
  header.e_type = ET_EXEC;
  header.e_machine = EM_CUDA;
  header.e_flags = cubin.flags;
  header.e_shnum = sections;
  header.e_shstrndx = strings;
  header.e_shoff = sizeof header;
  section[2].sh_offset = header.e_shoff + sizeof section;
  section[3].sh_offset = section[2].sh_offset + sizeof symbol;
  section[5].sh_offset = section[3].sh_offset + section[3].sh_size;
  section[strings].sh_offset = section[5].sh_offset + section[5].sh_size;

  std::vector<std::byte> bytes;
  const auto add = [&](const void* from, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  add(&header, sizeof header);
  add(&section, sizeof section);
  add(&symbol, sizeof symbol);
  add(info.data(), section[3].sh_size);
  add(of_all.data(), sizeof of_all);
  add(names.data(), names.size());
  return bytes;
}

inline void write_small_cubin(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = bytes_of(SmallCubin{});
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// A launch of a layer_norm in a cubin beside the table.
inline void write_table_of(const std::filesystem::path& file, const std::string& entry,
                           const std::string& cubin = "ln.cubin") {
  std::ofstream(file)
      << "cubin = \"" << cubin << "\"\nentry = \"" << entry << "\"\ngrid = \"rows\"\nblock = 128\n"
      << "arguments = [\"x\", \"weight\", \"bias\", \"y\", \"statistics\", \"columns:i32\", "
         "\"epsilon:f32\"]\n";
}

}  // namespace stepgate
