// SPDX-License-Identifier: MIT
#include "plugin/tables/tvm_ffi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text/nearest.h"
#include "kernels/dynamic_library.h"
#include "plugin/elf_reader.h"
#include "plugin/library_call.h"
#include "plugin/library_file.h"
#include "plugin/tables/size_expression.h"

namespace stepgate {
namespace {

constexpr std::string_view prefix = "__tvm_ffi_";
constexpr std::string_view abi = "tvm-ffi";

// DLPack has these.
struct Device {
  std::int32_t type = 2;  // CUDA
  std::int32_t index = 0;
};
struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes = 1;
};
enum DataTypeCode : std::uint8_t { whole = 0, natural = 1, real = 2, bfloat = 4 };
struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  DataType type;
  const std::int64_t* shape;
  const std::int64_t* strides;
  std::uint64_t offset_bytes;
};

// tvm-ffi has these.
struct Any {
  std::int32_t type = 0;
  std::uint32_t padding = 0;
  union {
    std::int64_t number;
    double real;
    const void* address;
  };
};
static_assert(sizeof(Any) == 16 && sizeof(Tensor) == 48);
enum TypeIndex : std::int32_t { is_number = 1, is_real = 3, is_tensor = 7, first_object = 64 };
struct Words {
  const char* data;
  std::size_t size;
};
struct Error {
  std::uint64_t counts;
  std::int32_t type;
  std::uint32_t padding;
  void* release;
  Words kind;
  Words message;
};
// The arguments are Any, and so is the result. A sanitizer that compares types of functions takes
// a struct of two sides for two types.
using FfiFunction = int(void* handle, const void* arguments, std::int32_t count, void* result);

DataType type_of(OperandFormat format, DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * bytes_of(format, dtype));
  switch (format) {
    case OperandFormat::storage:
      return {dtype == DType::bf16 ? bfloat : real, bits};
    case OperandFormat::index:
      return {whole, bits};
    case OperandFormat::single:
    case OperandFormat::control:
      return {real, bits};
    case OperandFormat::count:
    case OperandFormat::word:
    case OperandFormat::byte:
    case OperandFormat::scratch:
      break;
  }
  return {natural, bits};
}

struct TensorText {
  std::string_view operand;
  std::vector<std::string_view> dimensions;
};

// "x[rows, 2 * columns]". Commas within parentheses are of functions.
TensorText tensor_of(std::string_view text) {
  const std::size_t open = text.find('[');
  TensorText tensor{.operand = text.substr(0, open), .dimensions = {}};
  if (open == std::string_view::npos || !text.ends_with(']')) {
    throw KernelLibraryError(fmt::format("the argument '{}' is no tensor and no number", text),
                             "write a tensor's sizes, as in x[rows, columns], or a number's type, "
                             "as in epsilon:f64");
  }
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= rest.size(); ++at) {
    if (at < rest.size() && rest[at] == '(') ++depth;
    if (at < rest.size() && rest[at] == ')') --depth;
    if (at < rest.size() && (rest[at] != ',' || depth > 0)) continue;
    begin = std::min(rest.find_first_not_of(' ', begin), at);
    tensor.dimensions.push_back(rest.substr(begin, at - begin));
    begin = at + 1;
  }
  return tensor;
}

std::size_t operand_named(const Kernel& kernel, std::string_view name) {
  const std::vector<std::string_view> operands = operands_of(kernel);
  const auto known = std::ranges::find(operands, name);
  if (known != operands.end()) return static_cast<std::size_t>(known - operands.begin());
  throw KernelLibraryError(
      fmt::format("{} has no operand '{}'", kernel.name, name),
      did_you_mean(name, operands, fmt::format("its operands are {}", fmt::join(operands, ", "))));
}

// A tensor or a number of one launch, with what it points to.
struct Argument {
  std::size_t operand = no_operand;  // whose address a tensor has
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DataType type{};
  Any number{};
};

std::int64_t whole_of(std::string_view expression, const KernelRequest& asked,
                      std::span<const NamedNumber> names) {
  const double value = value_of(expression, names);
  constexpr double most = 9007199254740992.0;
  if (value >= -most && value <= most &&
      value == static_cast<double>(static_cast<std::int64_t>(value)))
    return static_cast<std::int64_t>(value);
  throw KernelLibraryError(fmt::format("'{}' is {} for {}, and must be a whole number", expression,
                                       value, in_words(asked)));
}

