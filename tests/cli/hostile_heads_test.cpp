// SPDX-License-Identifier: MIT
// Tests `stepgate gate` with a HEAD whose `run` leaves unreadable files, writes endlessly, or
// starts processes that should outlive it. The gate ends within its limits of time and memory, with
// exit code 3 and one message, and no process of HEAD survives.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "tests/cli/command_line.h"
#include "tests/cli/processes.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using std::chrono::seconds;

struct HostileHead {
  const char* name;
  // Shell commands that replace `run`. $json is the path for its JSON; in_a_folder stops if that
  // path is not a replaceable file but, for example, a device of the machine.
  const char* does;
  std::string says;
  // A sanitized gate takes 20 s to read 64 MiB of lines on a busy machine.
  double run_seconds = sanitized ? 100 : 20;
  int exit_code = 3;
};
void PrintTo(const HostileHead& head, std::ostream* out) {
  *out << head.name;
}

class HostileHeads : public CommandLine, public testing::WithParamInterface<HostileHead> {
 protected:
  HostileHeads() {
    write("waits.toml",
          "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
          "sync = { where = \"step\", how = \"device\" }\n[variant.step]\n[expect]\n"
          "one_wait = \"step.host_waits_per_step == 1\"\n");
    script("note", "echo $PPID >>" + ids().string() + "\n");
    script("head",
           "[ \"$3\" = run ] || exec " STEPGATE_PROGRAM
           " \"$@\"\n"
           "for word; do [ \"$before\" = --json ] && json=$word; before=$word; done\n"
           "in_a_folder() { case $json in /dev/*) exit 0 ;; esac; }\n"
           "noted() { until [ -e ids ] && [ $(wc -l <ids) -ge $1 ]; do sleep 0.02; done; }\n"
           "behave() { exec " STEPGATE_PROGRAM " \"$@\"; }\n" +
               std::string(GetParam().does) + "\n");
  }

  void script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(place() / name, std::filesystem::perms::owner_all);
  }

  std::filesystem::path ids() const { return place() / "ids"; }
};

TEST_P(HostileHeads, EndTheGateInTimeWithOneSentenceAndNoProcess) {
  const auto start = std::chrono::steady_clock::now();
  ChildProcess child(STEPGATE_PROGRAM,
                     {"--baselines",
                      STEPGATE_SOURCE_DIR "/baselines",
                      "gate",
                      "--base",
                      STEPGATE_PROGRAM,
                      "--head",
                      "./head",
                      "--device",
                      "simulated",
                      "--seed",
                      "7",
                      "--run-seconds",
                      fmt::format("{}", GetParam().run_seconds),
                      "--stall-seconds",
                      "2",
                      "--report",
                      "gate.html",
                      "--junit",
                      "gate.xml",
                      "--json",
                      "gate.json",
                      "waits.toml"},
                     place());
  ASSERT_TRUE(child.ends(seconds(sanitized ? 150 : 60)));
  const Finished run = child.wait();
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, GetParam().says)) << run.out << run.err;
  EXPECT_LT(run.out.size() + run.err.size(), 4000u);
  if (!sanitized) {
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
    EXPECT_LT(run.peak_bytes, 600 << 20);
  }
  for (const char* file : {"gate.html", "gate.xml", "gate.json", "waits.toml"}) {
    const auto status = std::filesystem::symlink_status(place() / file);
    EXPECT_TRUE(std::filesystem::is_regular_file(status)) << file;
  }
  EXPECT_TRUE(contains(text_of(place() / "waits.toml"), "claim"));
  EXPECT_TRUE(all_end(processes_in(place()), seconds(2)));
  if (!exists("alive")) return;
  const auto size = std::filesystem::file_size(place() / "alive");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(std::filesystem::file_size(place() / "alive"), size);
}

