// SPDX-License-Identifier: MIT
#include "base/process/worker_environment.h"

#include <unistd.h>

#include <algorithm>

namespace stepgate {
namespace {

constexpr std::string_view passed[] = {
    "PATH",       "HOME",      "USER",         "LOGNAME",       "SHELL",        "TERM",
    "TMPDIR",     "TZ",        "LANG",         "LANGUAGE",      "LC_*",         "CI",
    "NO_COLOR",   "LD_*",      "CUDA_*",       "NVIDIA_*",      "NCCL_*",       "CUBLAS*",
    "CUDNN_*",    "CUPTI_*",   "NVTX_*",       "OMP_*",         "MKL_*",        "OPENBLAS_*",
    "TORCH*",     "PYTORCH_*", "TRITON_*",     "PYTHON*",       "VIRTUAL_ENV",  "CONDA_PREFIX",
    "STEPGATE_*", "XDG_*",     "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"};

constexpr std::string_view of_the_judge[] = {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"};

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

std::span<const std::string_view> variables_of_workers() {
  return passed;
}

std::vector<std::string> worker_environment(std::span<const std::string> also) {
  std::vector<std::string> chosen;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const auto names_it = [&](std::string_view pattern) { return matches(name, pattern); };
    if (std::ranges::find(of_the_judge, name) != std::end(of_the_judge)) continue;
    if (std::ranges::any_of(passed, names_it) || std::ranges::any_of(also, names_it))
      chosen.emplace_back(text);
  }
  return chosen;
}

}  // namespace stepgate
