// SPDX-License-Identifier: MIT
#include "base/text/visible_stream.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

namespace stepgate {
namespace {

// Gives a stream another buffer for a while.
class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(&text_)) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { stream_.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostream& stream_;
  std::stringbuf text_;
  std::streambuf* before_;
};

TEST(VisibleStream, LetsNoCommandThroughHoweverItIsPrinted) {
  const Captured output(std::cout);
  const Captured errors(std::cerr);
  {
    const VisibleStreams visible(false, true);
    std::cout << "a::b\n  :" << std::flush << ":error::x\x1b[31m\n" << 1.5 << ':';
    std::cerr << "\x1b[31mred\x1b[0m \u00a0\x1b[2J" << '\n'
              << "##"
              << "vso[";
    as_it_is(std::cout) << "\n::ours::\n";
    std::cout << "::theirs::" << std::endl;
  }
  EXPECT_EQ(output.text(), "a::b\n  \\x3a:error::x\\x1b[31m\n1.5:\n::ours::\n\\x3a:theirs::\n");
  EXPECT_EQ(errors.text(), "\x1b[31mred\x1b[0m \\xa0\\x1b[2J\n\\x23#vso[");
}

TEST(VisibleStream, TellsOfOutputThatCannotBeWritten) {
  class Full : public std::streambuf {
  } full;
  std::streambuf* const before = std::cout.rdbuf(&full);
  {
    const VisibleStreams visible(false, false);
    EXPECT_FALSE(std::cout << "a");
  }
  std::cout.rdbuf(before);
  std::ostringstream other;
  EXPECT_EQ(&as_it_is(other), &other);
}

}  // namespace
}  // namespace stepgate
