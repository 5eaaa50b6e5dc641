// SPDX-License-Identifier: MIT
// The host side of strided_scale: operands, work, wasted sectors and the reference. Meaning and
// shapes: strided_scale.h.
#include "kernels/strided_scale/strided_scale.h"

#include <algorithm>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand strided_scale_operands[] = {{"from", Access::read}, {"to", Access::write}};

std::int64_t fields_from(const KernelScalars& scalars) {
  return static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_from]);
}

std::int64_t fields_to(const KernelScalars& scalars) {
  return static_cast<std::int64_t>(scalars[strided_scale_scalar::fields_to]);
}

// --- work ----------------------------------------------------------------------------------------

KernelWork strided_scale_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t bytes = elements_of(shape) * bytes_of(dtype);
  return {.bytes_read = bytes, .bytes_written = bytes, .flops = elements_of(shape)};
}

// --- reference -----------------------------------------------------------------------------------

// The order in which elements are taken changes no number.
void strided_scale_reference(const KernelCall& call) {
  const double factor = call.scalars[strided_scale_scalar::factor];
  const std::int64_t from = fields_from(call.scalars);
  const std::int64_t to = fields_to(call.scalars);
  for (std::int64_t element = 0; element < elements_of(call.shape); ++element) {
    set_number(call.buffers[1], call.dtype, element * to,
               factor * number_at(call.buffers[0], call.dtype, element * from));
  }
}

}  // namespace

// --- wasted sectors ------------------------------------------------------------------------------

StridedSectors strided_scale_sectors(const KernelShape& shape, DType dtype,
                                     const KernelScalars& scalars) {
  const std::int64_t number = bytes_of(dtype);
  const std::int64_t distance = shape.depth * number;  // where records have one field
  return {.read = sectors_per_request(distance * fields_from(scalars), number),
          .written = sectors_per_request(distance * fields_to(scalars), number)};
}

// A request serves as many elements as a sector has bytes.
KernelWork strided_scale_traffic(const KernelShape& shape, DType dtype,
                                 const KernelScalars& scalars) {
  static_assert(warp_threads == sector_bytes);
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, scalars);
  return {.bytes_read = elements_of(shape) * sectors.read,
          .bytes_written = elements_of(shape) * sectors.written,
          .flops = elements_of(shape)};
}

namespace {

std::int64_t most_sectors(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, scalars);
  return std::max(sectors.read, sectors.written);
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel strided_scale_kernel() {
  return {.name = "strided_scale",
          .operands = strided_scale_operands,
          .work = strided_scale_work,
          .reference = strided_scale_reference,
          .prepare = in_cuda_builds<prepare_strided_scale>(),
          .uncached_work = strided_scale_traffic,
          .sectors_per_request = most_sectors};
}

}  // namespace stepgate
