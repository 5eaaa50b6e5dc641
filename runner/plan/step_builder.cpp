// SPDX-License-Identifier: MIT
#include "plan/step_builder.h"

#include <utility>

namespace stepgate {

int StepBuilder::add(Buffer buffer) {
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int StepBuilder::add_event(std::string name, std::int64_t slots) {
  plan_.events.push_back({std::move(name), slots});
  return static_cast<int>(plan_.events.size()) - 1;
}

BufferUse StepBuilder::whole(int buffer) const {
  return {buffer, 0, plan_.buffers[static_cast<std::size_t>(buffer)].bytes};
}

void StepBuilder::enter(Phase phase, StreamName stream) {
  phase_ = phase;
  stream_ = stream;
  ahead_ = 0;
  every_ = 1;
}

void StepBuilder::launch(std::string name, std::string_view kernel, KernelShape shape,
                         std::vector<BufferUse> operands, KernelScalars scalars) {
  launch_as(plan_.dtype, std::move(name), kernel, shape, std::move(operands), scalars);
}

void StepBuilder::launch_as(DType dtype, std::string name, std::string_view kernel,
                            KernelShape shape, std::vector<BufferUse> operands,
                            KernelScalars scalars) {
  act(std::move(name), LaunchKernel{kernel, shape, dtype, scalars, std::move(operands)});
}

void StepBuilder::act(std::string name, Action action) {
  Operation operation;
  operation.name = std::move(name);
  operation.phase = phase_;
  operation.stream = stream_;
  operation.action = std::move(action);
  operation.every = every_;
  operation.ahead = ahead_;
  plan_.operations.push_back(std::move(operation));
}

}  // namespace stepgate
