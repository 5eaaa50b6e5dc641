// SPDX-License-Identifier: MIT
// Tests `stepgate keep` from outside, on the simulated device. A candidate is a script that runs
// this build with another profile, or with work that no plan has.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "plugin/testing/small_cubin.h"
#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;

const std::string program = STEPGATE_PROGRAM;
const std::string baselines = STEPGATE_SOURCE_DIR "/baselines";

// A step that arithmetic limits.
const std::string products =
    "claim = \"c\"\nmodel = { kind = \"mlp\", layers = 4, hidden = 1024, dtype = \"tf32\" }\n"
    "batch.size = 1024\ntransfer = { host = \"pinned\", stream = \"side\", buffers = 2 }\n"
    "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";
// A step whose copies take longer than its kernels, beside them.
const std::string copies =
    "claim = \"c\"\nmodel = { kind = \"mlp\", layers = 2, hidden = 1024, dtype = \"tf32\" }\n"
    "batch = { size = 512, sample_bytes = \"64 KiB\" }\n"
    "transfer = { host = \"pinned\", stream = \"side\", buffers = 2 }\n[variant.step]\n"
    "[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n";

class Keeps : public CommandLine {
 protected:
  void SetUp() override {
    write("products.toml", products);
    write("copies.toml", copies);
    script("base", "exec " + program + " \"$@\"\n");
  }