Argument tensor_for(const LaunchArgument& argument, const KernelRequest& asked,
                    std::span<const NamedNumber> names) {
  const TensorText text = tensor_of(argument.value);
  Argument made{.operand = operand_named(asked.kernel, text.operand)};
  const KernelOperand& operand = asked.kernel.operands[made.operand];
  std::int64_t elements = 1;
  for (const std::string_view dimension : text.dimensions) {
    made.shape.push_back(whole_of(dimension, asked, names));
    if (made.shape.back() < 0) {
      throw KernelLibraryError(fmt::format("'{}' has a size of {} for {}", argument.value,
                                           made.shape.back(), in_words(asked)));
    }
    const bool is_wrong = __builtin_mul_overflow(elements, made.shape.back(), &elements);
    if (is_wrong) elements = -1;
    if (is_wrong) break;
  }
  const std::int64_t bytes = operand_bytes(operand, asked.shape, asked.dtype, asked.attributes);
  const std::int64_t wanted = bytes / bytes_of(operand.format, asked.dtype);
  if (elements != wanted) {
    throw KernelLibraryError(
        fmt::format("'{}' has {} elements for {}, and '{}' has {}", argument.value,
                    elements < 0 ? std::string("too many") : fmt::format("{}", elements),
                    in_words(asked), text.operand, wanted));
  }
  made.strides.assign(made.shape.size(), 1);
  for (std::size_t index = made.shape.size(); index-- > 1;)
    made.strides[index - 1] = made.strides[index] * made.shape[index];
  made.type = type_of(operand.format, asked.dtype);
  return made;
}

Argument argument_for(const LaunchArgument& argument, const KernelRequest& asked,
                      std::span<const NamedNumber> names) {
  if (argument.type == ArgumentType::pointer) return tensor_for(argument, asked, names);
  Argument made;
  if (argument.type == ArgumentType::f64) {
    made.number.type = is_real;
    made.number.real = value_of(argument.value, names);
  } else {
    made.number.type = is_number;
    made.number.number = whole_of(argument.value, asked, names);
  }
  return made;
}

std::vector<Argument> arguments_for(const TvmFfiLaunch& launch, const KernelRequest& asked) {
  const std::vector<NamedNumber> names = numbers_of(asked.shape, asked.attributes);
  std::vector<Argument> arguments;
  for (const LaunchArgument& argument : launch.arguments)
    arguments.push_back(argument_for(argument, asked, names));
  return arguments;
}

}  // namespace

// The function, and what tvm-ffi's library has.
struct TvmFfi::Opened {
  FfiFunction* function = nullptr;
  int (*set_stream)(std::int32_t device, std::int32_t index, void* stream, void** before) = nullptr;
  void (*take_error)(void** error) = nullptr;
  int (*release)(void* object) = nullptr;

  std::string error() const {
    void* raised = nullptr;
    take_error(&raised);
    if (raised == nullptr) return "it raised no error";
    const auto* error = static_cast<const Error*>(raised);
    std::string words = fmt::format("{}: {}", std::string_view(error->kind.data, error->kind.size),
                                    std::string_view(error->message.data, error->message.size));
    (void)release(raised);
    return words;
  }

  // Throws in the words of the function.
  void call(const std::string& who, const std::vector<Argument>& arguments, void* const* operands,
            void* stream, int index) const {
    const Device device{.index = index};
    std::vector<Tensor> tensors;
    tensors.reserve(arguments.size());
    std::vector<Any> values;
    for (const Argument& argument : arguments) {
      values.push_back(argument.number);
      if (argument.operand == no_operand) continue;
      tensors.push_back({.data = operands[argument.operand],
                         .device = device,
                         .dimensions = static_cast<std::int32_t>(argument.shape.size()),
                         .type = argument.type,
                         .shape = argument.shape.data(),
                         .strides = argument.strides.data(),
                         .offset_bytes = 0});
      values.back().type = is_tensor;
      values.back().address = &tensors.back();
    }
    if (set_stream(device.type, device.index, stream, nullptr) != 0)
      throw KernelLibraryError(fmt::format("{} has no stream: {}", who, error()));
    Any result{};
    const int status = [&] {
      const WithinLibrary within(who);
      return function(nullptr, values.data(), static_cast<std::int32_t>(values.size()), &result);
    }();
    if (status != 0) throw KernelLibraryError(fmt::format("{} failed to launch: {}", who, error()));
    if (result.type < first_object) return;
    (void)release(const_cast<void*>(result.address));
    throw KernelLibraryError(who + " returns a tensor, which it allocated",
                             "take its outputs as arguments");
  }
};

