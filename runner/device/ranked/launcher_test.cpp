// SPDX-License-Identifier: MIT
#include "device/ranked/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

using Set = std::map<std::string, std::string>;

std::optional<LaunchedAs> launched(const Set& set) {
  return launched_as([&](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Set& set) {
  try {
    launched(set);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

const Set torchrun{{"RANK", "3"},        {"LOCAL_RANK", "1"},
                   {"WORLD_SIZE", "4"},  {"LOCAL_WORLD_SIZE", "2"},
                   {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
const Set slurm{{"SLURM_PROCID", "2"}, {"SLURM_LOCALID", "2"}, {"SLURM_NTASKS", "4"},
                {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}, {"SLURM_STEP_NUM_NODES", "1"}};
const Set open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "2"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                   {"PMIX_NAMESPACE", "prterun-host-9@1"}};

Set with(Set set, const Set& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}
Set without(Set set, const std::string& name) {
  set.erase(name);
  return set;
}

TEST(Launchers, SayWhichRankThisIs) {
  EXPECT_EQ(launched({}), std::nullopt);
  EXPECT_EQ(launched(torchrun), (LaunchedAs{Launcher::torchrun, 3, 1, 4, false, "29500"}));
  EXPECT_EQ(launched(with(torchrun, {{"LOCAL_WORLD_SIZE", "4"}})),
            (LaunchedAs{Launcher::torchrun, 3, 1, 4, true, "29500"}));
  // A start after a failure has the same port, and must not meet what is left of the one before.
  EXPECT_EQ(launched(with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "2"}}))->job, "29500.2");
  EXPECT_EQ(launched(slurm), (LaunchedAs{Launcher::slurm, 2, 2, 4, true, "7.1"}));
  EXPECT_EQ(launched(with(slurm, {{"SLURM_STEP_NUM_NODES", "2"}}))->on_one_host, false);
  EXPECT_EQ(launched(without(slurm, "SLURM_STEP_NUM_NODES"))->on_one_host, false);
  EXPECT_EQ(launched(open_mpi),
            (LaunchedAs{Launcher::open_mpi, 1, 1, 2, true, "prterun-host-9@1"}));
}

TEST(Launchers, OfOneProcessAreNone) {
  EXPECT_EQ(launched(with(torchrun, {{"WORLD_SIZE", "1"}, {"RANK", "0"}, {"LOCAL_RANK", "0"}})),
            std::nullopt);
  // Tests a batch script that srun has not started, and torchrun inside it.
  const Set script = without(slurm, "SLURM_STEP_ID");
  EXPECT_EQ(launched(script), std::nullopt);
  EXPECT_EQ(launched(with(script, torchrun))->launcher, Launcher::torchrun);
  // Tests one task that starts four ranks.
  const Set one_task =
      with(slurm, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "1"}});
  EXPECT_EQ(launched(with(one_task, torchrun))->launcher, Launcher::torchrun);
}

TEST(Launchers, ThatAreTwoAreRefusedByName) {
  EXPECT_EQ(refusal(with(torchrun, slurm)),
            "this is a process of torchrun, rank 3 of 4, and of Slurm, rank 2 of 4; unset "
            "SLURM_PROCID if torchrun is the one, and the other's otherwise");
  EXPECT_NE(refusal(with(slurm, open_mpi)).find("of Slurm, rank 2 of 4, and of Open MPI"),
            std::string::npos);
}

TEST(Launchers, ThatDoNotSayEverythingAreRefusedWithWhatIsMissing) {
  EXPECT_EQ(refusal(without(torchrun, "LOCAL_RANK")),
            "RANK and WORLD_SIZE of torchrun are set, and LOCAL_RANK is not; start it with "
            "torchrun, or unset RANK and WORLD_SIZE");
  EXPECT_EQ(refusal({{"SLURM_PROCID", "0"}}),
            "SLURM_PROCID of Slurm is set, and SLURM_LOCALID and SLURM_NTASKS are not; start it "
            "with Slurm, or unset SLURM_PROCID");
  EXPECT_NE(refusal(without(open_mpi, "OMPI_COMM_WORLD_SIZE")), "");
}

TEST(Launchers, ThatMakeNoSenseAreRefused) {
  for (const char* wrong : {"", "x", "-1", "4x", "99999999999", "1.5", " 1"})
    EXPECT_NE(refusal(with(torchrun, {{"RANK", wrong}})).find("RANK is '"), std::string::npos)
        << wrong;
  EXPECT_NE(refusal(with(torchrun, {{"WORLD_SIZE", "0"}})), "");
  EXPECT_EQ(refusal(with(torchrun, {{"RANK", "4"}})),
            "RANK=4, LOCAL_RANK=1 and WORLD_SIZE=4 cannot be together; they are a launcher's to "
            "set: unset them, or let the launcher do it");
}

}  // namespace
}  // namespace stepgate
