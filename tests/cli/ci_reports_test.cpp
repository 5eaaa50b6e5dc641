// SPDX-License-Identifier: MIT
// Tests the reports for CI systems from outside: JUnit with python's XML parser, the summary and
// annotations as GitHub's runner gets them, and JSON against its schema. Also tests runs that end
// early.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/command_line.h"
#include "tests/cli/validate_json.h"
#include "tests/sanitized.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

// Prints one test case per line: name, result, file, line, and whether attribute and content agree.
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

// Checks that a page is valid XML and HTML and loads nothing. Prints its verdict, its exit code,
// and every assertion with its badge, one per line, with "open" where it is not collapsed.
constexpr const char* read_page = R"py(
import html.parser, re, sys, xml.etree.ElementTree as E
text = open(sys.argv[1], encoding="utf-8").read()
root = E.fromstring(text)
assert root.tag == "html" and root.get("lang") == "en"
void = {"meta", "link", "img", "br", "hr", "input", "base", "embed", "source", "area", "col", "wbr"}
class Reader(html.parser.HTMLParser):
    stack = []
    def handle_starttag(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form", "a", "image", "use"), tag
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("src", "href", "xlink:href", "srcset", "action", "data"), name
            assert "url(" not in (value or "") or value.startswith("url(#"), value
        if tag not in void: self.stack.append(tag)
    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in void: self.stack.pop()
    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, "closed out of order: " + tag
reader = Reader()
reader.feed(text)
reader.close()
assert reader.stack == [], reader.stack
style = root.find("head/style").text
assert "@import" not in style and "url(" not in style and "@font-face" not in style
policy = [m for m in root.iter("meta") if m.get("http-equiv") == "Content-Security-Policy"]
assert len(policy) == 1 and policy[0].get("content").startswith("default-src 'none'")
assert not re.search("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e]", text.replace("\n", "").replace("\t", "")), "a control character"
ids = [e.get("id") for e in root.iter() if e.get("id")]
assert len(set(ids)) == len(ids), "an id twice"
for used in re.findall(r"url\(#([^)]*)\)", text):
    assert used in ids, used
for table in root.iter("table"):
    assert table.find("caption").text and table.find(".//th[@scope]") is not None
for svg in root.iter("svg"):
    assert svg.get("role") == "img" and svg.get("aria-label")
parents = {child: parent for parent in root.iter() for child in parent}
def is_open(element):
    while element in parents:
        element = parents[element]
        if element.tag == "details" and not element.get("open"): return "folded"
    return "open"
print("verdict:", "".join(root.find(".//p[@class='verdict bad']").itertext()) if root.find(".//p[@class='verdict bad']") is not None
      else "".join(next(p for p in root.iter("p") if p.get("class", "").startswith("verdict")).itertext()))
for p in root.find("body/main/header").iter("p"):
    if (p.text or "").startswith(("Exit", "No exit", "SIMULATED")): print(p.text)
for item in root.iter("li"):
    if item.find("div/h4") is None: continue
    print(item.find("div/span").text, item.find("div/h4").text, is_open(item), "drawn" if item.find(".//svg") is not None else "in words")
for figure in root.iter("figure"):
    print("figure", figure.find("div").get("aria-label"), is_open(figure))
)py";

