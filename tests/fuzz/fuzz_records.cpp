// SPDX-License-Identifier: MIT
// libFuzzer: reads bytes as what an attached process has recorded: the numbers of the header, then
// names, records and lines of source, each behind its length. Whatever they are, reading ends, and
// counts no more than there is.
#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/files/open_file.h"
#include "base/files/temporary_folder.h"
#include "program/count_steps.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

// Takes up to this many bytes from the front.
std::string_view taken(std::string_view& text, std::size_t bytes) {
  const std::string_view front = text.substr(0, bytes);
  text.remove_prefix(front.size());
  return front;
}
// Takes a part whose length two bytes say.
std::string_view next_part(std::string_view& text) {
  std::uint16_t length = 0;
  const std::string_view bytes = taken(text, sizeof length);
  std::memcpy(&length, bytes.data(), bytes.size());
  return taken(text, length);
}

void write_at(const OpenFile& file, std::uint64_t offset, std::string_view text) {
  require(::pwrite(file.descriptor(), text.data(), text.size(), static_cast<off_t>(offset)) ==
              static_cast<ssize_t>(text.size()),
          "a file is written");
}

OpenFile fresh_file(const std::filesystem::path& path) {
  OpenFile file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  require(file.descriptor() >= 0, "there is room for a file");
  return file;
}

void write_records(const std::filesystem::path& path, std::string_view& text) {
  using namespace attached;
  RecordFileHeader header{};
  // The numbers come before the texts, which names stand for.
  const std::string_view numbers = taken(text, offsetof(RecordFileHeader, cupti_path));
  std::memcpy(&header, numbers.data(), numbers.size());
  header.magic = record_file_magic;
  const std::string_view texts = next_part(text);
  std::memcpy(header.cupti_path, texts.data(),
              std::min(texts.size(), sizeof header - offsetof(RecordFileHeader, cupti_path)));
  const OpenFile file = fresh_file(path);
  constexpr std::uint64_t first = header_bytes + names_bytes;
  require(::ftruncate(file.descriptor(), first + 2 * chunk_bytes) == 0, "a file has a size");
  write_at(file, 0, {reinterpret_cast<const char*>(&header), sizeof header});
  write_at(file, header_bytes, next_part(text));
  write_at(file, first, next_part(text).substr(0, 2 * chunk_bytes));
}

std::string part_of(std::string_view text) {
  const auto length = static_cast<std::uint16_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length).append(text);
}

// The first input is a launch and a wait in each of thirty steps, since no record files are stored.
std::string steps_to_begin_with() {
  using namespace attached;
  RecordFileHeader header{};
  header.process = 7;
  header.chunks = 1;
  std::string records;
  std::uint64_t sequence = 0;
  for (int step = 0; step < 30; ++step) {
    for (const RecordKind kind : {record_kind(CallKind::launch),
                                  record_kind(CallKind::wait_for_stream), RecordKind::mark}) {
      const Record record{++sequence << 24 | static_cast<std::uint64_t>(kind) << 16,
                          static_cast<std::uint64_t>(MarkSource::optimizer), 5, 1, 1};
      records.append(reinterpret_cast<const char*>(&record), sizeof record);
    }
  }
  return std::string(reinterpret_cast<const char*>(&header),
                     offsetof(RecordFileHeader, cupti_path)) +
         part_of("") + part_of("") + part_of(records) +
         "#1\n  File \"train.py\", line 3 in main\n#2\n";
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned int) {
  static const std::string first = steps_to_begin_with();
  if (size > 1 || first.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, first.data(), first.size());
  return first.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  std::string_view text = fuzzed_text(data, size);
  write_records(folder.path() / "7-0.records", text);
  write_at(fresh_file(folder.path() / "7-0.lines"), 0, text);
  (void)all_windows_are_over(read_progress(folder.path()));
  for (const RecordedProcess& process : read_records(folder.path())) {
    const auto most = static_cast<std::int64_t>(process.records.size());
    for (const bool is_short : {false, true}) {
      StepChoice choice;
      if (is_short) choice.skip = 0;
      const CountedProcess counted = count_steps(process, choice);
      require(counted.steps >= 0 && counted.steps <= most, "a step has an end that was recorded");
      for (const double count : counted.mean)
        require(std::isfinite(count) && count >= 0, "a count is no less than nothing");
      if (counted.problem.empty()) require(counted.steps > 0, "counts are those of steps");
    }
  }
  return 0;
}
