// SPDX-License-Identifier: MIT
// The kernels that a plan may name. To add a kernel, extend the three files of its family;
// declare.h says how.
#pragma once

#include <concepts>
#include <span>
#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {

// The kernels of every family, in the order of kernels.h.
std::span<const Kernel> kernel_catalogue();

// The kernel of that name; aborts if there is none, since only plans name kernels.
const Kernel& kernel(std::string_view name);

// A kernel that was looked up once in the catalogue. Launches hold it, since simulated steps ask
// for the kernel at every launch.
class KernelRef {
 public:
  KernelRef() = default;  // no kernel: the launch is never executed
  template <class Name>
  requires std::convertible_to<Name, std::string_view> &&
      (!std::same_as<Name, KernelRef>)KernelRef(const Name& name)
      : kernel_(&kernel(std::string_view(name))) {}

  // Refers to a kernel outside the catalogue, which must outlive the plan.
  explicit KernelRef(const Kernel& other) : kernel_(&other) {}

  std::string_view name() const { return kernel_ == nullptr ? std::string_view() : kernel_->name; }

  friend const Kernel& kernel(const KernelRef& launched) { return *launched.kernel_; }
  friend bool operator==(const KernelRef& launched, std::string_view name) {
    return launched.name() == name;
  }
  template <std::same_as<KernelRef> Other>
  friend bool operator==(const KernelRef& launched, const Other& other) {
    return launched.kernel_ == other.kernel_;
  }

 private:
  const Kernel* kernel_ = nullptr;
};

}  // namespace stepgate