const std::string nothing = "HEAD's `run` decided nothing and ended with 0";
const std::string too_late = "HEAD's `run` had not ended after 400 ms, which is what --run-seconds";
const std::vector<HostileHead> hostile_heads{
    // Files in place of the JSON output.
    {"fifo", "in_a_folder; mkfifo $json; exit 0", nothing},
    {"endless_device", "in_a_folder; ln -s /dev/zero $json; exit 0", nothing},
    {"sparse_file", "in_a_folder; truncate -s 3G $json; exit 0", nothing},
    {"socket",
     "in_a_folder; python3 -c 'import socket, sys; "
     "socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $json",
     nothing},
    {"folder", "in_a_folder; mkdir $json; exit 0", nothing},
    {"swapped",
     "in_a_folder; (./note; while :; do mkfifo $json.x; mv $json.x $json; done) & exit 0", nothing},
    // Output that is too long.
    {"endless_line", "exec tr '\\0' x </dev/zero >$json", "wrote a line of more than 4 MiB"},
    {"endless_lines",
     "exec yes \"{\\\"x\\\":\\\"$(head -c 8000 /dev/zero | tr '\\0' x)\\\"}\" >$json",
     "wrote more than 64 MiB"},
    {"endless_errors", "exec yes $(head -c 4000 /dev/zero | tr '\\0' x) >&2", too_late, 0.4},
    {"deep", "head -c 4000000 /dev/zero | tr '\\0' '[' >$json", nothing},
    {"wide",
     "printf '{\"scenario\":\"s\",\"x\":[[]' >$json; yes ,[] | head -c 4000000 | "
     "tr -d '\\n' >$json; echo ']}' >$json; exit 3",
     "HEAD's `run` ended with 3"},
    {"many_assertions",
     "printf '{\"scenario\":\"s\",\"expect\":[{}' >$json; yes ',{}' | head -c 4000000 | "
     "tr -d '\\n' >$json; echo ']}' >$json",
     "wrote more than 4 MiB of assertions"},
    {"long_texts",
     "a=$(head -c 1900 /dev/zero | tr '\\0' a); "
     "s=\"{\\\"name\\\":\\\"$a\\\",\\\"file\\\":\\\"$a\\\"}\"\n"
     "for k in 1 2 3 4; do printf '{\"scenario\":\"s\",\"expect\":[{}' >$json; yes \",$s\" | "
     "head -n 800 | tr -d '\\n' >$json; echo ']}' >$json; done",
     "wrote more than 4 MiB of assertions"},
    {"no_output", "exec >&-; sh -c './note; exec sleep 60' & exec sleep 60", too_late, 0.4},
    // Files in place of the gate's own reports.
    {"pipes_for_reports",
     "for f in gate.html gate.xml gate.json; do rm $f; mkfifo $f; done; behave \"$@\"", "PASSED",
     20, 0},
    {"links_for_reports",
     "for f in gate.html gate.xml gate.json; do rm $f; ln -s /dev/full $f; done; behave \"$@\"",
     "PASSED", 20, 0},
    {"a_link_to_the_scenario",
     "for f in gate.html gate.xml gate.json; do rm $f; ln -s waits.toml $f; done; behave \"$@\"",
     "PASSED", 20, 0},
    // HEADs that only start processes; the gate passes.
    {"new_session",
     "setsid sh -c 'trap \"\" TERM HUP; ./note; exec sleep 60' & noted 1; behave \"$@\"", "PASSED",
     20, 0},
    {"double_fork",
     "(setsid sh -c '(./note; sh -c \"./note; exec sleep 60\" &) & ./note; exit' &); noted 3; "
     "behave \"$@\"",
     "PASSED", 20, 0},
    {"forks_on",  // no process lives long
     "python3 -c 'import os, time\nos.setsid()\nwhile os.fork() == 0:\n  time.sleep(0.001)\n"
     "  open(\"alive\", \"a\").write(\".\")' & until [ -e alive ]; do sleep 0.01; done; "
     "behave \"$@\"",
     "PASSED", 20, 0},
    {"ignores_signals", "trap '' TERM INT HUP QUIT; ./note; while :; do sleep 60; done", too_late,
     0.4},
    {"stops", "./note; sh -c './note; kill -STOP $$' & noted 2; kill -STOP $$", too_late, 0.4},
    {"kills_its_supervisor",
     "setsid sh -c './note; exec sleep 60' & noted 1; kill -KILL $PPID; sleep 60",
     "HEAD's `run` ended with 137"},
    {"stops_its_supervisor",
     "setsid sh -c './note; exec sleep 60' & noted 1; ./note; kill -STOP $PPID; sleep 60", too_late,
     0.4},
    {"stops_its_supervisor_and_ends",
     "setsid sh -c './note; exec sleep 60' & noted 1; kill -STOP $PPID; behave \"$@\"", "PASSED",
     20, 0},
    {"traces_its_supervisor",  // where the system lets it
     "python3 -c 'import ctypes, os, sys, time\nos.setsid()\n"
     "ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0)\nopen(\"alive\", \"a\")\n"
     "time.sleep(60)' $PPID & until [ -e alive ]; do sleep 0.01; done; sleep 60",
     too_late, 0.4},
    {"takes_its_supervisors_descriptors",
     "setsid sh -c './note; exec sleep 60' & noted 1; python3 -c 'import resource, sys\n"
     "resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (0, 0))' $PPID; behave \"$@\"",
     "PASSED", 20, 0},
};

INSTANTIATE_TEST_SUITE_P(Kinds, HostileHeads, testing::ValuesIn(hostile_heads),
                         [](const auto& head) { return std::string(head.param.name); });

}  // namespace
}  // namespace stepgate
