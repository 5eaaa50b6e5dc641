// SPDX-License-Identifier: MIT
// `stepgate gate --program` on a training loop whose CUDA and PyTorch are faked: what is planted
// into HEAD is found and named, and identical programs pass.
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Words = std::vector<std::string>;

const std::string programs = STEPGATE_SOURCE_DIR "/tests/programs";

std::string in_a_month() {
  const std::time_t then = std::time(nullptr) + 30 * 86'400;
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&then));
  return text.data();
}

class ProgramGate : public CommandLine {
 protected:
  void SetUp() override {
    program_ = text_of(programs + "/fake_gated.py");
    write("p.toml", "claim = \"c\"\nprogram = { command = [\"" STEPGATE_PYTHON
                    "\", \"train.py\"], timeout_s = 60, env = { FAKE_CUDA = \"" FAKE_CUDA
                    "\", PYTHONPATH = \"" +
                        programs +
                        "/fake_torch\", PYTHONDONTWRITEBYTECODE = \"1\" } }\n"
                        "[variant.small]\n[expect]\nwaits = \"small.host_waits_per_step <= 9\"\n");
    side("base", "", "");
    side("head", "", "");
  }
  // Writes the program of a side, with `to` in the place of `from`.
  void side(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = program_;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    std::filesystem::create_directories(place() / name);
    write(name + "/train.py", text);
  }
  void head(const std::string& from, const std::string& to) const { side("head", from, to); }

  std::string budget = "10";  // seconds of timing

  Finished gate(const Words& more = {"--only", "counts"}) const {
    const EnvironmentVariable cupti("STEPGATE_CUPTI", FAKE_CUDA);
    Words words{"gate",   "--program", "p.toml",   "--base", "base",
                "--head", "head",      "--budget", budget};
    words.insert(words.end(), more.begin(), more.end());
    return stepgate(words);
  }

 private:
  std::string program_;
};

const std::string here = "pass  # HERE";
const Words times{"--only", "time", "--margin", "3%"};

TEST_F(ProgramGate, TakesTheMarginOfTheBaseFolderAndNotOfHead) {
  for (const char* repository : {".git/HEAD", "base/.git/HEAD", "head/.git/HEAD"})
    write(repository, "");
  write("stepgate.toml", "margin = \"50%\"\n");
  write("head/stepgate.toml", "margin = \"50%\"\n");
  EXPECT_TRUE(contains(gate().out, "; margin 2 %\n"));
  write("base/stepgate.toml", "margin = \"3%\"\n");
  const Finished run = gate();
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "; margin 3 % by base/stepgate.toml:1\n")) << run.out;
}

TEST_F(ProgramGate, AWaitThatHeadAddsBlocksWithItsLine) {
  EXPECT_EQ(gate().exit_code, 0) << gate().out;
  head(here, "cuda.fake_call(b'cudaStreamSynchronize_v3020', (ctypes.c_uint64 * 1)(0), 0)");
  const Finished blocked = gate({"--only", "counts", "--annotations", "github"});
  EXPECT_EQ(blocked.exit_code, 1) << blocked.out << blocked.err;
  EXPECT_NE(blocked.out.find("host_waits_per_step 1 -> 2"), std::string::npos) << blocked.out;
  EXPECT_NE(blocked.out.find("train.py:31 cuda.fake_call(b'cudaStreamSynchronize_v3020', "
                             "(ctypes.c_uint64 * 1)(0), 0) is new"),
            std::string::npos)
      << blocked.out;
  EXPECT_EQ(blocked.out.find("device_waits"), std::string::npos) << blocked.out;
  EXPECT_NE(blocked.out.find("train.py,line=31"), std::string::npos) << blocked.out;
}

TEST_F(ProgramGate, MoreOfAnyCountBlocksAndLessIsANote) {
  for (const std::string call : {"call(b\"cudaMalloc_v3020\", 0, 64)", "launch()",
                                 "call(b\"cudaMemcpyAsync_v3020\", 0x9000, 0x100, 64, 1, 0)"}) {
    head(here, call);
    EXPECT_EQ(gate().exit_code, 1) << call;
  }
  head("    wait()\n", "");
  const Finished fewer = gate();
  EXPECT_EQ(fewer.exit_code, 0) << fewer.out;
  EXPECT_NE(fewer.out.find("host_waits_per_step 1 -> 0"), std::string::npos) << fewer.out;
}

TEST_F(ProgramGate, MoreLaunchesBlockWithinTheSameVersionsAlone) {
  head(here, "launch()");
  const Finished other = gate({"--only", "counts", "--head-env", "TORCH_FAKE_VERSION=10"});
  EXPECT_EQ(other.exit_code, 0) << other.out;
  EXPECT_NE(other.out.find("launches_per_step 1 -> 2, not compared: torch 9.9 -> 10"),
            std::string::npos)
      << other.out;
  head(here, "wait()");
  EXPECT_EQ(gate({"--only", "counts", "--head-env", "TORCH_FAKE_VERSION=10"}).exit_code, 1);
}

