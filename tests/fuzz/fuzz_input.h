// SPDX-License-Identifier: MIT
// For fuzz targets only: provides the fuzzer's input as text and as a file, and checks that a text
// is unchanged after reading and writing.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/fnv1a.h"
#include "base/require.h"
#include "base/text/diagnostic.h"

namespace stepgate {

inline std::string_view fuzzed_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file in memory, since readers of files want a path and a disk would be most of the time.
class FuzzedFile {
 public:
  FuzzedFile() : descriptor_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, "the system has a file in memory");
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;
  ~FuzzedFile() { ::close(descriptor_); }

  const std::filesystem::path& with(std::string_view text) {
    require(::ftruncate(descriptor_, 0) == 0 && ::pwrite(descriptor_, text.data(), text.size(),
                                                         0) == static_cast<ssize_t>(text.size()),
            "a file in memory is written");
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

// Returns the quoted text after the first `key = `: a name for querying the reader.
inline std::string fuzzed_name(std::string_view text, std::string_view key) {
  const std::string before = std::string(key) + " = \"";
  const std::size_t found = text.find(before);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = text.substr(found + before.size());
  return std::string(rest.substr(0, rest.find('"')));
}

// Returns the result of `read`; nullopt where it refuses the text with a user's error.
template <class Read>
std::optional<std::string> unless_refused(Read&& read) {
  try {
    return read();
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

// `written_again` reads a text and writes it again, or refuses it.
template <class WrittenAgain>
std::optional<std::string> check_reads_back(std::string_view text, WrittenAgain&& written_again) {
  const std::optional<std::string> once = written_again(text);
  if (once) {
    const std::optional<std::string> twice = written_again(*once);
    require(twice.has_value(), "what was written can be read");
    require(*twice == *once, "what was read and written again reads the same");
  }
  return once;
}

// Checks a format with a digest: a text with any changed byte is refused, or has the same meaning.
template <class WrittenAgain>
void check_digested(std::string_view text, WrittenAgain&& written_again) {
  const std::optional<std::string> written = check_reads_back(text, written_again);
  if (!written) return;
  const std::uint64_t draw = fnv1a(text);
  std::string changed = *written;
  char& byte = changed[draw % changed.size()];
  byte = static_cast<char>(byte ^ static_cast<char>(1 + (draw >> 32) % 255));
  const std::optional<std::string> read = written_again(changed);
  require(!read || *read == *written, "a byte that was changed is noticed");
}

}  // namespace stepgate
