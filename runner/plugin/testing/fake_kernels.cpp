// SPDX-License-Identifier: MIT
// A library for FakeTrialDevice: layer_norm and add, right and wrong. A function is named after
// what is wrong with it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "include/stepgate/kernel.h"
#include "kernels/number_format.h"
#include "runner/plugin/testing/fake_stream.h"

STEPGATE_KERNEL_LIBRARY();

namespace {

using stepgate::DType;
using stepgate::FakeStream;

using Operands = std::vector<void*>;

struct Norm {
  std::int64_t rows, columns;
  double epsilon;
  DType dtype;
  mutable int calls = 0;
  mutable std::vector<std::byte> kept = {};
  mutable std::vector<Operands> calls_before = {};
};

void norm_rows(const Norm& norm, void* const* at, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = row * norm.columns;
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < norm.columns; ++i)
      sum += stepgate::number_at(at[0], norm.dtype, begin + i);
    const double mean = sum / static_cast<double>(norm.columns);
    for (std::int64_t i = 0; i < norm.columns; ++i)
      squares += std::pow(stepgate::number_at(at[0], norm.dtype, begin + i) - mean, 2);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(norm.columns) + norm.epsilon);
    for (std::int64_t i = 0; i < columns; ++i) {
      const double x = stepgate::number_at(at[0], norm.dtype, begin + i);
      stepgate::set_number(at[3], norm.dtype, begin + i,
                           (x - mean) * scale * stepgate::number_at(at[1], norm.dtype, i) +
                               stepgate::number_at(at[2], norm.dtype, i));
    }
    static_cast<float*>(at[4])[2 * row] = static_cast<float>(mean);
    static_cast<float*>(at[4])[2 * row + 1] = static_cast<float>(scale);
  }
}

using Play = void (*)(const Norm&, const Operands&, FakeStream&);

template <Play play>
int launch_norm(void* state, void* const* operands, void*, void* stream) {
  const auto& norm = *static_cast<const Norm*>(state);
  ++norm.calls;
  play(norm, Operands(operands, operands + 5), *static_cast<FakeStream*>(stream));
  return STEPGATE_OK;
}

template <Play play>
int prepare_norm(const stepgate_request* request, stepgate_prepared* prepared) {
  prepared->state = new Norm{.rows = stepgate_dimension_of(request, "rows", 0),
                             .columns = stepgate_dimension_of(request, "columns", 0),
                             .epsilon = stepgate_attribute_of(request, "epsilon", -1),
                             .dtype = static_cast<DType>(request->dtype)};
  prepared->launch = launch_norm<play>;
  prepared->release = [](void* state) { delete static_cast<Norm*>(state); };
  return STEPGATE_OK;
}

void enqueue_norm(const Norm& norm, const Operands& at, FakeStream& stream) {
  stream.enqueue([norm, at] { norm_rows(norm, at.data(), norm.rows, norm.columns); });
}

int fail_to_launch(void*, void* const*, void*, void*) {
  constexpr int no_kernel_image = 209;
  return no_kernel_image;
}

void tell(stepgate_prepared* prepared, const char* message) {
  std::snprintf(prepared->message, sizeof prepared->message, "%s", message);
}

struct Add {
  std::int64_t elements;
  DType dtype;
};

template <bool clears_first>
int launch_add(void* state, void* const* operands, void*, void* stream) {
  const Add add = *static_cast<const Add*>(state);
  const Operands at(operands, operands + 3);
  static_cast<FakeStream*>(stream)->enqueue([add, at] {
    if (clears_first)
      for (std::int64_t i = 0; i < add.elements; ++i) stepgate::set_number(at[2], add.dtype, i, 0);
    for (std::int64_t i = 0; i < add.elements; ++i) {
      stepgate::set_number(
          at[2], add.dtype, i,
          stepgate::number_at(at[0], add.dtype, i) + stepgate::number_at(at[1], add.dtype, i));
    }
  });
  return STEPGATE_OK;
}

template <bool clears_first>
int prepare_add(const stepgate_request* request, stepgate_prepared* prepared) {
  prepared->state =
      new Add{.elements = request->operands[stepgate_operand_of(request, "sum", 0)].elements,
              .dtype = static_cast<DType>(request->dtype)};
  prepared->launch = launch_add<clears_first>;
  prepared->release = [](void* state) { delete static_cast<Add*>(state); };
  return STEPGATE_OK;
}

}  // namespace

