// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/probes/probes.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

CheckedSize chain_words(const CheckedShape& shape, DType, const KernelAttributes&) {
  return shape.columns * chase_line_words;
}

// A word of each line that is followed.
CheckedSize followed_words(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return std::min<std::int64_t>(shape.columns, attributes.as<kernels::Chase>().accesses);
}

constexpr KernelOperand chase_operands[] = {
    {.name = "chain",
     .access = Access::read,
     .elements = chain_words,
     .format = OperandFormat::word,
     .touched = followed_words},
    {"position", Access::read_write, extent::one, OperandFormat::word},
    {"fraction", Access::write, extent::one, OperandFormat::single},
};

CheckedSize chase_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

DependentLoads chase_loads(const KernelShape& shape, const KernelAttributes& attributes) {
  return {.count = attributes.as<kernels::Chase>().accesses,
          .footprint_bytes = shape.columns * chase_line_bytes};
}

void chase_reference(const KernelCall& call) {
  const auto* chain = static_cast<const std::uint32_t*>(call.buffers[0]);
  std::uint32_t line = *static_cast<std::uint32_t*>(call.buffers[1]);
  const std::int64_t accesses = call.attributes.as<kernels::Chase>().accesses;
  for (std::int64_t access = 0; access < accesses; ++access) line = chain[line * chase_line_words];
  *static_cast<std::uint32_t*>(call.buffers[1]) = line;
  *static_cast<float*>(call.buffers[2]) =
      static_cast<float>(static_cast<double>(line) / static_cast<double>(call.shape.columns));
}

constexpr KernelOperand spin_operands[] = {
    {"word", Access::read_write, extent::one, OperandFormat::word},
};

CheckedSize spin_flops(const CheckedShape&, const KernelAttributes&) {
  return 0;
}

void spin_reference(const KernelCall& call) {
  *static_cast<std::uint32_t*>(call.buffers[0]) += 1;
}

CheckedSize records_from(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return elements_of(shape) * attributes.as<kernels::StridedScale>().fields_from;
}

CheckedSize records_to(const CheckedShape& shape, DType, const KernelAttributes& attributes) {
  return elements_of(shape) * attributes.as<kernels::StridedScale>().fields_to;
}

// One field of every record.
constexpr KernelOperand strided_scale_operands[] = {
    {.name = "from", .access = Access::read, .elements = records_from, .touched = extent::elements},
    {.name = "to",
     .access = Access::write,
     .elements = records_to,
     .touched = extent::elements,
     .may_replace = 0},  // of as many fields
};

CheckedSize strided_scale_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// The order in which elements are taken changes no number.
void strided_scale_reference(const KernelCall& call) {
  const auto [factor, from, to] = call.attributes.as<kernels::StridedScale>();
  for (std::int64_t element = 0; element < elements_of(call.shape); ++element) {
    set_number(call.buffers[1], call.dtype, element * to,
               factor * number_at(call.buffers[0], call.dtype, element * from));
  }
}

}  // namespace

StridedSectors strided_scale_sectors(const KernelShape& shape, DType dtype,
                                     const KernelAttributes& attributes) {
  const std::int64_t number = bytes_of(dtype);
  const std::int64_t distance = shape.depth * number;  // where records have one field
  const auto [factor, from, to] = attributes.as<kernels::StridedScale>();
  return {.read = sectors_per_request(distance * from, number),
          .written = sectors_per_request(distance * to, number)};
}

// A request serves as many elements as a sector has bytes.
KernelWork strided_scale_traffic(const KernelShape& shape, DType dtype,
                                 const KernelAttributes& attributes) {
  static_assert(warp_threads == sector_bytes);
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, attributes);
  const CheckedSize elements = elements_of(checked(shape));
  return {.bytes_read = elements * sectors.read,
          .bytes_written = elements * sectors.written,
          .flops = elements};
}

namespace {

std::int64_t most_sectors(const KernelShape& shape, DType dtype,
                          const KernelAttributes& attributes) {
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, attributes);
  return std::max(sectors.read, sectors.written);
}

}  // namespace

std::vector<Kernel> probes_kernels() {
  return {{.name = kernels::Chase::name,
           .operands = chase_operands,
           .flops = chase_flops,
           .reference = chase_reference,
           .prepare = in_cuda_builds<prepare_chase>(),
           .dependent_loads = chase_loads},
          {.name = kernels::Spin::name,
           .operands = spin_operands,
           .flops = spin_flops,
           .reference = spin_reference,
           .prepare = in_cuda_builds<prepare_spin>(),
           .delay_microseconds =
               [](const KernelAttributes& attributes) {
                 return attributes.as<kernels::Spin>().microseconds;
               }},
          {.name = kernels::StridedScale::name,
           .operands = strided_scale_operands,
           .flops = strided_scale_flops,
           .reference = strided_scale_reference,
           .prepare = in_cuda_builds<prepare_strided_scale>(),
           .uncached_work = strided_scale_traffic,
           .sectors_per_request = most_sectors}};
}

}  // namespace stepgate
