// SPDX-License-Identifier: MIT
// Operands, work and host references of the probes; probes.h has their meaning and shapes.
#include "kernels/probes/probes.h"

#include <algorithm>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto chain_words = [](const auto& s) { return s.lines * chase_line_words; };
// One word is read of each line that a launch visits.
constexpr auto followed_words = [](const auto& s, const auto& told) -> CheckedSize {
  return std::min<std::int64_t>(s.lines, told.accesses);
};

constexpr auto chase_operands = operands_of<kernels::Chase>({
    {.name = "chain",
     .access = Access::read,
     .elements = chain_words,
     .format = OperandFormat::word,
     .touched = followed_words},
    {"position", Access::read_write, extent::one, OperandFormat::word},
    {"fraction", Access::write, extent::one, OperandFormat::single},
});

constexpr auto chase_loads = [](const kernels::Chase::Shape& shape, const auto& told) {
  return DependentLoads{.count = told.accesses, .footprint_bytes = shape.lines * chase_line_bytes};
};

void chase_reference(const CallOf<kernels::Chase>& call) {
  const auto* chain = static_cast<const std::uint32_t*>(call.buffers[0]);
  std::uint32_t line = *static_cast<std::uint32_t*>(call.buffers[1]);
  const std::int64_t accesses = call.attributes.accesses;
  for (std::int64_t access = 0; access < accesses; ++access) line = chain[line * chase_line_words];
  *static_cast<std::uint32_t*>(call.buffers[1]) = line;
  *static_cast<float*>(call.buffers[2]) =
      static_cast<float>(static_cast<double>(line) / static_cast<double>(call.shape.lines));
}

constexpr auto spin_operands = operands_of<kernels::Spin>({
    {"word", Access::read_write, extent::one, OperandFormat::word},
});

void spin_reference(const CallOf<kernels::Spin>& call) {
  *static_cast<std::uint32_t*>(call.buffers[0]) += 1;
}

constexpr auto records_from = [](const auto& s, const auto& told) {
  return elements_of(s) * told.fields_from;
};
constexpr auto records_to = [](const auto& s, const auto& told) {
  return elements_of(s) * told.fields_to;
};

// The operands are records, of which a launch accesses one field.
constexpr auto strided_scale_operands = operands_of<kernels::StridedScale>({
    {.name = "from", .access = Access::read, .elements = records_from, .touched = extent::elements},
    {.name = "to",
     .access = Access::write,
     .elements = records_to,
     .touched = extent::elements,
     .may_replace = 0},  // if the records have equally many fields
});

// The reference ignores the order of elements, which changes no number.
void strided_scale_reference(const CallOf<kernels::StridedScale>& call) {
  const auto [factor, from, to] = call.attributes;
  for (std::int64_t element = 0; element < elements_of(call.shape); ++element) {
    set_number(call.buffers[1], call.dtype, element * to,
               factor * number_at(call.buffers[0], call.dtype, element * from));
  }
}

}  // namespace

StridedSectors strided_scale_sectors(const kernels::StridedScale::Shape& shape, DType dtype,
                                     const kernels::StridedScale::Attributes& attributes) {
  const std::int64_t number = bytes_of(dtype);
  const std::int64_t distance =
      shape.stride * number;  // distance in elements, for records of one field
  const auto [factor, from, to] = attributes;
  return {.read = sectors_per_request(distance * from, number),
          .written = sectors_per_request(distance * to, number)};
}

// A request has 32 elements and a sector 32 bytes, so a request's sectors are its bytes per
// element.
KernelWork strided_scale_traffic(const kernels::StridedScale::Shape& shape, DType dtype,
                                 const kernels::StridedScale::Attributes& attributes) {
  static_assert(warp_threads == sector_bytes);
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, attributes);
  const CheckedSize elements = elements_of(checked(shape));
  return {.bytes_read = elements * sectors.read,
          .bytes_written = elements * sectors.written,
          .flops = elements};
}

namespace {

constexpr auto most_sectors = [](const kernels::StridedScale::Shape& shape, DType dtype,
                                 const auto& told) {
  const StridedSectors sectors = strided_scale_sectors(shape, dtype, told);
  return std::max(sectors.read, sectors.written);
};

constexpr auto traffic = [](const kernels::StridedScale::Shape& shape, DType dtype,
                            const auto& told) { return strided_scale_traffic(shape, dtype, told); };

}  // namespace

std::vector<Kernel> probes_kernels() {
  return {row<kernels::Chase, chase_reference>(
              chase_operands, no_flops, {},
              {.dependent_loads = LaunchFunction<kernels::Chase, DependentLoads>(chase_loads)}),
          row<kernels::Spin, spin_reference>(
              spin_operands, no_flops, {},
              {.delay_microseconds = AttributesFunction<kernels::Spin, double>(
                   [](const auto& told) { return told.microseconds; })}),
          row<kernels::StridedScale, strided_scale_reference>(
              strided_scale_operands, flops_an_element<1>, {},
              {.uncached_work = LaunchFunction<kernels::StridedScale, KernelWork>(traffic),
               .sectors_per_request =
                   LaunchFunction<kernels::StridedScale, std::int64_t>(most_sectors)})};
}

}  // namespace stepgate
