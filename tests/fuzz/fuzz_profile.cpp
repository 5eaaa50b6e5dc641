// SPDX-License-Identifier: MIT
// libFuzzer: reads text as a device's profile. It is refused, or is read and written unchanged, and
// the sum of its copy times does not overflow.
#include "device/profile.h"
#include "device/simulated/collective_time.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

void check(const CopyCost& cost, std::uint64_t draw) {
  const auto bytes = static_cast<std::int64_t>(draw >> (1 + draw % 63));
  for (const std::int64_t size : {std::int64_t{0}, bytes}) {
    const std::int64_t time = cost.of(size);
    require(time >= 0 && time <= 2 * longest_cost_nanoseconds, "a copy takes a time that fits");
  }
}

void check_collectives(const DeviceProfile& profile, int ranks, std::uint64_t draw) {
  const auto bytes = static_cast<std::int64_t>(draw >> (4 + draw % 60));
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    const std::int64_t time = collective_time(profile, kind, ranks, bytes);
    require(time >= 0 && time <= 100 * longest_cost_nanoseconds,
            "a collective takes a time that fits");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedFile file;
  const std::string_view text = fuzzed_text(data, size);
  check_reads_back(text, [&](std::string_view one) {
    return unless_refused([&] {
      const DeviceProfile profile = read_profile(file.with(one));
      check(profile.pinned, fnv1a(text));
      check(profile.pageable, fnv1a(text));
      for (const int ranks : {2, 3, 64}) check_collectives(profile, ranks, fnv1a(text));
      return to_toml(profile);
    });
  });
  return 0;
}