class CiReports : public CommandLine {
 protected:
  Finished python(const std::string& script, const std::vector<std::string>& arguments) const {
    write("script.py", script);
    std::vector<std::string> words{(place() / "script.py").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return ChildProcess(STEPGATE_PYTHON, words, place()).wait();
  }

  // Returns the cases in the file, after checking its format.
  std::string cases_in(const std::string& file) const {
    const Finished read = python(read_junit, {file});
    EXPECT_EQ(read.exit_code, 0) << read.err << text_of(place() / file);
    return read.out;
  }

  std::string page_in(const std::string& file) const {
    const Finished read = python(read_page, {file});
    EXPECT_EQ(read.exit_code, 0) << read.err << text_of(place() / file).substr(0, 20000);
    return read.out;
  }

  // Runs with additional environment variables.
  Finished simulate_in(std::vector<std::string> environment,
                       const std::vector<std::string>& arguments) const {
    const std::vector<std::string> words = simulating(arguments);
    environment.emplace_back(STEPGATE_PROGRAM);
    environment.insert(environment.end(), words.begin(), words.end());
    return ChildProcess("/usr/bin/env", environment, place()).wait();
  }
};

// The scenario `foreign` tries to break out of reports.
const std::string foreign =
    "claim = \"::error file=x::hi ]]> <b> | \\u001b[31m\"\n"
    "model = { kind = \"spin\", kernel_us = 20 }\n"
    "[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n"
    "[expect]\nline = \"fix.samples_per_s >= 3 * baseline.samples_per_s\"\n";

TEST_F(CiReports, WriteJunitThatAStrangerReads) {
  write("suite/holding.toml", holding);
  write("suite/failed.toml", fails);
  write("suite/undecided.toml", undecided);
  EXPECT_EQ(simulate({"suite", "--junit", "out/j.xml"}).exit_code, 1);
  EXPECT_EQ(cases_in("out/j.xml"),
            "failed.line failure:fails suite/failed.toml 8\n"
            "holding.line passed suite/holding.toml 8\n"
            "undecided.line skipped:undecided suite/undecided.toml 7\n");
  simulate({"suite", "--junit", "out/j.xml", "--undecided", "fail"});
  EXPECT_TRUE(contains(cases_in("out/j.xml"), "undecided.line failure:undecided"));
}

TEST_F(CiReports, WriteAPageThatShowsWhatDidNotHoldFirst) {
  write("suite/holding.toml", holding);
  write("suite/failed.toml", fails);
  write("suite/undecided.toml", undecided);
  EXPECT_EQ(simulate({"suite", "--report", "out/r.html"}).exit_code, 1);
  EXPECT_EQ(page_in("out/r.html"),
            "verdict: Failed\n"
            "SIMULATED: times are computed, nothing was measured\n"
            "Exit code 1: something fails, or blocks\n"
            "fails line open drawn\n"
            "undecided line open drawn\n"
            "passes line folded drawn\n"
            "figure Timelines of failed open\n"
            "figure Memory of failed open\n"
            "figure Timelines of undecided open\n"
            "figure Memory of undecided open\n"
            "figure Timelines of holding folded\n"
            "figure Memory of holding folded\n");
  const std::string page = text_of(place() / "out/r.html");
  for (const char* words : {"half the kernels take half the time", "3 * baseline.samples_per_s",
                            "suite/failed.toml:8", "5 rounds of", "simulated GPU seconds",
                            "a simulated ", "the limit is 3x", "0000000000000001"})
    EXPECT_TRUE(contains(page, words)) << words;
  EXPECT_EQ(simulate({"suite/holding.toml", "--report", "one.html"}).exit_code, 0);
  EXPECT_EQ(page_in("one.html"),
            "verdict: Everything passes\n"
            "SIMULATED: times are computed, nothing was measured\n"
            "Exit code 0: nothing stands in the way\n"
            "passes line open drawn\n"
            "figure Timelines of holding open\n"
            "figure Memory of holding open\n");
}

TEST_F(CiReports, WriteAPageOfTheWholeSuiteThatABrowserOpensAtOnce) {
  if (sanitized) GTEST_SKIP() << "its size is that of the page as released";
  simulate({STEPGATE_SOURCE_DIR "/scenarios", "--report", "r.html"});
  EXPECT_LT(std::filesystem::file_size(place() / "r.html"), 3U * 1024 * 1024);
  (void)page_in("r.html");
  EXPECT_TRUE(contains(text_of(place() / "r.html"), "are left out here"));
}

TEST_F(CiReports, GiveTwoScenariosOfOneNameTwoNames) {
  write("x/a.toml", holding);
  write("y/a.toml", fails);
  EXPECT_EQ(simulate({"x", "y", "--junit", "j.xml"}).exit_code, 1);
  EXPECT_EQ(cases_in("j.xml"),
            "a.line passed x/a.toml 8\n"
            "a.line (2) failure:fails y/a.toml 8\n");
}

TEST_F(CiReports, KeepForeignTextInItsPlace) {
  write("foreign.toml", foreign);
  const Finished run = simulate(
      {"foreign.toml", "--junit", "j.xml", "--summary", "s.md", "--annotations", "github"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_EQ(cases_in("j.xml"), "foreign.line failure:fails foreign.toml 8\n");
  EXPECT_FALSE(contains(text_of(place() / "s.md"), "<b>"));
  EXPECT_FALSE(contains(text_of(place() / "s.md"), "\n::error"));
  // The report may contain commands: GitHub ignores them between the two commands.
  std::smatch token;
  ASSERT_TRUE(std::regex_search(run.out, token, std::regex("^::stop-commands::(\\S{20,})\n")))
      << run.out;
  const std::size_t resumed = run.out.find("\n::" + token[1].str() + "::\n");
  ASSERT_NE(resumed, std::string::npos) << run.out;
  EXPECT_LT(run.out.rfind("foreign: fails"), resumed);
  const std::string heard = run.out.substr(resumed + token[1].str().size() + 6);
  EXPECT_EQ(heard.find("::error file=foreign.toml,line=8,title=foreign.line fails (SIMULATED)::"),
            0U)
      << heard;
  EXPECT_EQ(std::count(heard.begin(), heard.end(), '\n'), 1) << heard;
  // The next token must be unpredictable.
  const Finished again = simulate({"foreign.toml", "--annotations", "github"});
  EXPECT_FALSE(contains(again.out, token[1].str()));
}

TEST_F(CiReports, LetNothingThatAFileSaysRunInAPage) {
  write("foreign.toml",
        "claim = \"</title></style><script>window.planted=1</script><img src=x onerror=alert(1)> & "
        "'q' \\\"q\\\" ]]> \\u0000 \\u001b[31m \\u202e \\ufffe\"\n"
        "model = { kind = \"spin\", kernel_us = 20 }\n"
        "[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n"
        "[expect]\nline = \"fix.samples_per_s >= 3 * baseline.samples_per_s\"\n");
  EXPECT_EQ(simulate({"foreign.toml", "--report", "r.html"}).exit_code, 1);
  EXPECT_TRUE(contains(page_in("r.html"), "fails line open"));
  const std::string page = text_of(place() / "r.html");
  EXPECT_TRUE(contains(page, "&lt;script&gt;window.planted=1&lt;/script&gt;"));
  EXPECT_TRUE(contains(page, "\\x1b[31m \\u202e \\ufffe")) << page.substr(0, 20000);
  // Checks that the reader of these tests detects unescaped text.
  write("planted.html", std::regex_replace(page, std::regex("&lt;(/?script)&gt;"), "<$1>"));
  EXPECT_NE(python(read_page, {"planted.html"}).exit_code, 0);
  write("loads.html", std::regex_replace(page, std::regex("<main>"), "<main><img src=\"x\"/>"));
  EXPECT_NE(python(read_page, {"loads.html"}).exit_code, 0);
}

TEST_F(CiReports, SpeakToGitHubWhereItListens) {
  write("failed.toml", fails);
  EXPECT_FALSE(contains(simulate({"failed.toml"}).out, "::error"));
  const Finished there =
      simulate_in({"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY=page.md"}, {"failed.toml"});
  EXPECT_TRUE(contains(there.out, "::error file=failed.toml,line=8")) << there.out;
  EXPECT_TRUE(contains(text_of(place() / "page.md"), "1 failed, 0 of 1 assertions passed"));
  simulate_in({"GITHUB_STEP_SUMMARY=page.md"}, {"failed.toml"});
  const std::string page = text_of(place() / "page.md");
  EXPECT_NE(page.find("## stepgate"), page.rfind("## stepgate")) << page;  // appended
  const Finished silent = simulate_in({"GITHUB_ACTIONS=true", "GITHUB_STEP_SUMMARY="},
                                      {"failed.toml", "--annotations", "none"});
  EXPECT_FALSE(contains(silent.out, "::")) << silent.out;
  const Finished wrong = simulate({"failed.toml", "--annotations", "gitlab"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "there is no --annotations 'gitlab'; say github or none"));
}

TEST_F(CiReports, NeverMakeThePageOfAStepLargerThanItMayBe) {
  write("failed.toml", fails);
  write("page.md", std::string(1024 * 1024 - 100, 'x'));
  EXPECT_EQ(simulate_in({"GITHUB_STEP_SUMMARY=page.md"}, {"failed.toml"}).exit_code, 1);
  EXPECT_LE(std::filesystem::file_size(place() / "page.md"), 1024U * 1024U);
  const Finished unwritable =
      simulate_in({"GITHUB_STEP_SUMMARY=failed.toml/page.md"}, {"failed.toml"});
  EXPECT_EQ(unwritable.exit_code, 1);  // the verdict is not lost
  EXPECT_TRUE(contains(unwritable.err, "cannot be written")) << unwritable.err;
}

TEST_F(CiReports, ShowWhatIsWrongWithAFileAtItsLine) {
  write("bad.toml",
        "claim = \"x\"\n\"a\\n::error::x\" = 1\n[variant.a]\n[expect]\nl = \"1 == 1\"\n");
  write("r.html", "what another run left");
  const Finished run =
      simulate({"bad.toml", "--junit", "j.xml", "--report", "r.html", "--annotations", "github"});
  EXPECT_EQ(page_in("r.html"),
            "verdict: The request is wrong\n"
            "Exit code 2: the request is wrong, or a run cannot be trusted\n"
            "request stepgate.request open in words\n"
            "request stepgate.request open in words\n");
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
  write("r.html", "what another run left");
  ChildProcess run(STEPGATE_PROGRAM,
                   simulating({"a.toml", "endless.toml", "--junit", "j.xml", "--report", "r.html"}),
                   place());
  ASSERT_TRUE(run.says("a: passes", std::chrono::seconds(60)));
  ASSERT_TRUE(run.says("endless: can pass", std::chrono::seconds(60)));
  run.send(SIGKILL);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGKILL);
  EXPECT_EQ(cases_in("j.xml"),
            "a.line passed a.toml 8\n"
            "endless.line error:not run endless.toml 7\n");
  const std::string page = page_in("r.html");
  EXPECT_TRUE(contains(page,
                       "verdict: Not ended: still at work, or killed\n"
                       "SIMULATED: times are computed, nothing was measured\n"
                       "No exit code of a verdict: what is not decided below has not passed\n"
                       "not run endless.line open in words\n"
                       "passes line folded drawn\n"))
      << page;
}

TEST_F(CiReports, SayThatARunWasInterrupted) {
  write("endless.toml", endless);
  ChildProcess run(STEPGATE_PROGRAM,
                   simulating({"endless.toml", "--junit", "j.xml", "--report", "r.html"}), place());
  ASSERT_TRUE(run.says("endless: can pass", std::chrono::seconds(60)));
  run.send(SIGINT);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
  const std::string cases = cases_in("j.xml");
  EXPECT_TRUE(contains(cases, "stepgate.interrupted error:interrupted")) << cases;
  EXPECT_TRUE(contains(cases, "endless.line error:not run")) << cases;
  EXPECT_TRUE(contains(page_in("r.html"), "verdict: Interrupted: there is no verdict\n"));
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
  for (const char* option : {"--junit", "--summary", "--report"}) {
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

TEST_F(JsonSchema, DescribesWhatAllocatorsDo) {
  const Finished plan = stepgate({"plan", "--memory", "--json", "m.json",
                                  STEPGATE_SOURCE_DIR "/scenarios/shape_churn_under_cap.toml",
                                  STEPGATE_SOURCE_DIR "/scenarios/captured_allocations.toml"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_GT(lines_of("m.json"), 2);
  const Finished found = validated("m.json");
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
}

TEST_F(JsonSchema, DescribesThePointsOfASweep) {
  write("swept.toml",
        "claim = \"c\"\nmodel.kind = \"mlp\"\nalloc.with = \"caching\"\nalloc.when = \"op\"\n"
        "[sweep]\nmodel.workspace = [\"1 MiB\", \"2 MiB\"]\n[variant.step]\n"
        "[expect]\nno_waits = \"step.host_waits_per_step == 0\"\n");
  ASSERT_EQ(simulate({"swept.toml", "--json", "run.json"}).exit_code, 0);
  const Finished plan = stepgate({"plan", "--memory", "--json", "memory.json", "swept.toml"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  const Finished both = stepgate({"compare", "run.json", "run.json", "--json", "compare.json"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  for (const char* file : {"run.json", "memory.json", "compare.json"}) {
    const Finished found = validated(file);
    EXPECT_EQ(found.exit_code, 0) << file << found.out << found.err;
    std::ifstream lines(place() / file);
    const std::string text{std::istreambuf_iterator<char>(lines), {}};
    for (const char* point : {"1048576", "2097152"}) {
      EXPECT_TRUE(contains(text, std::string("\"point\":{\"model.workspace\":") + point + "}"))
          << file << text;
    }
  }
}

TEST_F(JsonSchema, DescribesEveryOutcome) {
  write("mixed/holding.toml", holding);
  write("mixed/failed.toml", fails);
  write("mixed/undecided.toml", undecided);
  write("mixed/needs.toml", two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s",
                                         "requires = { copy_engines = 60 }\n"));
  write("mixed/stored.toml", two_variants("fix.samples_per_s >= 0.5 * stored.fix.samples_per_s"));
  simulate({"mixed", "--json", "mixed.json"});
  ASSERT_EQ(lines_of("mixed.json"), 6);
  const Finished found = validated("mixed.json");
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
}

// Here each rank process has a GPU, which simulated devices lack.
TEST_F(JsonSchema, DescribesTheRanksOfADevice) {
  write("a.toml", holding);
  simulate({"a.toml", "--json", "a.json"});
  Json report = Json::parse(text_of(place() / "a.json"));
  Json& device = report.at("device");
  device.at("launcher") = "torchrun";
  device.at("ranks").push_back({{"host", "node-1"},
                                {"uuid", "GPU-a"},
                                {"communication",
                                 {{"library", "NCCL 2.28.9"},
                                  {"file", "/lib/libnccl.so.2"},
                                  {"settings", {{"NCCL_ALGO", "Ring"}}},
                                  {"links", {"", "NVLink"}}}}});
  write("ranks.json", report.dump() + "\n");
  const Finished found = validated("ranks.json");
  EXPECT_EQ(found.exit_code, 0) << found.out << found.err;
  device.at("ranks")[0].at("communication").erase("links");
  write("ranks.json", report.dump() + "\n");
  EXPECT_EQ(validated("ranks.json").exit_code, 1);
}

// A run on a GPU wrote these reports.
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
