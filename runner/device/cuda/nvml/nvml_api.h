// SPDX-License-Identifier: MIT
// The part of NVML's binary interface that stepgate calls. It is declared from NVML's documentation
// (docs.nvidia.com/deploy/nvml-api), since the header may be missing. Only nvml.cpp and the tests'
// fake library include this.
#pragma once

#include <cstdint>

namespace stepgate::nvml_api {

using Result = int;
constexpr Result success = 0;
constexpr Result insufficient_size = 7;

using Handle = void*;

// The values are of nvmlClockType_t.
constexpr unsigned clock_sm = 1;
constexpr unsigned clock_memory = 2;

// The first value is of nvmlGpuP2PCapsIndex_t, the second is NVML_P2P_STATUS_OK of
// nvmlGpuP2PStatus_t.
constexpr unsigned p2p_over_nvlink = 2;
constexpr unsigned p2p_is_so = 0;

// The value is of nvmlTemperatureSensors_t.
constexpr unsigned temperature_gpu = 0;

// The values are the bits nvmlClocksEventReason...
constexpr std::uint64_t reason_idle = 0x1;
constexpr std::uint64_t reason_applications_clocks = 0x2;
constexpr std::uint64_t reason_software_power_cap = 0x4;
constexpr std::uint64_t reason_hardware_slowdown = 0x8;
constexpr std::uint64_t reason_sync_boost = 0x10;
constexpr std::uint64_t reason_software_thermal = 0x20;
constexpr std::uint64_t reason_hardware_thermal = 0x40;
constexpr std::uint64_t reason_hardware_power_brake = 0x80;
constexpr std::uint64_t reason_display_clocks = 0x100;

// The values are the fields NVML_FI_DEV_CLOCKS_EVENT_REASON_...: nanoseconds since the driver was
// loaded. Older drivers answer "not supported" to fields from 251 on.
constexpr unsigned field_software_power_cap = 74;
constexpr unsigned field_sync_boost = 76;
constexpr unsigned field_software_thermal = 251;
constexpr unsigned field_hardware_thermal = 252;
constexpr unsigned field_hardware_power_brake = 253;

// The values are of nvmlValueType_t.
enum ValueType : unsigned {
  value_double = 0,
  value_unsigned_int = 1,
  value_unsigned_long = 2,
  value_unsigned_long_long = 3,
  value_signed_long_long = 4,
  value_signed_int = 5,
  value_unsigned_short = 6
};

union Value {
  double as_double;
  unsigned as_unsigned_int;
  unsigned long as_unsigned_long;
  unsigned long long as_unsigned_long_long;
  long long as_signed_long_long;
  int as_signed_int;
  unsigned short as_unsigned_short;
};

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp_microseconds;
  long long latency_microseconds;
  unsigned type;
  Result result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

constexpr unsigned no_instance = 0xffffffff;  // of a process on a GPU that is whole

// The struct is nvmlProcessInfo_v2_t, which the third version of the call fills.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;  // all ones: not known
  unsigned gpu_instance;
  unsigned compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

}  // namespace stepgate::nvml_api
