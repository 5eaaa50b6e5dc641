// SPDX-License-Identifier: MIT
// Connects the processes of a launcher with rank 0, whoever else connects
// (device/ranked/meeting.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files/open_file.h"
#include "device/ranked/launcher.h"
#include "device/ranked/meeting.h"
#include "line/ranks/line_socket.h"

namespace stepgate {

// Connections that have not proved yet which rank they are. Beyond these the oldest is closed, of
// those that have said nothing if there are any.
constexpr std::size_t most_strangers = 64;
// The time after which each of them is closed.
constexpr std::chrono::milliseconds most_time_to_introduce{2000};

// Rank 0 waits here for the other ranks. The destructor stops listening and removes what led here.
class MeetingPoint {
 public:
  // Ranks meet in the file, if there is one, over the network or on this host alone, as the
  // launcher says; else in a folder of this user on this host. Throws RequestError.
  MeetingPoint(const std::filesystem::path& file, const LaunchedAs&);
  ~MeetingPoint();
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  // Waits up to this time for news, takes connections and what they say, and puts those that have
  // proved to be a rank whose place is free into `others`, by rank.
  void look(std::chrono::milliseconds within, std::span<std::unique_ptr<LineSocket>> others);

 private:
  struct Stranger {
    std::unique_ptr<LineSocket> socket;
    std::chrono::steady_clock::time_point deadline;
    NumbersUsedOnce once{};  // `of_rank` is empty before it has introduced itself
  };

  void listen_in_folder(const LaunchedAs&);
  void listen_on_port(const std::filesystem::path& file, bool on_one_host);
  void take_connections();
  // Hears what a stranger has said. Returns whether its connection is another rank's now, or is to
  // be closed.
  bool is_done_with(Stranger&, std::span<std::unique_ptr<LineSocket>> others) const;

  std::string token_;  // empty where the system tells which user is at the other end
  std::unique_ptr<TemporaryFolder> folder_;
  std::unique_ptr<MeetingFile> file_;
  OpenFile listener_;
  std::list<Stranger> strangers_;  // the oldest first
};

// Connects to rank 0 and waits until both have proved themselves. Whatever is in the way, such as a
// file that an earlier start has left or a connection to somebody else, is tried again until the
// time is over; then null. Throws RequestError.
std::unique_ptr<LineSocket> find_leader(const std::filesystem::path& file, const LaunchedAs&,
                                        std::chrono::milliseconds most);

}  // namespace stepgate
