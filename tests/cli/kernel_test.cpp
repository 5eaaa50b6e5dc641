// SPDX-License-Identifier: MIT
// Tests `stepgate kernel`, and kernels of libraries in steps, from outside, with libraries that end
// the process that has them open.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plugin/testing/small_cubin.h"
#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

class KernelVerb : public CommandLine {
 protected:
  Finished check(const std::string& end) const {
    const EnvironmentVariable how("STEPGATE_END", end);
    const EnvironmentVariable preload("LD_PRELOAD", STEPGATE_END_IN_CHECK);
    return stepgate(
        {"kernel", "check", library(), "layer_norm", "--json", "k.json", "--seed", "7"});
  }

  // A copy in the test's folder, beside which verdicts are kept.
  std::string library() const {
    std::filesystem::copy_file(STEPGATE_FAKE_KERNELS, place() / "libmine.so",
                               std::filesystem::copy_options::skip_existing);
    return "libmine.so";
  }

  // A scenario with this entry in [variant.mine.kernels].
  std::string scenario_with(const std::string& kernel) const {
    std::ofstream(place() / "step.toml")
        << "claim = \"mine is no slower\"\n[model]\nkind = \"transformer\"\nlayers = 1\n"
           "hidden = 64\nheads = 2\nseq = 16\nvocab = 64\ndtype = \"bf16\"\n[batch]\nsize = 8\n"
           "[launch]\nfuse = \"none\"\n[measure]\nmax_seconds = 1\n[variant.ours]\n"
           "[variant.mine.kernels]\n"
        << kernel
        << "\n[expect]\nlaunches = \"mine.launches_per_step == ours.launches_per_step\"\n";
    return "step.toml";
  }
};

// Whatever a library ends the process with, 0 among it, it is no kernel.
TEST_F(KernelVerb, ALibraryThatEndsTheProcessIsRefused) {
  for (const auto& [end, words] : {std::pair{"0", "with code 0"}, std::pair{"1", "with code 1"},
                                   std::pair{"3", "with code 3"}, std::pair{"255", "with code 255"},
                                   std::pair{"signal", "by signal 11 (Segmentation fault)"}}) {
    const Finished ended = check(end);
    EXPECT_EQ(ended.exit_code, 1) << ended.err;
    EXPECT_TRUE(contains(ended.out, std::string("crash: it ended its process ") + words +
                                        ", before the first trial\n"))
        << ended.out;
    EXPECT_TRUE(contains(ended.out, " is NOT layer_norm: crash; seed 7\n")) << ended.out;
    const auto line = nlohmann::json::parse(text_of(place() / "k.json"));
    EXPECT_EQ(line["is_it"], false);
    EXPECT_EQ(line["faults"][0]["check"], "crash");
  }
}

