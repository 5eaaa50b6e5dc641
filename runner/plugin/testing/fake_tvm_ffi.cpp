// SPDX-License-Identifier: MIT
#include "runner/plugin/testing/fake_tvm_ffi.h"

#include <string>

namespace {

struct ErrorObject {
  std::uint64_t combined_ref_count = 1;
  std::int32_t type_index = 67;
  std::uint32_t padding = 0;
  void (*deleter)(void*, int) = nullptr;
  TVMFFIByteArray kind, message, backtrace;
  void* update_backtrace = nullptr;
  std::string kind_text, message_text;
};

void* stream_of_cuda = nullptr;
ErrorObject* raised = nullptr;

}  // namespace

#define SHOWN __attribute__((visibility("default")))

SHOWN int TVMFFIEnvSetStream(std::int32_t type, std::int32_t index, void* stream, void**) {
  if (type != 2 || index != 0) return -1;
  stream_of_cuda = stream;
  return 0;
}
SHOWN void* TVMFFIEnvGetStream(std::int32_t, std::int32_t) {
  return stream_of_cuda;
}
SHOWN void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  raised = new ErrorObject{.kind_text = kind, .message_text = message};
  raised->kind = {raised->kind_text.data(), raised->kind_text.size()};
  raised->message = {raised->message_text.data(), raised->message_text.size()};
}
SHOWN void TVMFFIErrorMoveFromRaised(void** result) {
  *result = raised;
  raised = nullptr;
}
SHOWN int TVMFFIObjectDecRef(void* object) {
  delete static_cast<ErrorObject*>(object);
  return 0;
}
