// SPDX-License-Identifier: MIT
// A shared library that the tests of DynamicLibrary open.
extern "C" {

__attribute__((visibility("default"))) int fake_version() {
  return 91400;
}

__attribute__((visibility("default"))) int fake_add(int a, int b) {
  return a + b;
}
}
