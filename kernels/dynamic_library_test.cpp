// SPDX-License-Identifier: MIT
// Tests the loader with a fake library: found, missing, named by the environment, and without some
// functions.
#include "kernels/dynamic_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace stepgate {
namespace {

constexpr const char* variable = "STEPGATE_FAKE_LIBRARY_OF_TEST";

class OpenLibrary : public testing::Test {
 protected:
  void TearDown() override { (void)unsetenv(variable); }
  static WantedLibrary wanted(std::vector<DynamicLibraryPlace> places) {
    return {.name = "FAKE", .variable = variable, .places = std::move(places)};
  }
  static DynamicLibrary fake() { return DynamicLibrary(wanted({{STEPGATE_FAKE_LIBRARY}})); }
};

TEST_F(OpenLibrary, FillsTheTableOfFunctions) {
  DynamicLibrary library = fake();
  int (*version)() = nullptr;
  int (*add)(int, int) = nullptr;
  int (*newer)() = version;
  EXPECT_TRUE(library.bind({{"fake_version", &version},
                            {"fake_add", &add},
                            {"fake_newer", &newer, DynamicFunction::optional}}))
      << library.unavailable();
  EXPECT_EQ(library.unavailable(), "");
  EXPECT_EQ(library.file(), STEPGATE_FAKE_LIBRARY);
  ASSERT_TRUE(version != nullptr && add != nullptr);
  EXPECT_EQ(version(), 91400);
  EXPECT_EQ(add(2, 3), 5);
  EXPECT_EQ(newer, nullptr);
}

TEST_F(OpenLibrary, TakesTheFirstOfItsPlacesThatIsThere) {
  DynamicLibrary library(
      wanted({{STEPGATE_FAKE_LIBRARY, true}, {"/nowhere/libfake.so"}, {STEPGATE_FAKE_LIBRARY}}));
  EXPECT_EQ(library.unavailable(), "");
  EXPECT_NE(library.find("fake_add"), nullptr);
  library.close();
  EXPECT_EQ(library.find("fake_add"), nullptr);
}

TEST_F(OpenLibrary, NamesEveryPlaceWhereThereIsNone) {
  DynamicLibrary library(wanted({{"libfake.so.7", true}, {"/a/libfake.so"}, {"/b/libfake.so"}}));
  const std::string no_such = ": cannot open shared object file: No such file or directory";
  EXPECT_EQ(library.unavailable(), "no FAKE was found (/a/libfake.so" + no_such +
                                       "; /b/libfake.so" + no_such + "); " + variable +
                                       " may name another library");
  int (*version)() = nullptr;
  EXPECT_FALSE(library.bind({{"fake_version", &version}}));
  EXPECT_EQ(library.find("fake_version"), nullptr);
}

TEST_F(OpenLibrary, TriesNothingButWhatTheEnvironmentNames) {
  ASSERT_EQ(setenv(variable, "/nowhere/libfake.so", 1), 0);
  DynamicLibrary library = fake();
  EXPECT_EQ(library.unavailable().find(std::string("no FAKE was found where ") + variable +
                                       " names '/nowhere/libfake.so' (/nowhere/libfake.so: "),
            0U)
      << library.unavailable();
  ASSERT_EQ(setenv(variable, STEPGATE_FAKE_LIBRARY, 1), 0);
  EXPECT_EQ(DynamicLibrary(wanted({{"/nowhere/libfake.so"}})).unavailable(), "");
}

TEST_F(OpenLibrary, NamesEveryFunctionThatIsMissingTheFileAndTheWayOut) {
  WantedLibrary described = wanted({{STEPGATE_FAKE_LIBRARY}});
  described.way_out = "`pip install fake` has it";
  DynamicLibrary library(described);
  int (*version)() = nullptr;
  int (*subtract)(int, int) = nullptr;
  int (*divide)(int, int) = nullptr;
  int (*newer)() = nullptr;
  EXPECT_FALSE(library.bind({{"fake_subtract", &subtract},
                             {"fake_version", &version},
                             {"fake_newer", &newer, DynamicFunction::optional},
                             {"fake_divide", &divide}}));
  EXPECT_EQ(library.unavailable(), std::string("no FAKE was found (" STEPGATE_FAKE_LIBRARY
                                               " lacks fake_subtract, fake_divide); ") +
                                       variable +
                                       " may name another library, and `pip install fake` has it");
}

}  // namespace
}  // namespace stepgate
