// SPDX-License-Identifier: MIT
// Declares what a library of functions sees of tvm-ffi, as its headers do and apart from the
// product's own declarations. fake_tvm_ffi.cpp plays the library.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct DLDevice {
  std::int32_t device_type, device_id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct TVMFFIAny {
  std::int32_t type_index;
  std::uint32_t zero_padding;
  union {
    std::int64_t v_int64;
    double v_float64;
    void* v_ptr;
  };
};
struct TVMFFIByteArray {
  const char* data;
  std::size_t size;
};

int TVMFFIEnvSetStream(std::int32_t, std::int32_t, void* stream, void** original);
void* TVMFFIEnvGetStream(std::int32_t, std::int32_t);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message);
void TVMFFIErrorMoveFromRaised(void** result);
int TVMFFIObjectDecRef(void* object);
}
