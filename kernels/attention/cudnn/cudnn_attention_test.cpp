// SPDX-License-Identifier: MIT
// Compares cuDNN's attention on the GPU with textbook loops in double, and times it at two sizes.
// Skips where there is no cuDNN, with a hint how to get it. Fails without a GPU, and where
// STEPGATE_CUDNN names a library that cannot be opened, since the user requested that library.
#include "kernels/attention/cudnn/cudnn_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/catalogue.h"
#include "kernels/cudnn/open_cudnn.h"
#include "kernels/number_format.h"
#include "kernels/stopwatch.h"
#include "kernels/trial/cuda_trial.h"

namespace stepgate {
namespace {

using Bytes = std::vector<std::byte>;
using Numbers = std::vector<double>;

struct Case {
  std::int64_t batch, heads, time, head_size;
  bool causal = true;
  std::int64_t kv_heads = heads;

  std::int64_t columns() const { return heads * head_size; }
  std::int64_t rows() const { return batch * time; }
  AttentionShape shape() const { return {rows(), columns(), time, heads, kv_heads}; }
  std::int64_t qkv_numbers() const { return rows() * (heads + 2 * kv_heads) * head_size; }
};

// Index of the first number of a head of sample b in an array, and the numbers of a row.
struct Head {
  std::int64_t start;
  std::int64_t row;
};

// The head that is number h of a row of `heads` heads.
Head head_of(const Case& c, std::int64_t b, std::int64_t h, std::int64_t heads) {
  const std::int64_t row = heads * c.head_size;
  return {b * c.time * row + h * c.head_size, row};
}

double dot(const Case& c, const Numbers& x, const Head& a, std::int64_t i, const Numbers& y,
           const Head& b, std::int64_t j) {
  double sum = 0;
  for (std::int64_t d = 0; d < c.head_size; ++d) {
    sum += x[a.start + i * a.row + d] * y[b.start + j * b.row + d];
  }
  return sum;
}

void add_row(const Case& c, double factor, const Numbers& x, const Head& a, std::int64_t i,
             Numbers& y, const Head& b, std::int64_t j) {
  for (std::int64_t d = 0; d < c.head_size; ++d) {
    y[b.start + j * b.row + d] += factor * x[a.start + i * a.row + d];
  }
}

struct Expected {
  Numbers out, log_sums, d_qkv;
};

// Computes the reference for one query: its probabilities and their contributions to the results.
void expect_row(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, const Numbers& qkv,
                const Numbers& d_out, Expected& to) {
  const std::int64_t of_qkv = c.heads + 2 * c.kv_heads, shared = h * c.kv_heads / c.heads;
  const Head q = head_of(c, b, h, of_qkv), k = head_of(c, b, c.heads + shared, of_qkv);
  const Head v = head_of(c, b, c.heads + c.kv_heads + shared, of_qkv);
  const Head out = head_of(c, b, h, c.heads);
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_size));
  const std::int64_t seen = c.causal ? i + 1 : c.time;
  Numbers probabilities(seen);
  double sum = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    probabilities[j] = std::exp(scale * dot(c, qkv, q, i, qkv, k, j));
    sum += probabilities[j];
  }
  to.log_sums[(b * c.heads + h) * c.time + i] = std::log(sum);
  for (double& probability : probabilities) probability /= sum;
  for (std::int64_t j = 0; j < seen; ++j) add_row(c, probabilities[j], qkv, v, j, to.out, out, i);
  const double centre = dot(c, d_out, out, i, to.out, out, i);
  for (std::int64_t j = 0; j < seen; ++j) {
    const double d_score = scale * probabilities[j] * (dot(c, d_out, out, i, qkv, v, j) - centre);
    add_row(c, d_score, qkv, k, j, to.d_qkv, q, i);
    add_row(c, d_score, qkv, q, i, to.d_qkv, k, j);
    add_row(c, probabilities[j], d_out, out, i, to.d_qkv, v, j);
  }
}

Expected textbook(const Case& c, const Numbers& qkv, const Numbers& d_out) {
  Expected to{Numbers(c.rows() * c.columns()), Numbers(c.rows() * c.heads), Numbers(qkv.size())};
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t i = 0; i < c.time; ++i) expect_row(c, b, h, i, qkv, d_out, to);
    }
  }
  return to;
}

struct Free {
  void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(std::int64_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "allocate an operand");
  check_cuda(cudaMemset(memory, 0xff, bytes), "fill an operand with NaN");
  return Memory(memory);
}

Bytes stored(const Numbers& numbers, DType dtype) {
  Bytes bytes(numbers.size() * bytes_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) set_number(bytes.data(), dtype, i, numbers[i]);
  return bytes;
}

Bytes read_back(const Memory& memory, std::int64_t bytes) {
  Bytes content(bytes);
  check_cuda(cudaMemcpy(content.data(), memory.get(), bytes, cudaMemcpyDeviceToHost), "read back");
  return content;
}

