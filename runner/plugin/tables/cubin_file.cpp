// SPDX-License-Identifier: MIT
// The form of what follows is NVIDIA's, as nvcc 13.0 writes it; cuobjdump --dump-elf prints it.
#include "plugin/tables/cubin_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "base/text/nearest.h"
#include "plugin/elf_reader.h"
#include "plugin/library_file.h"

namespace stepgate {
namespace {

// Since this version of the ABI the architecture is in the second byte of the flags.
constexpr unsigned char abi_with_wide_flags = 8;
constexpr unsigned char is_kernel = 0x10;  // in st_other

// From this architecture on, the first bytes of a block's shared memory are the system's, which the
// sections of kernels have and limits leave out.
constexpr std::uint32_t first_with_reserved = 90;
constexpr std::int64_t reserved_bytes = 1024;

// A record of .nv.info, and of .nv.info.KERNEL: how its value is written, which fact it is, and a
// number or the bytes of the value that follow.
struct InfoRecord {
  std::uint8_t form;
  std::uint8_t fact;
  std::uint16_t number;
};
constexpr std::uint8_t with_bytes = 4;

namespace facts {
constexpr std::uint8_t most_threads = 0x05;    // three numbers
constexpr std::uint8_t threads = 0x10;         // three numbers
constexpr std::uint8_t parameter = 0x17;       // ParameterRecord
constexpr std::uint8_t all_parameters = 0x19;  // the bytes of all
constexpr std::uint8_t cluster = 0x3d;         // three numbers
constexpr std::uint8_t in_clusters = 0x3e;
constexpr std::uint8_t registers = 0x2f;  // RegistersRecord; in .nv.info
}  // namespace facts

struct ParameterRecord {
  std::uint32_t unused;
  std::uint16_t ordinal;
  std::uint16_t offset;
  std::uint32_t bytes_above_18_bits;
};
struct RegistersRecord {
  std::uint32_t symbol;
  std::uint32_t of_a_thread;
};
// More than any file has.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;
using Three = std::array<std::uint32_t, 3>;

std::int64_t product(const Three& three) {
  constexpr std::int64_t most = 1 << 20;  // more than any block has
  std::int64_t value = 1;
  for (const std::uint32_t one : three) value = std::min<std::int64_t>(value * one, most);
  return value;
}

// The registers of a thread, by the index of the kernel's symbol.
std::map<std::uint64_t, std::int64_t> registers_in(const ElfReader& elf,
                                                   const Elf64_Shdr& section) {
  std::map<std::uint64_t, std::int64_t> all;
  std::uint64_t at = std::min(section.sh_offset, most_bytes);
  const std::uint64_t end = at + std::min(section.sh_size, most_bytes);
  while (at < end) {
    const auto record = elf.at<InfoRecord>(at);
    if (!record) break;
    at += sizeof(InfoRecord);
    if (record->form != with_bytes) continue;
    const auto registers = elf.at<RegistersRecord>(at);
    if (registers && record->fact == facts::registers)
      all[registers->symbol] = registers->of_a_thread;
    at += record->number;
  }
  return all;
}

class EntryReader {
 public:
  EntryReader(const ElfReader& elf, const Elf64_Shdr& section, CubinEntry& entry)
      : elf_(elf),
        entry_(entry),
        at_(std::min(section.sh_offset, most_bytes)),
        end_(at_ + std::min(section.sh_size, most_bytes)) {}

  // Whether all was read.
  bool read() {
    while (at_ < end_) {
      const auto record = elf_.at<InfoRecord>(at_);
      if (!record) return false;
      at_ += sizeof(InfoRecord);
      if (!take(*record)) return false;
      if (record->form == with_bytes) at_ += record->number;
    }
    std::int64_t end = 0;
    for (const auto& [ordinal, parameter] : parameters_) {
      if (ordinal != entry_.parameter_bytes.size() || parameter.offset < end) return false;
      const std::int64_t bytes = parameter.bytes_above_18_bits >> 18;
      entry_.parameter_bytes.push_back(bytes);
      end = parameter.offset + bytes;
    }
    return end == all_parameters_;
  }