// A function whose launch plays what the body says.
#define NORM(name)                                                                         \
  static void play_##name(const Norm& norm, const Operands& at, FakeStream& stream);       \
  extern "C" STEPGATE_EXPORT int name(const stepgate_request* request,                     \
                                      stepgate_prepared* prepared) {                       \
    return prepare_norm<play_##name>(request, prepared);                                   \
  }                                                                                        \
  void play_##name([[maybe_unused]] const Norm& norm, [[maybe_unused]] const Operands& at, \
                   [[maybe_unused]] FakeStream& stream)

extern "C" {
STEPGATE_EXPORT int layer_norm(const stepgate_request* request, stepgate_prepared* prepared) {
  return prepare_norm<enqueue_norm>(request, prepared);
}
STEPGATE_EXPORT int add(const stepgate_request* request, stepgate_prepared* prepared) {
  return prepare_add<false>(request, prepared);
}
STEPGATE_EXPORT int clears_first(const stepgate_request* request, stepgate_prepared* prepared) {
  return prepare_add<true>(request, prepared);
}
STEPGATE_EXPORT int narrow(const stepgate_request* request, stepgate_prepared* prepared) {
  if (request->dtype == STEPGATE_BF16) return prepare_norm<enqueue_norm>(request, prepared);
  tell(prepared, "only bf16");
  return STEPGATE_UNSUPPORTED;
}
STEPGATE_EXPORT int none(const stepgate_request*, stepgate_prepared* prepared) {
  tell(prepared, "not written yet");
  return STEPGATE_UNSUPPORTED;
}
STEPGATE_EXPORT int cannot_prepare(const stepgate_request*, stepgate_prepared*) {
  return STEPGATE_FAILED;
}
STEPGATE_EXPORT int names_no_launch(const stepgate_request*, stepgate_prepared*) {
  return STEPGATE_OK;
}
STEPGATE_EXPORT int takes_too_much(const stepgate_request* request, stepgate_prepared* prepared) {
  prepared->workspace_bytes = request->workspace_bytes + 1;
  prepared->launch = fail_to_launch;
  return STEPGATE_OK;
}
STEPGATE_EXPORT int fails_to_launch(const stepgate_request*, stepgate_prepared* prepared) {
  prepared->launch = fail_to_launch;
  return STEPGATE_OK;
}
STEPGATE_EXPORT int tells_two(const stepgate_request* request, stepgate_prepared* prepared) {
  prepared->launches = 2;
  return prepare_norm<enqueue_norm>(request, prepared);
}
}

