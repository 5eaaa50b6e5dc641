// SPDX-License-Identifier: MIT
// A fake cuDNN for open_cudnn_test only. One environment variable sets its version; others make it
// fail to create a handle or a descriptor, give the heuristics several engines, or give engines a
// numerical note and a workspace: those of the heuristics alone, or those of the fallbacks too. It
// computes nothing, counts created objects, and tells the plan and the operands of each execution.
#include <cudnn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

namespace {

int the_handle = 0;

int handles = 0;
int descriptors = 0;
std::uintptr_t last_descriptor = 0;
std::vector<void*> operands;  // set last
struct Execution {
  cudnnBackendDescriptor_t plan;
  std::vector<void*> operands;
};
std::vector<Execution> executions;
std::map<cudnnBackendDescriptorType_t, int> made;

bool said(const char* name) {
  return std::getenv(name) != nullptr;
}

cudnnBackendHeurMode_t mode_asked = CUDNN_HEUR_MODE_A;

// The variable's number for the engines of the last heuristics, if it has one for them.
std::optional<std::int64_t> of_engines(const char* name) {
  const bool concerned = mode_asked == CUDNN_HEUR_MODE_A || said("FAKE_CUDNN_FALLBACKS_TOO");
  if (!concerned || !said(name)) return std::nullopt;
  return std::strtoll(std::getenv(name), nullptr, 10);
}

}  // namespace

extern "C" {

// The number of handles that exist now, and below the number of descriptors of a type made so far.
int fake_handles() {
  return handles;
}

int fake_descriptors() {
  return descriptors;
}

int fake_descriptors_made(cudnnBackendDescriptorType_t type) {
  return made[type];
}

int fake_executions() {
  return static_cast<int>(executions.size());
}

void* fake_plan(int execution) {
  return executions[static_cast<std::size_t>(execution)].plan;
}

void* fake_operand(int execution, int operand) {
  const Execution& of = executions[static_cast<std::size_t>(execution)];
  return of.operands[static_cast<std::size_t>(operand)];
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

// Aborts if descriptors still exist: they must be destroyed before their handle.
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
  *descriptor = reinterpret_cast<cudnnBackendDescriptor_t>(++last_descriptor);
  ++descriptors;
  ++made[type];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  --descriptors;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t count,
                                       const void* value) {
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE) std::memcpy(&mode_asked, value, sizeof mode_asked);
  if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    auto* const first = static_cast<void* const*>(value);
    operands.assign(first, first + count);
  }
  return CUDNN_STATUS_SUCCESS;
}

// Returns one descriptor for descriptors, or as many as engines were asked for, and one number or
// note.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t, int64_t* count,
                                       void* elements) {
  if (count != nullptr) *count = 1;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) *count = of_engines("FAKE_CUDNN_ENGINES").value_or(1);
  if (type == CUDNN_TYPE_INT64 && elements != nullptr) {
    const std::int64_t bytes = of_engines("FAKE_CUDNN_WORKSPACE").value_or(0);
    std::memcpy(elements, &bytes, sizeof bytes);
  }
  if (type == CUDNN_TYPE_NUMERICAL_NOTE) {
    const auto number = of_engines("FAKE_CUDNN_NOTE");
    const auto note = static_cast<cudnnBackendNumericalNote_t>(number.value_or(0));
    *count = number ? 1 : 0;
    if (number) std::memcpy(elements, &note, sizeof note);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t) {
  executions.push_back({plan, operands});
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
