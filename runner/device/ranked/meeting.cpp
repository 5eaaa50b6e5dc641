// SPDX-License-Identifier: MIT
#include "device/ranked/meeting.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/files/write_file.h"
#include "base/fnv1a.h"
#include "base/hmac_sha256.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::string_view first_word = "stepgate-ranks";
constexpr std::size_t longest_meeting = 1024;
constexpr std::string_view this_host_only = "127.0.0.1";

constexpr const char* name_a_file = "name a file that only this start uses: --rendezvous FILE";

std::string text_of(const OpenFile& file) {
  std::array<char, longest_meeting> text{};
  const ::ssize_t length = ::read(file.descriptor(), text.data(), text.size());
  return std::string(text.data(), static_cast<std::size_t>(std::max<::ssize_t>(length, 0)));
}

// Returns the words of a line with one blank between two; empty where it has another number of
// them, or an empty one.
template <std::size_t count>
std::array<std::string_view, count> words_of(std::string_view line) {
  std::array<std::string_view, count> words;
  for (std::size_t word = 0; word < count; ++word) {
    const std::size_t end = line.find(' ');
    if ((end == std::string_view::npos) != (word + 1 == count) || end == 0 || line.empty())
      return {};
    words[word] = line.substr(0, end);
    line.remove_prefix(std::min(line.size(), words[word].size() + 1));
  }
  return words;
}

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number ? std::optional(number) : std::nullopt;
}

// Both numbers are part of each proof, and the words tell the two proofs apart.
std::string proof_of_leader(const NumbersUsedOnce& once, std::string_view token) {
  return hmac_sha256(token, fmt::format("stepgate leader {} {}", once.of_rank, once.of_leader));
}
std::string proof_of(RankProof who, const NumbersUsedOnce& once, std::string_view token) {
  return hmac_sha256(token, fmt::format("stepgate rank {} {} {} {}", once.of_rank, once.of_leader,
                                        who.rank, who.count));
}

constexpr std::string_view introduces = "stepgate-rank";
constexpr std::string_view answers = "stepgate-leader";
constexpr std::string_view proves = "proof";
// The number of digits of unguessable_digits.
constexpr std::size_t digits_used_once = 32;

}  // namespace

std::string text_of(const Meeting& meeting) {
  return fmt::format("{} {}:{} {}\n", first_word, meeting.host, meeting.port, meeting.token);
}

std::optional<Meeting> read_meeting(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  const auto [word, address, token] = words_of<3>(text);
  const std::size_t colon = address.rfind(':');
  if (word != first_word || colon == std::string_view::npos || colon == 0) return std::nullopt;
  constexpr int last_port = 65535;
  const auto port = number_in(address.substr(colon + 1));
  if (!port || *port <= 0 || *port > last_port) return std::nullopt;
  return Meeting{
      .host = std::string(address.substr(0, colon)), .port = *port, .token = std::string(token)};
}

MeetingFile::MeetingFile(std::filesystem::path path, const Meeting& meeting)
    : path_(std::move(path)) {
  make_folder_of(path_);
  std::string beside = path_.string() + ".XXXXXX";
  file_ = OpenFile(::mkostemp(beside.data(), O_CLOEXEC));  // readable only by this user
  if (file_.descriptor() < 0) refuse_to_write(path_, std::strerror(errno));
  // On a file system without locks, readers cannot lock the file either and take it as it is.
  (void)::flock(file_.descriptor(), LOCK_EX | LOCK_NB);
  if (write_all(file_.descriptor(), text_of(meeting)) &&
      ::rename(beside.c_str(), path_.c_str()) == 0)
    return;
  const std::string reason = std::strerror(errno);
  ::unlink(beside.c_str());
  refuse_to_write(path_, reason);
}

MeetingFile::~MeetingFile() {
  // Removes the file, unless another start has replaced it.
  if (file_.is_at(path_)) ::unlink(path_.c_str());
}

std::optional<Meeting> read_meeting_file(const std::filesystem::path& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (file.descriptor() < 0 || ::fstat(file.descriptor(), &about) != 0) return std::nullopt;
  // A file that another user could write could direct a rank to any address.
  const bool is_own = S_ISREG(about.st_mode) && about.st_uid == ::geteuid() &&
                      (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!is_own) return std::nullopt;
  auto meeting = read_meeting(text_of(file));
  if (!meeting) return std::nullopt;
  const bool is_of_this_host =
      meeting->host == this_host_only || meeting->host == name_of_this_host();
  const bool has_ended = is_of_this_host && ::flock(file.descriptor(), LOCK_SH | LOCK_NB) == 0;
  return has_ended ? std::nullopt : meeting;
}