  void script(const std::string& name, const std::string& text) const {
    const auto file = place() / name;
    std::ofstream(file) << "#!/bin/sh\n# " << name << '\n' << text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  // A candidate on a device whose profile has this line instead.
  void candidate_with(const std::string& name, const std::string& key,
                      const std::string& value) const {
    std::ifstream file(baselines + "/nvidia-h200/device.toml");
    std::ostringstream text;
    int changed = 0;
    for (std::string line; std::getline(file, line);) {
      const bool is_it = line.starts_with(key + " = ");
      changed += is_it;
      text << (is_it ? key + " = " + value : line) << '\n';
    }
    ASSERT_EQ(changed, 1) << key;
    write(name + "_profiles/nvidia-h200/device.toml", text.str());
    script(name, "shift 2\nexec " + program + " --baselines " +
                     (place() / (name + "_profiles")).string() + " \"$@\"\n");
  }
  // tf32 products of 4.22e14 a second are this much faster.
  void faster_candidate(const std::string& name, double factor) const {
    std::ostringstream value;
    value << 4.22027e14 * factor;
    candidate_with(name, "tf32_flops_per_second", value.str());
  }
  void candidate_that_does(const std::string& name, const std::string& in_worker) const {
    script(name, "if [ \"$3\" = worker ]; then " + in_worker + "fi\nexec " + program + " \"$@\"\n");
  }

  Finished keep(const std::string& head, std::vector<std::string> more = {},
                const std::string& scenario = "products") const {
    std::vector<std::string> all{"--baselines", baselines,  "keep",     "--head",
                                 "./" + head,   "--ledger", "l.ledger", "--device",
                                 "simulated",   "--seed",   "7"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(scenario + ".toml");
    return stepgate(all);
  }
  static std::vector<std::string> against_base() { return {"--base", "./base"}; }

  static Json answer(const Finished& run) {
    EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1) << run.out << run.err;
    return Json::parse(run.out);
  }
};

TEST_F(Keeps, WhatIsFasterAndDiscardsWhatIsNot) {
  faster_candidate("faster", 1.1);
  script("same", "exec " + program + " \"$@\"\n");
  const Finished kept = keep("faster", against_base());
  EXPECT_EQ(kept.exit_code, 0) << kept.out << kept.err;
  const Json yes = answer(kept);
  EXPECT_EQ(yes.at("verdict"), "keep");
  EXPECT_EQ(yes.at("by"), "time");
  EXPECT_EQ(yes.at("work"), "products/step");
  EXPECT_EQ(yes.at("candidate"), 1);
  EXPECT_EQ(yes.at("simulated"), true);
  EXPECT_LT(yes.at("interval").at(1), 0.995);
  EXPECT_GE(yes.at("evidence"), yes.at("evidence_needed"));
  const Finished discarded = keep("same", against_base());
  EXPECT_EQ(discarded.exit_code, 1) << discarded.out << discarded.err;
  const Json no = answer(discarded);
  EXPECT_EQ(no.at("verdict"), "discard");
  EXPECT_EQ(no.at("candidate"), 2);
  EXPECT_TRUE(contains(no.at("why"), "the limit is -0.5 %")) << no;
#ifdef STEPGATE_PYTHON
  write("answers.jsonl", kept.out + discarded.out);
  const Finished valid =
      ChildProcess(
          STEPGATE_PYTHON,
          {"-c", validate_json, STEPGATE_SOURCE_DIR "/docs/json_schema.json", "answers.jsonl"},
          place())
          .wait();
  EXPECT_EQ(valid.exit_code, 0) << valid.out << valid.err;
#endif
}

// Their steps are other steps than those of one process.
TEST_F(Keeps, WhatIsFasterOnSeveralRanks) {
  write("ranks.toml", products + "[ranks]\ncount = 2\n");
  faster_candidate("faster", 1.2);
  const auto asked = [&](std::vector<std::string> more) {
    const Finished run = keep("faster", std::move(more), "ranks");
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    return answer(run).at("candidate").get<int>();
  };
  EXPECT_EQ(asked({"--base", "./base", "--ranks", "2"}), 1);
  EXPECT_EQ(asked({"--base", "./base"}), 2);
  const EnvironmentVariable rank("RANK", "0");
  const EnvironmentVariable count("WORLD_SIZE", "2");
  const EnvironmentVariable local("LOCAL_RANK", "0");
  const Finished launched = keep("faster", {"--base", "./base"}, "ranks");
  EXPECT_EQ(launched.exit_code, 2) << launched.out;
  EXPECT_TRUE(contains(launched.err, "`keep` starts the ranks of both sides itself"))
      << launched.err;
}

TEST_F(Keeps, TheLastKeptOneIsBaseWhateverWasBuiltOverIt) {
  const Finished nothing = keep("base");
  EXPECT_EQ(nothing.exit_code, 2) << nothing.out << nothing.err;
  EXPECT_TRUE(contains(nothing.err, "give --base PROGRAM")) << nothing.err;
  faster_candidate("head", 1.1);
  EXPECT_EQ(keep("head", against_base()).exit_code, 0);
  const Finished again = keep("head");
  EXPECT_EQ(again.exit_code, 0);  // it is BASE itself
  EXPECT_EQ(answer(again).at("candidate"), 1);
  script("head", "exec " + program + " \"$@\"\n");  // slower again, in the same file
  const Json slower = answer(keep("head"));
  EXPECT_EQ(slower.at("verdict"), "discard") << slower;
  EXPECT_NEAR(slower.at("ratio"), 1.06, 0.03);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place() / "l.ledger.kept"))
    if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::app) << "# changed\n";
  const Finished changed = keep("base");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_TRUE(contains(changed.err, "is not candidate 1 any more")) << changed.err;
}

TEST_F(Keeps, TheSameBytesGoOnWhereTheyStood) {
  faster_candidate("little", 1.013);
  const auto some = [&] { return keep("little", {"--base", "./base", "--budget", "1ms"}); };
  const Finished first = some();
  EXPECT_EQ(first.exit_code, 77) << first.out << first.err;
  const Json before = answer(first);
  EXPECT_EQ(before.at("pairs"), 5);
  EXPECT_TRUE(contains(before.at("why"), "; needs about ")) << before;
  const Json after = answer(some());
  EXPECT_EQ(after.at("candidate"), 1);
  EXPECT_EQ(after.at("pairs"), 10);  // the same seed, but no pair comes twice
  EXPECT_EQ(after.at("budget_left"), before.at("budget_left"));
  EXPECT_EQ(lines_of("l.ledger"), 1);
  const Json record = Json::parse(text_of(place() / "l.ledger"));
  const Json& contrasts = record.at("pairs").at("contrasts").at(0).at(1);
  ASSERT_EQ(contrasts.size(), 10u);
  for (std::size_t one = 0; one < 5; ++one) EXPECT_NE(contrasts[one], contrasts[one + 5]);
}

