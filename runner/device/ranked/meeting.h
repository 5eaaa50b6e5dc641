// SPDX-License-Identifier: MIT
// The address of rank 0 among a launcher's processes, in a file whose path all of them know.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

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

// A random token of 128 bits.
std::string make_token();

// The path in the user's runtime folder, or a name with the user's id below /tmp. Throws
// RequestError where the launcher provides no common name for its processes.
std::filesystem::path default_meeting_file(const LaunchedAs&);

// A file that exists as long as this object. It is created atomically and readable only by this
// user.
class MeetingFile {
 public:
  // Throws RequestError.
  MeetingFile(std::filesystem::path, const Meeting&);
  ~MeetingFile();
  MeetingFile(const MeetingFile&) = delete;
  MeetingFile& operator=(const MeetingFile&) = delete;

 private:
  std::filesystem::path path_;
  std::string text_;
};

// Reads a file of this user; nullopt where there is none or it belongs to another user.
std::optional<Meeting> read_meeting_file(const std::filesystem::path&);

}  // namespace stepgate