TEST_F(ProgramGate, WhatDoesNotComeAgainIsUndecidedWithBothNumbers) {
  head("def train(step):",
       "is_first = not os.path.exists('seen')\nopen('seen', 'w').close()\n\n\ndef train(step):\n"
       "    if is_first:\n        wait()");
  const Finished chance = gate();
  EXPECT_EQ(chance.exit_code, 77) << chance.out;
  EXPECT_NE(chance.out.find("BASE 1, 1, 1 and HEAD 2, 1, 1 in 3 launches"), std::string::npos)
      << chance.out;
}

TEST_F(ProgramGate, AcceptedCountsAreThoseOfTheFile) {
  head(here, "wait()");
  const std::string entry =
      "[[accepted]]\nworkload = \"p/small\"\nwhat = \"host_waits_per_step\"\nwho = \"ada\"\n"
      "why = \"logging\"\nuntil = \"" +
      in_a_month() + "\"\nat_most = ";
  write("accepted.toml", entry + "\"2\"\n");
  const Words accepted{"--only", "counts", "--accepted", "accepted.toml"};
  EXPECT_EQ(gate(accepted).exit_code, 0) << gate(accepted).out;
  write("accepted.toml", entry + "\"1\"\n");
  EXPECT_EQ(gate(accepted).exit_code, 1);
}

TEST_F(ProgramGate, NoProofOfLifeIsNoPass) {
  const Finished no_cupti = gate({"--only", "counts", "--head-env", "STEPGATE_CUPTI=/nowhere"});
  EXPECT_EQ(no_cupti.exit_code, 4) << no_cupti.out;
  EXPECT_NE(no_cupti.out.find("HEAD is not counted: "), std::string::npos) << no_cupti.out;
  head("cuda.cuInit(0)", "pass");
  EXPECT_EQ(gate().exit_code, 4);
  head("    launch()\n    wait()", "    pass");
  EXPECT_EQ(gate().exit_code, 4) << gate().out;
  head("100000", "14");
  EXPECT_EQ(gate().exit_code, 4) << gate().out;
  write("head/child.py", text_of(place() / "base" / "train.py"));
  head(here,
       "import subprocess, sys\n    if step == 5:\n"
       "        subprocess.Popen([sys.executable, 'child.py'])\n        time.sleep(1)");
  const Finished two = gate();
  EXPECT_EQ(two.exit_code, 4) << two.out;
  EXPECT_NE(two.out.find("not the same steps: of BASE 20 steps from step 11 on of 1 process are "
                         "counted, of HEAD 20 steps from step 11 on of 2 processes"),
            std::string::npos)
      << two.out;
}

TEST_F(ProgramGate, AHeadThatFailsIsAFindingWithItsLastWords) {
  head("optimizer = AdamW()", "raise SystemExit('no data in /data')");
  for (const Words& only : {Words{"--only", "counts"}, times}) {
    const Finished failed = gate(only);
    EXPECT_EQ(failed.exit_code, 3) << failed.out;
    EXPECT_NE(failed.out.find("no data in /data"), std::string::npos) << failed.out;
  }
  head("100000", "40");  // counted, and too short to be timed
  EXPECT_EQ(gate().exit_code, 0);
  const Finished ended = gate(times);
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_NE(ended.out.find("let it run more steps"), std::string::npos) << ended.out;
}

TEST_F(ProgramGate, ASlowerHeadBlocksAndAFasterOneDoesNot) {
  budget = "120";  // on a busy machine
  head("0.005", "0.0055");
  const Finished slower = gate({"--margin", "3%"});
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  EXPECT_NE(slower.out.find("step time +"), std::string::npos) << slower.out;
  EXPECT_NE(slower.out.find("kernels limited by arithmetic 5 ms -> 5.5 ms of a traced step"),
            std::string::npos)
      << slower.out;
  head("0.005", "0.0045");
  const Finished faster = gate(times);
  EXPECT_EQ(faster.exit_code, 0) << faster.out << faster.err;
}

// A loader that filled its queue while its program was held would hide how slow it is.
TEST_F(ProgramGate, ALoaderThatIsSlowerThanTheStepIsNotHiddenByItsQueue) {
  const auto with_loader = [&](const std::string& name, const std::string& seconds) {
    side(name, "optimizer = AdamW()",
         "import queue, threading\nbatches = queue.Queue(8)\n\n\ndef load():\n    while True:\n"
         "        time.sleep(" +
             seconds +
             ")\n        batches.put(1)\n\n\nthreading.Thread(target=load, "
             "daemon=True).start()\noptimizer = AdamW()");
    std::string text = text_of(place() / name / "train.py");
    write(name + "/train.py", text.replace(text.find(here), here.size(), "batches.get()"));
  };
  with_loader("base", "0.003");
  with_loader("head", "0.009");
  const Finished slower = gate(times);
  EXPECT_EQ(slower.exit_code, 1) << slower.out << slower.err;
  with_loader("head", "0.003");
  const Finished same = gate(times);
  EXPECT_TRUE(same.exit_code == 0 || same.exit_code == 77) << same.out << same.err;
}

