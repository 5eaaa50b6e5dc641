// SPDX-License-Identifier: MIT
#include "device/ranked/plan_digest.h"

#include <bit>
#include <type_traits>
#include <variant>

#include "base/fnv1a.h"
#include "base/record/members.h"
#include "base/toml/toml_text.h"

namespace stepgate {
namespace {

class Digest {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    (one(parts), ...);
  }
  std::uint64_t value() const { return hash_; }

 private:
  template <class Number>
  requires(std::is_integral_v<Number> || std::is_enum_v<Number>) void one(Number number) {
    hash_ = fnv1a_word(static_cast<std::uint64_t>(number), hash_);
  }
  void one(double number) { one(std::bit_cast<std::uint64_t>(number)); }
  void one(const std::string& text) { one(std::string_view(text)); }
  void one(std::string_view text) { hash_ = fnv1a_word(fnv1a(text), hash_); }
  template <class Value>
  void one(const std::optional<Value>& value) {
    one(value.has_value());
    if (value) one(*value);
  }
  template <class Value>
  void one(const std::vector<Value>& values) {
    one(values.size());
    for (const Value& value : values) one(value);
  }

  template <class Value>
  requires std::is_base_of_v<AggregateValue, Value>
  void one(const Value& value) {
    add(value.size());
    for (std::size_t index = 0; index < value.size(); ++index)
      std::visit([this](auto member) { this->one(member); }, value.member(index));
  }
  // This type has its own overload because many types convert to KernelRef, which prevents
  // for_each_member.
  void one(const LaunchKernel& launch) {
    const auto& [kernel, shape, dtype, attributes, operands] = launch;
    add(kernel.name(), shape, dtype, attributes, operands);
  }
  void one(const std::shared_ptr<const Kernel>& row) {
    add(row != nullptr);
    if (row == nullptr) return;
    add(row->name, row->replacement);
  }
  void one(const Action& action) {
    one(action.index());
    std::visit([this](const auto& each) { this->one(each); }, action);
  }
  template <class Part>
  requires(std::is_aggregate_v<Part> &&
           !std::is_base_of_v<AggregateValue, Part>) void one(const Part& part) {
    for_each_member(part, [this](const auto& member) { this->one(member); });
  }

  std::uint64_t hash_ = fnv1a_start;
};

}  // namespace

std::string digest_of(const StepPlan& plan) {
  Digest digest;
  for_each_member(plan, [&](const auto& member) {
    const void* at = &member;
    if (at != &plan.scenario && at != &plan.variant) digest.add(member);
  });
  return hexadecimal(digest.value());
}

std::vector<NamedPlan> named_plans(std::span<const PlannedStep> plans) {
  std::vector<NamedPlan> named;
  for (const StepPlan& plan : plans)
    named.push_back(
        {.scenario = plan.scenario, .variant = plan.variant, .digest = digest_of(plan)});
  return named;
}

}  // namespace stepgate
