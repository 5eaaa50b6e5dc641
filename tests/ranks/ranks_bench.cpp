// SPDX-License-Identifier: MIT
// ranks_bench [ranks] compares the time of collectives through a device's communicator with that of
// direct NCCL calls, on this number of GPUs (2) with one process each. Times are medians, on the
// slowest rank, by events on the device's clock; bandwidths are the bus bandwidths of nccl-tests.
// Small collectives are limited by the time in which the host issues them, unless captured in a
// graph.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "device/cuda/check.h"
#include "device/cuda/handles.h"
#include "device/cuda/nccl/nccl_communicator.h"
#include "device/cuda/nccl/nccl_words.h"
#include "plan/compose/step_names.h"
#include "tests/ranks/forked_ranks.h"

namespace stepgate {
namespace {

using std::chrono::steady_clock;

constexpr std::int64_t kibibytes = 1024;
constexpr std::array sizes{64 * kibibytes,        1024 * kibibytes,      4 * 1024 * kibibytes,
                           16 * 1024 * kibibytes, 64 * 1024 * kibibytes, 256 * 1024 * kibibytes};
constexpr std::array kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                           CollectiveKind::all_gather};
constexpr int warm_up = 5;
constexpr int repetitions = 20;
constexpr int turns = 7;

// Times of one call in nanoseconds, on the device and on the host that issues it.
struct Times {
  double device = 0;
  double host = 0;
};

struct Row {
  Times plain, ours;
  double captured = 0;  // a call through the device in a graph: device nanoseconds
};

constexpr std::size_t row_count = sizes.size() * kinds.size();
using Rows = std::array<Row, row_count>;

class PlainCommunicator {
 public:
  PlainCommunicator(const Nccl& nccl, const RankMembership& membership) : nccl_(nccl) {
    nccl_api::UniqueId id{};
    std::memcpy(id.bytes, membership.rendezvous.data(), sizeof id.bytes);
    nccl_api::Config config;
    const auto result =
        nccl.call().comm_init_rank_config(&handle_, membership.count, id, membership.rank, &config);
    if (result != nccl_api::success) throw DeviceError(nccl.describe(result, "join the others"));
  }
  ~PlainCommunicator() { (void)nccl_.call().comm_destroy(handle_); }
  PlainCommunicator(const PlainCommunicator&) = delete;
  PlainCommunicator& operator=(const PlainCommunicator&) = delete;

  void issue(const CollectiveCall& call, cudaStream_t stream) const {
    const auto count = static_cast<std::size_t>(call.elements);
    const nccl_api::Functions& nccl = nccl_.call();
    nccl_api::Result result = nccl_api::success;
    if (call.kind == CollectiveKind::all_reduce) {
      result = nccl.all_reduce(call.from, call.to, count, nccl_api::bfloat16, nccl_api::average,
                               handle_, stream);
    } else if (call.kind == CollectiveKind::reduce_scatter) {
      result = nccl.reduce_scatter(call.from, call.to, count, nccl_api::bfloat16, nccl_api::average,
                                   handle_, stream);
    } else {
      result = nccl.all_gather(call.from, call.to, count, nccl_api::bfloat16, handle_, stream);
    }
    if (result != nccl_api::success) throw DeviceError(nccl_.describe(result, "communicate"));
  }

 private:
  const Nccl& nccl_;
  nccl_api::Handle handle_ = nullptr;
};

// Returns a call in place, as steps make them.
CollectiveCall call_of(CollectiveKind kind, std::int64_t bytes, void* memory, int rank, int count) {
  const std::int64_t part = bytes / count;
  std::byte* whole = static_cast<std::byte*>(memory);
  std::byte* own = whole + rank * part;
  CollectiveCall call{.kind = kind,
                      .from = kind == CollectiveKind::all_gather ? own : whole,
                      .to = kind == CollectiveKind::reduce_scatter ? own : whole,
                      .elements = bytes / 2,
                      .dtype = DType::bf16};
  if (kind != CollectiveKind::all_reduce) call.elements = part / 2;
  return call;
}

// Times collectives of any class with this interface.
template <class Communicator>
Times time_of(Communicator& communicator, const CollectiveCall& call, cudaStream_t stream) {
  const CudaEvent first = make_event();
  const CudaEvent last = make_event();
  for (int times = 0; times < warm_up; ++times) communicator.issue(call, stream);
  check(cudaEventRecord(first.get(), stream), "mark the first collective");
  const auto begin = steady_clock::now();
  for (int times = 0; times < repetitions; ++times) communicator.issue(call, stream);
  const std::chrono::duration<double, std::nano> host = steady_clock::now() - begin;
  check(cudaEventRecord(last.get(), stream), "mark the last collective");
  check(cudaEventSynchronize(last.get()), "finish the collectives");
  return {.device = static_cast<double>(time_between(first, last).count()) / repetitions,
          .host = host.count() / repetitions};
}

Graph captured(NcclCommunicator& communicator, const CollectiveCall& call, cudaStream_t stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin to capture");
  for (int times = 0; times < repetitions; ++times) communicator.issue(call, stream);
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "capture collectives");
  return Graph(graph);
}