// Both ranks take as long, since they wait for each other: the trace names the one that works
// longer.
TEST_F(ProgramGate, TheSlowRankIsNamed) {
  budget = "120";
  const std::string launcher =
      "import subprocess, sys\nif 'RANK' not in os.environ:\n"
      "    ranks = [subprocess.Popen([sys.executable, 'train.py'], env=dict(os.environ, RANK=rank, "
      "LOCAL_WORLD_SIZE='2')) for rank in '01']\n"
      "    sys.exit(max(rank.wait() for rank in ranks))\n";
  side("base", "import torch\n", launcher + "import torch\n");
  std::string text = text_of(place() / "base" / "train.py");
  const std::string queued = "torch.cuda.enqueue(0.005)";
  text.replace(text.find(queued), queued.size(),
               "torch.cuda.enqueue(0.007 if os.environ['RANK'] == '1' else 0.005)\n"
               "    time.sleep(0.007)");
  write("head/train.py", text);
  const Finished ranks = gate({"--margin", "3%"});
  EXPECT_EQ(ranks.exit_code, 1) << ranks.out << ranks.err;
  EXPECT_NE(ranks.out.find("rank 1: kernels limited by arithmetic 5 ms -> 7 ms"), std::string::npos)
      << ranks.out;
}

TEST_F(ProgramGate, IdenticalProgramsAreNeverBlocked) {
  for (const std::string seed : {"1", "2", "3", "4", "5"}) {
    const Finished same = gate({"--margin", "3%", "--seed", seed});
    EXPECT_TRUE(same.exit_code == 0 || same.exit_code == 77) << seed << same.out << same.err;
  }
}

// A launcher that takes a second to end is no clock that stops early.
TEST_F(ProgramGate, TheEndOfAProgramIsNoTimeOfItsSteps) {
  for (const std::string name : {"base", "head"}) {
    side(name, "optimizer = AdamW()",
         "import signal, subprocess, sys\nif sys.argv[1:] != ['child']:\n"
         "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
         "    subprocess.Popen([sys.executable, 'train.py', 'child'])\n    time.sleep(1000)\n"
         "optimizer = AdamW()");
  }
  const Finished gated = gate(times);
  EXPECT_TRUE(gated.exit_code == 0 || gated.exit_code == 77) << gated.out << gated.err;
}

TEST_F(ProgramGate, AClockThatStopsEarlyIsNotComparable) {
  head("optimizer = AdamW()",
       "import sitecustomize\nheld = sitecustomize.stepgate_steps._ended\nreal = held._clock\n"
       "held._clock = lambda: real() // 8\noptimizer = AdamW()");
  const Finished gated = gate(times);
  EXPECT_EQ(gated.exit_code, 4) << gated.out << gated.err;
  EXPECT_NE(gated.out.find("not comparable: the clock stops before the work is done"),
            std::string::npos)
      << gated.out;
}

TEST_F(ProgramGate, StepsThatAreNoEndsOfPythonAreCountedAndNotTimed) {
  std::string text = text_of(place() / "p.toml");
  text.replace(text.find("timeout_s"), 0, "step_call = \"cudaLaunchKernel\", ");
  write("p.toml", text);
  const Finished timed = gate(times);
  EXPECT_EQ(timed.exit_code, 4) << timed.out;
  EXPECT_NE(timed.out.find("say --only counts"), std::string::npos) << timed.out;
}

TEST_F(ProgramGate, EachSideHasCachesOfItsOwn) {
  const std::string note =
      "step or open('caches', 'w').write(os.environ['TRITON_CACHE_DIR'] + "
      "os.environ['CUDA_CACHE_PATH'])";
  side("base", here, note);
  head(here, note);
  EXPECT_EQ(gate().exit_code, 0);
  const std::string of_base = text_of(place() / "base" / "caches");
  EXPECT_NE(of_base.find("/base/triton"), std::string::npos) << of_base;
  EXPECT_NE(text_of(place() / "head" / "caches").find("/head/triton"), std::string::npos);
}

TEST_F(ProgramGate, WrongRequestsAreRefused) {
  write("built.toml", holding);
  for (const Words& wrong :
       {Words{"--program", "built.toml", "--base", "base", "--head", "head"},
        {"--program", "p.toml", "--base", "nowhere", "--head", "head"},
        {"--program", "p.toml", "--base", "base"},
        {"--program", "p.toml", "--head", "head"},
        {"--program", "p.toml", "--base", "base", "--head", "head", "--only", "assertions"},
        {"--program", "p.toml", "--base", "base", "--head", "head", "--workload", "q/*"},
        {"--program", "p.toml", "--base", "base", "--head", "head", "x.toml"},
        {"--program", "none.toml", "--base", "base", "--head", "head"}}) {
    Words words{"gate"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const Finished refused = stepgate(words);
    EXPECT_EQ(refused.exit_code, 2) << wrong[1] << refused.out << refused.err;
  }
}

}  // namespace
}  // namespace stepgate