TEST_F(Keeps, NothingThatWaitsMoreHoweverFast) {
  candidate_that_does("waits", adding("--injected extra_wait"));
  const Finished run = keep("waits", against_base());
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const Json no = answer(run);
  EXPECT_EQ(no.at("by"), "counts");
  EXPECT_TRUE(contains(no.at("why"), "device_syncs_per_step 0 -> 1 in a trace")) << no;
  EXPECT_EQ(no.at("ratio"), nullptr);
}

TEST_F(Keeps, NothingThatFailsAnAssertionHoweverFast) {
  // Only its own run shows what its workers hide.
  faster_candidate("cheats", 1.2);
  const std::string faster = text_of(place() / "cheats");
  script("cheats", "if [ \"$3\" = run ]; then " + adding("--set sync.where=step") + "exec " +
                       program + " \"$@\"\nfi\n" + faster.substr(faster.find("shift 2")));
  const Finished run = keep("cheats", against_base());
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const Json no = answer(run);
  EXPECT_EQ(no.at("by"), "assertions");
  EXPECT_TRUE(contains(no.at("why"), "assertion no_waits fails: ")) << no;
  EXPECT_LT(no.at("ratio"), 0.95);
  EXPECT_FALSE(exists("l.ledger.kept"));
}

TEST_F(Keeps, NothingThatFails) {
  candidate_that_does("crashes", "kill -SEGV $$\n");
  const Finished run = keep("crashes", against_base());
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const Json no = answer(run);
  EXPECT_EQ(no.at("by"), "failure");
  EXPECT_TRUE(contains(no.at("why"), "signal 11")) << no;
  // A BASE that fails is no verdict on HEAD.
  candidate_that_does("broken", "exit 9\n");
  const Finished base = keep("crashes", {"--base", "./broken"});
  EXPECT_EQ(base.exit_code, 3) << base.out << base.err;
  EXPECT_EQ(base.out, "");
}

// Evidence that a crash would erase could be drawn again until it pleases.
TEST_F(Keeps, TheEvidenceOfACallThatACrashEnded) {
  const auto head = [&] { return Json::parse(text_of(place() / "l.ledger")); };
  script("sometimes",
         "[ \"$3\" = worker ] && [ -e crash ] && grep -q contrasts l.ledger && "
         "kill -SEGV $$\nexec " +
             program + " \"$@\"\n");
  write("crash", "");
  const Finished run = keep("sometimes", against_base());
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_EQ(answer(run).at("by"), "failure");
  const Json before = head().at("pairs");
  EXPECT_EQ(before.at("contrasts").at(0).at(1).size(), 5u) << before;
  std::filesystem::remove(place() / "crash");
  const Json again = answer(keep("sometimes", {"--base", "./base", "--budget", "1ms"}));
  EXPECT_EQ(again.at("candidate"), 1);
  EXPECT_EQ(again.at("by"), "nothing") << again;
  EXPECT_EQ(again.at("pairs"), 10);
  EXPECT_EQ(head().at("pairs").at("contrasts").at(0).at(1).at(0),
            before.at("contrasts").at(0).at(1).at(0));
}