std::optional<TvmFfiLaunch> read_tvm_ffi_launch(const TomlTable& table, const Place& place,
                                                std::vector<Diagnostic>& faults) {
  const std::size_t before = faults.size();
  LaunchTable reader(table, place, "a launch of a function of tvm-ffi", faults);
  TomlKeys& keys = reader.keys();
  TvmFfiLaunch launch;
  std::string interface;
  keys.text("abi", interface);
  if (const TomlEntry* entry = find(table, "abi"); entry != nullptr && interface != abi)
    keys.wrong_type(*entry, fmt::format("\"{}\"", abi));
  keys.text("library", launch.library);
  keys.text("function", launch.function);
  launch.arguments = reader.arguments();
  launch.supported = reader.supported();
  keys.refuse_the_rest();
  return faults.size() == before ? std::optional(std::move(launch)) : std::nullopt;
}

LibraryFile read_tvm_ffi_library(const std::filesystem::path& path) {
  LibraryFile file{.path = path.string(), .bytes = bytes_of_file(path), .functions = {}};
  const ElfReader elf(file.bytes);
  for (const ElfReader::Symbol& symbol : elf.exported(SHT_DYNSYM)) {
    if (symbol.is_function && symbol.name.starts_with(prefix))
      file.functions.push_back(symbol.name.substr(prefix.size()));
  }
  std::ranges::sort(file.functions);
  if (elf.is_shared_library() && !file.functions.empty()) return file;
  throw KernelLibraryError(
      fmt::format("'{}' is no shared library with a function for tvm-ffi", file.path),
      "write TVM_FFI_DLL_EXPORT_TYPED_FUNC in one of its files");
}

TvmFfi::TvmFfi(TvmFfiLaunch launch, const std::filesystem::path& folder, const Kernel& kernel)
    : launch_(std::move(launch)), file_(read_tvm_ffi_library(folder / launch_.library)) {
  require_function(file_, launch_.function);
  require_names(launch_.supported, kernel);
  for (const LaunchArgument& argument : launch_.arguments) {
    if (argument.type == ArgumentType::pointer) {
      const TensorText tensor = tensor_of(argument.value);
      (void)operand_named(kernel, tensor.operand);
      for (const std::string_view dimension : tensor.dimensions)
        (void)value_of(dimension, names_in(kernel));
      continue;
    }
    (void)value_of(argument.value, names_in(kernel));
    if (argument.type == ArgumentType::i64 || argument.type == ArgumentType::f64) continue;
    throw KernelLibraryError(
        fmt::format("the argument '{}' is no number of tvm-ffi", text_of(argument)),
        "its numbers are i64 and f64");
  }
}

std::string TvmFfi::who() const {
  return fmt::format("'{}' of '{}'", launch_.function, file_.path);
}

std::string TvmFfi::identity() const {
  std::vector<std::string> arguments;
  for (const LaunchArgument& argument : launch_.arguments) arguments.push_back(text_of(argument));
  return identity_of(file_.path, file_.bytes,
                     fmt::format("{}({}){}", launch_.function, fmt::join(arguments, ", "),
                                 text_of(launch_.supported)));
}

void TvmFfi::require_launchable(const KernelRequest& asked) const {
  require_supported(launch_.supported, who(), asked);
  (void)arguments_for(launch_, asked);
}

PreparedKernel TvmFfi::prepare(const KernelRequest& asked, const DeviceFacts& device) {
  require_supported(launch_.supported, who(), asked);
  std::vector<Argument> arguments = arguments_for(launch_, asked);
  if (opened_ == nullptr) {
    auto opened = std::make_shared<Opened>();
    DynamicLibrary runtime({.name = "tvm-ffi",
                            .variable = "STEPGATE_TVM_FFI",
                            .places = {{"libtvm_ffi.so"}},
                            .way_out = "it lies in the Python package apache-tvm-ffi"});
    if (!runtime.bind({{"TVMFFIEnvSetStream", &opened->set_stream},
                       {"TVMFFIErrorMoveFromRaised", &opened->take_error},
                       {"TVMFFIObjectDecRef", &opened->release}}))
      throw KernelLibraryError(who() + " needs tvm-ffi: " + runtime.unavailable());
    void* const library = open_bytes(file_.path, file_.bytes);
    opened->function = reinterpret_cast<FfiFunction*>(
        ::dlsym(library, fmt::format("{}{}", prefix, launch_.function).c_str()));
    if (opened->function == nullptr) throw KernelLibraryError(who() + " is hidden");
    opened_ = std::move(opened);
  }
  return {.launch = [opened = opened_, who = who(), arguments = std::move(arguments),
                     index = device.index](void* const* operands, CUstream_st* stream) {
    opened->call(who, arguments, operands, stream, index);
  }};
}

}  // namespace stepgate
