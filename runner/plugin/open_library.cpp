// SPDX-License-Identifier: MIT
#include "plugin/open_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "include/stepgate/kernel.h"
#include "kernels/number_format.h"
#include "plugin/library_call.h"

namespace stepgate {
namespace {

static_assert(static_cast<int>(DType::fp32) == STEPGATE_FP32 &&
              static_cast<int>(DType::tf32) == STEPGATE_TF32 &&
              static_cast<int>(DType::bf16) == STEPGATE_BF16 &&
              static_cast<int>(DType::fp16) == STEPGATE_FP16);
static_assert(static_cast<int>(Access::read) == STEPGATE_READ &&
              static_cast<int>(Access::write) == STEPGATE_WRITE &&
              static_cast<int>(Access::read_write) == STEPGATE_READ_WRITE);
static_assert(static_cast<int>(OperandFormat::storage) == STEPGATE_STORAGE &&
              static_cast<int>(OperandFormat::single) == STEPGATE_SINGLE &&
              static_cast<int>(OperandFormat::index) == STEPGATE_INDEX &&
              static_cast<int>(OperandFormat::count) == STEPGATE_COUNT &&
              static_cast<int>(OperandFormat::word) == STEPGATE_WORD &&
              static_cast<int>(OperandFormat::byte) == STEPGATE_BYTE &&
              static_cast<int>(OperandFormat::control) == STEPGATE_CONTROL &&
              static_cast<int>(OperandFormat::scratch) == STEPGATE_SCRATCH);

// Holds what a library prepared for one shape, and releases it with the last launch.
struct Prepared {
  std::string who;
  stepgate_prepared made{};

  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    if (made.release != nullptr) made.release(made.state);
  }

  std::string message() const {
    return {made.message, ::strnlen(made.message, sizeof made.message)};
  }
};

// Calls a function of C that a library has, which may be written in C++ all the same.
template <class Call>
int guarded(const std::string& who, const Call& call) {
  const WithinLibrary within(who);
  try {
    return call();
  } catch (...) {
    throw KernelLibraryError(who + " threw an exception", "return STEPGATE_FAILED and a message");
  }
}

double number_of(const AggregateMember& member) {
  return std::visit([](auto value) { return static_cast<double>(value); }, member);
}

std::vector<stepgate_operand> operands_of(const KernelRequest& asked) {
  std::vector<stepgate_operand> all;
  for (const KernelOperand& operand : asked.kernel.operands) {
    const std::int64_t bytes = operand_bytes(operand, asked.shape, asked.dtype, asked.attributes);
    const bool replaces = operand.may_replace != no_operand;
    all.push_back({.name = operand.name.data(),
                   .access = static_cast<std::uint32_t>(access_of(operand, asked.attributes)),
                   .format = static_cast<std::uint32_t>(operand.format),
                   .elements = bytes / bytes_of(operand.format, asked.dtype),
                   .bytes = bytes,
                   .alignment = operand_alignment(asked.kernel),
                   .may_replace = replaces ? static_cast<std::int32_t>(operand.may_replace) : -1,
                   .reserved = 0});
  }
  return all;
}

}  // namespace

std::string in_words(const KernelRequest& asked) {
  return fmt::format("{} of {} in {}", asked.kernel.name, text_of(asked.shape, " x "),
                     name_of(asked.dtype));
}

void* open_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  const int memory = ::memfd_create("stepgate-kernels", MFD_CLOEXEC);
  if (memory < 0) {
    throw KernelLibraryError(fmt::format("'{}' cannot be opened: {}", path, std::strerror(errno)));
  }
  for (std::size_t written = 0; written < bytes.size();) {
    const auto now = ::write(memory, bytes.data() + written, bytes.size() - written);
    if (now <= 0) {
      const std::string why = std::strerror(errno);
      ::close(memory);
      throw KernelLibraryError(fmt::format("'{}' cannot be opened: {}", path, why));
    }
    written += static_cast<std::size_t>(now);
  }
  // The descriptor stays open with the library: the loader knows libraries by their paths, and
  // takes a number that comes again for the library that it had before.
  void* const handle =
      ::dlopen(fmt::format("/proc/self/fd/{}", memory).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* why = ::dlerror();
  ::close(memory);
  throw KernelLibraryError(fmt::format("'{}' cannot be opened: {}; link all that it needs into it",
                                       path, why == nullptr ? "the loader gives no reason" : why));
}

OpenLibrary::OpenLibrary(LibraryFile file)
    : file_(std::move(file)), handle_(open_bytes(file_.path, file_.bytes)) {}

LoadedKernel OpenLibrary::loaded(const std::string& function) const {
  require_function(file_, function);
  return {.identity = identity_of(file_),
          .prepare = [this, function](const KernelRequest& asked, const DeviceFacts& device) {
            return prepare(function, asked, device);
          }};
}