TEST_F(Keeps, SaysWhereKernelsAreFasterAndTheStepIsNot) {
  faster_candidate("faster", 1.5);
  const Finished run = keep("faster", against_base(), "copies");
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const std::string why = answer(run).at("why");
  EXPECT_TRUE(
      std::regex_match(why, std::regex("the kernels are 1\\.[0-9]x as fast and the step is not: "
                                       "(0\\.99|1\\.00)[0-9]x \\[[0-9.]+, [0-9.]+\\]")))
      << why;
}

// Nothing is timed of a library that is not the kernel. A step that a simulated device cannot carry
// out comes after the check.
TEST_F(Keeps, NoLibraryThatACheckRefuses) {
  write("norm.toml",
        "claim = \"c\"\nmodel = { kind = \"transformer\", layers = 1, hidden = 64, heads = 2, "
        "seq = 16, vocab = 64, dtype = \"bf16\" }\nbatch.size = 8\nlaunch.fuse = \"none\"\n"
        "[variant.step]\n[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n");
  const EnvironmentVariable none("CUDA_VISIBLE_DEVICES", "");
  const auto copy = [&](const std::string& name) {
    std::filesystem::copy_file(STEPGATE_FAKE_KERNELS, place() / name);
    std::ofstream(place() / name, std::ios::app) << name;  // bytes of its own
  };
  const auto asked = [&](const std::string& library) {
    const Finished run = keep(library, {"--kernel", "layer_norm"}, "norm");
    EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
    return answer(run);
  };
  copy("crashes.so");
  {
    const EnvironmentVariable end("STEPGATE_END", "signal");
    const EnvironmentVariable preload("LD_PRELOAD", STEPGATE_END_IN_CHECK);
    const Json refused = asked("crashes.so");
    EXPECT_EQ(refused.at("by"), "check");
    EXPECT_EQ(refused.at("check"), "is not layer_norm: crash");
    EXPECT_EQ(refused.at("why"), "`stepgate kernel check` says that it is not layer_norm: crash");
    EXPECT_EQ(refused.at("ratio"), nullptr);
  }
  const Json kept = asked("crashes.so");
  EXPECT_EQ(kept.at("by"), "check");
  EXPECT_EQ(kept.at("check"), "is not layer_norm: crash, as was kept");
  EXPECT_EQ(kept.at("candidate"), 1);
  copy("unchecked.so");
  const Json unchecked = asked("unchecked.so");
  EXPECT_EQ(unchecked.at("by"), "failure");
  EXPECT_TRUE(contains(unchecked.at("why"), "whose time a simulated device cannot know"))
      << unchecked;
  EXPECT_TRUE(unchecked.at("check").get<std::string>().starts_with("none: ")) << unchecked;
  EXPECT_TRUE(contains(unchecked.at("check"), "CUDA") || contains(unchecked.at("check"), "GPU 0"))
      << unchecked;
  // Another spelling of the same request is no other candidate, and a file named as stepgate's own
  // kernel is a library.
  const auto spelled = [&](const std::string& head, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--kernel", "layer_norm"};
    all.insert(all.end(), more.begin(), more.end());
    return answer(keep(head, all, "norm")).at("candidate");
  };
  const Json number = unchecked.at("candidate");
  EXPECT_EQ(spelled("unchecked.so", {"--gain", "0.50%"}), number);
  EXPECT_EQ(spelled("unchecked.so", {"--workload", "norm/*"}), number);
  EXPECT_EQ(spelled("unchecked.so:layer_norm", {}), number);
  const Finished wrong = keep("unchecked.so:nosuch", {"--kernel", "layer_norm"}, "norm");
  EXPECT_EQ(wrong.exit_code, 2) << wrong.out;  // and it costs no number
  EXPECT_TRUE(contains(wrong.err, "exports no 'nosuch'")) << wrong.err;
  copy("ours");
  EXPECT_TRUE(contains(asked("ours").at("why"), "is launched by './ours'"));
  // Bytes that a table names are those of the candidate.
  write_table_of(place() / "ln.toml", "ln_fwd");
  write_small_cubin(place() / "ln.cubin");
  const Json table = asked("ln.toml");
  EXPECT_TRUE(contains(table.at("why"), "whose time a simulated device cannot know")) << table;
  EXPECT_EQ(asked("ln.toml").at("candidate"), table.at("candidate"));
  std::ofstream(place() / "ln.cubin", std::ios::app) << "other";
  EXPECT_EQ(asked("ln.toml").at("candidate"), table.at("candidate").get<int>() + 1);
  // A check on another machine may have passed it.
  Json verdict = Json::parse(text_of(place() / "crashes.so.checks"));
  verdict["faults"] = Json::array();
  verdict["trials"] = 136;
  write("crashes.so.checks", verdict.dump() + "\n");
  EXPECT_EQ(asked("crashes.so").at("check"), "is layer_norm in 136 trials, as was kept");
  const Finished larger =
      keep("crashes.so", {"--kernel", "layer_norm", "--workspace", "4 MiB"}, "norm");
  EXPECT_EQ(answer(larger).at("candidate"), 6) << "its step is another one";
}

