// SPDX-License-Identifier: MIT
// The order among streams; the work is an opaque function.
#include "device/reference/stream_queues.h"

#include <utility>

#include "base/require.h"

namespace stepgate {
namespace {

constexpr std::size_t index_of(int stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

StreamQueues::StreamQueues(const std::vector<Stream>& streams)
    : streams_(streams), queues_(streams.size()), issued_(streams.size()), done_(streams.size()) {}

SharedMark StreamQueues::issue(int stream, std::function<void()> work, SharedMark after) {
  Entry entry{std::move(work), std::move(after), std::make_shared<Mark>(),
              IssuedCounts(streams_.size())};
  for (std::size_t other = 0; other < streams_.size(); ++other) {
    if (wait_for_each_other(streams_[index_of(stream)], streams_[other]))
      entry.needed[other] = issued_[other];
  }
  SharedMark mark = entry.mark;
  queues_[index_of(stream)].push_back(std::move(entry));
  ++issued_[index_of(stream)];
  return mark;
}

bool StreamQueues::may_run(const Entry& entry) const {
  if (entry.after && !entry.after->done) return false;
  for (std::size_t stream = 0; stream < entry.needed.size(); ++stream) {
    if (done_[stream] < entry.needed[stream]) return false;
  }
  return true;
}

std::vector<int> StreamQueues::ready() const {
  std::vector<int> streams;
  for (int stream = 0; stream < std::ssize(queues_); ++stream) {
    const auto& queue = queues_[index_of(stream)];
    if (!queue.empty() && may_run(queue.front())) streams.push_back(stream);
  }
  return streams;
}

void StreamQueues::run_next(int stream) {
  auto& queue = queues_[index_of(stream)];
  require(!queue.empty() && may_run(queue.front()), "only a ready stream is run");
  const Entry entry = std::move(queue.front());
  queue.pop_front();
  entry.work();
  entry.mark->done = true;
  ++done_[index_of(stream)];
}

bool StreamQueues::reached(int stream, std::int64_t count) const {
  return done_[index_of(stream)] >= count;
}

}  // namespace stepgate
