// SPDX-License-Identifier: MIT
// The part of NCCL's binary interface that stepgate calls. It is declared from NCCL's documentation
// (docs.nvidia.com/deeplearning/nccl), since the header may be missing. All of it is the same from
// 2.19 to 2.29. Only this folder and the tests' fake library include this.
#pragma once

#include <cstddef>
#include <limits>

struct CUstream_st;  // cudaStream_t points to one

namespace stepgate::nccl_api {

using Result = int;
constexpr Result success = 0;
constexpr Result in_progress = 7;

using Handle = void*;  // ncclComm_t
using Stream = CUstream_st*;

struct UniqueId {
  char bytes[128];
};
static_assert(sizeof(UniqueId) == 128);

// The values are of ncclDataType_t.
constexpr int float16 = 6;
constexpr int float32 = 7;
constexpr int bfloat16 = 9;

// The values are of ncclRedOp_t.
constexpr int sum = 0;
constexpr int average = 4;

constexpr int version_of_declarations = 21900;
constexpr int undefined = std::numeric_limits<int>::min();

// ncclConfig_t as of NCCL 2.19. The library reads only `size` bytes and uses its defaults for the
// rest. The last member was added later, in what was padding in 2.19.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = version_of_declarations;
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int least_ctas = undefined;
  int most_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
  int traffic_class = undefined;
};
static_assert(offsetof(Config, blocking) == 16 && offsetof(Config, net_name) == 32 &&
              offsetof(Config, split_share) == 40 && sizeof(Config) == 48);

// Members are named like the exported functions, without the prefix.
struct Functions {
  Result (*get_version)(int*) = nullptr;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*comm_init_rank_config)(Handle*, int count, UniqueId, int rank, Config*) = nullptr;
  Result (*comm_get_async_error)(Handle, Result*) = nullptr;
  Result (*comm_destroy)(Handle) = nullptr;
  Result (*comm_abort)(Handle) = nullptr;
  const char* (*get_error_string)(Result) = nullptr;
  const char* (*get_last_error)(Handle) = nullptr;
  // `count` is in elements: the total for all_reduce and broadcast, the received elements of a rank
  // for reduce_scatter, the sent elements of a rank for all_gather.
  Result (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation,
                       Handle, Stream) = nullptr;
  Result (*reduce_scatter)(const void* from, void* to, std::size_t count, int type, int operation,
                           Handle, Stream) = nullptr;
  Result (*all_gather)(const void* from, void* to, std::size_t count, int type, Handle,
                       Stream) = nullptr;
  Result (*broadcast)(const void* from, void* to, std::size_t count, int type, int root, Handle,
                      Stream) = nullptr;
};

}  // namespace stepgate::nccl_api
