// SPDX-License-Identifier: MIT
// For nvml_test only: a fake NVML that returns values from environment variables, so that its users
// can be tested without a driver.
#include <cstdlib>
#include <cstring>
#include <string>

#include "device/cuda/nvml/nvml_api.h"

using namespace stepgate::nvml_api;

namespace {

constexpr Result invalid_argument = 2;
constexpr Result not_supported = 3;
constexpr Result not_found = 6;
constexpr Result driver_not_loaded = 9;

int the_device = 0;
int another_device = 0;

// The test's answer for `name`; nullptr if there is none, and then the call is not supported.
const char* said(const char* name) {
  return std::getenv((std::string("FAKE_NVML_") + name).c_str());
}

Result number(Handle device, const char* name, unsigned* value) {
  if (device != &the_device) return invalid_argument;
  if (!said(name)) return not_supported;
  *value = static_cast<unsigned>(std::strtoul(said(name), nullptr, 10));
  return success;
}

}  // namespace

extern "C" {

Result nvmlInit_v2() {
  return said("BROKEN") ? driver_not_loaded : success;
}

Result nvmlShutdown() {
  return success;
}

const char* nvmlErrorString(Result result) {
  return result == driver_not_loaded ? "Driver Not Loaded" : "Not Found";
}

Result nvmlDeviceGetHandleByUUID(const char* uuid, Handle* device) {
  *device = &the_device;
  if (std::strcmp(uuid, "GPU-other") == 0) {
    *device = &another_device;
    return success;
  }
  return std::strcmp(uuid, "GPU-fake") == 0 ? success : not_found;
}

Result nvmlDeviceGetHandleByPciBusId_v2(const char* bus, Handle* device) {
  *device = &the_device;
  return std::strcmp(bus, "0000:17:00.0") == 0 ? success : not_found;
}

Result nvmlDeviceGetClockInfo(Handle device, unsigned type, unsigned* megahertz) {
  return number(device, type == clock_sm ? "SM_CLOCK" : "MEMORY_CLOCK", megahertz);
}

Result nvmlDeviceGetMaxClockInfo(Handle device, unsigned, unsigned* megahertz) {
  return number(device, "MAX_CLOCK", megahertz);
}

Result nvmlDeviceGetCurrentClocksEventReasons(Handle device, unsigned long long* bits) {
  unsigned low = 0;
  const Result result = number(device, "REASONS", &low);
  *bits = low;
  return result;
}

// Reads values such as FAKE_NVML_FIELD_251=nanoseconds. Each field has another type, as in the real
// library.
Result nvmlDeviceGetFieldValues(Handle, int count, FieldValue* values) {
  for (int index = 0; index < count; ++index) {
    FieldValue& field = values[index];
    const char* text = said(("FIELD_" + std::to_string(field.field)).c_str());
    field.result = text ? success : not_supported;
    if (!text) continue;
    const unsigned long long value = std::strtoull(text, nullptr, 10);
    field.type =
        field.field == field_software_power_cap ? value_unsigned_long : value_unsigned_long_long;
    if (field.type == value_unsigned_long) {
      field.value.as_unsigned_long = value;
    } else {
      field.value.as_unsigned_long_long = value;
    }
  }
  return success;
}

Result nvmlDeviceGetTemperature(Handle device, unsigned, unsigned* celsius) {
  return number(device, "TEMPERATURE", celsius);
}

Result nvmlDeviceGetPowerUsage(Handle device, unsigned* milliwatts) {
  return number(device, "POWER", milliwatts);
}

Result nvmlDeviceGetEnforcedPowerLimit(Handle device, unsigned* milliwatts) {
  return number(device, "POWER_LIMIT", milliwatts);
}

// Reads FAKE_NVML_PROCESSES="pid pid ...". Each process has 1 MiB; pid 7 does not report its
// memory. If FAKE_NVML_INSTANCE is set, the GPU is in slices and all processes except 4711 are in
// that one.
Result nvmlDeviceGetComputeRunningProcesses_v3(Handle, unsigned* count, ProcessInfo* processes) {
  const char* text = said("PROCESSES");
  if (!text) return not_supported;
  const unsigned instance = said("INSTANCE")
                                ? static_cast<unsigned>(std::strtoul(said("INSTANCE"), nullptr, 10))
                                : no_instance;
  unsigned found = 0;
  const unsigned room = *count;
  for (char* rest = nullptr;; text = rest, ++found) {
    const unsigned long pid = std::strtoul(text, &rest, 10);
    if (rest == text) break;
    if (found < room) {
      processes[found] = {static_cast<unsigned>(pid), pid == 7 ? ~0ULL : 1ULL << 20,
                          pid == 4711 && said("INSTANCE") ? instance + 1 : instance, no_instance};
    }
  }
  *count = found;
  return found > room ? insufficient_size : success;
}

Result nvmlDeviceGetVbiosVersion(Handle, char* version, unsigned length) {
  if (!said("VBIOS")) return not_supported;
  std::strncpy(version, said("VBIOS"), length);
  return success;
}

Result nvmlDeviceGetEccMode(Handle device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number(device, "ECC", current);
}

Result nvmlDeviceGetMigMode(Handle device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return number(device, "MIG", current);
}

Result nvmlDeviceGetMaxPcieLinkGeneration(Handle device, unsigned* generation) {
  return number(device, "PCIE_GENERATION", generation);
}

Result nvmlDeviceGetP2PStatus(Handle device, Handle other, unsigned what, unsigned* status) {
  return other != &another_device || what != p2p_over_nvlink ? invalid_argument
                                                             : number(device, "P2P", status);
}

// nvmlDeviceGetCurrPcieLinkWidth is missing, as functions are in old drivers.

}  // extern "C"
