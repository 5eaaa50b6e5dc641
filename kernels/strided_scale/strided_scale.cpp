// SPDX-License-Identifier: MIT
// The host side of strided_scale: operands, work, wasted sectors and the reference. Meaning and
// shapes: strided_scale.h.
#include "kernels/strided_scale/strided_scale.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

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

// --- work ----------------------------------------------------------------------------------------

CheckedSize strided_scale_flops(const CheckedShape& shape, const KernelAttributes&) {
  return elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

// The order in which elements are taken changes no number.
void strided_scale_reference(const KernelCall& call) {
  const auto [factor, from, to] = call.attributes.as<kernels::StridedScale>();
  for (std::int64_t element = 0; element < elements_of(call.shape); ++element) {
    set_number(call.buffers[1], call.dtype, element * to,
               factor * number_at(call.buffers[0], call.dtype, element * from));
  }
}

}  // namespace

// --- wasted sectors ------------------------------------------------------------------------------

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

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> strided_scale_kernels() {
  return {{.name = kernels::StridedScale::name,
           .operands = strided_scale_operands,
           .flops = strided_scale_flops,
           .reference = strided_scale_reference,
           .prepare = in_cuda_builds<prepare_strided_scale>(),
           .uncached_work = strided_scale_traffic,
           .sectors_per_request = most_sectors}};
}

}  // namespace stepgate
