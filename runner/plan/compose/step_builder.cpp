// SPDX-License-Identifier: MIT
#include "plan/compose/step_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/require.h"
#include "base/text/units.h"
#include "kernels/catalogue.h"
#include "plan/analyse/access.h"

namespace stepgate {

namespace {

// The index of the element of that name; the number of elements where there is none.
template <class Named>
std::size_t index_of(const std::vector<Named>& elements, const std::string& name) {
  const auto found = std::find_if(elements.begin(), elements.end(),
                                  [&](const Named& element) { return element.name == name; });
  return static_cast<std::size_t>(found - elements.begin());
}

CheckedSize all_bytes_of(const Buffer& buffer) {
  return CheckedSize(buffer.bytes) * buffer.slots;
}

void check_bytes(CheckedSize bytes, const std::string& what) {
  if (bytes <= most_plan_bytes) return;
  throw StepTooLarge(fmt::format("{} takes {}, and a plan has room for {}", what,
                                 bytes.fits() ? size_text(bytes) : "more bytes than 63 bits count",
                                 size_text(most_plan_bytes)));
}

void check_count(std::size_t operations) {
  if (operations <= most_operations) return;
  throw StepTooLarge(fmt::format(
      "a step has more than {} operations, and a plan has room for no more", most_operations));
}

void check_work(const LaunchKernel& launch, const std::string& name) {
  const KernelWork work =
      work_of(kernel(launch.kernel), launch.shape, launch.dtype, launch.attributes);
  const auto check = [&](std::int64_t amount, const char* does) {
    if (amount <= most_work) return;
    throw StepTooLarge(
        fmt::format("operation '{}' {} more than a plan counts, which is 2^62", name, does));
  };
  check(work.flops, "computes");
  check(CheckedSize(work.bytes_read) + work.bytes_written, "reads and writes");
}

}  // namespace

void check_size(const StepPlan& plan) {
  CheckedSize sum;
  for (const Buffer& buffer : plan.buffers) sum += all_bytes_of(buffer);
  check_bytes(sum, "memory of all buffers together");
  check_count(plan.operations.size());
  const auto allocations = std::ranges::count_if(plan.operations, [](const Operation& operation) {
    return std::holds_alternative<Allocate>(operation.action);
  });
  if (allocations > most_allocations) {
    throw StepTooLarge(fmt::format("a step has {} allocations, and a plan has room for {}",
                                   allocations, most_allocations));
  }
}

StepBuilder::StepBuilder(StepPlan& plan) : plan_(plan) {
  for (const Buffer& buffer : plan.buffers) {
    needed_bytes_.push_back(buffer.bytes);
    all_bytes_ += all_bytes_of(buffer);
  }
}

void StepBuilder::begin_turn(std::int64_t turn, std::int64_t turns, std::string own_name) {
  turns_ = turns;
  turn_of_enter_ = (turn + 1) % turns;
  own_name_ = std::move(own_name);
}

void StepBuilder::end_turns() {
  begin_turn(0, 1, "");
}

int StepBuilder::add(Buffer buffer) {
  const bool comes_and_goes = is_temporary(buffer) || buffer.allocated_by != AllocatedBy::the_plan;
  if (comes_and_goes) buffer.name += own_name_;
  const std::size_t index =
      turns_ > 1 ? index_of(plan_.buffers, buffer.name) : plan_.buffers.size();
  if (index == plan_.buffers.size()) {
    needed_bytes_.push_back(buffer.bytes);
    plan_.buffers.push_back(std::move(buffer));
  } else {
    all_bytes_ -= all_bytes_of(plan_.buffers[index]);
    needed_bytes_[index] = buffer.bytes;
    plan_.buffers[index].bytes = std::max(plan_.buffers[index].bytes, buffer.bytes);
  }
  const Buffer& added = plan_.buffers[index];
  check_bytes(all_bytes_of(added), fmt::format("buffer '{}'", added.name));
  all_bytes_ += all_bytes_of(added);
  check_bytes(all_bytes_, fmt::format("memory up to and with buffer '{}'", added.name));
  return static_cast<int>(index);
}

int StepBuilder::add_event(std::string name, std::int64_t slots) {
  const std::size_t index = turns_ > 1 ? index_of(plan_.events, name) : plan_.events.size();
  if (index == plan_.events.size()) plan_.events.push_back({std::move(name), slots});
  return static_cast<int>(index);
}

int StepBuilder::add_stream(Stream stream) {
  const std::size_t index = index_of(plan_.streams, stream.name);
  if (index == plan_.streams.size()) plan_.streams.push_back(std::move(stream));
  return static_cast<int>(index);
}

BufferUse StepBuilder::whole(int buffer) const {
  return {buffer, 0, needed_bytes_[static_cast<std::size_t>(buffer)]};
}

void StepBuilder::enter(Phase phase, int stream) {
  phase_ = phase;
  stream_ = stream;
  ahead_ = 0;
  every_ = turns_;
  turn_ = turn_of_enter_;
}

void StepBuilder::launch(std::string name, const KernelRef& launched, DType dtype,
                         const KernelShape& shape, const std::vector<Operand>& operands,
                         const KernelAttributes& attributes) {
  const Kernel& declared = kernel(launched);
  require(operands.size() == declared.operands.size(), "a launch has its kernel's operands");
  LaunchKernel launch{launched, shape, dtype, attributes, {}};
  for (std::size_t index = 0; index < operands.size(); ++index) {
    const KernelOperand& operand = declared.operands[index];
    BufferUse use = operands[index].use_;
    if (operands[index].counted_) {
      use.offset_bytes *= bytes_of(operand.format, dtype);
      use.bytes = operand_bytes(operand, shape, dtype, attributes);
    }
    require(use.offset_bytes + use.bytes <= whole(use.buffer).bytes,
            "an operand lies in its buffer");
    launch.operands.push_back(use);
  }
  check_work(launch, name);
  const auto fault = fault_of(launch);
  require(!fault, fault.value_or(""));
  act(std::move(name), std::move(launch));
}

void StepBuilder::act(std::string name, Action action) {
  Operation operation;
  operation.name = std::move(name);
  operation.phase = phase_;
  operation.stream = stream_;
  operation.action = std::move(action);
  operation.every = every_;
  operation.turn = turn_;
  operation.ahead = ahead_;
  operation.model_share = computes_again_ ? 0 : share_;
  plan_.operations.push_back(std::move(operation));
  check_count(plan_.operations.size());
}

}  // namespace stepgate
