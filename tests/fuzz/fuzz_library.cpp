// SPDX-License-Identifier: MIT
// libFuzzer: reads bytes as a shared library of kernels. Whatever they are, nothing beyond them is
// read, and a library that is taken has names of functions that end within it.
#include <elf.h>

#include <cstring>
#include <string>

#include "base/require.h"
#include "include/stepgate/kernel.h"
#include "plugin/library_file.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

constexpr std::uint16_t sections = 2;

// The smallest library with the symbol of the interface and one function: tables behind each other.
struct SmallLibrary {
  Elf64_Ehdr header;
  Elf64_Phdr segment;
  Elf64_Shdr section[sections];
  Elf64_Sym symbol[2];
  std::uint32_t abi;
  char names[32];
};

std::string library_to_begin_with() {
  SmallLibrary file{};
  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_ident[EI_DATA] = ELFDATA2LSB;
  file.header.e_type = ET_DYN;
  file.header.e_phoff = offsetof(SmallLibrary, segment);
  file.header.e_phnum = 1;
  file.header.e_shoff = offsetof(SmallLibrary, section);
  file.header.e_shnum = sections;
  file.segment.p_type = PT_LOAD;
  file.segment.p_filesz = sizeof file;
  file.section[0].sh_type = SHT_DYNSYM;
  file.section[0].sh_offset = offsetof(SmallLibrary, symbol);
  file.section[0].sh_size = sizeof file.symbol;
  file.section[0].sh_link = 1;
  file.section[1].sh_type = SHT_STRTAB;
  file.section[1].sh_offset = offsetof(SmallLibrary, names);
  file.symbol[0].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  file.symbol[0].st_shndx = 1;
  file.symbol[0].st_value = offsetof(SmallLibrary, abi);
  file.symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  file.symbol[1].st_shndx = 1;
  constexpr char names[] = "stepgate_kernel_abi\0layer_norm";
  file.symbol[1].st_name = sizeof "stepgate_kernel_abi";
  std::memcpy(file.names, names, sizeof names);
  file.abi = STEPGATE_KERNEL_ABI;
  return {reinterpret_cast<const char*>(&file), sizeof file};
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int) {
  static const std::string first = library_to_begin_with();
  if (size > 1 || first.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, first.data(), first.size());
  return first.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool begins = [] {
    const LibraryFile whole = library_of("whole.so", bytes_of(library_to_begin_with()));
    require(whole.functions == std::vector<std::string>{"layer_norm"}, "the first input is taken");
    return true;
  }();
  require(begins, "the first input is taken");
  try {
    const LibraryFile file = library_of("fuzzed.so", bytes_of(fuzzed_text(data, size)));
    for (const std::string& function : file.functions)
      require(!function.empty() && function.size() < size, "a name is within the file");
  } catch (const KernelLibraryError& error) {
    require(std::string_view(error.what()).find("fuzzed.so") != std::string_view::npos,
            "a refusal names the file");
  }
  return 0;
}
