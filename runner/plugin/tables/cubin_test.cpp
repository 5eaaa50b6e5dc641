// SPDX-License-Identifier: MIT
// A table says how a kernel of a cubin is launched; what does not fit the cubin, the kernel of the
// catalogue or the device is refused before anything is loaded.
#include "plugin/tables/cubin.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <iterator>
#include <string>

#include "base/files/temporary_folder.h"
#include "kernels/catalogue.h"
#include "kernels/norm/norm.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/small_cubin.h"

namespace stepgate {
namespace {

const std::string whole = R"toml(cubin = "ln.cubin"
entry = "ln_fwd"
grid = "ceil(rows / 4)"
block = 128
shared = "4 * columns"
arguments = ["x", "weight", "bias", "y", "statistics", "columns:i32", "epsilon:f32"]
dtypes = ["bf16"]
supports = { columns = { multiple_of = 8, at_most = 4096 } }
)toml";

// The text with the line of the key replaced, or without it.
std::string with(std::string_view key, const std::string& line) {
  const std::size_t begin = whole.find(std::string(key) + " = ");
  std::string text = whole;
  return text.replace(begin, text.find('\n', begin) + 1 - begin, line.empty() ? "" : line + "\n");
}

std::string faults_of(const std::string& text) {
  std::vector<Diagnostic> faults;
  const auto table = parse_toml(text, "ln.toml", faults);
  if (table) (void)read_cubin_launch(*table, {.file = "ln.toml"}, faults);
  std::string all;
  for (const Diagnostic& fault : faults) all += to_string(fault) + "\n";
  return all;
}

CubinLaunch launch_of(const std::string& text) {
  std::vector<Diagnostic> faults;
  const auto table = parse_toml(text, "ln.toml", faults);
  auto launch = read_cubin_launch(*table, {.file = "ln.toml"}, faults);
  if (!launch) throw RequestError(faults);
  return *launch;
}

Cubin cubin(const std::string& text = whole, const SmallCubin& file = {}) {
  return {launch_of(text), cubin_of("ln.cubin", bytes_of(file)), kernel("layer_norm")};
}

DeviceFacts device() {
  return {.capability = 90, .multiprocessors = 132, .shared_bytes = 227 * 1024};
}

CubinCall call(const Cubin& of, const MatrixShape& shape = {10, 768}, DType dtype = DType::bf16,
               const DeviceFacts& on = device()) {
  return of.call({.kernel = kernel("layer_norm"),
                  .shape = shape,
                  .dtype = dtype,
                  .attributes = NormAttributes{.epsilon = 1e-5}},
                 on);
}

template <class Act>
std::string refusal_of(const Act& act) {
  try {
    (void)act();
  } catch (const RequestError& error) {
    return error.what();
  }
  return {};
}

TEST(CubinLaunches, HaveTheNumbersOfTheirShape) {
  const CubinCall made = call(cubin());
  EXPECT_EQ(made.grid, (std::array<std::uint32_t, 3>{3, 1, 1}));
  EXPECT_EQ(made.block, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(made.shared_bytes, 4U * 768);
  ASSERT_EQ(made.arguments.size(), 7U);
  for (std::size_t operand = 0; operand < 5; ++operand)
    EXPECT_EQ(made.arguments[operand].operand, operand);
  EXPECT_EQ(made.arguments[5].bits, 768U);
  EXPECT_EQ(made.arguments[6].bits, std::bit_cast<std::uint32_t>(1e-5F));
  EXPECT_EQ(made.arguments[6].operand, no_operand);
}

TEST(CubinLaunches, HaveUpToThreeDimensionsAndOrderTheirArguments) {
  const CubinCall made =
      call(cubin(with("grid", "grid = [\"ceil(columns / 256)\", \"rows\", 2]")), {10, 768});
  EXPECT_EQ(made.grid, (std::array<std::uint32_t, 3>{3, 10, 2}));
  const CubinCall other = call(cubin(
      with("arguments",
           R"(arguments = ["y", "x", "null", "weight", "bias", "rows - 11:i32", "columns:u32"])")));
  EXPECT_EQ(other.arguments[0].operand, 3U);
  EXPECT_EQ(other.arguments[1].operand, 0U);
  EXPECT_EQ(other.arguments[2].operand, no_operand);
  EXPECT_EQ(other.arguments[2].bits, 0U);
  EXPECT_EQ(static_cast<std::int32_t>(other.arguments[5].bits), -1);
}

TEST(CubinLaunches, SupportWhatTheTableSays) {
  EXPECT_TRUE(contains(refusal_of([] {
                         return call(cubin(), {10, 768}, DType::fp16);
                       }),
                       "does not support layer_norm of 10 x 768 in fp16: its table says bf16"));
  EXPECT_TRUE(contains(refusal_of([] {
                         return call(cubin(), {10, 772});
                       }),
                       "columns must be a multiple of 8"));
  EXPECT_THROW((void)call(cubin(), {10, 8192}), KernelUnsupported);
  EXPECT_THROW((void)call(cubin(), {10, 772}), KernelUnsupported);
  EXPECT_NO_THROW((void)call(cubin(with("dtypes", "")), {10, 768}, DType::fp16));
}

TEST(CubinLaunches, FaultsOfATableAreToldAtTheirPlaces) {
  EXPECT_EQ(faults_of(whole), "");
  for (const auto& [text, words] :
       {std::pair{with("cubin", ""), "ln.toml: 'cubin' is missing in a launch of a cubin"},
        std::pair{with("entry", "entri = \"ln_fwd\""), "ln.toml:2:1: unknown key 'entri'"},
        std::pair{with("grid", "grid = []"), "ln.toml:3:8: 'grid' must be a number, text such as"},
        std::pair{with("grid", "grid = [1, 1, 1, 1]"), "'grid' must be a number, text such as"},
        std::pair{with("block", "block = 1.5"), "ln.toml:4:9: 'block' must be a number"},
        std::pair{with("shared", "shared = [1, 2]"), "'shared' must be a number, or text such as"},
        std::pair{with("arguments", "arguments = \"x\""), "'arguments' must be a list of words"},
        std::pair{with("arguments", "arguments = [\"columns:int32\"]"),
                  "'columns:int32' has no type 'int32'; there are pointer, i32, i64"},
        std::pair{with("dtypes", "dtypes = [\"bf61\"]"), "no dtype 'bf61'; did you mean 'bf16'?"},
        std::pair{with("supports", "supports = { columns = { multiple = 8 } }"),
                  "unknown key 'multiple' in the limits of 'columns'"},
        std::pair{with("supports", "supports = 8"), "'supports' must be a table such as"},
        std::pair{whole + "metadata = \"ln.json\"\n", "unknown key 'entry'"}})
    EXPECT_TRUE(contains(faults_of(text), words));
}

TEST(CubinLaunches, WhatDoesNotFitTheCubinOrTheKernelIsRefused) {
  const auto refused = [](const std::string& text, const SmallCubin& file = {}) {
    return refusal_of([&] { return cubin(text, file); });
  };
  EXPECT_EQ(refused(whole), "");
  for (const auto& [text, words] :
       {std::pair{with("entry", "entry = \"ln\""), "has no kernel 'ln'; it has ln_fwd"},
        std::pair{with("grid", "grid = \"ceil(row / 4)\""), "has no size 'row'; did you mean"},
        std::pair{with("shared", "shared = \"heads\""), "has no size 'heads'"},
        std::pair{with("supports", "supports = { column = { at_most = 8 } }"),
                  "has no size 'column'; did you mean 'columns'?"},
        std::pair{with("arguments", "arguments = [\"x\", \"w\"]"),
                  "layer_norm has no operand 'w'; its operands are x, weight"},
        std::pair{with("arguments", "arguments = [\"columns\"]"),
                  "the argument 'columns' is a number without a type; write columns:i32"},
        std::pair{with("arguments", "arguments = [\"x\"]"),
                  "'ln_fwd' of 'ln.cubin' has 7 parameters, and there are 1 arguments; give it "
                  "8, 8, 8, 8, 8, 4, 4 bytes"},
        std::pair{with("arguments", R"(arguments = ["x", "weight", "bias", "y", "statistics",
                       "columns:i64", "epsilon:f32"])"),
                  "parameter 6 of 'ln_fwd' has 4 bytes, and the argument 'columns:i64' 8"}})
    EXPECT_TRUE(contains(refused(text), words));
  EXPECT_TRUE(contains(refused(whole, {.more_facts = fact_of_three(0x3d, 2)}),
                       "runs in clusters of blocks, which a table cannot say"));
  EXPECT_TRUE(contains(refused(whole, {.parameter_bytes = {128, 8, 8, 8, 8, 4, 4}}),
                       "a tensor map needs a library"));
  EXPECT_TRUE(contains(refused(whole, {.parameter_bytes = {80, 8, 8, 8, 8, 4, 4}}),
                       "a struct needs a library"));
}

TEST(CubinLaunches, WhatTheDeviceCannotLaunchIsRefused) {
  const auto refused = [](const Cubin& of, const MatrixShape& shape = {10, 768},
                          std::uint32_t capability = 90) {
    DeviceFacts facts = device();
    facts.capability = capability;
    return refusal_of([&] { return call(of, shape, DType::bf16, facts); });
  };
  EXPECT_EQ(refused(cubin()), "");
  EXPECT_EQ(refused(cubin(), {10, 768}, 95), "");
  for (const std::uint32_t other : {80U, 89U, 100U, 120U}) {
    EXPECT_TRUE(contains(refused(cubin(), {10, 768}, other),
                         "is for a GPU of compute capability 9.0, and this one has "));
  }
  EXPECT_TRUE(contains(refused(cubin(with("grid", "grid = \"rows / 4\""))),
                       "'grid' is rows / 4 = 2.5 for layer_norm of 10 x 768 in bf16, and must be a "
                       "whole number from 1 to 2147483647; write ceil(rows / 4)"));
  EXPECT_TRUE(contains(refused(cubin(with("grid", "grid = \"rows / (columns - 768)\""))),
                       "must be a whole number"));
  EXPECT_TRUE(
      contains(refused(cubin(with("grid", "grid = [1, \"65536 * rows\"]"))), "from 1 to 65535"));
  EXPECT_TRUE(contains(refused(cubin(with("block", "block = [128, 16]"))),
                       "has blocks of at most 1024 threads, and 'block' is 2048"));
  EXPECT_TRUE(contains(refused(cubin(whole, {.more_facts = fact_of_three(0x05, 64)})),
                       "has blocks of at most 64 threads, and 'block' is 128"));
  EXPECT_TRUE(contains(refused(cubin(whole, {.more_facts = fact_of_three(0x10, 256)})),
                       "has blocks of 256 threads, and 'block' is 128"));
  // The published one asked for 256 bytes beyond the limit, and nobody looked at the error.
  EXPECT_TRUE(
      contains(refused(cubin(with("shared", "shared = 232448"), {.shared_bytes = 1024 + 256})),
               "needs 232704 bytes of shared memory for layer_norm of 10 x 768 in bf16, and "
               "a block may have 232448"));
}

// Nobody has named a device yet: only what none of them could launch is refused.
TEST(CubinLaunches, WhatNoDeviceCanLaunchIsRefusedWithoutOne) {
  const auto refused = [](const Cubin& of, const MatrixShape& shape = {10, 768}) {
    return refusal_of([&] {
      of.require_launchable({.kernel = kernel("layer_norm"),
                             .shape = shape,
                             .dtype = DType::bf16,
                             .attributes = NormAttributes{.epsilon = 1e-5}});
    });
  };
  constexpr std::uint32_t older = 0x5005004;  // compute capability 8.0
  const SmallCubin of_80{.flags = older, .shared_bytes = 0};
  EXPECT_EQ(refused(cubin()), "");
  EXPECT_EQ(refused(cubin(with("shared", "shared = 166912"), of_80)), "");
  for (const auto& [of, words] :
       {std::pair{cubin(with("block", "block = 129"), {.more_facts = fact_of_three(0x05, 128)}),
                  "has blocks of at most 128 threads, and 'block' is 129 for layer_norm of 10 x "
                  "768 in bf16; correct the table, or say in its 'supports'"},
        std::pair{cubin(with("block", "block = 1025")), "'block' is 1025 for layer_norm of 10 x"},
        std::pair{cubin(with("grid", "grid = \"floor(rows / 4) - 2\"")),
                  "'grid' is floor(rows / 4) - 2 = 0 for layer_norm of 10 x 768 in bf16"},
        std::pair{cubin(with("grid", "grid = [1, 65536]")), "a whole number from 1 to 65535"},
        std::pair{cubin(with("shared", "shared = \"columns - 769\"")),
                  "'shared' is columns - 769 = -1 for layer_norm of 10 x 768 in bf16"},
        std::pair{cubin(with("shared", "shared = 232449")), "a block may have 232448"},
        std::pair{cubin(with("shared", "shared = 166913"), of_80), "a block may have 166912"},
        std::pair{cubin(with("block", "block = 512"), {.registers = 129}),
                  "needs 129 registers a thread, which are 69632 for a block of 512 threads of "
                  "layer_norm of 10 x 768 in bf16, and a block may have 65536; write a smaller "
                  "'block', or compile it with "
                  "__launch_bounds__(512)"}})
    EXPECT_TRUE(contains(refused(of), words));
  EXPECT_EQ(refused(cubin(with("block", "block = 512"), {.registers = 128})), "");
  EXPECT_TRUE(contains(refused(cubin(), {10, 772}), "columns must be a multiple of 8"));
}

TEST(CubinLaunches, OtherBytesOrAnotherLaunchAreAnotherIdentity) {
  const std::string first = cubin().identity();
  EXPECT_TRUE(contains(first, "ln.cubin "));
  EXPECT_EQ(cubin().identity(), first);
  EXPECT_NE(cubin(with("block", "block = 64")).identity(), first);
  EXPECT_NE(cubin(with("supports", "")).identity(), first);
  EXPECT_NE(cubin(whole, {.flags = 0x6005a00}).identity(), first);
}

constexpr const char* metadata =
    R"({"name": "ln_fwd", "num_warps": 4, "shared": 2048, "num_ctas": 1,
    "cluster_dims": [1, 1, 1], "global_scratch_size": 0, "tensordesc_meta": null})";