// A request that cannot be carried out is told by the process itself and is no fault of the
// library.
TEST_F(KernelVerb, WithoutAGpuNothingIsSaidOfTheLibrary) {
#ifdef STEPGATE_WITH_CUDA
  constexpr const char* words = "there is no GPU 0 to try the kernel on";
#else
  constexpr const char* words = "this build of stepgate has no CUDA";
#endif
  const EnvironmentVariable none("CUDA_VISIBLE_DEVICES", "");
  const Finished ended = stepgate({"kernel", "check", library(), "layer_norm", "--json", "k.json"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(contains(ended.err, words)) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(place() / "k.json"));
}

// A table is read, and held against its cubin, before anybody looks for a GPU.
TEST_F(KernelVerb, ATableOfACubinIsHeldAgainstIt) {
  std::filesystem::create_directory(place() / "my");
  const auto check_with = [&](const std::string& entry) {
    write_small_cubin(place() / "my/ln.cubin");
    write_table_of(place() / "my/ln.toml", entry);
    const EnvironmentVariable none("CUDA_VISIBLE_DEVICES", "");
    return stepgate({"kernel", "check", "my/ln.toml", "layer_norm"});
  };
  const Finished wrong = check_with("ln_bwd");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "'my/ln.cubin' has no kernel 'ln_bwd'; did you mean 'ln_fwd'?"))
      << wrong.err;
  const Finished right = check_with("ln_fwd");
  EXPECT_EQ(right.exit_code, 2);
  EXPECT_TRUE(contains(right.err, "CUDA") || contains(right.err, "there is no GPU 0")) << right.err;
  const std::string before = text_of(place() / "my/ln.cubin");
  const Finished over =
      stepgate({"kernel", "check", "my/ln.toml", "layer_norm", "--json", "my/ln.cubin"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_TRUE(contains(over.err, "my/ln.cubin")) << over.err;
  EXPECT_EQ(text_of(place() / "my/ln.cubin"), before);
  const Finished described = stepgate({"kernel", "describe", "my/ln.toml"});
  EXPECT_TRUE(contains(described.out, "  ln_fwd: parameters of 8, 8, 8, 8, 8, 4, 4 bytes\n"))
      << described.out;
}

TEST_F(KernelVerb, ATableOfALibraryIsForTvmFfi) {
  std::ofstream(place() / "ln.toml") << "library = \"" << STEPGATE_FAKE_KERNELS
                                     << "\"\nabi = \"tvm-ffi\"\nfunction = \"layer_norm\"\n"
                                        "arguments = [\"x[rows, columns]\"]\n";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"kernel", "check", "ln.toml", "layer_norm"},
        std::vector<std::string>{"kernel", "describe", "ln.toml"}}) {
    const Finished ended = stepgate(command);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(contains(ended.err, "is no shared library with a function for tvm-ffi"))
        << ended.err;
  }
}

