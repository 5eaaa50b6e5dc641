// SPDX-License-Identifier: MIT
// Tests every kind of damage to every kind of stored file. Whatever an editor, a bad disk or a
// merge does to a line, the file is refused; and a file that is read is written again unchanged.
#include "ledger/record/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/files/temporary_folder.h"
#include "base/text/diagnostic.h"
#include "ledger/baseline/baseline_record.h"

namespace stepgate {
namespace {

const std::filesystem::path source = STEPGATE_SOURCE_DIR;

std::string content_of(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Format {
  std::string name;
  std::filesystem::path good;
  // Reads the file and returns its values as text. Throws RequestError.
  std::function<std::string(const std::filesystem::path&)> read_and_write;
};

std::vector<Format> formats() {
  return {{"baseline", source / "tests/golden/baseline.toml",
           [](const auto& file) { return baseline_text(read_baseline(file, "small")); }},
          {"ledger", source / "tests/golden/ledger.toml",
           [](const auto& file) { return baseline_text(read_baseline(file, "small")); }}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

bool is_key(const std::string& line) {
  return !line.empty() && line[0] != '#' && line.find(" = ") != std::string::npos;
}

// Every kind of damage to a line with a key, as the lines that replace it.
std::vector<std::vector<std::string>> damaged(const std::string& line) {
  const std::string key = line.substr(0, line.find(" = "));
  std::vector<std::vector<std::string>> all{{}, {line, line}, {line, "unheard_of = 1"}};
  for (const char* value : {"true", "1979-05-27", "nan", "-1e300", "\"\\u0000\"", "[[1]]", "{}"}) {
    all.push_back({key + " = " + value});
  }
  // Every digit of the value is changed, including those in lists and names.
  for (std::size_t at = key.size(); at < line.size(); ++at) {
    if (std::isdigit(static_cast<unsigned char>(line[at])) == 0) continue;
    std::string other = line;
    other[at] = other[at] == '9' ? '8' : static_cast<char>(other[at] + 1);
    all.push_back({other});
  }
  return all;
}

class Records : public testing::TestWithParam<Format> {};

TEST_P(Records, AreWrittenAgainAsTheyWereRead) {
  EXPECT_EQ(GetParam().read_and_write(GetParam().good), content_of(GetParam().good));
}

TEST_P(Records, AreRefusedWhateverHappensToALine) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "damaged.toml";
  const std::vector<std::string> good = lines_of(content_of(GetParam().good));
  int tried = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (!is_key(good[at]) || good[at].ends_with('[')) continue;
    for (const std::vector<std::string>& instead : damaged(good[at])) {
      std::vector<std::string> bad = good;
      bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(at));
      bad.insert(bad.begin() + static_cast<std::ptrdiff_t>(at), instead.begin(), instead.end());
      std::ofstream(file) << joined(bad);
      EXPECT_THROW((void)GetParam().read_and_write(file), RequestError)
          << "line " << at + 1 << " as " << joined(instead);
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

INSTANTIATE_TEST_SUITE_P(OfEveryFormat, Records, testing::ValuesIn(formats()),
                         [](const auto& format) { return format.param.name; });

// Covers all files in the repository, so that a change of the format cannot lose measured values.
TEST(CommittedRecords, AreWrittenAgainAsTheyWereRead) {
  int baselines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source / "baselines/nvidia-h200")) {
    const std::filesystem::path& file = entry.path();
    if (file.extension() != ".toml" || file.stem() == "device") continue;
    const Baseline baseline = read_baseline(file, file.stem().string());
    EXPECT_EQ(baseline_text(baseline), content_of(file)) << file;
    ++baselines;
  }
  EXPECT_GT(baselines, 10);
}

}  // namespace
}  // namespace stepgate
