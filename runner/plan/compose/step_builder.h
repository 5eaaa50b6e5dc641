// SPDX-License-Identifier: MIT
// Builds a StepPlan, one operation after another. It knows the parts of a plan, but not scenarios.
// build_step_plan.cpp, build_model.cpp and build_input.cpp decide what a step consists of.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/checked_size.h"
#include "plan/allocators/memory_allocator.h"
#include "plan/step_plan.h"

namespace stepgate {

// Bytes of values that have 32 bits in every dtype: labels, tokens, losses, statistics, optimizer
// state.
inline constexpr std::int64_t word_bytes = 4;

// Limits of a plan: bytes of all its buffers; numbers that one launch reads, writes and computes;
// number of operations. They are far beyond any machine, and far below values whose sums would
// overflow.
inline constexpr std::int64_t most_plan_bytes = largest_request_bytes;
inline constexpr std::int64_t most_work = std::int64_t{1} << 62;
inline constexpr std::size_t most_operations = 500'000;
// Limit of the operations of all variants of a scenario, whose plans take about 1 KiB each.
inline constexpr std::size_t most_operations_together = 1'000'000;
// Limit of a step's allocations; packing them costs their square.
inline constexpr std::ptrdiff_t most_allocations = 20'000;

// what() names the buffer or operation that makes a step larger than plans may be.
class StepTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws StepTooLarge where the buffers together, the operations or the allocations exceed the
// limits of a plan.
void check_size(const StepPlan&);

// Builds a plan. Its functions throw StepTooLarge where a buffer, a launch or all of them together
// exceed the limits of a plan.
class StepBuilder {
 public:
  explicit StepBuilder(StepPlan&);

  // Starts turn `turn` of the `turns` between which batches alternate; later operations belong to
  // it. A buffer of an earlier turn is found again by its name and is as large as its largest turn
  // needs. Memory that steps allocate is shared only between turns of one `own_name`, which is the
  // suffix of its names.
  void begin_turn(std::int64_t turn, std::int64_t turns, std::string own_name);
  // Ends the turns: later operations belong to every step.
  void end_turns();

  // Return the index of the new buffer or event.
  int add(Buffer buffer);
  int add_event(std::string name, std::int64_t slots);
  // Returns the index of the plan's stream of that name; adds the stream if it is new.
  int add_stream(Stream stream);

  // A use of a buffer's whole slot, in the size that this turn needs, or below of a part of it.
  BufferUse whole(int buffer) const;
  static BufferUse part(int buffer, std::int64_t offset_bytes, std::int64_t bytes) {
    return {buffer, offset_bytes, bytes};
  }

  // Sets the phase and stream of later operations, until the next call.
  void enter(Phase phase, int stream = compute_stream);
  // Sets the number of steps by which later operations act ahead.
  void look_ahead(int steps) { ahead_ = steps; }
  // Makes later operations act for every n-th step only.
  void only_every(std::int64_t steps) {
    every_ = steps;
    turn_ = 0;
  }

  // An operand of a launch: a buffer use of exactly the size that the kernel declares, or a start
  // from which that many elements are used.
  class Operand {
   public:
    Operand(BufferUse use) : use_(use) {}
    static Operand from(int buffer, std::int64_t first_element) {
      Operand operand({buffer, first_element, 0});
      operand.counted_ = true;
      return operand;
    }

   private:
    friend class StepBuilder;
    BufferUse use_;
    bool counted_ = false;  // use_.offset_bytes counts elements; the kernel sets the bytes
  };

  // Appends a launch. Aborts where an operand has another size than the kernel declares for this
  // shape. Also aborts where a written operand overlaps another one that it may not replace.
  template <class Kernel>
  void launch(std::string name, const typename Kernel::Shape& shape,
              const std::vector<Operand>& operands,
              const typename Kernel::Attributes& attributes = {}) {
    launch(std::move(name), Kernel::name, plan_.dtype, shape, operands, attributes);
  }
  template <class Kernel>
  void launch_as(DType dtype, std::string name, const typename Kernel::Shape& shape,
                 const std::vector<Operand>& operands,
                 const typename Kernel::Attributes& attributes = {}) {
    launch(std::move(name), Kernel::name, dtype, shape, operands, attributes);
  }
  // Appends a launch of one of several kernels with the same shape, operands and attributes.
  void launch(std::string name, const KernelRef& kernel, DType, const KernelShape&,
              const std::vector<Operand>&, const KernelAttributes&);
  void act(std::string name, Action action);
  // Calls `compute`, whose launches compute results of earlier launches again.
  void again(const auto& compute) {
    computes_again_ = true;
    compute();
    computes_again_ = false;
  }
  bool computes_again() const { return computes_again_; }
  // Sets the share of the arithmetic of later launches that the model needs; work on padding does
  // not count.
  void need_share(double share) { share_ = share; }
  // Multiplies the share of the operation added last by `share`: the model needs only this share of
  // its arithmetic.
  void need_only(double share) { plan_.operations.back().model_share *= share; }
  // Marks the launch added last as the first to read the gradients of these parameters.
  void reads_gradients(std::size_t operand, const RankPiece& parameters) {
    plan_.operations.back().reads_gradients = {operand, parameters};
  }
  // Lets the operation added last keep these buffers alive, though it accesses none of them.
  void keep(std::vector<BufferUse> needed) { plan_.operations.back().keeps = std::move(needed); }

  StepPlan& plan() { return plan_; }

 private:
  StepPlan& plan_;
  CheckedSize all_bytes_;  // sum over all buffers
  Phase phase_ = Phase::host;
  int stream_ = compute_stream;
  int ahead_ = 0;
  std::int64_t every_ = 1;
  std::int64_t turn_ = 0;
  std::int64_t turns_ = 1;
  std::int64_t turn_of_enter_ = 0;
  bool computes_again_ = false;
  double share_ = 1;
  std::string own_name_;  // suffix of the names of unshared buffers; empty: all are shared
  std::vector<std::int64_t> needed_bytes_;  // by buffer, in this turn
};

}  // namespace stepgate