// ||got - expected|| / ||expected||; NaN when any number is NaN.
double error_of(const Bytes& got, DType dtype, const Numbers& expected) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = number_at(got.data(), dtype, i) - expected[i];
    difference += error * error;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

// Random numbers as the storage holds them.
Numbers random_numbers(std::int64_t count, DType dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> number;
  Numbers numbers(count);
  for (double& value : numbers) {
    std::uint32_t place = 0;  // room for any format
    set_number(&place, dtype, 0, number(random));
    value = number_at(&place, dtype, 0);
  }
  return numbers;
}

class CudnnAttention : public testing::Test {
 protected:
  void SetUp() override {
    check_cuda(cudaFree(nullptr), "start the device");
    std::string reason;
    cudnn_ = open_cudnn(&reason);
    if (cudnn_ != nullptr) return;
    ASSERT_EQ(std::getenv("STEPGATE_CUDNN"), nullptr) << reason;
    GTEST_SKIP() << "cuDNN's attention was not tried: " << reason
                 << ". To try it, install cuDNN 9 for CUDA 13 where the loader looks, or let "
                    "STEPGATE_CUDNN name its libcudnn.so.9; a build without its headers needs "
                    "those first, and a new configure.";
  }

  std::shared_ptr<Cudnn> cudnn_;
};

struct Operands {
  Operands(const Case& c, DType dtype, std::int64_t scratch_bytes)
      : qkv(allocate(c.qkv_numbers() * bytes_of(dtype))),
        out(allocate(c.rows() * c.columns() * bytes_of(dtype))),
        d_out(allocate(c.rows() * c.columns() * bytes_of(dtype))),
        log_sums(allocate(4 * c.rows() * c.heads)),
        scratch(allocate(scratch_bytes)),
        d_qkv(allocate(c.qkv_numbers() * bytes_of(dtype))) {}

  std::vector<void*> forward() const { return {qkv.get(), out.get(), log_sums.get()}; }
  std::vector<void*> backward() const {
    return {qkv.get(), out.get(), d_out.get(), log_sums.get(), scratch.get(), d_qkv.get()};
  }
  void upload(const Numbers& a, const Numbers& b, DType dtype) const {
    const Bytes first = stored(a, dtype), second = stored(b, dtype);
    check_cuda(cudaMemcpy(qkv.get(), first.data(), first.size(), cudaMemcpyHostToDevice), "upload");
    check_cuda(cudaMemcpy(d_out.get(), second.data(), second.size(), cudaMemcpyHostToDevice),
               "upload");
  }

  Memory qkv, out, d_out, log_sums, scratch, d_qkv;
};

struct Trial {
  Case sizes;
  DType dtype;
  SumOrder order;
};

// All sequences are multiples of 128 tokens: older versions have no gradient of others. cuDNN makes
// two plans for each trial, so there are few: they vary everything, but not all of it together.
constexpr Trial trials[] = {
    {{1, 1, 128, 64}, DType::bf16, SumOrder::fixed},
    {{2, 3, 256, 40}, DType::fp16, SumOrder::any},
    {{1, 2, 384, 128}, DType::fp16, SumOrder::fixed},
    {{2, 4, 256, 64, false}, DType::bf16, SumOrder::any},
    {{1, 2, 256, 128, false}, DType::fp16, SumOrder::fixed},
    {{2, 4, 256, 64, true, 1}, DType::bf16, SumOrder::fixed},
    {{1, 8, 128, 64, false, 2}, DType::fp16, SumOrder::fixed},
    {{1, 4, 256, 128, true, 2}, DType::bf16, SumOrder::any},
};