std::vector<std::filesystem::path> places_to_meet() {
  std::vector<std::filesystem::path> places;
  const char* own = std::getenv("XDG_RUNTIME_DIR");
  struct stat about {};
  const bool is_own = own != nullptr && *own == '/' && ::stat(own, &about) == 0 &&
                      S_ISDIR(about.st_mode) && about.st_uid == ::geteuid();
  if (is_own) places.emplace_back(own);
  places.emplace_back("/tmp");
  return places;
}

std::unique_ptr<TemporaryFolder> make_private_folder() {
  std::string reason;
  for (const std::filesystem::path& place : places_to_meet()) {
    try {
      return std::make_unique<TemporaryFolder>(place);
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  throw RequestError("ranks have no folder to meet in: " + reason, name_a_file);
}

std::vector<OpenFile> private_folders() {
  using Changed = std::pair<std::int64_t, std::int64_t>;
  std::vector<std::pair<Changed, OpenFile>> found;
  for (const std::filesystem::path& place : places_to_meet()) {
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(place, unreadable)) {
      if (!entry.path().filename().string().starts_with(temporary_folder_prefix)) continue;
      OpenFile folder(::open(entry.path().c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      struct stat about {};
      if (folder.descriptor() < 0 || ::fstat(folder.descriptor(), &about) != 0) continue;
      const bool is_private =
          about.st_uid == ::geteuid() && (about.st_mode & (S_IRWXG | S_IRWXO)) == 0;
      if (is_private)
        found.emplace_back(Changed(about.st_mtim.tv_sec, about.st_mtim.tv_nsec), std::move(folder));
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &decltype(found)::value_type::first);
  std::vector<OpenFile> folders;
  for (auto& [changed, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

std::string socket_name(const LaunchedAs& as) {
  if (as.job.empty())
    throw RequestError(fmt::format("{} does not say which job this is", name_of(as.launcher)),
                       name_a_file);
  // The name of a job may have any letters and any length.
  return fmt::format("ranks-{:016x}", fnv1a(as.job, fnv1a(name_of(as.launcher))));
}

std::string name_of_this_host() {
  std::array<char, 256> host{};
  return ::gethostname(host.data(), host.size() - 1) == 0 ? host.data() : "localhost";
}

std::string introduction_of(std::string_view of_rank) {
  return fmt::format("{} {}", introduces, of_rank);
}

std::optional<std::string> number_introduced(std::string_view introduction) {
  const auto [word, once] = words_of<2>(introduction);
  const bool is_one = word == introduces && once.size() == digits_used_once;
  return is_one ? std::optional<std::string>(once) : std::nullopt;
}

std::string answer_to(const NumbersUsedOnce& once, std::string_view token) {
  return fmt::format("{} {} {}", answers, once.of_leader, proof_of_leader(once, token));
}

std::optional<std::string> proof_of_rank(std::string_view answer, std::string_view of_rank,
                                         std::string_view token, RankProof who) {
  const auto [word, of_leader, proof] = words_of<3>(answer);
  const NumbersUsedOnce once{.of_rank = std::string(of_rank), .of_leader = std::string(of_leader)};
  if (word != answers || of_leader.size() != digits_used_once ||
      !equal_in_constant_time(proof, proof_of_leader(once, token)))
    return std::nullopt;
  return fmt::format("{} {} {} {}", proves, who.rank, who.count, proof_of(who, once, token));
}

std::optional<RankProof> proven_rank(std::string_view line, const NumbersUsedOnce& once,
                                     std::string_view token) {
  const auto [word, rank, count, proof] = words_of<4>(line);
  const auto which = number_in(rank);
  const auto all = number_in(count);
  if (word != proves || !which || !all) return std::nullopt;
  const RankProof who{.rank = *which, .count = *all};
  const bool is_proven = equal_in_constant_time(proof, proof_of(who, once, token));
  return is_proven ? std::optional(who) : std::nullopt;
}

}  // namespace stepgate
