// SPDX-License-Identifier: MIT
// Where the ranks of a launcher meet, and how they prove that they belong together.
//
// On one host, rank 0 listens on a UNIX socket in a folder that only this user can enter, and the
// system tells each end which user is at the other. Elsewhere rank 0 listens on a port and writes
// host, port and a random token to a file that all ranks see. Both ends then prove that they know
// the token; it is never sent.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/open_file.h"
#include "base/files/temporary_folder.h"
#include "device/ranked/launcher.h"

namespace stepgate {

struct Meeting {
  std::string host;
  int port = 0;
  std::string token;  // secret that proves that a process belongs to this start
  bool operator==(const Meeting&) const = default;
};

std::string text_of(const Meeting&);
// Returns nullopt for invalid text, such as half of a meeting.
std::optional<Meeting> read_meeting(std::string_view text);

// A file that exists as long as this object. It is created atomically, readable only by this user,
// and locked, which tells readers that its writer is alive.
class MeetingFile {
 public:
  // Throws RequestError.
  MeetingFile(std::filesystem::path, const Meeting&);
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

// Reads a file of this user. Returns nullopt where there is none, where another user owns it or may
// write it, and where its writer was a process of this host that has ended. Whether a writer of
// another host is alive is not known: not every file system shares locks between hosts.
std::optional<Meeting> read_meeting_file(const std::filesystem::path&);

// The folders that hold folders for meetings, the preferred one first: the user's runtime folder,
// if it is one of this user, and /tmp.
std::vector<std::filesystem::path> places_to_meet();
// Makes an empty folder that only this user can enter, under a name that nobody can take before.
// Throws RequestError.
std::unique_ptr<TemporaryFolder> make_private_folder();
// The folders of this user that nobody else can enter, the newest first, opened.
std::vector<OpenFile> private_folders();
// The name of the socket in such a folder, the same for all ranks of this start. Throws
// RequestError where the launcher provides no common name for its processes.
std::string socket_name(const LaunchedAs&);

std::string name_of_this_host();

// Both ends of a connection first prove themselves. Each chooses a number that is used once, so
// that no proof can be said again on another connection. A process that connects gets a proof of
// rank 0, and learns nothing by which it could prove itself.
//
//   other rank: introduction_of(its number)
//   rank 0:     answer_to(both numbers)
//   other rank: proof_of_rank(answer, its number)
struct RankProof {
  int rank = 0;
  int count = 0;
  bool operator==(const RankProof&) const = default;
};
struct NumbersUsedOnce {
  std::string of_rank;
  std::string of_leader;
};
std::string introduction_of(std::string_view of_rank);
// The number in an introduction; nullopt for a line that is none.
std::optional<std::string> number_introduced(std::string_view introduction);
std::string answer_to(const NumbersUsedOnce&, std::string_view token);
// nullopt for an answer by which rank 0 does not prove itself.
std::optional<std::string> proof_of_rank(std::string_view answer, std::string_view of_rank,
                                         std::string_view token, RankProof);
// nullopt for a line that proves nothing.
std::optional<RankProof> proven_rank(std::string_view line, const NumbersUsedOnce&,
                                     std::string_view token);

}  // namespace stepgate