void expect_textbook(Cudnn& cudnn, const Case& c, DType dtype, SumOrder order, std::uint64_t seed) {
  std::string reason;
  const std::int64_t scratch_bytes = cudnn_attention_gradient_scratch(c.shape(), order);
  const auto forward = cudnn_attention(cudnn, c.shape(), dtype, &reason, c.causal);
  ASSERT_TRUE(forward) << reason;
  const auto backward = cudnn_attention_gradient(cudnn, c.shape(), c.shape(), dtype, scratch_bytes,
                                                 &reason, order, c.causal);
  ASSERT_TRUE(backward) << reason;
  const Numbers qkv = random_numbers(c.qkv_numbers(), dtype, seed);
  const Numbers d_out = random_numbers(c.rows() * c.columns(), dtype, seed + 1);
  const Operands operands(c, dtype, scratch_bytes);
  operands.upload(qkv, d_out, dtype);
  (*forward)(operands.forward().data(), nullptr);
  (*backward)(operands.backward().data(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "attention");
  const Expected expected = textbook(c, qkv, d_out);
  const double bound = dtype == DType::bf16 ? 1.5e-2 : 2e-3;
  const std::int64_t out_bytes = c.rows() * c.columns() * bytes_of(dtype);
  EXPECT_LE(error_of(read_back(operands.out, out_bytes), dtype, expected.out), bound);
  EXPECT_LE(error_of(read_back(operands.log_sums, 4 * c.rows() * c.heads), DType::fp32,
                     expected.log_sums),
            1e-4);
  const std::int64_t qkv_bytes = c.qkv_numbers() * bytes_of(dtype);
  const Bytes d_qkv = read_back(operands.d_qkv, qkv_bytes);
  EXPECT_LE(error_of(d_qkv, dtype, expected.d_qkv), bound);
  if (order == SumOrder::any) return;
  (*backward)(operands.backward().data(), nullptr);
  check_cuda(cudaDeviceSynchronize(), "attention");
  EXPECT_EQ(read_back(operands.d_qkv, qkv_bytes), d_qkv) << "not the same bits twice";
}

TEST_F(CudnnAttention, AgreesWithTheTextbookInBothDirections) {
  const std::uint64_t seed = std::random_device{}();
  for (const auto& [c, dtype, order] : trials) {
    SCOPED_TRACE(testing::Message()
                 << text_of(KernelShape(c.shape())) << (dtype == DType::bf16 ? " bf16" : " fp16")
                 << (order == SumOrder::any ? " any order" : " fixed order")
                 << (c.causal ? "" : " all tokens") << " seed " << seed);
    expect_textbook(*cudnn_, c, dtype, order, seed);
  }
}

TEST_F(CudnnAttention, RefusesWithASentence) {
  std::string reason;
  EXPECT_FALSE(cudnn_attention(*cudnn_, {64, 64, 64, 1}, DType::fp32, &reason));
  EXPECT_EQ(reason, "cuDNN's attention takes bf16 and fp16 only");
  EXPECT_FALSE(cudnn_attention(*cudnn_, {64, 12, 64, 1}, DType::bf16, &reason));
  EXPECT_EQ(reason, "cuDNN's attention takes heads of a multiple of 8 columns");
  constexpr AttentionShape shape{128, 64, 128, 1};
  EXPECT_FALSE(cudnn_attention_gradient(*cudnn_, shape, shape, DType::bf16, 100, &reason));
  EXPECT_NE(reason.find("bytes of scratch and has 100"), std::string::npos) << reason;
}

// Steps that are loaded together share plans and alternate.
TEST_F(CudnnAttention, InTurnsFromOnePlanIsWhatItIsAlone) {
  constexpr Case c{2, 3, 256, 64};
  const std::int64_t scratch_bytes = cudnn_attention_gradient_scratch(c.shape());
  const Operands one(c, DType::bf16, scratch_bytes), other(c, DType::bf16, scratch_bytes);
  std::uint64_t seed = 1;
  for (const Operands* operands : {&one, &other}) {
    operands->upload(random_numbers(c.qkv_numbers(), DType::bf16, seed),
                     random_numbers(c.rows() * c.columns(), DType::bf16, seed + 1), DType::bf16);
    seed += 2;
  }
  const auto step_of = [&](Cudnn& cudnn) {
    std::string reason;
    const auto forward = cudnn_attention(cudnn, c.shape(), DType::bf16, &reason);
    const auto backward =
        cudnn_attention_gradient(cudnn, c.shape(), c.shape(), DType::bf16, scratch_bytes, &reason);
    EXPECT_TRUE(forward && backward) << reason;
    return [forward, backward](const Operands& operands) {
      (*forward)(operands.forward().data(), nullptr);
      (*backward)(operands.backward().data(), nullptr);
    };
  };
  const auto result_of = [&](const Operands& operands) {
    check_cuda(cudaDeviceSynchronize(), "attention");
    return read_back(operands.d_qkv, c.qkv_numbers() * bytes_of(DType::bf16));
  };
  std::string reason;
  const auto its_own = open_cudnn(&reason);
  ASSERT_NE(its_own, nullptr) << reason;
  step_of (*its_own)(other);
  const Bytes alone = result_of(other);
  const auto first = step_of(*cudnn_), second = step_of(*cudnn_);
  for (int turn = 0; turn < 3; ++turn) {
    first(one);
    second(other);
  }
  EXPECT_EQ(result_of(other), alone);
  EXPECT_NE(result_of(one), alone);
}

// Compares sequences whose scores the scratch has no room for with those of our own kernels. cuDNN
// takes as many sequences at a time as `share` has, or heads of one sequence.
void expect_shares_and_own_kernels(Cudnn* cudnn, const Case& c, std::int64_t most_scratch,
                                   const AttentionShape& share) {
  ASSERT_EQ(share_for_cudnn(c.shape(), DType::bf16, most_scratch), share);
  const Operands operands(c, DType::bf16,
                          attention_gradient_scratch_bytes(c.shape(), DType::bf16, most_scratch));
  operands.upload(random_numbers(c.qkv_numbers(), DType::bf16, 1),
                  random_numbers(c.rows() * c.columns(), DType::bf16, 2), DType::bf16);
  const auto gradient_with = [&](Cudnn* dnn) {
    const LaunchContext context{.dnn = dnn};
    kernel("attention")
        .prepare(c.shape(), DType::bf16, {}, context)(operands.forward().data(), nullptr);
    kernel("attention_gradient")
        .prepare(c.shape(), DType::bf16, kernels::AttentionGradient::Attributes{most_scratch},
                 context)(operands.backward().data(), nullptr);
    check_cuda(cudaDeviceSynchronize(), "attention");
    return read_back(operands.d_qkv, c.qkv_numbers() * bytes_of(DType::bf16));
  };
  const Bytes ours = gradient_with(nullptr);
  const std::vector<float> numbers = floats_of(ours.data(), DType::bf16, c.qkv_numbers());
  EXPECT_LE(error_of(gradient_with(cudnn), DType::bf16, Numbers(numbers.begin(), numbers.end())),
            1.5e-2);
}

TEST_F(CudnnAttention, InSharesIsThatOfOurOwnKernels) {
  expect_shares_and_own_kernels(
      cudnn_.get(), {7, 4, 1024, 64, true, 2}, 55LL << 20,
      {.rows = 4 * 1024, .columns = 256, .tokens = 1024, .heads = 4, .kv_heads = 2});
  expect_shares_and_own_kernels(
      cudnn_.get(), {2, 10, 1024, 64, true, 5}, 11LL << 20,
      {.rows = 1024, .columns = 256, .tokens = 1024, .heads = 4, .kv_heads = 2});
  expect_shares_and_own_kernels(
      cudnn_.get(), {12, 4, 2048, 64, true, 2}, 100LL << 20,
      {.rows = 2 * 2048, .columns = 256, .tokens = 2048, .heads = 4, .kv_heads = 2});
  expect_shares_and_own_kernels(
      cudnn_.get(), {2, 8, 1024, 64, true, 4}, 11LL << 20,
      {.rows = 1024, .columns = 256, .tokens = 1024, .heads = 4, .kv_heads = 2});
}

double microseconds_of(const Launch& launch, const std::vector<void*>& operands) {
  const auto once = [&] { launch(operands.data(), nullptr); };
  Stopwatch stopwatch;
  (void)stopwatch.seconds_each(5, once);  // warm-up
  return 1e6 * stopwatch.seconds_each(50, once);
}

// Prints times; fails only if a plan is missing.
void print_times(Cudnn& cudnn, const Case& c) {
  const std::int64_t scratch_bytes = cudnn_attention_gradient_scratch(c.shape());
  const Operands operands(c, DType::bf16, scratch_bytes);
  operands.upload(random_numbers(c.qkv_numbers(), DType::bf16, 1),
                  random_numbers(c.rows() * c.columns(), DType::bf16, 2), DType::bf16);
  std::string reason;
  const auto start = std::chrono::steady_clock::now();
  const auto forward = cudnn_attention(cudnn, c.shape(), DType::bf16, &reason);
  ASSERT_TRUE(forward) << reason;
  const std::chrono::duration<double> planning = std::chrono::steady_clock::now() - start;
  const auto own = cudnn_attention_bytes(cudnn, c.shape(), DType::bf16, &reason);
  std::printf("%s: forward planned in %.2f s, %.1f us, workspace %lld B\n",
              text_of(KernelShape(c.shape())).c_str(), planning.count(),
              microseconds_of(*forward, operands.forward()),
              static_cast<long long>(own.value_or(-1)));
  for (const SumOrder order : {SumOrder::fixed, SumOrder::any}) {
    const auto backward = cudnn_attention_gradient(cudnn, c.shape(), c.shape(), DType::bf16,
                                                   scratch_bytes, &reason, order);
    ASSERT_TRUE(backward) << reason;
    const auto bytes =
        cudnn_attention_gradient_bytes(cudnn, c.shape(), DType::bf16, &reason, order);
    EXPECT_LE(bytes.value_or(-1), cudnn_attention_gradient_scratch(c.shape(), order));
    std::printf("backward, %s order, %.1f us, scratch %lld B\n",
                order == SumOrder::fixed ? "fixed" : "any",
                microseconds_of(*backward, operands.backward()),
                static_cast<long long>(bytes.value_or(-1)));
  }
}

TEST_F(CudnnAttention, TakesThisLongForShortAndLongSequences) {
  for (const Case& c : {Case{32, 12, 1024, 64}, Case{2, 16, 4096, 128, true, 4}})
    print_times(*cudnn_, c);
}

}  // namespace
}  // namespace stepgate