 private:
  bool take(const InfoRecord& record) {
    const bool has_bytes = record.form == with_bytes;
    switch (record.fact) {
      case facts::parameter:
        return has_bytes && parameter();
      case facts::all_parameters:
        all_parameters_ = record.number;
        return true;
      case facts::most_threads:
        return has_bytes && three([&](const Three& most) { entry_.most_threads = product(most); });
      case facts::threads:
        return has_bytes && three([&](const Three& exactly) { entry_.threads = product(exactly); });
      case facts::cluster:
        return has_bytes && three([&](const Three& blocks) {
                 if (product(blocks) > 1) entry_.is_in_clusters = true;
               });
      case facts::in_clusters:
        entry_.is_in_clusters = true;
        return true;
      default:
        return true;
    }
  }

  bool parameter() {
    const auto one = elf_.at<ParameterRecord>(at_);
    if (one) parameters_[one->ordinal] = *one;
    return one.has_value();
  }

  template <class Take>
  bool three(const Take& take) {
    const auto numbers = elf_.at<Three>(at_);
    if (numbers) take(*numbers);
    return numbers.has_value();
  }

  const ElfReader& elf_;
  CubinEntry& entry_;
  std::uint64_t at_, end_;
  std::map<std::uint16_t, ParameterRecord> parameters_;
  std::int64_t all_parameters_ = 0;
};

}  // namespace

CubinFile cubin_of(std::string path, std::vector<std::byte> bytes) {
  CubinFile file{.path = std::move(path), .bytes = std::move(bytes), .entries = {}};
  const ElfReader elf(file.bytes);
  if (!elf.is_cubin()) {
    throw KernelLibraryError(
        fmt::format("'{}' is no cubin; compile it with nvcc -cubin -arch=sm_90", file.path));
  }
  if (!elf.has_sections())
    throw KernelLibraryError(fmt::format("'{}' ends before its table of sections", file.path),
                             "it was cut: compile it again");
  const Elf64_Ehdr header = *elf.header_of_64_bits();
  const bool is_wide = header.e_ident[EI_ABIVERSION] >= abi_with_wide_flags;
  file.capability = (is_wide ? header.e_flags >> 8 : header.e_flags) & 0xff;
  const std::vector<ElfReader::Section> sections = elf.sections();
  std::map<std::uint64_t, std::int64_t> registers;
  for (const ElfReader::Section& section : sections)
    if (section.name == ".nv.info") registers = registers_in(elf, section.header);
  for (const ElfReader::Symbol& symbol : elf.exported(SHT_SYMTAB)) {
    if (!symbol.is_function || (symbol.other & is_kernel) == 0 || symbol.name.empty()) continue;
    CubinEntry entry{.name = symbol.name, .parameter_bytes = {}};
    if (const auto own = registers.find(symbol.index); own != registers.end())
      entry.registers = own->second;
    for (const ElfReader::Section& section : sections) {
      if (section.name == ".nv.info." + entry.name) {
        if (EntryReader(elf, section.header, entry).read()) continue;
        throw KernelLibraryError(
            fmt::format("'{}' tells the parameters of '{}' in a form that this stepgate does not "
                        "know",
                        file.path, entry.name),
            "use a newer stepgate, or write a library (docs/kernels.md)");
      }
      if (section.name == ".nv.shared." + entry.name) {
        const std::int64_t reserved = file.capability >= first_with_reserved ? reserved_bytes : 0;
        entry.shared_bytes = std::max<std::int64_t>(
            static_cast<std::int64_t>(std::min(section.header.sh_size, most_bytes)) - reserved, 0);
      }
    }
    file.entries.push_back(std::move(entry));
  }
  std::ranges::sort(file.entries, {}, &CubinEntry::name);
  return file;
}

CubinFile read_cubin(const std::filesystem::path& path) {
  return cubin_of(path.string(), bytes_of_file(path));
}

const CubinEntry& entry_named(const CubinFile& file, std::string_view name) {
  const auto found = std::ranges::find(file.entries, name, &CubinEntry::name);
  if (found != file.entries.end()) return *found;
  std::vector<std::string_view> names;
  for (const CubinEntry& entry : file.entries) names.push_back(entry.name);
  throw KernelLibraryError(
      fmt::format("'{}' has no kernel '{}'; {}", file.path, name,
                  did_you_mean(name, names,
                               names.empty() ? "it has none: declare it __global__"
                                             : fmt::format("it has {}", fmt::join(names, ", ")))));
}

}  // namespace stepgate