double captured_time(NcclCommunicator& communicator, const CollectiveCall& call,
                     cudaStream_t stream) {
  const Graph graph = captured(communicator, call, stream);
  cudaGraphExec_t instance = nullptr;
  check(cudaGraphInstantiate(&instance, graph.get(), 0), "instantiate collectives");
  const GraphExec executable(instance);
  const CudaEvent first = make_event();
  const CudaEvent last = make_event();
  std::vector<double> times;
  for (int turn = 0; turn < turns; ++turn) {
    // The first event follows another collective, so that all ranks have arrived.
    check(cudaGraphLaunch(instance, stream), "launch collectives");
    check(cudaEventRecord(first.get(), stream), "mark the first collective");
    check(cudaGraphLaunch(instance, stream), "launch collectives");
    check(cudaEventRecord(last.get(), stream), "mark the last collective");
    check(cudaEventSynchronize(last.get()), "finish the collectives");
    times.push_back(static_cast<double>(time_between(first, last).count()) / repetitions);
  }
  std::nth_element(times.begin(), times.begin() + turns / 2, times.end());
  return times[turns / 2];
}

Times median_of(std::vector<Times> all) {
  Times median;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end(),
                   [](const Times& a, const Times& b) { return a.device < b.device; });
  median.device = middle->device;
  std::nth_element(all.begin(), middle, all.end(),
                   [](const Times& a, const Times& b) { return a.host < b.host; });
  median.host = middle->host;
  return median;
}

Rows measure_rank(const RankChannel& channel) {
  check(cudaSetDevice(channel.rank()), "choose the GPU");
  const Nccl nccl;
  RankMembership membership{.rank = channel.rank(), .count = channel.count(), .rendezvous = {}};
  const auto id = [&] { return channel.rank() == 0 ? nccl.make_unique_id() : std::string(); };
  membership.rendezvous = channel.share(id());
  NcclCommunicator ours(nccl, membership,
                        [rank = channel.rank()] { check(cudaSetDevice(rank), "choose the GPU"); });
  membership.rendezvous = channel.share(id());
  const PlainCommunicator plain(nccl, membership);
  const CudaStream stream = make_stream(cudaStreamNonBlocking);
  const DeviceMemoryBlock memory = make_device_memory(sizes.back());
  check(cudaMemset(memory.get(), 0, static_cast<std::size_t>(sizes.back())), "zero the memory");
  Rows rows;
  std::size_t row = 0;
  for (const CollectiveKind kind : kinds) {
    for (const std::int64_t bytes : sizes) {
      const CollectiveCall call =
          call_of(kind, bytes, memory.get(), channel.rank(), channel.count());
      std::vector<Times> of_plain, of_ours;
      for (int turn = 0; turn < turns; ++turn) {
        of_plain.push_back(time_of(plain, call, stream.get()));
        of_ours.push_back(time_of(ours, call, stream.get()));
      }
      rows[row++] = {.plain = median_of(std::move(of_plain)),
                     .ours = median_of(std::move(of_ours)),
                     .captured = captured_time(ours, call, stream.get())};
    }
  }
  return rows;
}

void worse_of(Times& worst, const Times& other) {
  worst.device = std::max(worst.device, other.device);
  worst.host = std::max(worst.host, other.host);
}

Rows worst_of(const std::vector<std::string>& ranks) {
  Rows worst{};
  for (const std::string& bytes : ranks) {
    Rows rows;
    std::memcpy(&rows, bytes.data(), sizeof rows);
    for (std::size_t row = 0; row < row_count; ++row) {
      worse_of(worst[row].plain, rows[row].plain);
      worse_of(worst[row].ours, rows[row].ours);
      worst[row].captured = std::max(worst[row].captured, rows[row].captured);
    }
  }
  return worst;
}

void print(const Rows& rows, int count) {
  fmt::print(
      "{} ranks, bf16, in place, slowest rank: a call in us by the device, bus bandwidth in GB/s, "
      "and what the host takes to issue a call, in us\n",
      count);
  fmt::print("{:<14} {:>7} {:>9} {:>9} {:>9} {:>7} {:>7} {:>6} {:>10} {:>9}\n", "collective", "KiB",
             "plain us", "ours us", "graph us", "plain", "ours", "ratio", "plain host",
             "ours host");
  std::size_t row = 0;
  for (const CollectiveKind kind : kinds) {
    const double passes = (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (count - 1) / count;
    for (const std::int64_t bytes : sizes) {
      const auto& [plain, ours, in_graph] = rows[row++];
      const double wire = passes * static_cast<double>(bytes);
      fmt::print(
          "{:<14} {:>7} {:>9.2f} {:>9.2f} {:>9.2f} {:>7.1f} {:>7.1f} {:>6.3f} {:>10.2f} {:>9.2f}\n",
          name_of(kind), bytes / kibibytes, plain.device / 1e3, ours.device / 1e3, in_graph / 1e3,
          wire / plain.device, wire / ours.device, plain.device / ours.device, plain.host / 1e3,
          ours.host / 1e3);
    }
  }
}

int bench(int count) {
  const std::string reason = reason_against_ranks_here(count);
  if (!reason.empty()) {
    fmt::print(stderr, "ranks_bench: {}\n", reason);
    return 77;
  }
  const auto ranks = run_ranks(count, 2, [](const RankChannel& channel) {
    const Rows rows = measure_rank(channel);
    return std::string(reinterpret_cast<const char*>(&rows), sizeof rows);
  });
  print(worst_of(ranks), count);
  return 0;
}

}  // namespace
}  // namespace stepgate

int main(int argc, char** argv) {
  try {
    return stepgate::bench(argc > 1 ? std::atoi(argv[1]) : 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ranks_bench: {}\n", error.what());
    return 3;
  }
}
