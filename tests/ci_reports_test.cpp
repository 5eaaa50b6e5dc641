// SPDX-License-Identifier: MIT
// The reports that CI systems read, from outside: JUnit as python's XML parser sees it, the step's
// summary and annotations as GitHub's runner would get them, and JSON against its schema. Also of
// runs that do not come to their end.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/command_line.h"
#include "tests/validate_json.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

// One test case a line: name, how it ends, file, line, and whether attribute and content agree.
constexpr const char* read_junit = R"py(
import sys, xml.etree.ElementTree as E
root = E.parse(sys.argv[1]).getroot()
cases = root.findall("./testsuite/testcase")
assert root.tag == "testsuites"
names = [c.get("name") for c in cases]
assert len(set(names)) == len(names), "two cases of one name"
for attribute, kind in ("failures", "failure"), ("errors", "error"), ("skipped", "skipped"):
    assert int(root.get(attribute)) == len(root.findall(".//" + kind)), attribute
    for suite in root.findall("testsuite"):
        assert int(suite.get(attribute)) == len(suite.findall(".//" + kind)), attribute
assert int(root.get("tests")) == len(cases)
for suite in root.findall("testsuite"):
    for attribute in "name", "tests", "time", "timestamp", "hostname":
        assert suite.get(attribute), attribute
for case in cases:
    ends = [e for e in case if e.tag in ("failure", "error", "skipped")]
    assert len(ends) <= 1, "a case that ends twice"
    assert float(case.get("time")) >= 0 and case.get("classname")
    for e in ends:
        assert e.get("message") and e.get("message") == e.text, "attribute and content differ"
        assert e.get("type")
    end = ends[0].tag + ":" + ends[0].get("type") if ends else "passed"
    print(case.get("name"), end, case.get("file"), case.get("line"))
)py";

