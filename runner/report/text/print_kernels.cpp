// SPDX-License-Identifier: MIT
#include "report/text/print_kernels.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string_view>
#include <vector>

#include "kernels/catalogue.h"
#include "kernels/kernel_words.h"
#include "kernels/trial/kernel_trial.h"
#include "plugin/tables/launch_table.h"

namespace stepgate {
namespace {

std::vector<std::string_view> names_of(const AggregateValue& value) {
  std::vector<std::string_view> names;
  for (std::size_t index = 0; index < value.size(); ++index) names.push_back(value.name(index));
  return names;
}

std::string_view in_words(OperandFormat format) {
  switch (format) {
    case OperandFormat::storage:
      return "the launch's dtype";
    case OperandFormat::single:
      return "fp32";
    case OperandFormat::index:
      return "int32";
    case OperandFormat::count:
      return "uint64";
    case OperandFormat::word:
      return "uint32";
    case OperandFormat::byte:
      return "uint8";
    case OperandFormat::control:
      return "fp32 words that steer an update";
    case OperandFormat::scratch:
      break;
  }
  return "scratch bytes";
}

std::string_view in_words(Access access) {
  switch (access) {
    case Access::read:
      return "read";
    case Access::write:
      return "written";
    case Access::read_write:
      break;
  }
  return "read and written";
}

std::string or_none(const std::vector<std::string_view>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

// The shape whose sizes differ most from each other, so that a number of elements says whose it is.
const KernelShape& telling_shape(const TrialRecipe& recipe) {
  const auto different_sizes = [](const KernelShape& shape) {
    std::set<AggregateMember> sizes;
    for (std::size_t index = 0; index < shape.size(); ++index) sizes.insert(shape.member(index));
    return sizes.size() - sizes.contains(std::int64_t{1});
  };
  return *std::ranges::max_element(recipe.shapes, {}, different_sizes);
}

// Returns the lines of what the kernel computes, each after the prefix.
std::string words_after(const Kernel& kernel, std::string_view prefix) {
  std::string text;
  for (std::string_view words = words_of(kernel); !words.empty();) {
    const std::size_t end = words.find('\n');
    text.append(prefix).append(words.substr(0, end)).append("\n");
    words.remove_prefix(end + 1);
  }
  return text;
}

}  // namespace

void print_kernels(std::ostream& out) {
  for (const Kernel& kernel : kernel_catalogue()) {
    const KernelShape& shape = trial_recipe(kernel.name).shapes.front();
    fmt::print(out, "{:<32} {}; {}\n", kernel.name, or_none(names_of(shape)),
               fmt::join(operands_of(kernel), ", "));
  }
}

void print_kernel(std::ostream& out, const Kernel& kernel) {
  const TrialRecipe& recipe = trial_recipe(kernel.name);
  fmt::print(out, "{}\n{}\n  sizes       {}\n  attributes  {}\n", kernel.name,
             words_after(kernel, "  "), or_none(names_of(recipe.shapes.front())),
             or_none(names_of(recipe.attributes.front())));
  fmt::print(out, "  operands, in the order of a launch, aligned to {} bytes or more:\n",
             operand_alignment(kernel));
  const KernelShape& shape = telling_shape(recipe);
  const KernelAttributes& attributes = recipe.attributes.front();
  for (const KernelOperand& operand : kernel.operands) {
    const std::int64_t elements = operand.elements(shape, DType::fp32, attributes);
    fmt::print(out, "    {:<14} {}, {}; {} elements for {}{}\n", operand.name,
               in_words(access_of(operand, attributes)), in_words(operand.format), elements,
               shape.size() == 0 ? std::string("any launch") : text_of(shape, " x "),
               operand.may_replace == no_operand
                   ? ""
                   : fmt::format("; may be in the buffer of {}",
                                 kernel.operands[operand.may_replace].name));
  }
  fmt::print(out, "  tried with {} shapes in fp32, tf32, bf16 and fp16\n", recipe.shapes.size());
}

void print_new_kernel(std::ostream& out, const Kernel& kernel) {
  const TrialRecipe& recipe = trial_recipe(kernel.name);
  const KernelShape& shape = recipe.shapes.front();
  const KernelAttributes& attributes = recipe.attributes.front();
  fmt::print(
      out,
      "// {0} for stepgate. Change what launch() does, then\n"
      "//   stepgate kernel check build/lib{0}.so {0}\n"
      "// asks whether it is {0}, and `stepgate run step.toml` whether a step is faster.\n//\n"
      "{1}//\n// Operands of a launch:\n",
      kernel.name, words_after(kernel, "// "));
  for (std::size_t index = 0; index < kernel.operands.size(); ++index) {
    const KernelOperand& operand = kernel.operands[index];
    fmt::print(out, "//   at[{}]  {:<14} {}, {}\n", index, operand.name,
               in_words(access_of(operand, attributes)), in_words(operand.format));
  }
  out << R"(#include <cuda_runtime.h>
#include <stepgate/kernel.h>

#include <cstdio>

STEPGATE_KERNEL_LIBRARY();

namespace {

struct State {
)";
  std::string given;
  for (const std::string_view name : names_of(shape)) {
    fmt::print(out, "  int64_t {};\n", name);
    given += fmt::format("{}stepgate_dimension_of(request, \"{}\", 0)",
                         given.empty() ? "" : ",\n                              ", name);
  }
  for (const std::string_view name : names_of(attributes)) {
    fmt::print(out, "  double {};\n", name);
    given += fmt::format("{}stepgate_attribute_of(request, \"{}\", 0)",
                         given.empty() ? "" : ",\n                              ", name);
  }
  fmt::print(out, R"(}};

int launch(void* state, void* const* at, void* workspace, void* stream) {{
  const State& shape = *static_cast<const State*>(state);
  (void)shape, (void)at, (void)workspace, (void)stream;
  // my_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(at[0], ...);
  return cudaGetLastError();
}}

}}  // namespace

extern "C" STEPGATE_EXPORT int {0}(const stepgate_request* request,
                                   stepgate_prepared* prepared) {{
  if (request->dtype != STEPGATE_BF16) {{
    snprintf(prepared->message, sizeof prepared->message, "only bf16");
    return STEPGATE_UNSUPPORTED;
  }}
  prepared->state = new State{{{1}}};
  prepared->release = [](void* state) {{ delete static_cast<State*>(state); }};
  prepared->launch = launch;
  return STEPGATE_OK;
}}
)",
             kernel.name, given);
}

