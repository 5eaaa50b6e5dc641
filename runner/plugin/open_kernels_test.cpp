// SPDX-License-Identifier: MIT
// A check and a step come to a user's kernel in the same way, from a library or from a table.
#include "plugin/open_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/files/temporary_folder.h"
#include "kernels/catalogue.h"
#include "kernels/norm/norm.h"
#include "plugin/check_kernel.h"
#include "plugin/tables/kernel_file.h"
#include "plugin/testing/contains.h"
#include "plugin/testing/fake_trial_device.h"
#include "plugin/testing/small_cubin.h"

namespace stepgate {
namespace {

class KernelFiles : public testing::Test {
 protected:
  void SetUp() override { ::setenv("STEPGATE_TVM_FFI", STEPGATE_FAKE_TVM_FFI, 1); }
  void TearDown() override { ::unsetenv("STEPGATE_TVM_FFI"); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
    return folder_.path() / name;
  }

  std::filesystem::path ffi_table(const std::string& function = "layer_norm") const {
    std::filesystem::copy_file(STEPGATE_FAKE_FFI_KERNELS, folder_.path() / "ffi.so",
                               std::filesystem::copy_options::skip_existing);
    return write("ffi.toml", "library = \"ffi.so\"\nabi = \"tvm-ffi\"\nfunction = \"" + function +
                                 "\"\narguments = [\"x[rows, columns]\", \"weight[columns]\", "
                                 "\"bias[columns]\", \"y[rows, columns]\", "
                                 "\"statistics[rows, 2]\", \"epsilon:f64\"]\n");
  }

