// SPDX-License-Identifier: MIT
#include "device/ranked/meeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/files/write_file.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::string_view first_word = "stepgate-ranks";
constexpr std::size_t longest_meeting = 1024;

std::string text_of_own_file(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  struct stat about {};
  std::array<char, longest_meeting> text{};
  ::ssize_t length = 0;
  // The file must belong to this user: another user's file could direct a rank to any address.
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::geteuid())
    length = ::read(file, text.data(), text.size());
  ::close(file);
  return std::string(text.data(), static_cast<std::size_t>(std::max<::ssize_t>(length, 0)));
}

}  // namespace

std::string text_of(const Meeting& meeting) {
  return fmt::format("{} {}:{} {}\n", first_word, meeting.host, meeting.port, meeting.token);
}

std::optional<Meeting> read_meeting(std::string_view text) {
  if (!text.starts_with(first_word) || !text.ends_with('\n')) return std::nullopt;
  text.remove_prefix(first_word.size());
  text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  const std::size_t blank = text.rfind(' ');
  if (!text.starts_with(' ') || colon == std::string_view::npos || blank < colon)
    return std::nullopt;
  const std::string_view digits = text.substr(colon + 1, blank - colon - 1);
  Meeting meeting{.host = std::string(text.substr(1, colon - 1)),
                  .port = 0,
                  .token = std::string(text.substr(blank + 1))};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), meeting.port);
  constexpr int last_port = 65535;
  const bool is_right = error == std::errc() && end == digits.data() + digits.size() &&
                        meeting.port > 0 && meeting.port <= last_port && !meeting.host.empty() &&
                        !meeting.token.empty();
  return is_right ? std::optional(meeting) : std::nullopt;
}

std::string make_token() {
  std::random_device device;
  std::string token;
  for (int part = 0; part < 4; ++part) token += fmt::format("{:08x}", std::uint32_t{device()});
  return token;
}

std::filesystem::path default_meeting_file(const LaunchedAs& as) {
  if (as.job.empty()) {
    throw RequestError(fmt::format("{} does not say which job this is", name_of(as.launcher)),
                       "name a file that only this start uses: --rendezvous FILE");
  }
  std::string name = fmt::format("stepgate-ranks-{}-{}", ::geteuid(), as.job);
  for (char& letter : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (!is_plain && letter != '-' && letter != '.') letter = '_';
  }
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  return std::filesystem::path(own != nullptr && *own != 0 ? own : "/tmp") / name;
}

MeetingFile::MeetingFile(std::filesystem::path path, const Meeting& meeting)
    : path_(std::move(path)), text_(text_of(meeting)) {
  make_folder_of(path_);
  std::string beside = path_.string() + ".XXXXXX";
  const int file = ::mkostemp(beside.data(), O_CLOEXEC);  // readable only by this user
  if (file < 0) refuse_to_write(path_, std::strerror(errno));
  const bool is_written = write_all(file, text_);
  ::close(file);
  if (is_written && ::rename(beside.c_str(), path_.c_str()) == 0) return;
  const std::string reason = std::strerror(errno);
  ::unlink(beside.c_str());
  refuse_to_write(path_, reason);
}

MeetingFile::~MeetingFile() {
  // Removes the file, unless another start has replaced it.
  if (text_of_own_file(path_) == text_) ::unlink(path_.c_str());
}

std::optional<Meeting> read_meeting_file(const std::filesystem::path& path) {
  return read_meeting(text_of_own_file(path));
}

}  // namespace stepgate
