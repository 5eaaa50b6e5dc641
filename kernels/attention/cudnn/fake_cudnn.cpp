// SPDX-License-Identifier: MIT
// For open_cudnn_test only: a cuDNN that has the version which an environment variable names, and
// that makes no handle, or no descriptor, where others say so. It computes nothing, and counts what
// is made.
#include <cudnn.h>

#include <cstdlib>
#include <cstring>
#include <map>

namespace {

int the_handle = 0;
int the_descriptor = 0;

int handles = 0;
int descriptors = 0;
std::map<cudnnBackendDescriptorType_t, int> made;

bool said(const char* name) {
  return std::getenv(name) != nullptr;
}

}  // namespace

extern "C" {

// How many there are now; how many of this type were made so far.
int fake_handles() {
  return handles;
}

int fake_descriptors() {
  return descriptors;
}

int fake_descriptors_made(cudnnBackendDescriptorType_t type) {
  return made[type];
}

size_t cudnnGetVersion() {
  const char* version = std::getenv("FAKE_CUDNN_VERSION");
  return version == nullptr ? 0 : std::strtoul(version, nullptr, 10);
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "FAKE_NOT_SUPPORTED" : "FAKE_ERROR";
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size > 0) message[0] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (said("FAKE_CUDNN_NO_HANDLE")) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cudnnHandle_t>(&the_handle);
  ++handles;
  return CUDNN_STATUS_SUCCESS;
}

// Everything that was made with a handle must go first.
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  if (descriptors > 0) std::abort();
  --handles;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (said("FAKE_CUDNN_NO_DESCRIPTOR")) return CUDNN_STATUS_NOT_SUPPORTED;
  *descriptor = &the_descriptor;
  ++descriptors;
  ++made[type];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  --descriptors;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, int64_t, const void*) {
  return CUDNN_STATUS_SUCCESS;
}

// Numbers are 0, and of descriptors there is one.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t type, int64_t, int64_t* count,
                                       void* elements) {
  if (count != nullptr) *count = 1;
  if (type == CUDNN_TYPE_INT64 && elements != nullptr) std::memset(elements, 0, sizeof(int64_t));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
