// SPDX-License-Identifier: MIT
#include "program/read_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/files/open_file.h"

namespace stepgate {
namespace {

using namespace attached;

constexpr std::uint64_t largest_lines_file_bytes = 64 << 20;

// An ordinary file of this user's, which a link or a pipe in its place is not.
class RecordFile {
 public:
  explicit RecordFile(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    struct stat about {};
    if (file_.descriptor() < 0 || ::fstat(file_.descriptor(), &about) != 0) return;
    if (S_ISREG(about.st_mode) && about.st_uid == ::geteuid())
      bytes_ = static_cast<std::uint64_t>(about.st_size);
  }

  // False where the file is shorter.
  bool read(std::uint64_t offset, void* into, std::size_t bytes) const {
    auto* at = static_cast<char*>(into);
    if (offset + bytes > bytes_) return false;
    while (bytes > 0) {
      const ssize_t got = ::pread(file_.descriptor(), at, bytes, static_cast<off_t>(offset));
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

  std::uint64_t bytes() const { return bytes_; }
  std::string text(std::uint64_t most) const {
    std::string all(std::min(bytes_, most), '\0');
    return read(0, all.data(), all.size()) ? all : "";
  }

 private:
  OpenFile file_;
  std::uint64_t bytes_ = 0;
};

std::optional<RecordFileHeader> header_of(const RecordFile& file) {
  RecordFileHeader header{};
  if (!file.read(0, &header, sizeof header) || header.magic != record_file_magic)
    return std::nullopt;
  return header;
}

template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return std::string(field, ::strnlen(field, size));
}

template <std::size_t size>
std::vector<std::string> words_of(const char (&field)[size]) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < size && field[at] != '\0'; at += words.back().size() + 1)
    words.emplace_back(field + at, ::strnlen(field + at, size - at));
  return words;
}

template <std::size_t size>
std::map<std::string, std::string> notes_of(const char (&field)[size]) {
  std::map<std::string, std::string> notes;
  std::string_view text(field, ::strnlen(field, size));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t blank = line.find(' ');
    if (blank != std::string_view::npos)
      notes.emplace(line.substr(0, blank), line.substr(blank + 1));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return notes;
}

std::map<std::uint64_t, std::string> read_names(const RecordFile& file, std::uint64_t bytes) {
  std::vector<char> area(std::min(bytes, names_bytes));
  std::map<std::uint64_t, std::string> names;
  if (!file.read(header_bytes, area.data(), area.size())) return names;
  std::size_t at = 0;
  std::uint64_t words[2];
  while (at + sizeof words <= area.size()) {
    std::memcpy(words, area.data() + at, sizeof words);
    const std::uint64_t length = words[1];
    if (length > longest_name_bytes || at + sizeof words + length > area.size()) break;
    if (words[0] != 0)
      names.emplace(words[0], std::string(area.data() + at + sizeof words, length));
    at += (sizeof words + length + 7) / 8 * 8;
  }
  return names;
}

std::vector<Record> read_chunks(const RecordFile& file, std::uint64_t chunks) {
  constexpr std::uint64_t first = header_bytes + names_bytes;
  chunks = std::min(chunks, (largest_record_file_bytes - first) / chunk_bytes);
  std::vector<Record> records;
  records.reserve(std::min(chunks, file.bytes() / chunk_bytes) * records_per_chunk);
  std::vector<Record> chunk(records_per_chunk);
  for (std::uint64_t index = 0; index < chunks; ++index) {
    if (!file.read(first + index * chunk_bytes, chunk.data(), chunk_bytes)) break;
    const auto end = std::ranges::find(chunk, 0U, &Record::head);
    records.insert(records.end(), chunk.begin(), end);
  }
  std::ranges::sort(records, {}, sequence_of);
  return records;
}

std::optional<SourceLine> frame_of(std::string_view line) {
  constexpr std::string_view file = "  File \"", middle = "\", line ", in = " in ";
  if (!line.starts_with(file)) return std::nullopt;
  line.remove_prefix(file.size());
  const std::size_t quote = line.rfind(middle);
  if (quote == std::string_view::npos) return std::nullopt;
  SourceLine frame{.file = std::string(line.substr(0, quote))};
  line.remove_prefix(quote + middle.size());
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (error != std::errc() || frame.line < 1 || frame.line > std::numeric_limits<int>::max())
    return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.starts_with(in)) frame.function = line.substr(in.size());
  return frame;
}

bool is_of_a_library(const SourceLine& frame) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "/lib/python", "<"}) {
    if (frame.file.find(part) != std::string::npos) return true;
  }
  return false;
}

