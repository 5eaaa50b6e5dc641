// SPDX-License-Identifier: MIT
#include "device/cuda/nvml/nvml.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text/units.h"
#include "device/cuda/nvml/nvml_api.h"
#include "kernels/dynamic_library.h"

namespace stepgate {
namespace {

using namespace nvml_api;

constexpr double watts_per_milliwatt = 1e-3;
constexpr unsigned long long not_known = std::numeric_limits<unsigned long long>::max();

struct Reason {
  std::uint64_t bit;
  ClockEvent event;
};
constexpr std::array reasons{Reason{reason_idle, ClockEvent::idle},
                             Reason{reason_applications_clocks, ClockEvent::applications_clocks},
                             Reason{reason_software_power_cap, ClockEvent::software_power_cap},
                             Reason{reason_hardware_slowdown, ClockEvent::hardware_slowdown},
                             Reason{reason_sync_boost, ClockEvent::sync_boost},
                             Reason{reason_software_thermal, ClockEvent::software_thermal},
                             Reason{reason_hardware_thermal, ClockEvent::hardware_thermal},
                             Reason{reason_hardware_power_brake, ClockEvent::hardware_power_brake},
                             Reason{reason_display_clocks, ClockEvent::display_clocks}};

struct Counter {
  unsigned field;
  ClockEvent event;
};
constexpr std::array counters{
    Counter{field_software_power_cap, ClockEvent::software_power_cap},
    Counter{field_sync_boost, ClockEvent::sync_boost},
    Counter{field_software_thermal, ClockEvent::software_thermal},
    Counter{field_hardware_thermal, ClockEvent::hardware_thermal},
    Counter{field_hardware_power_brake, ClockEvent::hardware_power_brake}};

std::optional<std::int64_t> integer_in(const FieldValue& field) {
  if (field.result != success) return std::nullopt;
  switch (field.type) {
    case value_unsigned_int:
      return field.value.as_unsigned_int;
    case value_unsigned_long:
      return static_cast<std::int64_t>(field.value.as_unsigned_long);
    case value_unsigned_long_long:
      return static_cast<std::int64_t>(field.value.as_unsigned_long_long);
    case value_signed_long_long:
      return field.value.as_signed_long_long;
    default:
      return std::nullopt;
  }
}

}  // namespace

// The functions of the library; null where this driver lacks them.
struct Nvml::Library {
  DynamicLibrary library;
  Handle device = nullptr;
  bool started = false;
  std::string unavailable;