  std::filesystem::path cubin_table(const std::string& grid = "rows",
                                    const std::string& dtypes = "") const {
    const std::vector<std::byte> bytes = bytes_of(SmallCubin{});
    write("ln.cubin", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return write("ln.toml", "cubin = \"ln.cubin\"\nentry = \"ln_fwd\"\ngrid = \"" + grid +
                                "\"\nblock = 128\n" + dtypes +
                                "arguments = [\"x\", \"weight\", \"bias\", \"y\", \"statistics\", "
                                "\"columns:i32\", \"epsilon:f32\"]\n");
  }

  static std::string identity(const std::filesystem::path& file) {
    return identity_of(read_kernel(file, "layer_norm", kernel("layer_norm")));
  }

  static std::string refusal(const std::filesystem::path& file) {
    try {
      (void)identity(file);
    } catch (const RequestError& error) {
      return error.what();
    }
    return {};
  }

  const TemporaryFolder folder_;
};

// A device that loads no cubin.
PrepareKernel no_device(Cubin) {
  throw KernelLibraryError("no device");
}

TEST_F(KernelFiles, OfEveryKindAreCheckedAlike) {
  OpenKernels kernels(no_device);
  const auto device = make_fake_trial_device();
  const auto faults = [&](const std::filesystem::path& file, const std::string& function) {
    const LoadedKernel& loaded = kernels.at(file, function, kernel("layer_norm"));
    EXPECT_EQ(loaded.identity, identity_of(read_kernel(file, function, kernel("layer_norm"))));
    KernelCheck check = check_kernel(
        *device, {.loaded = loaded, .kernel = kernel("layer_norm"), .of_step = {}, .seed = 7});
    // A busy machine keeps this process from its processor for as long as a wait would.
    std::erase_if(check.faults,
                  [](const KernelFault& one) { return one.check == "does not wait"; });
    EXPECT_GT(check.trials, 0);
    return check.faults.empty() ? std::string() : check.faults.front().check;
  };
  EXPECT_EQ(faults(STEPGATE_FAKE_KERNELS, "layer_norm"), "");
  EXPECT_EQ(faults(ffi_table(), "layer_norm"), "");
  const std::filesystem::path wrong = folder_.path() / "wrong.toml";
  std::filesystem::rename(ffi_table("forgets_the_last_row"), wrong);
  EXPECT_EQ(faults(wrong, "layer_norm"), "numbers");
}

// An opened kernel stays the same, whatever its file holds meanwhile.
TEST_F(KernelFiles, AreOpenedOnce) {
  OpenKernels kernels(no_device);
  const std::filesystem::path file = folder_.path() / "m.so";
  std::filesystem::copy_file(STEPGATE_FAKE_KERNELS, file);
  const LoadedKernel& first = kernels.at(file, "layer_norm", kernel("layer_norm"));
  std::ofstream(file, std::ios::app) << "another build";
  EXPECT_EQ(&first, &kernels.at(file, "layer_norm", kernel("layer_norm")));
  EXPECT_EQ(kernels.at(file, "add", kernel("add")).identity, first.identity);
  EXPECT_NE(identity(file), first.identity);
  EXPECT_THROW((void)kernels.at(file, "layernorm", kernel("layer_norm")), KernelLibraryError);
}

// The table of a cubin reaches the device with the numbers of a launch, and not before it fits.
TEST_F(KernelFiles, OfACubinAreLoadedByTheDevice) {
  int loaded = 0;
  OpenKernels kernels([&](Cubin cubin) -> PrepareKernel {
    ++loaded;
    return [cubin = std::move(cubin)](const KernelRequest& asked, const DeviceFacts& device) {
      EXPECT_EQ(cubin.call(asked, device).grid[0], 5U);
      return PreparedKernel{};
    };
  });
  const std::filesystem::path table = cubin_table("ceil(rows / 2)", "dtypes = [\"bf16\"]\n");
  const auto prepare = [&](DType dtype) {
    return kernels.at(table, "layer_norm", kernel("layer_norm"))
        .prepare({.kernel = kernel("layer_norm"),
                  .shape = MatrixShape{10, 64},
                  .dtype = dtype,
                  .attributes = NormAttributes{.epsilon = 1e-5}},
                 {.capability = 90, .multiprocessors = 132, .shared_bytes = 227 * 1024});
  };
  EXPECT_EQ(prepare(DType::bf16).launches, 1);
  EXPECT_THROW((void)prepare(DType::fp32), KernelUnsupported);
  EXPECT_EQ(loaded, 1);
  write("ln.toml", "cubin = \"absent.cubin\"\n");
  EXPECT_THROW((void)OpenKernels(no_device).at(table, "layer_norm", kernel("layer_norm")),
               RequestError);
}

// The bytes of a run's key are those of the table and of what it names.
TEST_F(KernelFiles, HaveTheIdentityOfAllTheirBytes) {
  const std::string cubin = identity(cubin_table());
  EXPECT_TRUE(contains(cubin, "ln.cubin "));
  EXPECT_EQ(identity(cubin_table()), cubin);
  EXPECT_NE(identity(cubin_table("rows * 2")), cubin);
  EXPECT_NE(identity(cubin_table("rows", "dtypes = [\"bf16\"]\n")), cubin);
  const std::filesystem::path table = cubin_table();
  std::ofstream(folder_.path() / "ln.cubin", std::ios::app) << "another build";
  EXPECT_NE(identity(table), cubin);
  const std::string files = identity_of_files(table);
  EXPECT_TRUE(contains(files, "ln.toml "));
  std::ofstream(folder_.path() / "ln.cubin", std::ios::app) << "a third one";
  EXPECT_NE(identity_of_files(table), files);
  EXPECT_EQ(identity_of_files(STEPGATE_FAKE_KERNELS), identity(STEPGATE_FAKE_KERNELS));
  const std::string ffi = identity(ffi_table());
  EXPECT_NE(identity(ffi_table("forgets_the_last_row")), ffi);
  std::ofstream(folder_.path() / "ffi.so", std::ios::app) << "another build";
  EXPECT_NE(identity(ffi_table()), ffi);
}

TEST_F(KernelFiles, ThatAreFaultySayWhere) {
  EXPECT_TRUE(contains(refusal(write("two.toml", "cubin = 3\nentri = \"f\"\n")), "two.toml:1:9: "))
      << refusal(folder_.path() / "two.toml");
  EXPECT_TRUE(contains(refusal(folder_.path() / "two.toml"), "two.toml:2:1: unknown key 'entri'"));
  EXPECT_TRUE(contains(refusal(folder_.path() / "none.toml"), "none.toml"));
  EXPECT_TRUE(contains(refusal(folder_.path() / "none.so"), "no file '"));
  EXPECT_THROW((void)read_kernel(cubin_table(), "ln_fwd", kernel("layer_norm")),
               KernelLibraryError);
  EXPECT_EQ(files_of_kernel(cubin_table()),
            (std::vector{folder_.path() / "ln.toml", folder_.path() / "ln.cubin"}));
  EXPECT_EQ(files_of_kernel(ffi_table()),
            (std::vector{folder_.path() / "ffi.toml", folder_.path() / "ffi.so"}));
  EXPECT_EQ(files_of_kernel("m.so"), std::vector{std::filesystem::path("m.so")});
}

}  // namespace
}  // namespace stepgate
