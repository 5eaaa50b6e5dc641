// SPDX-License-Identifier: MIT
// A file as a stream of bytes, compressed by gzip or not, in pieces of bounded size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace stepgate {

// Longer texts are refused: a small compressed file may unfold to any length.
inline constexpr std::int64_t longest_trace_bytes = std::int64_t{4} << 30;

class ByteStream {
 public:
  // "-" is standard input. Throws RequestError placed at the file where it cannot be opened.
  explicit ByteStream(const std::filesystem::path&);
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) = delete;
  ~ByteStream();

  // The next piece, valid until the next call; empty at the end. Throws RequestError where the file
  // cannot be read, ends within its compressed data, or is too long.
  std::span<const char> next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stepgate