  Result (*init)() = nullptr;
  Result (*shutdown)() = nullptr;
  const char* (*error_string)(Result) = nullptr;
  Result (*by_uuid)(const char*, Handle*) = nullptr;
  Result (*by_pci_bus)(const char*, Handle*) = nullptr;
  Result (*clock)(Handle, unsigned, unsigned*) = nullptr;
  Result (*max_clock)(Handle, unsigned, unsigned*) = nullptr;
  Result (*active_reasons)(Handle, unsigned long long*) = nullptr;
  Result (*field_values)(Handle, int, FieldValue*) = nullptr;
  Result (*temperature)(Handle, unsigned, unsigned*) = nullptr;
  Result (*power)(Handle, unsigned*) = nullptr;
  Result (*power_limit)(Handle, unsigned*) = nullptr;
  Result (*processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  Result (*vbios)(Handle, char*, unsigned) = nullptr;
  Result (*ecc)(Handle, unsigned*, unsigned*) = nullptr;
  Result (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  Result (*link_generation)(Handle, unsigned*) = nullptr;
  Result (*link_width)(Handle, unsigned*) = nullptr;
  Result (*p2p_status)(Handle, Handle, unsigned, unsigned*) = nullptr;

  ~Library() {
    if (started) (void)shutdown();
    library.close();
  }

  explicit Library(const std::string& file)
      : library({.name = "NVML, the management library of an NVIDIA driver,",
                 .variable = "STEPGATE_NVML",
                 .places = {{file}}}) {
    constexpr auto optional = DynamicFunction::optional;
    library.bind({{"nvmlInit_v2", &init},
                  {"nvmlShutdown", &shutdown},
                  {"nvmlDeviceGetHandleByUUID", &by_uuid},
                  {"nvmlErrorString", &error_string, optional},
                  {"nvmlDeviceGetHandleByPciBusId_v2", &by_pci_bus, optional},
                  {"nvmlDeviceGetClockInfo", &clock, optional},
                  {"nvmlDeviceGetMaxClockInfo", &max_clock, optional},
                  {"nvmlDeviceGetCurrentClocksEventReasons", &active_reasons, optional},
                  {"nvmlDeviceGetFieldValues", &field_values, optional},
                  {"nvmlDeviceGetTemperature", &temperature, optional},
                  {"nvmlDeviceGetPowerUsage", &power, optional},
                  {"nvmlDeviceGetEnforcedPowerLimit", &power_limit, optional},
                  {"nvmlDeviceGetComputeRunningProcesses_v3", &processes, optional},
                  {"nvmlDeviceGetVbiosVersion", &vbios, optional},
                  {"nvmlDeviceGetEccMode", &ecc, optional},
                  {"nvmlDeviceGetMigMode", &mig, optional},
                  {"nvmlDeviceGetMaxPcieLinkGeneration", &link_generation, optional},
                  {"nvmlDeviceGetCurrPcieLinkWidth", &link_width, optional},
                  {"nvmlDeviceGetP2PStatus", &p2p_status, optional}});
    // Older drivers have the function under this name.
    if (active_reasons == nullptr)
      library.bind({{"nvmlDeviceGetCurrentClocksThrottleReasons", &active_reasons, optional}});
    unavailable = library.unavailable();
  }

  std::string words_of(Result result) const {
    const char* words = error_string ? error_string(result) : nullptr;
    return words ? words : fmt::format("error {}", result);
  }

  void start(const GpuName& gpu) {
    if (!unavailable.empty()) return;
    Result result = init();
    started = result == success;
    if (!started) {
      unavailable = "the management library does not start: " + words_of(result);
      return;
    }
    result = by_uuid(gpu.uuid.c_str(), &device);
    if (result != success && by_pci_bus && !gpu.pci_bus.empty()) {
      result = by_pci_bus(gpu.pci_bus.c_str(), &device);
    }
    if (result != success) {
      unavailable = fmt::format("the management library does not know the GPU {}: {}", gpu.uuid,
                                words_of(result));
    }
  }

  // Returns a number; nullopt where the function is missing or fails.
  std::optional<unsigned> number(Result (*ask)(Handle, unsigned*)) const {
    unsigned value = 0;
    if (!ask || ask(device, &value) != success) return std::nullopt;
    return value;
  }
  std::optional<unsigned> number(Result (*ask)(Handle, unsigned, unsigned*), unsigned which) const {
    unsigned value = 0;
    if (!ask || ask(device, which, &value) != success) return std::nullopt;
    return value;
  }

  static std::optional<double> scaled(std::optional<unsigned> value, double unit) {
    return value ? std::optional(*value * unit) : std::nullopt;
  }

  std::optional<std::vector<ClockEvent>> active() const {
    unsigned long long bits = 0;
    if (!active_reasons || active_reasons(device, &bits) != success) return std::nullopt;
    std::vector<ClockEvent> events;
    for (const Reason& reason : reasons) {
      if (bits & reason.bit) events.push_back(reason.event);
    }
    return events;
  }

  std::vector<ClockEventTime> times() const {
    std::array<FieldValue, counters.size()> fields{};
    for (std::size_t index = 0; index < counters.size(); ++index) {
      fields[index].field = counters[index].field;
    }
    if (!field_values ||
        field_values(device, static_cast<int>(fields.size()), fields.data()) != success)
      return {};
    std::vector<ClockEventTime> known;
    for (std::size_t index = 0; index < counters.size(); ++index) {
      const auto nanoseconds = integer_in(fields[index]);
      if (!nanoseconds) continue;
      known.push_back({counters[index].event, std::chrono::nanoseconds(*nanoseconds)});
    }
    return known;
  }

  // On a GPU in MIG slices, keeps only the processes of our own slice, which alone share its memory
  // and multiprocessors. Our own entry tells which slice that is.
  static void keep_own_instance(std::vector<ProcessInfo>& listed) {
    const auto own = std::ranges::find(listed, static_cast<unsigned>(getpid()), &ProcessInfo::pid);
    if (own == listed.end() || own->gpu_instance == no_instance) return;
    std::erase_if(listed, [instance = own->gpu_instance](const ProcessInfo& process) {
      return process.gpu_instance != instance;
    });
  }

  std::optional<ComputeProcesses> compute_processes() const {
    if (!processes) return std::nullopt;
    std::vector<ProcessInfo> listed(16);
    Result result = insufficient_size;
    // The list may grow between asking for its length and reading it, so a few attempts are made.
    for (int attempt = 0; attempt < 4 && result == insufficient_size; ++attempt) {
      auto count = static_cast<unsigned>(listed.size());
      result = processes(device, &count, listed.data());
      listed.resize(result == success ? count : count + 16);
    }
    if (result != success) return std::nullopt;
    keep_own_instance(listed);
    ComputeProcesses found{.others = {}, .self_is_listed = false};
    for (const ProcessInfo& process : listed) {
      if (process.pid == static_cast<unsigned>(getpid())) {
        found.self_is_listed = true;
        continue;
      }
      ComputeProcess& other = found.others.emplace_back();
      other.pid = process.pid;
      if (process.used_bytes != not_known)
        other.memory_bytes = static_cast<std::int64_t>(process.used_bytes);
    }
    return found;
  }
};

Nvml::Nvml(const GpuName& gpu, const std::string& library)
    : library_(std::make_unique<Library>(library)) {
  library_->start(gpu);
}

Nvml::~Nvml() = default;

EnvironmentReading Nvml::read() const {
  const Library& nvml = *library_;
  EnvironmentReading reading;
  reading.unavailable = nvml.unavailable;
  if (!nvml.unavailable.empty()) return reading;
  // Reads first what changes soon when the GPU is idle.
  reading.sm_clock_hertz = nvml.scaled(nvml.number(nvml.clock, clock_sm), hertz_per_megahertz);
  reading.active = nvml.active();
  reading.power_watts = nvml.scaled(nvml.number(nvml.power), watts_per_milliwatt);
  reading.times = nvml.times();
  reading.memory_clock_hertz =
      nvml.scaled(nvml.number(nvml.clock, clock_memory), hertz_per_megahertz);
  reading.temperature_celsius = nvml.scaled(nvml.number(nvml.temperature, temperature_gpu), 1);
  reading.power_limit_watts = nvml.scaled(nvml.number(nvml.power_limit), watts_per_milliwatt);
  reading.processes = nvml.compute_processes();
  return reading;
}

std::vector<DeviceKey> Nvml::keys() const {
  const Library& nvml = *library_;
  if (!nvml.unavailable.empty()) return {};
  std::vector<DeviceKey> keys;
  const auto add = [&](const char* name, std::optional<std::string> value) {
    if (value) keys.push_back({name, std::move(*value)});
  };
  const auto in = [](std::optional<unsigned> value, const char* format) {
    return value ? std::optional(fmt::format(fmt::runtime(format), *value)) : std::nullopt;
  };
  const auto mode = [&](Result (*ask)(Handle, unsigned*, unsigned*)) -> std::optional<std::string> {
    unsigned current = 0;
    unsigned pending = 0;
    if (!ask || ask(nvml.device, &current, &pending) != success) return std::nullopt;
    return current ? "on" : "off";
  };
  std::array<char, 64> version{};
  if (nvml.vbios && nvml.vbios(nvml.device, version.data(), version.size()) == success) {
    version.back() = '\0';
    add("vbios", version.data());
  }
  if (const auto limit = nvml.number(nvml.power_limit)) {
    add("power limit", fmt::format("{:g} W", *limit * watts_per_milliwatt));
  }
  add("ecc", mode(nvml.ecc));
  add("mig", mode(nvml.mig));
  add("pcie generation", in(nvml.number(nvml.link_generation), "{}"));
  add("pcie width", in(nvml.number(nvml.link_width), "x{}"));
  add("highest sm clock", in(nvml.number(nvml.max_clock, clock_sm), "{} MHz"));
  return keys;
}

std::string Nvml::link_to(const std::string& uuid) const {
  const Library& nvml = *library_;
  Handle other = nullptr;
  if (!nvml.unavailable.empty() || !nvml.p2p_status ||
      nvml.by_uuid(uuid.c_str(), &other) != success || other == nvml.device)
    return {};
  unsigned status = 0;
  if (nvml.p2p_status(nvml.device, other, p2p_over_nvlink, &status) != success) return {};
  return std::string(status == p2p_is_so ? nvlink : no_nvlink);
}

}  // namespace stepgate
