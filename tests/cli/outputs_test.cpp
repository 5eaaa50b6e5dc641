// SPDX-License-Identifier: MIT
// Tests the files that stepgate writes: those that it never overwrites, and those that it writes in
// place.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/command_line.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

// An option of `run`, and the file that it writes when it is given a name.
struct RunOutput {
  std::string option;
  std::string suffix = "";  // of the file
};
const std::vector<RunOutput> run_outputs{{"--json"},
                                         {"--junit"},
                                         {"--summary"},
                                         {"--report"},
                                         {"--picture"},
                                         {"--ledger", "/simulated/gpu-of-round-numbers/a.toml"},
                                         {"--trace", ".a.fix.json"}};

class Outputs : public CommandLine {
 protected:
  Outputs() { write("a.toml", holding); }

  static std::vector<std::string> words(const RunOutput& output, const std::string& name) {
    return {output.option, name};
  }
  Finished run(std::vector<std::string> more, const std::string& scenario = "a.toml") const {
    more.insert(more.begin(), scenario);
    return simulate(more);
  }
  std::string text(const std::string& file) const { return text_of(place() / file); }

  void expect_refused(const Finished& run, const std::string& words) const {
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(contains(run.err, words)) << run.err;
  }
};

TEST_F(Outputs, OfWhichTwoNameOneFileAreRefusedBeforeAnythingRuns) {
  for (std::size_t one = 0; one < run_outputs.size(); ++one) {
    for (std::size_t two = 0; two < run_outputs.size(); ++two) {
      if (one == two) continue;
      if (!run_outputs[two].suffix.empty()) continue;  // a name alone does not collide with it
      const std::string file = "x" + run_outputs[one].suffix;
      std::filesystem::remove_all(place() / "x");
      write(file, "of yesterday");
      std::vector<std::string> call = words(run_outputs[one], "x");
      const std::vector<std::string> second = words(run_outputs[two], file);
      call.insert(call.end(), second.begin(), second.end());
      SCOPED_TRACE(call[0] + " " + call[1] + " " + call[2] + " " + call[3]);
      expect_refused(run(call), " name the same file, ");
      EXPECT_EQ(text(file), "of yesterday");
    }
  }
}

TEST_F(Outputs, AreRefusedOverWhatIsReadByWhateverName) {
  write("base.toml", holding);
  write("of_base.toml", "extends = \"base.toml\"\n");
  std::filesystem::create_hard_link(place() / "base.toml", place() / "hard.toml");
  std::filesystem::create_symlink("base.toml", place() / "soft.toml");
  std::filesystem::copy(STEPGATE_SOURCE_DIR "/tests/baselines", place() / "b",
                        std::filesystem::copy_options::recursive);
  const std::string profile = "b/round-numbers/device.toml";
  for (const RunOutput& output : run_outputs) {
    if (!output.suffix.empty()) continue;
    for (const std::string& file :
         {std::string("of_base.toml"), std::string("base.toml"), std::string("./b/../base.toml"),
          std::string("hard.toml"), std::string("soft.toml"), profile}) {
      const std::string before = text(file);
      std::vector<std::string> call = words(output, file);
      SCOPED_TRACE(call[0] + " " + call[1]);
      call.insert(call.begin(), {"--baselines", "b", "run", "of_base.toml", "--device",
                                 "simulated:round-numbers", "--seed", "1"});
      expect_refused(stepgate(call), " would be written over what is read, ");
      EXPECT_EQ(text(file), before);
    }
  }
}

// A sweep has a picture for each of its values, and one of all; a trace file for each variant.
TEST_F(Outputs, OfAllValuesOfASweepAreOfTheSameList) {
  write("s.toml", holding + "[sweep]\nbatch.size = [8, 16]\n");
  write("s@batch.size=16.toml", holding);
  for (const char* taken : {"p.s@batch.size=8.svg", "p.s@batch.size=16.svg", "p.s.svg"})
    expect_refused(run({"--picture", "p.svg", "--json", taken}, "s.toml"), "name the same file");
  expect_refused(run({"--trace", "p.json", "--json", "p.s@batch.size=16.fix.json"}, "s.toml"),
                 "name the same file");
  expect_refused(run({"s@batch.size=16.toml", "--picture", "p.svg"}, "s.toml"),
                 "--picture and --picture name the same file, p.s@batch.size=16.svg");
  EXPECT_EQ(run({"--picture", "p.svg", "--json", "p.json"}, "s.toml").exit_code, 0);
}

