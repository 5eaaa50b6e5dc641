// SPDX-License-Identifier: MIT
// For driver_test only: a CUDA driver without a GPU. Environment variables set its version and how
// its start fails. It is found before the machine's driver by its name, libcuda.so.1.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int no_device = 100;
constexpr int not_found = 500;

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

int version() {
  return number("FAKE_DRIVER_CUDA", 13000);
}

int any_function() {
  return no_device;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  return number("FAKE_DRIVER_STARTS", 0);
}

int cuDriverGetVersion(int* found) {
  *found = version();
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** function, int cuda, unsigned long long, int* how) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (how != nullptr) *how = 0;
  *function = nullptr;
  if (cuda > version()) return not_found;
  *function = is("cuInit")               ? reinterpret_cast<void*>(cuInit)
              : is("cuDriverGetVersion") ? reinterpret_cast<void*>(cuDriverGetVersion)
              : is("cuGetProcAddress")   ? reinterpret_cast<void*>(cuGetProcAddress_v2)
                                         : reinterpret_cast<void*>(any_function);
  return 0;
}

}  // extern "C"
