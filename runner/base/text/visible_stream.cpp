// SPDX-License-Identifier: MIT
#include "base/text/visible_stream.h"

#include <iostream>
#include <streambuf>
#include <string>

#include "base/text/visible_text.h"

namespace stepgate {

class VisibleStreams::Buffer : public std::streambuf {
 public:
  Buffer(std::ostream& stream, bool colours)
      : stream_(stream),
        text_({.lines = true, .colours = colours}),
        target_(stream.rdbuf(this)),
        as_it_is_(target_) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override {
    (void)write({}, VisibleText::Rest::none);
    target_->pubsync();
    stream_.rdbuf(target_);
  }

  std::ostream& as_it_is() {
    (void)write({}, VisibleText::Rest::none);
    text_.begin_line();  // what is printed as it is may end with one
    return as_it_is_;
  }

 protected:
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    const std::string_view piece(text, static_cast<std::size_t>(length));
    return write(piece, VisibleText::Rest::comes_later) ? length : 0;
  }
  int_type overflow(int_type letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    const char text = traits_type::to_char_type(letter);
    return xsputn(&text, 1) == 1 ? letter : traits_type::eof();
  }
  int sync() override { return target_->pubsync(); }

 private:
  bool write(std::string_view text, VisibleText::Rest rest) {
    const std::string safe = text_.add(text, rest);
    const auto length = static_cast<std::streamsize>(safe.size());
    return target_->sputn(safe.data(), length) == length;
  }

  std::ostream& stream_;
  VisibleText text_;
  std::streambuf* target_;
  std::ostream as_it_is_;
};

VisibleStreams::VisibleStreams(bool colours_of_output, bool colours_of_errors)
    : output_(std::make_unique<Buffer>(std::cout, colours_of_output)),
      errors_(std::make_unique<Buffer>(std::cerr, colours_of_errors)) {}

VisibleStreams::~VisibleStreams() = default;

std::ostream& as_it_is(std::ostream& stream) {
  auto* const visible = dynamic_cast<VisibleStreams::Buffer*>(stream.rdbuf());
  return visible == nullptr ? stream : visible->as_it_is();
}

}  // namespace stepgate