// Where tags leave one scenario, its picture has the name that was asked for.
TEST_F(Outputs, OfTheScenariosThatTagsLeaveAreOfTheSameList) {
  write("b.toml", "tags = [\"alone\"]\n" + holding);
  expect_refused(run({"b.toml", "--tag", "alone", "--picture", "p.svg", "--json", "p.svg"}),
                 "name the same file, p.svg");
}

TEST_F(Outputs, OfOtherVerbsAreOfTheSameList) {
  const std::string program = STEPGATE_PROGRAM;
  const auto simulated = std::vector<std::string>{"--device", "simulated"};
  for (std::vector<std::string> call : std::vector<std::vector<std::string>>{
           {"plan", "a.toml", "--memory", "--picture", "a.toml"},
           {"plan", "a.toml", "--memory", "--json", "a.toml"},
           {"plan", "a.toml", "--memory", "--picture", "x", "--json", "x"},
           {"history", "a.toml", "--json", "a.toml"},
           {"history", "a.toml", "--json", "x.html", "--report", "x.html"},
           {"history", "a.toml", "--json", "x.svg", "--plot", "x.svg"},
           {"history", "a.toml", "--json", "plots/h.json", "--plot", "plots"},
           {"gate", "--base-command", program + " worker a.toml", "--head-command", program,
            "--json", "a.toml"},
           {"gate", "--base", program, "--head", program, "a.toml", "--json", "a.toml"},
           {"gate", "--base", program, "--head", program, "a.toml", "--json", "x", "--junit", "x"},
           {"run", "a.toml", "--trace", "t", "--picture", "t.a.fix.json"}}) {
    const std::string words = call[0] + " " + call[call.size() - 1];
    const Finished refused = stepgate(call);
    EXPECT_EQ(refused.exit_code, 2) << words;
    EXPECT_EQ(refused.out, "") << words;
    EXPECT_TRUE(contains(refused.err, " would be written over what is read, ") ||
                contains(refused.err, " name the same file, "))
        << words << ": " << refused.err;
    EXPECT_EQ(text("a.toml"), holding) << words;
  }
}

TEST_F(Outputs, FollowTheUmask) {
  const std::string call = std::string(STEPGATE_PROGRAM) + " --baselines " STEPGATE_SOURCE_DIR
                                                           "/tests/baselines run a.toml --device "
                                                           "simulated:round-numbers --seed 1 ";
  std::string options;
  std::vector<std::string> files;
  for (std::size_t index = 0; index < run_outputs.size(); ++index) {
    const std::string name = "x" + std::to_string(index);
    options += run_outputs[index].option + " " + name + " ";
    files.push_back(name + run_outputs[index].suffix);
  }
  const Finished run =
      ChildProcess("/bin/sh", {"-c", "umask 077; " + call + options}, place()).wait();
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const std::string& file : files)
    EXPECT_EQ(std::filesystem::status(place() / file).permissions(), std::filesystem::perms{0600})
        << file;
}

TEST_F(Outputs, AreStandardOutputWhereTheyAreNamedSoAndRefusedWhereTheyCannotBe) {
  for (const RunOutput& output : run_outputs) {
    const Finished run = this->run(words(output, "-"));
    const bool is_one_text = output.option != "--ledger" && output.option != "--trace";
    EXPECT_FALSE(exists("-")) << output.option;
    if (!is_one_text) {
      expect_refused(run, "and standard output is not that; name a file");
      continue;
    }
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_FALSE(contains(run.out, "SIMULATED 1 scenario")) << output.option;
    EXPECT_TRUE(contains(run.err, "SIMULATED 1 scenario, 1 passes")) << run.err;
    EXPECT_FALSE(run.out.empty()) << output.option;
    if (output.option == "--json") {
      EXPECT_EQ(nlohmann::json::parse(run.out).at("outcome"), "passes");
    }
    // Output that is rewritten must not appear twice.
    const std::string begin = run.out.substr(0, 30);
    EXPECT_EQ(run.out.find(begin, 1), std::string::npos) << output.option;
  }
  write("b.toml", holding);
  expect_refused(simulate({"a.toml", "b.toml", "--picture", "-"}),
                 "--picture draws a file for every scenario, and standard output is not that");
  expect_refused(run({"--json", "-", "--summary", "-"}), " name the same file, -");
}