TEST_F(KernelVerb, TheLibraryIsNoOutput) {
  std::filesystem::copy_file(STEPGATE_FAKE_KERNELS, place() / "mine.so");
  const std::string before = text_of(place() / "mine.so");
  const Finished ended =
      stepgate({"kernel", "check", "mine.so", "layer_norm", "--json", "mine.so"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(text_of(place() / "mine.so"), before);
}

// The files of kernels are read, by a step and by a gate.
TEST_F(KernelVerb, NoOutputIsWrittenOverAKernelOfAStep) {
  (void)library();
  write_small_cubin(place() / "ln.cubin");
  write_table_of(place() / "ln.toml", "ln_fwd");
  for (const std::string file : {"libmine.so", "ln.toml", "ln.cubin"}) {
    const std::string before = text_of(place() / file);
    const std::string named = file == "ln.cubin" ? "ln.toml" : file;
    const std::string step =
        scenario_with("layer_norm = { library = \"" + named + "\", time_us = 8 }");
    for (const std::string option : {"--json", "--junit", "--report"}) {
      const Finished run = stepgate({"run", step, "--device", "simulated", option, file});
      EXPECT_EQ(run.exit_code, 2) << run.out << run.err;
    }
    const Finished gate = stepgate({"gate", "--base-kernels", named, "--head-kernels", named,
                                    "--device", "simulated", "--json", file, step});
    EXPECT_EQ(gate.exit_code, 2) << gate.out << gate.err;
    const Finished set = stepgate(
        {"run", "--set", "kernels=" + named, step, "--device", "simulated", "--json", file});
    EXPECT_EQ(set.exit_code, 2) << set.out << set.err;
    EXPECT_EQ(text_of(place() / file), before);
  }
}

TEST_F(KernelVerb, NothingThatIsThereIsWrittenOver) {
  ASSERT_EQ(stepgate({"kernel", "new", "layer_norm", "--in", "my"}).exit_code, 0);
  const Finished second = stepgate({"kernel", "new", "add", "--in", "my"});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.out, "");
  EXPECT_FALSE(std::filesystem::exists(place() / "my/add.cu"));
  const Finished step = stepgate({"check", "my/step.toml"});
  EXPECT_EQ(step.exit_code, 0) << step.err;
  EXPECT_TRUE(contains(step.out + step.err, "no file 'build/liblayer_norm.so'")) << step.out;
  std::filesystem::create_symlink("elsewhere", place() / "gelu.cu");
  EXPECT_EQ(stepgate({"kernel", "new", "gelu"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(place() / "elsewhere"));
}

// The verdict of a check is kept beside the library, and a run says it of the same bytes.
TEST_F(KernelVerb, ARunSaysWhatTheCheckHasSaidOfTheSameBytes) {
  (void)library();
  const std::string file = scenario_with(
      "layer_norm = { library = \"libmine.so\", function = \"layer_norm\", time_us = 8 }");
  const auto run = [&] { return stepgate({"run", file, "--device", "simulated", "--seed", "1"}); };
  EXPECT_TRUE(contains(run().out,
                       "note: nobody has checked that 'layer_norm' of 'libmine.so' is layer_norm: "
                       "stepgate kernel check libmine.so layer_norm\n"))
      << run().out;
  EXPECT_EQ(check("signal").exit_code, 1);
  EXPECT_TRUE(contains(run().out,
                       "`kernel check` says that 'layer_norm' of 'libmine.so' is not "
                       "layer_norm: crash\n"))
      << run().out;
  std::ofstream(place() / "libmine.so", std::ios::app) << "another build";
  EXPECT_TRUE(contains(run().out, "nobody has checked")) << run().out;
}

// A guess at the time would be a verdict on nothing; what the plans say is decided all the same.
TEST_F(KernelVerb, ASimulatedDeviceRefusesALibraryWithoutADeclaredTime) {
  (void)library();
  const std::string file = scenario_with("layer_norm = \"libmine.so\"");
  const Finished ended = stepgate({"run", file, "--device", "simulated", "--seed", "1"});
  EXPECT_EQ(ended.exit_code, 3) << ended.out;
  EXPECT_TRUE(contains(ended.out,
                       "'layer_norm' of 'mine' is launched by 'libmine.so', whose time a "
                       "simulated device cannot know"))
      << ended.out;
  EXPECT_TRUE(contains(ended.out, "passes          launches")) << ended.out;
}

// It is the request that lacks something, not the device.
TEST_F(KernelVerb, MutationsNeedADeclaredTime) {
  (void)library();
  const std::vector<std::vector<std::string>> verbs = {{"check", "--strict"}, {"mutate"}};
  for (std::vector<std::string> command : verbs) {
    command.push_back(scenario_with("layer_norm = \"libmine.so\""));
    const Finished timeless = stepgate(command);
    EXPECT_EQ(timeless.exit_code, 2) << timeless.out << timeless.err;
    EXPECT_TRUE(contains(timeless.err,
                         "step.toml:18:1: nobody has said how long the 'layer_norm' of 'mine' "
                         "takes"))
        << timeless.err;
    EXPECT_TRUE(contains(timeless.err,
                         "write kernels.layer_norm = { library = \"libmine.so\", time_us = 8 }"))
        << timeless.err;
    (void)scenario_with("layer_norm = { library = \"libmine.so\", time_us = 8 }");
    EXPECT_NE(stepgate(command).exit_code, 3);
    EXPECT_FALSE(contains(stepgate(command).err, "how long"));
  }
}

TEST_F(KernelVerb, TheReferenceDeviceSaysThatItRunsNoLibrary) {
  (void)library();
  const Finished ended = stepgate({"run", scenario_with("layer_norm = \"libmine.so\""), "--device",
                                   "reference", "--seed", "1", "--verbose"});
  EXPECT_TRUE(contains(ended.out, "the host reference computes it and runs no library"))
      << ended.out << ended.err;
}

TEST_F(KernelVerb, ACheckOfAScenarioReadsTheLibraryAsData) {
  (void)library();
  const auto checked = [&](const std::string& kernel) {
    return stepgate({"check", scenario_with(kernel)});
  };
  EXPECT_EQ(checked("layer_norm = \"libmine.so\"").exit_code, 0);
  const Finished absent = checked("layer_norm = \"build/libmine.so\"");
  EXPECT_EQ(absent.exit_code, 0) << "it may only not be built yet";
  EXPECT_TRUE(contains(absent.out + absent.err, "no file 'build/libmine.so'")) << absent.out;
  const Finished strict =
      stepgate({"check", "--strict", scenario_with("layer_norm = \"build/libmine.so\"")});
  EXPECT_EQ(strict.exit_code, 2) << strict.out << strict.err;
  EXPECT_TRUE(contains(strict.err, "no file 'build/libmine.so'")) << strict.err;
  const Finished misspelt = checked("layer_norm = \"libmine.so:layernorm\"");
  EXPECT_EQ(misspelt.exit_code, 2);
  EXPECT_TRUE(contains(misspelt.err, "exports no 'layernorm'")) << misspelt.err;
  EXPECT_TRUE(contains(misspelt.err, "did you mean 'layer_norm'?")) << misspelt.err;
  std::ofstream(place() / "text.so") << "no library";
  EXPECT_EQ(checked("layer_norm = \"text.so\"").exit_code, 2);
}

// The table is the one that `kernel check` takes.
TEST_F(KernelVerb, ACheckOfAScenarioReadsATableAsData) {
  const auto checked = [&](const std::string& entry) {
    write_table_of(place() / "ln.toml", entry);
    return stepgate({"check", scenario_with("layer_norm = \"ln.toml\"")});
  };
  const Finished absent = checked("ln_fwd");
  EXPECT_EQ(absent.exit_code, 0) << "it may only not be compiled yet";
  EXPECT_TRUE(contains(absent.out + absent.err, "step.toml:18:1: ")) << absent.out << absent.err;
  EXPECT_TRUE(contains(absent.out + absent.err, "no file 'ln.cubin'")) << absent.out << absent.err;
  write_small_cubin(place() / "ln.cubin");
  EXPECT_EQ(checked("ln_fwd").exit_code, 0);
  const Finished wrong = checked("ln_bwd");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err,
                       "the 'layer_norm' of variant 'mine': 'ln.cubin' has no kernel "
                       "'ln_bwd'; did you mean 'ln_fwd'?"))
      << wrong.err;
  std::ofstream(place() / "ln.toml", std::ios::app) << "blocks = 3\nshared = [1, 2]\n";
  const Finished faulty = stepgate({"check", "step.toml"});
  EXPECT_EQ(faulty.exit_code, 2);
  EXPECT_TRUE(contains(faulty.err, "ln.toml:6:1: unknown key 'blocks'")) << faulty.err;
  EXPECT_TRUE(contains(faulty.err, "ln.toml:7:10: ")) << faulty.err;
  const Finished named = stepgate({"check", scenario_with("layer_norm = \"ln.toml:ln_fwd\"")});
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_TRUE(contains(named.err, "is a table, which names its function itself")) << named.err;
}

// Each fault stands at its own key, though it is the second of the second variant.
TEST_F(KernelVerb, AFaultOfALibraryIsToldAtItsKey) {
  (void)library();
  std::ofstream(place() / "ln.toml") << "cubin = 3\n";
  const auto checked = [&](const std::string& key, const std::vector<std::string>& more = {}) {
    std::vector<std::string> command{"check",
                                     scenario_with("layer_norm = \"libmine.so\"\n  " + key + "\n")};
    command.insert(command.end(), more.begin(), more.end());
    const Finished ended = stepgate(command);
    return ended.out + ended.err;
  };
  const std::string at = "step.toml:19:3: ";
  for (const auto& [key, words] :
       {std::pair{"gelu = \"absent.so\"", "the 'gelu' of variant 'mine': no file 'absent.so'"},
        std::pair{"gelu = \"libmine.so\"", "the 'gelu' of variant 'mine': 'libmine.so' exports no"},
        std::pair{"gelu = \"ln.toml:norm\"", "the 'gelu' of variant 'mine': 'ln.toml' is a table"},
        std::pair{"rope = \"libmine.so\"",
                  "variant 'mine' replaces the kernel 'rope', which it does not launch"}})
    EXPECT_TRUE(contains(checked(key), at + words)) << checked(key);
  EXPECT_TRUE(contains(checked("gelu = \"ln.toml\""), "ln.toml:1:9: ")) << "in the table itself";
  EXPECT_TRUE(contains(checked("gelu = \"libmine.so\"", {"--set", "kernels.gelu=absent.so"}),
                       "--set kernels.gelu=absent.so: the 'gelu' of variant 'ours'"));
}

// Nothing runs: the plan has the shapes, and the cubin its limits.
TEST_F(KernelVerb, ACheckHoldsATableAgainstTheLaunchesOfTheStep) {
  write_small_cubin(place() / "ln.cubin");
  write_table_of(place() / "ln.toml", "ln_fwd");
  const std::string right = text_of(place() / "ln.toml");
  const auto checked = [&](const std::string& from, const std::string& to,
                           const std::string& verb = "check", const std::string& otherwise = "") {
    std::string table = right;
    std::ofstream(place() / "ln.toml") << table.replace(table.find(from), from.size(), to);
    const std::string file =
        scenario_with("layer_norm = { library = \"ln.toml\"" + otherwise + " }");
    return verb == "gate" ? stepgate({"gate", "--base-kernels", "ln.toml", "--head-kernels",
                                      "ln.toml", "--device", "simulated", file})
                          : stepgate({verb, file});
  };
  EXPECT_EQ(checked("rows", "rows").exit_code, 0);
  for (const auto& [from, to, words] :
       {std::tuple{"block = 128", "block = 1025", "'block' is 1025 for layer_norm of "},
        std::tuple{"\"rows\"", "\"rows / 1000\"",
                   "'grid' is rows / 1000 = 0.128 for layer_norm of "
                   "128 x 64 in bf16"},
        std::tuple{"\"rows\"", "\"rows - 128\"",
                   "'grid' is rows - 128 = 0 for layer_norm of 128 x "
                   "64 in bf16"},
        std::tuple{"block = 128", "block = 128\nshared = \"4096 * columns\"",
                   "needs 262144 bytes of shared memory for layer_norm of 128 x 64 in bf16"},
        std::tuple{"block = 128", "block = 128\nshared = \"columns - 65\"",
                   "'shared' is columns - 65 = -1 for layer_norm of 128 x 64 in bf16"},
        std::tuple{"block = 128", "block = 128\ndtypes = [\"fp16\"]",
                   "does not support layer_norm of 128 x 64 in bf16: its table says fp16"}}) {
    const Finished refused = checked(from, to);
    EXPECT_EQ(refused.exit_code, 2) << words;
    EXPECT_TRUE(contains(refused.err, words)) << refused.err;
    EXPECT_TRUE(contains(refused.err,
                         "step.toml:18:1: the 'layer_norm' of variant 'mine': "
                         "'block 0: "))
        << refused.err;
  }
  const Finished gate = checked("block = 128", "block = 1025", "gate");
  EXPECT_EQ(gate.exit_code, 2) << gate.out;
  EXPECT_TRUE(contains(gate.err, "'block' is 1025")) << gate.err;
  // stepgate's kernel launches shapes that the table does not support.
  EXPECT_EQ(
      checked("block = 128", "block = 128\ndtypes = [\"fp16\"]", "check", ", otherwise = \"ours\"")
          .exit_code,
      0);
}

TEST_F(KernelVerb, AStepTakesATable) {
  write_small_cubin(place() / "ln.cubin");
  write_table_of(place() / "ln.toml", "ln_fwd");
  const std::string file = scenario_with("layer_norm = { library = \"ln.toml\", time_us = 8 }");
  const auto run = [&] { return stepgate({"run", file, "--device", "simulated", "--seed", "1"}); };
  EXPECT_EQ(run().exit_code, 0) << run().out << run().err;
  EXPECT_TRUE(contains(run().out,
                       "note: nobody has checked that 'layer_norm' of 'ln.toml' is layer_norm: "
                       "stepgate kernel check ln.toml layer_norm\n"))
      << run().out;
  {
    const EnvironmentVariable how("STEPGATE_END", "signal");
    const EnvironmentVariable preload("LD_PRELOAD", STEPGATE_END_IN_CHECK);
    EXPECT_EQ(stepgate({"kernel", "check", "ln.toml", "layer_norm"}).exit_code, 1);
  }
  EXPECT_TRUE(contains(run().out,
                       "`kernel check` says that 'layer_norm' of 'ln.toml' is not layer_norm: "
                       "crash\n"))
      << run().out;
  write_table_of(place() / "ln.toml", "ln_fwd");
  std::ofstream(place() / "ln.toml", std::ios::app) << "dtypes = [\"bf16\"]\n";
  EXPECT_TRUE(contains(run().out, "nobody has checked")) << "another table: " << run().out;
  const Finished set = stepgate({"check", "--set", "kernels.layer_norm=none.toml", file});
  EXPECT_TRUE(contains(set.out + set.err, "none.toml")) << set.out << set.err;
}

TEST_F(KernelVerb, APlanSaysWhoLaunchesWhatTheLibraryDoesNotSupport) {
  const std::string file =
      scenario_with("layer_norm = { library = \"libmine.so\", otherwise = \"ours\" }");
  const Finished plan = stepgate({"plan", file, "--variant", "mine"});
  EXPECT_TRUE(contains(plan.out, "layer_norm by libmine.so:layer_norm or ours")) << plan.out;
  const Finished both = stepgate(
      {"check", scenario_with("layer_norm = { library = \"m.so\", otherwise = \"ours\", launches "
                              "= 2 }")});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(contains(both.err, "step.toml:18:")) << both.err;
}

// Both sides run this program; the simulated device takes the declared time of both libraries.
TEST_F(KernelVerb, AGateOfLibrariesComparesTwoBuilds) {
  std::filesystem::copy_file(place() / library(), place() / "new.so");
  const std::string timed =
      "layer_norm = { library = \"libmine.so\", function = \"layer_norm\", time_us = 8 }";
  const std::string file = scenario_with(timed);
  const auto gate = [&](const std::string& head, const std::string& scenario) {
    return stepgate({"gate", "--base-kernels", "libmine.so", "--head-kernels", head, "--device",
                     "simulated", "--seed", "1", scenario});
  };
  const Finished same = gate("new.so", file);
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_TRUE(contains(same.out, "libmine.so")) << same.out;
  EXPECT_EQ(gate("absent.so", file).exit_code, 2);
  std::ofstream(place() / "norm.cu") << "// my norm\n\nint layer_norm(const void*) {}\n";
  // Without a time neither side can be counted, which is a fault of the scenario and not of HEAD.
  const std::string timeless = scenario_with("layer_norm = \"libmine.so\"");
  const auto sourced = [&](const std::string& source) {
    return stepgate({"gate", "--base-kernels", "libmine.so", "--head-kernels", "new.so", "--source",
                     source, "--device", "simulated", "--seed", "1", "--annotations", "github",
                     timeless});
  };
  const Finished failed = sourced("norm.cu");
  EXPECT_EQ(failed.exit_code, 3) << failed.out;
  // Both sides fail; the first of them is told. A source is that of HEAD.
  const std::string counts = ",title=counts.step/mine.counts ";
  EXPECT_TRUE(contains(failed.out, "::error file=step.toml,line=17" + counts) ||
              contains(failed.out, "::error file=norm.cu,line=3" + counts))
      << failed.out;
  EXPECT_TRUE(contains(failed.out, "::error file=norm.cu,line=3,title=assertions.")) << failed.out;
  EXPECT_EQ(sourced("nowhere.cu").exit_code, 2);
  const Finished without = gate("new.so", [&] {
    std::ofstream(place() / "ours.toml")
        << "claim = \"x\"\n[variant.a]\n[expect]\nx = \"a.launches_per_step >= 1\"\n";
    return std::string("ours.toml");
  }());
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_TRUE(contains(without.err, "launches no kernel of a library")) << without.err;
  write_small_cubin(place() / "ln.cubin");
  write_table_of(place() / "new.toml", "ln_fwd");
  (void)scenario_with(timed);
  EXPECT_EQ(gate("new.toml", file).exit_code, 0) << gate("new.toml", file).err;
  write_table_of(place() / "new.toml", "ln_bwd");
  EXPECT_EQ(gate("new.toml", file).exit_code, 2);
}

}  // namespace
}  // namespace stepgate