std::string of_triton() {
  std::string text = with("entry", "metadata = \"ln.json\"");
  for (const char* key : {"block = 128\n", "shared = \"4 * columns\"\n"})
    text.erase(text.find(key), std::string(key).size());
  return text;
}

std::string text_of_file(const char* name) {
  std::ifstream in(std::string(STEPGATE_SOURCE_DIR) + "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The page shows the example.
TEST(CubinLaunches, TheExampleIsOne) {
  const std::string text = text_of_file("examples/kernels/layer_norm_bf16.toml");
  EXPECT_EQ(call(cubin(text, {.entry = "layer_norm_bf16"})).shared_bytes, 4U * 768);
  EXPECT_TRUE(contains(text_of_file("docs/kernels.md"), text.substr(text.find('\n') + 1)));
}

// Triton's kernels have two more parameters, for scratch memory.
TEST(CubinLaunches, OfTritonHaveBlockAndSharedMemoryFromItsMetadata) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::vector<std::byte>& bytes) {
    std::ofstream(folder.path() / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  write("ln.cubin", bytes_of({.parameter_bytes = {8, 8, 8, 8, 8, 4, 4, 8, 8},
                              .more_facts = fact_of_three(0x10, 128)}));
  std::ofstream(folder.path() / "ln.json") << metadata;
  const CubinLaunch launch = launch_of(of_triton());
  const CubinCall made =
      call(read_cubin_of(launch, folder.path(), kernel("layer_norm")), {10, 768});
  EXPECT_EQ(made.block, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(made.shared_bytes, 2048U);
  ASSERT_EQ(made.arguments.size(), 9U);
  EXPECT_EQ(made.arguments.back().bits, 0U);
  EXPECT_EQ(made.arguments.back().operand, no_operand);
  // Three that are missing are no scratch memory.
  write("ln.cubin", bytes_of({.parameter_bytes = {8, 8, 8, 8, 8, 4, 4, 8, 8, 8}}));
  EXPECT_TRUE(contains(
      refusal_of([&] { return read_cubin_of(launch, folder.path(), kernel("layer_norm")); }),
      "has 10 parameters, and there are 9 arguments"));
  std::filesystem::remove(folder.path() / "ln.json");
  EXPECT_TRUE(contains(
      refusal_of([&] { return read_cubin_of(launch, folder.path(), kernel("layer_norm")); }),
      "ln.json"));
}

TEST(CubinLaunches, WhatTritonNeedsBeyondALaunchIsRefused) {
  const auto refused = [](std::string text) {
    CubinLaunch launch = launch_of(of_triton());
    return refusal_of([&] {
      take_metadata(launch, text);
      return 0;
    });
  };
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = metadata;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(refused(metadata), "");
  EXPECT_TRUE(
      contains(refused(changed("\"global_scratch_size\": 0", "\"global_scratch_size\": 64")),
               "needs global scratch memory; launch it from a library"));
  EXPECT_TRUE(contains(refused(changed("\"num_ctas\": 1", "\"num_ctas\": 2")), "runs in clusters"));
  EXPECT_TRUE(contains(refused(changed("\"tensordesc_meta\": null", "\"tensordesc_meta\": [{}]")),
                       "takes tensor maps"));
  EXPECT_TRUE(contains(refused(changed("\"num_warps\": 4", "\"num_warps\": -4")),
                       "has no whole number as 'num_warps'"));
  for (const char* text : {"", "[]", "{}", "{\"name\": 1, \"num_warps\": 1, \"shared\": 1}"})
    EXPECT_TRUE(contains(refused(text), "'ln.json' is no metadata of Triton"));
}

}  // namespace
}  // namespace stepgate
