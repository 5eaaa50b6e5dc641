// SPDX-License-Identifier: MIT
#include "plan/compose/dtype_hardware.h"

#include "scenario/knobs/fields.h"
#include "support/require.h"

namespace stepgate {

double least_compute_capability(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return 0;
    case DType::fp16:
      return 7.0;
    case DType::tf32:
    case DType::bf16:
      return 8.0;
  }
  require(false, "every dtype has hardware");
  return 0;
}

std::string_view word_of(DType dtype) {
  for (const Choice& choice : field_named("model.dtype")->values.choices) {
    if (choice.value == static_cast<std::int64_t>(dtype)) return choice.name;
  }
  require(false, "every dtype has a name");
  return {};
}

}  // namespace stepgate
