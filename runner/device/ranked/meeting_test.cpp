// SPDX-License-Identifier: MIT
#include "device/ranked/meeting.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/hmac_sha256.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

TEST(Meetings, AreReadAsTheyWereWritten) {
  const Meeting meeting{.host = "node-1", .port = 40000, .token = unguessable_digits()};
  EXPECT_EQ(read_meeting(text_of(meeting)), meeting);
}

TEST(Meetings, ThatAreCutOffOrSomethingElseAreNone) {
  const std::string text = text_of(Meeting{.host = "node-1", .port = 40000, .token = "0123"});
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_EQ(read_meeting(text.substr(0, length)), std::nullopt) << length;
  for (const char* wrong :
       {"stepgate-ranks node:0 t\n", "stepgate-ranks node:65536 t\n", "stepgate-ranks node t\n",
        "stepgate-ranks :5 t\n", "stepgate-ranks node:5 \n", "stepgate-ranksnode:5 t\n",
        "stepgate-ranks t node:5\n", "other node:5 t\n", "stepgate-ranks node:5 t t\n",
        "stepgate-ranks  node:5 t\n", "stepgate-ranks node:-5 t\n", "\n"})
    EXPECT_EQ(read_meeting(wrong), std::nullopt) << wrong;
}

TEST(Meetings, InAFolderAreNamedAfterTheJob) {
  const auto name = [](const std::string& job) { return socket_name({.job = job}); };
  EXPECT_NE(name("29500"), name("29501"));
  EXPECT_NE(name("a/b"), name("a_b"));
  EXPECT_EQ(name("29500"), name("29500"));
  EXPECT_NE(name("29500"), socket_name({.launcher = Launcher::slurm, .job = "29500"}));
  EXPECT_EQ(name("../" + std::string(1000, 'x')).find('/'), std::string::npos);
  EXPECT_LT(name(std::string(1000, 'x')).size(), 40U);
  EXPECT_THROW(name(""), RequestError);
}

class MeetingFiles : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "meet";
  const Meeting here_{.host = name_of_this_host(), .port = 7, .token = "t"};
};

