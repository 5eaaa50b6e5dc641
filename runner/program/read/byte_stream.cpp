// SPDX-License-Identifier: MIT
#include "program/read/byte_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#if STEPGATE_ZLIB
#include <zlib.h>
#endif

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/files/open_file.h"
#include "base/text/diagnostic.h"

namespace stepgate {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;

[[noreturn]] void refuse(const std::string& file, const std::string& fact,
                         const std::string& way_out) {
  throw RequestError(Diagnostic{{file, 0, 0}, fact, way_out});
}

void refuse_other(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) refuse(path.string(), "is a folder", "name the traces in it");
  if (!S_ISREG(status.st_mode))
    refuse(path.string(), "is not an ordinary file", "read a pipe as `stepgate read -`");
}

OpenFile opened(const std::filesystem::path& path) {
  if (path == "-") return OpenFile(::dup(STDIN_FILENO));
  struct stat status {};
  // Opening a device may have side effects. What is open is checked again.
  if (::stat(path.c_str(), &status) == 0) refuse_other(path, status);
  OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.descriptor() < 0)
    refuse(path.string(), fmt::format("cannot be read: {}", std::strerror(errno)),
           "name a trace that torch.profiler exported");
  if (::fstat(file.descriptor(), &status) == 0) refuse_other(path, status);
  return file;
}

}  // namespace

struct ByteStream::State {
  explicit State(const std::filesystem::path& path)
      : file(path == "-" ? "standard input" : path.string()),
        source(opened(path)),
        piece(piece_bytes) {}

  std::string file;
  OpenFile source;
  std::vector<char> piece;
  std::int64_t in_all = 0;
#if STEPGATE_ZLIB
  std::unique_ptr<gzFile_s, decltype(&gzclose_r)> unfolded{nullptr, gzclose_r};
#endif
};

ByteStream::ByteStream(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {
#if STEPGATE_ZLIB
  // The library closes the descriptor that it is given.
  state_->unfolded.reset(gzdopen(::dup(state_->source.descriptor()), "rb"));
  if (state_->unfolded == nullptr) throw std::bad_alloc();
  gzbuffer(state_->unfolded.get(), piece_bytes);
#endif
}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

std::span<const char> ByteStream::next() {
  State& state = *state_;
#if STEPGATE_ZLIB
  const std::int64_t taken = gzread(state.unfolded.get(), state.piece.data(), piece_bytes);
  int failure = Z_OK;
  const char* words = gzerror(state.unfolded.get(), &failure);
  if (failure != Z_OK)
    refuse(state.file,
           failure == Z_ERRNO ? fmt::format("cannot be read: {}", std::strerror(errno))
                              : fmt::format("its compressed data are damaged: {}", words),
           "export it again");
#else
  const std::int64_t taken =
      ::read(state.source.descriptor(), state.piece.data(), state.piece.size());
  if (taken < 0)
    refuse(state.file, fmt::format("cannot be read: {}", std::strerror(errno)), "export it again");
  const bool is_compressed =
      state.in_all == 0 && taken >= 2 && state.piece[0] == '\x1f' && state.piece[1] == '\x8b';
  if (is_compressed)
    refuse(state.file, "is compressed, and this stepgate was built without zlib",
           "pipe it: gzip -dc FILE | stepgate read -");
#endif
  state.in_all += taken;
  if (state.in_all > longest_trace_bytes)
    refuse(state.file, fmt::format("is longer than {} GiB", longest_trace_bytes >> 30),
           "record fewer steps: schedule(active=...) of torch.profiler");
  return {state.piece.data(), static_cast<std::size_t>(taken)};
}

}  // namespace stepgate