class CiReports : public CommandLine {
 protected:
  Finished python(const std::string& script, const std::vector<std::string>& arguments) const {
    write("script.py", script);
    std::vector<std::string> words{(place() / "script.py").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return ChildProcess(STEPGATE_PYTHON, words, place()).wait();
  }

  // What is read from the file, which must be as readers want it.
  std::string cases_in(const std::string& file) const {
    const Finished read = python(read_junit, {file});
    EXPECT_EQ(read.exit_code, 0) << read.err << text_of(place() / file);
    return read.out;
  }

  // In an environment with more in it.
  Finished simulate_in(std::vector<std::string> environment,
                       const std::vector<std::string>& arguments) const {
    const std::vector<std::string> words = simulating(arguments);
    environment.emplace_back(STEPGATE_PROGRAM);
    environment.insert(environment.end(), words.begin(), words.end());
    return ChildProcess("/usr/bin/env", environment, place()).wait();
  }
};

// Whoever names a scenario `foreign` tries to get out of a report.
const std::string foreign =
    "claim = \"::error file=x::hi ]]> <b> | \\u001b[31m\"\n"
    "model = { kind = \"spin\", kernel_us = 20 }\n"
    "[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n"
    "[expect]\nline = \"fix.samples_per_s >= 3 * baseline.samples_per_s\"\n";

TEST_F(CiReports, WriteJunitThatAStrangerReads) {
  write("suite/holding.toml", holding);
  write("suite/refuted.toml", refuted);
  write("suite/undecided.toml", undecided);
  EXPECT_EQ(simulate({"suite", "--junit", "out/j.xml"}).exit_code, 1);
  EXPECT_EQ(cases_in("out/j.xml"),
            "holding.line passed suite/holding.toml 8\n"
            "refuted.line failure:refuted suite/refuted.toml 8\n"
            "undecided.line skipped:undecided suite/undecided.toml 7\n");
  simulate({"suite", "--junit", "out/j.xml", "--undecided", "fail"});
  EXPECT_TRUE(contains(cases_in("out/j.xml"), "undecided.line failure:undecided"));
}

TEST_F(CiReports, GiveTwoScenariosOfOneNameTwoNames) {
  write("x/a.toml", holding);
  write("y/a.toml", refuted);
  EXPECT_EQ(simulate({"x", "y", "--junit", "j.xml"}).exit_code, 1);
  EXPECT_EQ(cases_in("j.xml"),
            "a.line passed x/a.toml 8\n"
            "a.line (2) failure:refuted y/a.toml 8\n");
}

TEST_F(CiReports, KeepForeignTextInItsPlace) {
  write("foreign.toml", foreign);
  const Finished run = simulate(
      {"foreign.toml", "--junit", "j.xml", "--summary", "s.md", "--annotations", "github"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(cases_in("j.xml"), "foreign.line failure:refuted foreign.toml 8\n");
  EXPECT_FALSE(contains(text_of(place() / "s.md"), "<b>"));
  EXPECT_FALSE(contains(text_of(place() / "s.md"), "\n::error"));
  // The report itself may say what it likes: between the two commands nobody listens.
  std::smatch token;
  ASSERT_TRUE(std::regex_search(run.out, token, std::regex("^::stop-commands::(\\S{20,})\n")))
      << run.out;
  const std::size_t resumed = run.out.find("\n::" + token[1].str() + "::\n");
  ASSERT_NE(resumed, std::string::npos) << run.out;
  EXPECT_LT(run.out.rfind("foreign: refuted"), resumed);
  const std::string heard = run.out.substr(resumed + token[1].str().size() + 6);
  EXPECT_EQ(heard.find("::error file=foreign.toml,line=8,title=foreign.line refuted (SIMULATED)::"),
            0U)
      << heard;
  EXPECT_EQ(std::count(heard.begin(), heard.end(), '\n'), 1) << heard;
  // Nobody can know the next token.
  const Finished again = simulate({"foreign.toml", "--annotations", "github"});
  EXPECT_FALSE(contains(again.out, token[1].str()));
}

TEST_F(CiReports, SpeakToGitHubWhereItListens) {
  write("refuted.toml", refuted);
  EXPECT_FALSE(contains(simulate({"refuted.toml"}).out, "::error"));
  const Finished there =
      simulate_in({"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=page.md"}, {"refuted.toml"});
  EXPECT_TRUE(contains(there.out, "::error file=refuted.toml,line=8")) << there.out;
  EXPECT_TRUE(contains(text_of(place() / "page.md"), "1 failed, 0 of 1 sentences passed"));
  simulate_in({"GITHUB_STEP_SUMMARY=page.md"}, {"refuted.toml"});
  const std::string page = text_of(place() / "page.md");
  EXPECT_NE(page.find("## stepgate"), page.rfind("## stepgate")) << page;  // appended
  const Finished silent = simulate_in({"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="},
                                      {"refuted.toml", "--annotations", "none"});
  EXPECT_FALSE(contains(silent.out, "::")) << silent.out;
  const Finished wrong = simulate({"refuted.toml", "--annotations", "gitlab"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "there is no --annotations 'gitlab'; say github or none"));
}

TEST_F(CiReports, NeverMakeThePageOfAStepLargerThanItMayBe) {
  write("refuted.toml", refuted);
  write("page.md", std::string(1024 * 1024 - 100, 'x'));
  EXPECT_EQ(simulate_in({"GITHUB_STEP_SUMMARY=page.md"}, {"refuted.toml"}).exit_code, 1);
  EXPECT_LE(std::filesystem::file_size(place() / "page.md"), 1024U * 1024U);
  const Finished unwritable =
      simulate_in({"GITHUB_STEP_SUMMARY=refuted.toml/page.md"}, {"refuted.toml"});
  EXPECT_EQ(unwritable.exit_code, 1);  // the verdict is not lost
  EXPECT_TRUE(contains(unwritable.err, "cannot be written")) << unwritable.err;
}

TEST_F(CiReports, ShowWhatIsWrongWithAFileAtItsLine) {
  write("bad.toml",
        "claim = \"x\"\n\"a\\n::error::x\" = 1\n[variant.a]\n[expect]\nl = \"1 == 1\"\n");
  const Finished run = simulate({"bad.toml", "--junit", "j.xml", "--annotations", "github"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(cases_in("j.xml"), "stepgate.request error:request bad.toml 2\n"));
  EXPECT_TRUE(contains(run.out, "::error file=bad.toml,line=2,title=stepgate.request")) << run.out;
  EXPECT_FALSE(contains(run.err, "\n::error")) << run.err;
}

TEST_F(CiReports, LetNothingPassThatADeviceDidNotGetTo) {
  write("a.toml", holding);
  write("big.toml",
        "claim = \"too big\"\nmodel = { hidden = 65536, layers = 64 }\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  const Finished run = simulate({"a.toml", "big.toml", "--junit", "j.xml", "--summary", "s.md"});
  EXPECT_NE(run.exit_code, 0);
  const std::string cases = cases_in("j.xml");
  EXPECT_TRUE(contains(cases, "a.line passed")) << cases;
  EXPECT_TRUE(contains(cases, "big.line error:")) << cases;
  EXPECT_TRUE(contains(text_of(place() / "s.md"), "could not be tried"));
}

TEST_F(CiReports, AreNotGreenWhenTheRunIsKilled) {
  write("a.toml", holding);
  write("endless.toml", endless);
  ChildProcess run(STEPGATE_PROGRAM, simulating({"a.toml", "endless.toml", "--junit", "j.xml"}),
                   place());
  ASSERT_TRUE(run.says("a: holds", std::chrono::seconds(60)));
  ASSERT_TRUE(run.says("endless: can hold", std::chrono::seconds(60)));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGKILL);
  EXPECT_EQ(cases_in("j.xml"),
            "a.line passed a.toml 8\n"
            "endless.line error:not run endless.toml 7\n");
}

TEST_F(CiReports, SayThatARunWasInterrupted) {
  write("endless.toml", endless);
  ChildProcess run(STEPGATE_PROGRAM, simulating({"endless.toml", "--junit", "j.xml"}), place());
  ASSERT_TRUE(run.says("endless: can hold", std::chrono::seconds(60)));
  run.send(SIGINT);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
  const std::string cases = cases_in("j.xml");
  EXPECT_TRUE(contains(cases, "stepgate.interrupted error:interrupted")) << cases;
  EXPECT_TRUE(contains(cases, "endless.line error:not run")) << cases;
}

#ifndef STEPGATE_WITH_CUDA
TEST_F(CiReports, AreNotGreenWhereThereIsNoGpu) {
  write("a.toml", holding);
  (void)stepgate({"run", "a.toml", "--junit", "j.xml"});
  const std::string cases = cases_in("j.xml");
  EXPECT_TRUE(contains(cases, " error:")) << cases;
}
#endif

TEST_F(CiReports, RefuseAFileThatCannotBeWrittenBeforeAnythingIsMeasured) {
  write("a.toml", holding);
  for (const char* option : {"--junit", "--summary"}) {
    const Finished refusal = simulate({"a.toml", option, "a.toml/x"});
    EXPECT_EQ(refusal.exit_code, 2);
    EXPECT_EQ(refusal.out, "");
    EXPECT_TRUE(contains(refusal.err, "a.toml/x: cannot be written")) << refusal.err;
  }
}

class JsonSchema : public CiReports {
 protected:
  Finished validated(const std::string& file) const {
    return python(validate_json, {STEPGATE_SOURCE_DIR "/docs/json_schema.json", file});
  }
};

TEST_F(JsonSchema, DescribesTheWholeSuite) {
  simulate({STEPGATE_SOURCE_DIR "/scenarios", "--json", "suite.json"});
  ASSERT_GT(lines_of("suite.json"), 40);
  const Finished found = validated("suite.json");
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
}

TEST_F(JsonSchema, DescribesEveryOutcome) {
  write("mixed/holding.toml", holding);
  write("mixed/refuted.toml", refuted);
  write("mixed/undecided.toml", undecided);
  write("mixed/needs.toml", two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s",
                                         "requires = { copy_engines = 60 }\n"));
  write("mixed/stored.toml", two_variants("fix.samples_per_s >= 0.5 * stored.fix.samples_per_s"));
  simulate({"mixed", "--json", "mixed.json"});
  ASSERT_EQ(lines_of("mixed.json"), 6);
  const Finished found = validated("mixed.json");
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
}

// What a run on a GPU wrote.
TEST_F(JsonSchema, DescribesTheRunsThatTheRepositoryKeeps) {
  const std::filesystem::path kept = STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/suite";
  for (const auto& entry : std::filesystem::directory_iterator(kept)) {
    if (entry.path().extension() != ".json") continue;
    const Finished found = validated(entry.path().string());
    EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
  }
}

TEST_F(JsonSchema, FindsWhatItDoesNotDescribe) {
  write("a.toml", holding);
  simulate({"a.toml", "--json", "a.json"});
  const Json report = Json::parse(text_of(place() / "a.json"));
  const std::vector<std::pair<const char*, std::string>> changes{
      {"another schema", R"([{"op": "replace", "path": "/schema", "value": 999}])"},
      {"a field more", R"([{"op": "add", "path": "/expect/0/extra", "value": 1}])"},
      {"a field less", R"([{"op": "remove", "path": "/outcome"}])"},
      {"another type", R"([{"op": "replace", "path": "/seed", "value": 12}])"},
      {"an outcome that there is not", R"([{"op": "replace", "path": "/outcome", "value": "ok"}])"},
      {"a segment without its time",
       R"([{"op": "remove", "path": "/measurement/rounds/0/0/elapsed_ns"}])"}};
  for (const auto& [name, change] : changes) {
    write("changed.json", report.patch(Json::parse(change)).dump() + "\n");
    EXPECT_EQ(validated("changed.json").exit_code, 1) << name;
  }
}

}  // namespace
}  // namespace stepgate