TEST_F(Keeps, AsksForNothingThatCannotBeAsked) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& words,
                           const std::string& head = "base") {
    std::vector<std::string> all = against_base();
    all.insert(all.end(), more.begin(), more.end());
    const Finished run = keep(head, all);
    EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    EXPECT_TRUE(contains(run.err, words)) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_FALSE(exists("l.ledger"));
  };
  refused({"--gain", "-1%"}, "--gain '-1%' is no share");
  refused({"--gain", "0.5"}, "did you mean '0.5%'?");
  refused({"--gain", "100%"}, "say how much faster HEAD must be, as in 0.5%");
  refused({"--workload", "nowhere"}, "nowhere");
  refused({"--workspace", "much"}, "--workspace 'much' ");
  refused({"--workspace", "4 MiB"}, "--workspace is for a library");
  refused({"--match", "nowhere"}, "nowhere");
  refused({}, "HEAD is BASE, byte for byte");
  script("same", "exec " + program + " \"$@\"\n");
  refused({"--kernel", "layer_norm"}, "is no library", "nowhere.so");
  std::filesystem::create_directory(place() / "far");
  write_table_of(place() / "far/ln.toml", "ln_fwd", "../ln.cubin");
  refused({"--kernel", "layer_norm"}, "far/../ln.cubin', which does not lie beside it",
          "far/ln.toml");
  const auto call = [&](const std::string& device, const std::string& file) {
    return stepgate({"--baselines", baselines, "keep", "--head", "./same", "--base", "./base",
                     "--ledger", "l.ledger", "--device", device, file});
  };
  const Finished reference = call("reference", "products.toml");
  EXPECT_EQ(reference.exit_code, 2);
  EXPECT_TRUE(contains(reference.err, "no notion of time")) << reference.err;
  write("planned.toml", "tags = [\"no_gpu\"]\n" + products);
  const Finished planned = call("simulated", "planned.toml");
  EXPECT_EQ(planned.exit_code, 4) << planned.err;
  EXPECT_TRUE(contains(planned.err, "no workload")) << planned.err;
  EXPECT_FALSE(exists("l.ledger"));  // what is not asked has no number
  const Finished no_head = stepgate({"keep", "--ledger", "l", "products.toml"});
  EXPECT_TRUE(no_head.exit_code == 2 && contains(no_head.err, "give --head")) << no_head.err;
  const Finished no_ledger = stepgate({"keep", "--head", "./base", "products.toml"});
  EXPECT_TRUE(no_ledger.exit_code == 2 && contains(no_ledger.err, "give --ledger"))
      << no_ledger.err;
  const Finished over = stepgate({"keep", "--head", "./base", "--base", "./base", "--ledger",
                                  "products.toml", "products.toml"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_TRUE(contains(over.err, "would be written over what is read")) << over.err;
}

}  // namespace
}  // namespace stepgate