// Tests pipes as a shell makes them: `| cat`, `>(cat)`.
TEST_F(Outputs, GoIntoPipesOfThisProcess) {
  const std::string command =
      "cd '" + place().string() +
      "' && " STEPGATE_PROGRAM " --baselines " STEPGATE_SOURCE_DIR
      "/baselines run a.toml --device simulated --seed 1 --no-trace --json ";
  EXPECT_EQ(std::system((command + "/dev/stdout 2>/dev/null | cat > piped").c_str()), 0);
  EXPECT_TRUE(contains(text_of(place() / "piped"), "\"outcome\":\"passes\""));
  EXPECT_EQ(std::system((command + "/dev/fd/7 7>&1 >/dev/null | cat > seventh").c_str()), 0);
  EXPECT_TRUE(contains(text_of(place() / "seventh"), "\"outcome\":\"passes\""));
}

TEST_F(Outputs, ThatCannotBeWrittenToStandardOutputAreAnExitCode) {
  const std::string call = std::string(STEPGATE_PROGRAM) + " --baselines " STEPGATE_SOURCE_DIR
                                                           "/tests/baselines run a.toml --device "
                                                           "simulated:round-numbers --json - ";
  const Finished full = ChildProcess("/bin/sh", {"-c", call + ">/dev/full"}, place()).wait();
  EXPECT_EQ(full.exit_code, 2);
  EXPECT_TRUE(contains(full.err, "-: cannot be written: No space left on device")) << full.err;
}

// The folder of the traces exists while they are made.
TEST_F(Outputs, OfRunsThatAnySignalEndedAreCleanedByTheNext) {
  write("b.toml", endless);
  const std::filesystem::path temporary = place() / "tmp";
  std::filesystem::create_directory(temporary);
  const EnvironmentVariable tmpdir("TMPDIR", temporary.string());
  const auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(temporary), {});
  };
  for (const int signal :
       {SIGINT, SIGTERM, SIGKILL, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU}) {
    const auto before = count();
    ChildProcess ended(STEPGATE_PROGRAM, simulating({"b.toml"}), place());
    for (int tries = 0; tries < 5000 && count() == before; ++tries)
      std::this_thread::sleep_for(1ms);
    ended.send(signal);
    EXPECT_EQ(ended.wait().exit_code, 128 + signal);
  }
  // The tracing processes, which write there, also end, but on a busy machine not at a known time.
  for (int tries = 0; tries < 20 && (tries == 0 || count() != 0); ++tries) {
    if (tries > 0) std::this_thread::sleep_for(1500ms);
    write("j.xml.unfinished-0123456789abcdef", "half a rep");
    write("j.xml.unfinished-backup", "dear");
    EXPECT_EQ(run({"--junit", "j.xml"}).exit_code, 0);
  }
  EXPECT_EQ(count(), 0);
  EXPECT_FALSE(exists("j.xml.unfinished-0123456789abcdef"));
  EXPECT_EQ(text("j.xml.unfinished-backup"), "dear");
}

class Unreadable : public Outputs {
 protected:
  Unreadable() {
    write("closed/a.toml", holding);
    std::filesystem::permissions(place() / "closed", std::filesystem::perms::none);
    for (auto folder = place(); folder != folder.root_path(); folder = folder.parent_path()) {
      if (folder == folder.parent_path() || folder == "/tmp") break;
      std::filesystem::permissions(folder, std::filesystem::perms{0755});
    }
  }
  ~Unreadable() override {
    std::filesystem::permissions(place() / "closed", std::filesystem::perms{0755});
  }

  // Runs the program as a user other than root, to whom permissions apply.
  Finished as_nobody(const std::string& arguments) const {
    const std::string call = std::string(STEPGATE_PROGRAM) + " " + arguments;
    return ::geteuid() != 0 ? ChildProcess("/bin/sh", {"-c", call}, place()).wait()
                            : ChildProcess("/bin/sh",
                                           {"-c",
                                            "setpriv --reuid 65534 --regid 65534 "
                                            "--clear-groups " +
                                                call},
                                           place())
                                  .wait();
  }
};

TEST_F(Unreadable, FoldersAreWrongRequests) {
  if (as_nobody("--version").exit_code != 0) GTEST_SKIP() << "nobody may start this program";
  for (const std::string& call :
       {std::string("check closed"), std::string("list closed"), std::string("check closed/a.toml"),
        std::string("run closed --device simulated"),
        std::string("--baselines closed run a.toml --device simulated"),
        std::string("--baselines closed history a.toml")}) {
    const Finished run = as_nobody(call);
    EXPECT_EQ(run.exit_code, 2) << call << ": " << run.err;
    EXPECT_EQ(run.err.find("closed"), 0U) << run.err;
    EXPECT_TRUE(contains(run.err, ": cannot be read: Permission denied; check ")) << run.err;
  }
}

