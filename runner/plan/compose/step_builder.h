// SPDX-License-Identifier: MIT
// Puts a StepPlan together, one operation after the other. Knows what a plan is made of and nothing
// of scenarios; build_step_plan.cpp, build_model.cpp and build_input.cpp say what a step consists
// of.
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

// Limits of a plan: bytes of all its buffers, numbers that one launch reads, writes and computes,
// and operations. They are far beyond any machine, and far from where sums of them would wrap.
inline constexpr std::int64_t most_plan_bytes = largest_request_bytes;
inline constexpr std::int64_t most_work = std::int64_t{1} << 62;
inline constexpr std::size_t most_operations = 500'000;
// Limit of a step's allocations; packing them costs their square.
inline constexpr std::ptrdiff_t most_allocations = 20'000;

// what() names the buffer or operation that makes a step larger than plans may be.
class StepTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws StepTooLarge where its buffers together, its operations or its allocations are more than a
// plan may have.
void check_size(const StepPlan&);

// Throws StepTooLarge where a buffer, a launch or all of them are more than a plan may have.
class StepBuilder {
 public:
  explicit StepBuilder(StepPlan&);

  // The operations that follow belong to turn `turn` of the `turns` between which batches
  // alternate. A buffer of an earlier turn is found again by its name and is as large as its
  // largest turn needs. Memory that steps allocate is shared only between turns of one `own_name`,
  // which its names end in.
  void begin_turn(std::int64_t turn, std::int64_t turns, std::string own_name);
  // The operations that follow belong to every step.
  void end_turns();

  // Return the index of the new buffer or event.
  int add(Buffer buffer);
  int add_event(std::string name, std::int64_t slots);
  // The index of the plan's stream of that name, which is new unless it was asked for before.
  int add_stream(Stream stream);

  // A use of a buffer's whole slot, in the size that this turn needs, or of a part of it.
  BufferUse whole(int buffer) const;
  static BufferUse part(int buffer, std::int64_t offset_bytes, std::int64_t bytes) {
    return {buffer, offset_bytes, bytes};
  }

  // Operations that follow belong to this phase and stream, until the next call.
  void enter(Phase phase, int stream = compute_stream);
  // Operations that follow act this many steps ahead.
  void look_ahead(int steps) { ahead_ = steps; }
  // Operations that follow act for every n-th step only.
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
    bool counted_ = false;  // use_.offset_bytes counts elements, and its bytes are the kernel's
  };

  // Aborts where an operand is not as large as the kernel's declaration says for this shape, or
  // where what is written overlaps another operand that the kernel does not let it replace.
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
  // For kernels that take the same shape, operands and attributes.
  void launch(std::string name, const KernelRef& kernel, DType, const KernelShape&,
              const std::vector<Operand>&, const KernelAttributes&);
  void act(std::string name, Action action);
  // Until the next call, launches are marked as recomputing what earlier ones computed.
  void compute_again(bool again) { computes_again_ = again; }
  // The model needs only this share of the arithmetic of launches that follow; work on padding does
  // not count.
  void need_share(double share) { share_ = share; }
  // The model needs only this share of the arithmetic of the operation added last, multiplied with
  // any share given before.
  void need_only(double share) { plan_.operations.back().model_share *= share; }
  // The launch added last is the first to read the gradients of these parameters.
  void reads_gradients(std::size_t operand, const RankPiece& parameters) {
    plan_.operations.back().reads_gradients = {operand, parameters};
  }
  // The operation added last also needs these buffers to stay, though it accesses none of them.
  void keep(std::vector<BufferUse> needed) { plan_.operations.back().keeps = std::move(needed); }

  StepPlan& plan() { return plan_; }

 private:
  StepPlan& plan_;
  CheckedSize all_bytes_;  // of the buffers
  Phase phase_ = Phase::host;
  int stream_ = compute_stream;
  int ahead_ = 0;
  std::int64_t every_ = 1;
  std::int64_t turn_ = 0;
  std::int64_t turns_ = 1;
  std::int64_t turn_of_enter_ = 0;
  bool computes_again_ = false;
  double share_ = 1;
  std::string own_name_;  // what such buffers are called besides; empty: they are all shared
  std::vector<std::int64_t> needed_bytes_;  // by buffer, in this turn
};

}  // namespace stepgate