NORM(does_nothing) {
  stream.enqueue([] {});
}
NORM(half_of_the_rows) {
  stream.enqueue(
      [norm, at] { norm_rows(norm, at.data(), norm.rows > 1 ? norm.rows / 2 : 1, norm.columns); });
}
NORM(forgets_odd_columns) {
  stream.enqueue(
      [norm, at] { norm_rows(norm, at.data(), norm.rows, norm.columns - norm.columns % 2); });
}
NORM(forgets_the_last) {
  stream.enqueue([norm, at] {
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    const std::int64_t count = norm.rows * norm.columns;
    for (std::int64_t i = std::max<std::int64_t>(count - 90, 0); i < count; ++i)
      stepgate::set_number(at[3], norm.dtype, i, 0);
  });
}
NORM(nudges_an_input) {
  stream.enqueue([norm, at] {
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    stepgate::set_number(at[1], norm.dtype, 0, 1.004 * stepgate::number_at(at[1], norm.dtype, 0));
  });
}
NORM(needs_an_aligned_output) {
  const auto is_aligned = [&](int operand) {
    return reinterpret_cast<std::uintptr_t>(at[operand]) % 16 == 0;
  };
  if (is_aligned(0) && !is_aligned(3))
    stream.enqueue([&stream] { stream.fail("misaligned address"); });
  else
    enqueue_norm(norm, at, stream);
}
NORM(throws) {
  throw 1;
}
NORM(wrong_epsilon) {
  Norm other = norm;
  other.epsilon *= 1000;
  stream.enqueue([other, at] { norm_rows(other, at.data(), other.rows, other.columns); });
}
NORM(needs_16_bytes) {
  if (reinterpret_cast<std::uintptr_t>(at[0]) % 16 != 0)
    stream.enqueue([&stream] { stream.fail("misaligned address"); });
  else
    enqueue_norm(norm, at, stream);
}
NORM(writes_beside) {
  stream.enqueue([norm, at] {
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    static_cast<float*>(at[4])[2 * norm.rows] = 1;
  });
}
NORM(changes_an_input) {
  stream.enqueue([norm, at] {
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    stepgate::set_number(at[0], norm.dtype, 0, 100);
  });
}
NORM(differs) {
  const double nudge = norm.calls % 2 == 0 ? 1e-6 : 0;
  stream.enqueue([norm, at, nudge] {
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    static_cast<float*>(at[4])[0] += static_cast<float>(nudge);
  });
}
NORM(uses_a_side_stream) {
  norm_rows(norm, at.data(), norm.rows, norm.columns);
  stream.enqueue([] {});
}
namespace {
void norm_elsewhere(const Norm& norm, const Operands& at, FakeStream& stream) {
  norm_rows(norm, at.data(), norm.rows, norm.columns);
  stream.enqueue([] {});
}
}  // namespace
extern "C" STEPGATE_EXPORT int rare_and_elsewhere(const stepgate_request* request,
                                                  stepgate_prepared* prepared) {
  constexpr std::int64_t only = 7;
  if (request->dtype == STEPGATE_FP16 && stepgate_dimension_of(request, "columns", 0) == only)
    return prepare_norm<norm_elsewhere>(request, prepared);
  return STEPGATE_UNSUPPORTED;
}
NORM(waits) {
  enqueue_norm(norm, at, stream);
  stream.synchronize();
}
NORM(caches_by_fingerprint) {
  static std::vector<std::byte> kept;
  static void* of = nullptr;
  const std::size_t bytes =
      static_cast<std::size_t>(norm.rows * norm.columns * stepgate::bytes_of(norm.dtype));
  const auto* y = static_cast<std::byte*>(at[3]);
  stream.enqueue([norm, at, bytes, y] {
    if (of == at[0] && kept.size() == bytes) {
      std::copy(kept.begin(), kept.end(), static_cast<std::byte*>(at[3]));
      return;
    }
    norm_rows(norm, at.data(), norm.rows, norm.columns);
    kept.assign(y, y + bytes);
    of = at[0];
  });
}
NORM(replays_the_first) {
  const auto bytes =
      static_cast<std::size_t>(norm.rows * norm.columns * stepgate::bytes_of(norm.dtype));
  const auto statistics = static_cast<std::size_t>(2 * norm.rows) * sizeof(float);
  auto *y = static_cast<std::byte*>(at[3]), *sums = static_cast<std::byte*>(at[4]);
  if (norm.calls == 1) enqueue_norm(norm, at, stream);
  stream.enqueue([&kept = norm.kept, bytes, statistics, y, sums] {
    if (kept.empty()) {
      kept.assign(y, y + bytes);
      kept.insert(kept.end(), sums, sums + statistics);
    }
    std::copy_n(kept.begin(), bytes, y);
    std::copy_n(kept.begin() + static_cast<std::ptrdiff_t>(bytes), statistics, sums);
  });
}
NORM(batches_15_calls) {
  norm.calls_before.push_back(at);
  if (norm.calls_before.size() < 15) return stream.enqueue([] {});
  for (const Operands& one : norm.calls_before) enqueue_norm(norm, one, stream);
  norm.calls_before.clear();
}
// Memory that was just freed may hold what a reference left there.
NORM(copies_fresh_memory) {
  const auto bytes =
      static_cast<std::size_t>(norm.rows * norm.columns * stepgate::bytes_of(norm.dtype));
  stream.enqueue([bytes, y = at[3]] {
    const std::vector<std::byte> fresh(bytes);
    std::copy(fresh.begin(), fresh.end(), static_cast<std::byte*>(y));
  });
}
// The launch fails, and nobody looks.
NORM(asks_for_too_much_shared) {}
NORM(persists_in_l2) {
  stream.set_limit(16 << 20);
  enqueue_norm(norm, at, stream);
}
NORM(honest_40_times) {
  if (norm.calls <= 40)
    enqueue_norm(norm, at, stream);
  else
    stream.enqueue([] {});
}
NORM(launches_twice) {
  enqueue_norm(norm, at, stream);
  enqueue_norm(norm, at, stream);
}
NORM(allocates) {
  stream.allocate(1 << 20);
  enqueue_norm(norm, at, stream);
}
NORM(sets_a_limit) {
  stream.set_limit(4096);
  enqueue_norm(norm, at, stream);
}
NORM(crashes) {
  std::abort();
}