TEST_F(MeetingFiles, AreThereAsLongAsTheirWriter) {
  {
    const MeetingFile file(path_, here_);
    EXPECT_EQ(read_meeting_file(path_), here_);
    EXPECT_EQ(read_meeting_file(path_), here_) << "reading does not take its lock away";
    struct stat about {};
    ASSERT_EQ(::stat(path_.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600U);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MeetingFiles, OfAnEndedProcessAreNoneOnItsHost) {
  for (const char* host : {"127.0.0.1", here_.host.c_str()}) {
    std::ofstream(path_) << text_of(Meeting{.host = host, .port = 7, .token = "t"});
    EXPECT_EQ(read_meeting_file(path_), std::nullopt) << host;
  }
  const Meeting elsewhere{.host = "another-host.invalid", .port = 7, .token = "t"};
  std::ofstream(path_) << text_of(elsewhere);
  EXPECT_EQ(read_meeting_file(path_), elsewhere) << "its writer cannot be seen from here";
}

TEST_F(MeetingFiles, ThatAreReplacedStay) {
  auto first = std::make_unique<MeetingFile>(path_, here_);
  const Meeting later{.host = "127.0.0.1", .port = 8, .token = "u"};
  const MeetingFile second(path_, later);
  first.reset();
  EXPECT_EQ(read_meeting_file(path_), later);
}

TEST_F(MeetingFiles, ThatOthersCouldWriteAreNone) {
  const MeetingFile file(path_, here_);
  for (const mode_t mode : {0620U, 0602U}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    EXPECT_EQ(read_meeting_file(path_), std::nullopt) << mode;
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(read_meeting_file(path_), here_);
  const std::filesystem::path fifo = folder_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(read_meeting_file(fifo), std::nullopt);
  EXPECT_EQ(read_meeting_file(folder_.path()), std::nullopt);
}

TEST(PrivateFolders, AreThisUsersAloneAndTheNewestFirst) {
  const TemporaryFolder runtime;
  const char* kept = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = kept == nullptr ? "" : kept;
  ::setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  EXPECT_EQ(places_to_meet().front(), runtime.path());
  const auto is_found = [](const std::filesystem::path& path) {
    const auto folders = private_folders();
    return std::ranges::any_of(folders, [&](const OpenFile& one) { return one.is_at(path); });
  };
  const auto own = make_private_folder();
  EXPECT_EQ(own->path().parent_path(), runtime.path());
  EXPECT_TRUE(is_found(own->path()));
  // Names that somebody else could take.
  const std::filesystem::path open = runtime.path() / "stepgate.abcdef";
  std::filesystem::create_directory(open);
  for (const mode_t mode : {0750U, 0701U, 0777U}) {
    ASSERT_EQ(::chmod(open.c_str(), mode), 0);
    EXPECT_FALSE(is_found(open)) << mode;
  }
  ASSERT_EQ(::chmod(open.c_str(), 0700), 0);
  EXPECT_TRUE(is_found(open));
  const std::filesystem::path link = runtime.path() / "stepgate.ghijkl";
  std::filesystem::create_directory_symlink(open, link);
  std::ofstream(runtime.path() / "stepgate.mnopqr") << "a file";
  EXPECT_FALSE(is_found(link));
  constexpr uid_t another_user = 65534;
  if (::geteuid() == 0 && ::chown(open.c_str(), another_user, another_user) == 0) {
    EXPECT_FALSE(is_found(open));
  }
  // Other processes of this user may make folders in /tmp meanwhile.
  const auto newest = make_private_folder();
  std::filesystem::last_write_time(
      own->path(), std::filesystem::last_write_time(newest->path()) - std::chrono::seconds(1));
  const auto place_of = [folders = private_folders()](const std::filesystem::path& path) {
    return std::ranges::find_if(folders, [&](const OpenFile& one) { return one.is_at(path); }) -
           folders.begin();
  };
  EXPECT_LT(place_of(newest->path()), place_of(own->path()));
  // A runtime folder that is none of this user is no place.
  ::setenv("XDG_RUNTIME_DIR", (runtime.path() / "none").c_str(), 1);
  EXPECT_EQ(places_to_meet().front(), "/tmp");
  if (kept == nullptr) {
    ::unsetenv("XDG_RUNTIME_DIR");
  } else {
    ::setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
  }
}

class Proofs : public testing::Test {
 protected:
  const NumbersUsedOnce once_{.of_rank = unguessable_digits(), .of_leader = unguessable_digits()};
  const std::string answer_ = answer_to(once_, "token");
};

TEST_F(Proofs, AreMutual) {
  EXPECT_EQ(number_introduced(introduction_of(once_.of_rank)), once_.of_rank);
  const auto line = proof_of_rank(answer_, once_.of_rank, "token", {.rank = 3, .count = 4});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(proven_rank(*line, once_, "token"), (RankProof{.rank = 3, .count = 4}));
  for (const std::string& said : {answer_, *line})
    EXPECT_EQ(said.find("token"), std::string::npos) << "it is never sent";
}

TEST_F(Proofs, OfAnotherTokenOrAnotherConnectionAreNone) {
  const RankProof who{.rank = 1, .count = 2};
  EXPECT_EQ(proof_of_rank(answer_, once_.of_rank, "other", who), std::nullopt);
  EXPECT_EQ(proof_of_rank(answer_, unguessable_digits(), "token", who), std::nullopt);
  std::string changed = answer_;
  changed.back() = changed.back() == '0' ? '1' : '0';
  EXPECT_EQ(proof_of_rank(changed, once_.of_rank, "token", who), std::nullopt);
  const std::string line = proof_of_rank(answer_, once_.of_rank, "token", who).value();
  EXPECT_EQ(proven_rank(line, once_, "other"), std::nullopt);
  const NumbersUsedOnce later{.of_rank = once_.of_rank, .of_leader = unguessable_digits()};
  EXPECT_EQ(proven_rank(line, later, "token"), std::nullopt);
  EXPECT_EQ(proven_rank("proof 0" + line.substr(line.find(' ', 6)), once_, "token"), std::nullopt)
      << "of another rank";
}

// The proof that rank 0 gives to anybody must not be one of a rank.
TEST_F(Proofs, OfRankZeroAreNoneOfAnotherRank) {
  const std::string of_leader = answer_.substr(answer_.rfind(' ') + 1);
  EXPECT_EQ(proven_rank("proof 1 2 " + of_leader, once_, "token"), std::nullopt);
}

TEST_F(Proofs, ThatAreNoneAreRefused) {
  for (const char* wrong : {"", " ", "stepgate-rank", "stepgate-rank ", "stepgate-rank 12",
                            "stepgate-leader 1 2", "0123456789abcdef 1 2"})
    EXPECT_EQ(number_introduced(wrong), std::nullopt) << wrong;
  for (const char* wrong : {"", "proof", "proof 1 2", "proof 1 2 ", "proof 1 2 3 4", "proof x 2 3",
                            "proof 1 99999999999 3"})
    EXPECT_EQ(proven_rank(wrong, once_, "token"), std::nullopt) << wrong;
}

}  // namespace
}  // namespace stepgate
