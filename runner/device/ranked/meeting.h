// SPDX-License-Identifier: MIT
// Where rank 0 of a launcher's processes can be found, as a file that all of them know.
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
  std::string token;  // a secret: a process without it is not ours
  bool operator==(const Meeting&) const = default;
};

std::string text_of(const Meeting&);
// Nothing where the text is none, such as half of one.
std::optional<Meeting> read_meeting(std::string_view text);

// Random, of 128 bits.
std::string make_token();

// In the user's own folder for such things, or a name of this user below /tmp. Throws RequestError
// where the launcher does not say what its processes have in common.
std::filesystem::path default_meeting_file(const LaunchedAs&);

// There as long as this lives; appears whole, and only for this user.
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

// Reads a file of this user alone; nothing where there is none, or none of this user.
std::optional<Meeting> read_meeting_file(const std::filesystem::path&);

}  // namespace stepgate