std::map<std::uint64_t, CallPlace> read_places(const std::filesystem::path& path) {
  const std::string all = RecordFile(path).text(largest_lines_file_bytes);
  std::map<std::uint64_t, CallPlace> places;
  for (std::size_t at = all.starts_with('#') ? 0 : std::string::npos; at != std::string::npos;) {
    const std::size_t next = all.find("\n#", at);
    const std::string_view block = std::string_view(all).substr(at + 1, next - at);
    std::uint64_t sequence = 0;
    const auto [end, error] = std::from_chars(block.data(), block.data() + block.size(), sequence);
    if (error == std::errc()) {
      const CallPlace place =
          place_of_stack(block.substr(static_cast<std::size_t>(end - block.data())));
      if (place.own.line > 0) places.emplace(sequence, place);
    }
    at = next == std::string::npos ? next : next + 1;
  }
  return places;
}

bool still_runs(std::uint64_t process) {
  std::ifstream about("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(about, line);
  const std::size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && line.find_first_of("ZX", name_end) != name_end + 2;
}

}  // namespace

CallPlace place_of_stack(std::string_view text) {
  CallPlace place;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto frame = frame_of(line);
    if (!frame) continue;
    if (!is_of_a_library(*frame)) {
      place.own = *frame;
      break;
    }
    if (place.library.line == 0) place.library = *frame;
  }
  if (place.own.line == 0) std::swap(place.own, place.library);
  return place;
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder) {
  // The program may write to the folder as well.
  constexpr std::size_t most_entries = 100'000;
  std::vector<std::filesystem::path> files;
  std::error_code unreadable;
  std::size_t entries = 0;
  for (auto entry = std::filesystem::directory_iterator(folder, unreadable);
       !unreadable && entry != std::filesystem::directory_iterator() && ++entries <= most_entries;
       entry.increment(unreadable)) {
    if (entry->path().extension() == record_file_ending) files.push_back(entry->path());
  }
  std::ranges::sort(files);
  return files;
}

std::optional<RecordedProcess> read_process(const std::filesystem::path& path, bool is_whole) {
  const RecordFile file(path);
  const auto header = header_of(file);
  if (!header) return std::nullopt;
  RecordedProcess process{.process = header->process,
                          .rank = text_of(header->rank),
                          .command = words_of(header->command),
                          .cupti_path = text_of(header->cupti_path),
                          .cupti_version = header->cupti_version,
                          .driver_version = header->driver_version,
                          .subscribed = header->subscribed,
                          .holder = text_of(header->holder),
                          .world_size = header->world_size,
                          .window_is_over = header->window_over == 1,
                          .first_dropped = header->first_dropped,
                          .notes = notes_of(header->notes)};
  if (!is_whole) return process;
  std::filesystem::path lines = path;
  lines.replace_extension(lines_file_ending);
  process.names = read_names(file, header->name_bytes);
  process.records = read_chunks(file, header->chunks);
  process.places = read_places(lines);
  const auto same = std::ranges::adjacent_find(process.records, {}, sequence_of);
  if (same != process.records.end()) {
    process.fault = fmt::format(
        "its record file is damaged: two records have the number {}; let the program leave that "
        "file alone, and run it again",
        sequence_of(*same));
  }
  return process;
}

std::vector<RecordedProcess> read_records(const std::filesystem::path& folder) {
  std::vector<RecordedProcess> all;
  for (const std::filesystem::path& path : record_files(folder)) {
    if (auto process = read_process(path)) all.push_back(std::move(*process));
  }
  std::ranges::stable_sort(all, {}, &RecordedProcess::process);
  return all;
}

std::vector<ProcessProgress> read_progress(const std::filesystem::path& folder) {
  std::vector<ProcessProgress> all;
  for (const std::filesystem::path& path : record_files(folder)) {
    if (const auto header = header_of(RecordFile(path))) {
      all.push_back({.process = header->process,
                     .rank = text_of(header->rank),
                     .world_size = header->world_size,
                     .has_begun = header->marks > 0,
                     .is_over = header->window_over == 1});
    }
  }
  return all;
}

bool all_windows_are_over(const std::vector<ProcessProgress>& all) {
  std::map<std::string, bool> ranks;      // is over
  std::map<std::uint64_t, bool> waiting;  // for a process that is no rank
  std::uint64_t wanted_ranks = 0;
  bool any = false;
  for (const ProcessProgress& each : all) {
    any = any || each.is_over;
    if (!each.rank.empty()) {
      ranks[each.rank] = ranks[each.rank] || each.is_over;
      wanted_ranks = std::max(wanted_ranks, each.world_size);
    } else {
      // A program that another one became by exec goes on in its place.
      waiting[each.process] = each.has_begun && !each.is_over;
    }
  }
  return any && ranks.size() >= wanted_ranks &&
         std::ranges::all_of(ranks, [](const auto& rank) { return rank.second; }) &&
         std::ranges::none_of(waiting,
                              [](const auto& one) { return one.second && still_runs(one.first); });
}

}  // namespace stepgate