PreparedKernel OpenLibrary::prepare(const std::string& function, const KernelRequest& asked,
                                    const DeviceFacts& device) const {
  require_function(file_, function);
  const auto ask = reinterpret_cast<stepgate_kernel_function>(::dlsym(handle_, function.c_str()));
  if (ask == nullptr)
    throw KernelLibraryError(fmt::format("'{}' hides its '{}'", file_.path, function));
  const std::vector<stepgate_operand> operands = operands_of(asked);
  // Names are not zero-terminated where they come from a list.
  std::vector<std::string> names;
  for (std::size_t index = 0; index < asked.shape.size(); ++index)
    names.emplace_back(asked.shape.name(index));
  for (std::size_t index = 0; index < asked.attributes.size(); ++index)
    names.emplace_back(asked.attributes.name(index));
  std::vector<stepgate_dimension> dimensions;
  for (std::size_t index = 0; index < asked.shape.size(); ++index) {
    dimensions.push_back(
        {.name = names[index].c_str(), .value = std::get<std::int64_t>(asked.shape.member(index))});
  }
  std::vector<stepgate_attribute> attributes;
  for (std::size_t index = 0; index < asked.attributes.size(); ++index) {
    attributes.push_back({.name = names[asked.shape.size() + index].c_str(),
                          .value = number_of(asked.attributes.member(index))});
  }
  const std::string name(asked.kernel.name);
  const stepgate_request request{.size = sizeof(stepgate_request),
                                 .abi = STEPGATE_KERNEL_ABI,
                                 .kernel = name.c_str(),
                                 .dtype = static_cast<std::uint32_t>(asked.dtype),
                                 .capability = device.capability,
                                 .multiprocessors = device.multiprocessors,
                                 .shared_bytes = device.shared_bytes,
                                 .dimension_count = static_cast<std::uint32_t>(dimensions.size()),
                                 .attribute_count = static_cast<std::uint32_t>(attributes.size()),
                                 .operand_count = static_cast<std::uint32_t>(operands.size()),
                                 .reserved = 0,
                                 .dimensions = dimensions.data(),
                                 .attributes = attributes.data(),
                                 .operands = operands.data(),
                                 .workspace_bytes = asked.workspace_bytes};
  const auto prepared = std::make_shared<Prepared>();
  prepared->who = fmt::format("'{}' of '{}'", function, file_.path);
  prepared->made.size = sizeof(stepgate_prepared);
  const int status = guarded(prepared->who, [&] { return ask(&request, &prepared->made); });
  const std::string said = prepared->message();
  const auto because = [&](std::string_view otherwise) {
    const std::string& words = said.empty() ? std::string(otherwise) : said;
    return words.empty() ? "" : ": " + words;
  };
  if (status == STEPGATE_UNSUPPORTED) {
    throw KernelUnsupported(
        fmt::format("{} does not support {}{}", prepared->who, in_words(asked), because("")));
  }
  if (status != STEPGATE_OK) {
    throw KernelLibraryError(
        fmt::format("{} cannot prepare {}{}", prepared->who, in_words(asked),
                    because(status > 0 ? device.in_words(status, device.capability)
                                       : fmt::format("it returned {} without a message", status))));
  }
  if (prepared->made.launch == nullptr) {
    throw KernelLibraryError(
        fmt::format("{} prepared {} and set no 'launch'", prepared->who, in_words(asked)));
  }
  if (prepared->made.workspace_bytes < 0 ||
      prepared->made.workspace_bytes > asked.workspace_bytes) {
    throw KernelLibraryError(fmt::format("{} uses {} bytes of workspace for {}, and there are {}",
                                         prepared->who, prepared->made.workspace_bytes,
                                         in_words(asked), asked.workspace_bytes));
  }
  // A library that says that it uses none gets none.
  void* const workspace = prepared->made.workspace_bytes > 0 ? asked.workspace : nullptr;
  const auto launch = [prepared, workspace, device](void* const* buffers, CUstream_st* stream) {
    const int launched = guarded(prepared->who, [&] {
      return prepared->made.launch(prepared->made.state, buffers, workspace, stream);
    });
    if (launched == STEPGATE_OK) return;
    throw KernelLibraryError(fmt::format("{} failed to launch: {}", prepared->who,
                                         launched > 0 ? device.in_words(launched, device.capability)
                                                      : fmt::format("it returned {}", launched)));
  };
  return {.launch = launch,
          .launches = prepared->made.launches == 0 ? 1 : std::int64_t{prepared->made.launches},
          .workspace_bytes = prepared->made.workspace_bytes};
}

}  // namespace stepgate
