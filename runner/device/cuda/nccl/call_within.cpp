// SPDX-License-Identifier: MIT
#include "device/cuda/nccl/call_within.h"

#include <future>
#include <thread>
#include <utility>

namespace stepgate {

std::optional<int> call_within(std::chrono::nanoseconds limit, std::function<int()> call) {
  std::packaged_task<int()> task(std::move(call));
  std::future<int> answer = task.get_future();
  std::thread thread(std::move(task));
  if (answer.wait_for(limit) != std::future_status::ready) {
    thread.detach();
    return std::nullopt;
  }
  thread.join();
  return answer.get();
}

}  // namespace stepgate