// The file is appended to and keeps its mode, which is checked before anything is measured.
TEST_F(Unreadable, FilesThatMayNotBeWrittenAreToldBeforeARun) {
  if (as_nobody("--version").exit_code != 0) GTEST_SKIP() << "nobody may start this program";
  std::filesystem::permissions(place(), std::filesystem::perms{0777});
  write("r.json", "of yesterday");
  std::filesystem::permissions(place() / "r.json", std::filesystem::perms{0444});
  const Finished run = as_nobody("run a.toml --device simulated --json r.json --junit j.xml");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err.find("r.json: cannot be written: Permission denied; check "), 0U) << run.err;
  EXPECT_EQ(text("r.json"), "of yesterday");
  EXPECT_FALSE(exists("j.xml")) << "the run had begun";
}

// Standard output is recognised under any name; text for people then goes to standard error.
TEST_F(Outputs, OnStandardOutputAreAlone) {
  for (const char* name : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    const Finished found = run({"--json", name});
    EXPECT_EQ(found.exit_code, 0) << found.err;
    EXPECT_TRUE(nlohmann::json::accept(found.out)) << name << found.out;
    EXPECT_TRUE(contains(found.err, "a: passes")) << name << found.err;
    expect_refused(run({"--trace", name}), "standard output is not that");
  }
}

// A pseudo-terminal with its name, and the text written to it.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    (void)::grantpt(master_);
    (void)::unlockpt(master_);
    keeps_open_ = ::open(name().c_str(), O_RDWR | O_NOCTTY);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(keeps_open_);
    ::close(master_);
  }
  std::string name() const { return ::ptsname(master_); }
  std::string text() const {
    std::string found(65536, '\0');
    const ssize_t length = ::read(master_, found.data(), found.size());
    found.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return found;
  }

 private:
  int master_;
  int keeps_open_ = -1;
};

TEST_F(Outputs, InColourAreForTheTerminalThatShowsThem) {
  const Terminal terminal;
  const auto run_with = [&](const std::string& redirected) {
    return ChildProcess(
               "/bin/sh",
               {"-c", std::string(STEPGATE_PROGRAM) + " --baselines " + STEPGATE_SOURCE_DIR +
                          "/tests/baselines run a.toml --device simulated:round-numbers "
                          "--seed 1 --no-trace " +
                          redirected},
               place())
        .wait()
        .exit_code;
  };
  const EnvironmentVariable colours("NO_COLOR", "");
  EXPECT_EQ(run_with("--json - >j.json 2>" + terminal.name()), 0);
  EXPECT_TRUE(contains(terminal.text(), "a: \x1b[32mpasses"));
  EXPECT_FALSE(contains(text("j.json"), "\x1b"));
  // No progress is shown where standard output is a terminal that shows something else.
  EXPECT_EQ(run_with("--junit - >" + terminal.name() + " 2>told"), 0);
  EXPECT_TRUE(contains(text("told"), "a: passes")) << text("told");
  EXPECT_TRUE(contains(terminal.text(), "<testsuite"));
}

TEST_F(Outputs, AreNotTheLockOfTheirFolder) {
  for (const RunOutput& output : run_outputs) {
    if (!output.suffix.empty()) continue;
    SCOPED_TRACE(output.option);
    expect_refused(run(words(output, ".stepgate.lock")), "is the lock of its folder");
  }
}

// The container does not mount /proc.
TEST_F(Outputs, AreNoneWithoutProcAndThatIsSaid) {
  const std::string hide = "mount -t tmpfs none /proc && exec ";
  const auto without_proc = [&](const std::string& words) {
    return ChildProcess("/usr/bin/unshare",
                        {"-m", "/bin/sh", "-c", hide + STEPGATE_PROGRAM + " " + words}, place())
        .wait();
  };
  if (without_proc("--version").exit_code != 0) GTEST_SKIP() << "only root hides /proc";
  // A sanitizer may print its own message first.
  const auto is_all_it_says = [](const Finished& finished, std::string_view words) {
    return sanitized ? finished.err.ends_with(words) : finished.err == words;
  };
  const Finished run = without_proc("run a.toml --device simulated");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(is_all_it_says(
      run, "cannot read its own program: /proc/self/exe: No such file or directory; mount /proc\n"))
      << run.err;
  const Finished accept = without_proc("accept a.toml --runs 2 --device simulated");
  EXPECT_EQ(accept.exit_code, 3);
  EXPECT_TRUE(is_all_it_says(
      accept, "cannot start itself: /proc/self/exe: No such file or directory; mount /proc\n"))
      << accept.err;
}

}  // namespace
}  // namespace stepgate
