// SPDX-License-Identifier: MIT
// The order among streams; the work itself is opaque.
#include "device/reference/stream_queues.h"

#include <utility>

#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::size_t index_of(StreamName stream) {
  return static_cast<std::size_t>(stream);
}

// The stream whose earlier operations one waits for besides its own, by CUDA's rule for the legacy
// default stream; itself when there is none.
constexpr StreamName waits_also_for(StreamName stream) {
  switch (stream) {
    case StreamName::compute:
      return StreamName::legacy;
    case StreamName::legacy:
      return StreamName::compute;
    case StreamName::side:
      break;
  }
  return stream;
}

}  // namespace

SharedMark StreamQueues::issue(StreamName stream, std::function<void()> work, SharedMark after) {
  Entry entry{std::move(work), std::move(after), std::make_shared<Mark>(), {}};
  const std::size_t other = index_of(waits_also_for(stream));
  entry.needed[other] = issued_[other];
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

std::vector<StreamName> StreamQueues::ready() const {
  std::vector<StreamName> streams;
  for (const StreamName stream : {StreamName::compute, StreamName::side, StreamName::legacy}) {
    const auto& queue = queues_[index_of(stream)];
    if (!queue.empty() && may_run(queue.front())) streams.push_back(stream);
  }
  return streams;
}

void StreamQueues::run_next(StreamName stream) {
  auto& queue = queues_[index_of(stream)];
  require(!queue.empty() && may_run(queue.front()), "only a ready stream is run");
  const Entry entry = std::move(queue.front());
  queue.pop_front();
  entry.work();
  entry.mark->done = true;
  ++done_[index_of(stream)];
}

bool StreamQueues::reached(StreamName stream, std::int64_t count) const {
  return done_[index_of(stream)] >= count;
}

}  // namespace stepgate