void print_new_project(std::ostream& out, const Kernel& kernel) {
  fmt::print(out, R"(cmake_minimum_required(VERSION 3.25)
# The GPU of this machine. For another one: cmake -DCMAKE_CUDA_ARCHITECTURES=90
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES native)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
project({0} LANGUAGES CUDA)
find_package(stepgate REQUIRED)
stepgate_add_kernel_library({0} {0}.cu)
)",
             kernel.name);
}

void print_library(std::ostream& out, const LibraryFile& file) {
  fmt::print(
      out, "{}: exports {}\n", identity_of(file),
      file.functions.empty() ? "no function" : fmt::format("{}", fmt::join(file.functions, ", ")));
}

void print_cubin(std::ostream& out, const CubinFile& file) {
  fmt::print(out, "{}: for compute capability {}.{}\n", identity_of(file.path, file.bytes),
             file.capability / 10, file.capability % 10);
  for (const CubinEntry& entry : file.entries) {
    fmt::print(
        out, "  {}: {}{}{}{}\n", entry.name,
        entry.parameter_bytes.empty()
            ? std::string("no parameters")
            : fmt::format("parameters of {} bytes", fmt::join(entry.parameter_bytes, ", ")),
        entry.threads > 0        ? fmt::format("; {} threads a block", entry.threads)
        : entry.most_threads > 0 ? fmt::format("; at most {} threads a block", entry.most_threads)
                                 : std::string(),
        entry.shared_bytes > 0 ? fmt::format("; {} bytes of shared memory", entry.shared_bytes)
                               : std::string(),
        entry.is_in_clusters ? "; in clusters" : "");
  }
}

void print_kernel_check(std::ostream& out, const KernelCheck& check) {
  for (const KernelFault& fault : check.faults) {
    fmt::print(out, "{}: {}{}\n", fault.check, fault.first,
               fault.trials == 1 ? "" : fmt::format(", and in {} more trials", fault.trials - 1));
  }
  std::string also = fmt::format("; seed {}", check.seed);
  if (check.unsupported > 0) {
    also += fmt::format("; {} trials are not supported: {}", check.unsupported,
                        check.first_unsupported);
  }
  if (check.left_out > 0) {
    also += fmt::format(
        "; {} launches of the steps were not tried, as the host's reference of one "
        "takes seconds",
        check.left_out);
  }
  if (check.is_it()) {
    fmt::print(out, "{} of {} is {}: {} trials{}\n", check.kernel, check.library, check.kernel,
               check.trials, also);
    return;
  }
  std::vector<std::string_view> names;
  for (const KernelFault& fault : check.faults) names.push_back(fault.check);
  fmt::print(
      out, "{} of {} is NOT {}: {}{}\n", check.kernel, check.library, check.kernel,
      names.empty() ? "it supports none of the trials" : fmt::format("{}", fmt::join(names, ", ")),
      also);
}

}  // namespace stepgate
