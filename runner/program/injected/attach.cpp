// SPDX-License-Identifier: MIT
// libstepgate_attach.so: the library that the CUDA driver (CUDA_INJECTION64_PATH) and NVTX
// (NVTX_INJECTION64_PATH) load into a process whose calls `stepgate attach` counts. It must not
// change, slow or end that process: a failure leaves a record file without records, or none.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <initializer_list>

#include "device/cuda/cupti/call_kinds.h"
#include "program/injected/call_arguments.h"
#include "program/injected/cupti_library.h"
#include "program/injected/old_glibc.h"
#include "program/injected/python_lines.h"
#include "program/injected/recorder.h"

#define STEPGATE_EXPORTED extern "C" __attribute__((visibility("default")))

namespace stepgate::attached {
namespace {

constexpr std::uint32_t most_calls = 2048;  // callback ids of a domain; CUDA 13.0 has 806

struct Watched {
  CallKind kind = CallKind::other;
  bool always_can_block = false;
  const CallArguments* arguments = nullptr;
};
Watched watched[2][most_calls];  // of the driver, of the runtime

CuptiLibrary cupti;
void* subscriber = nullptr;
PointerGetAttribute pointer_attribute = nullptr;

// Steps whose calls are counted; 0 steps: the window has no end.
struct Window {
  long skip = 0;
  long steps = 0;
  bool is_of_ranges =
      false;  // the user named the range; else leading_source says which marks count
};
Window window;
std::atomic<long> marks_of[mark_source_count];
std::atomic<long> marks_seen{0};  // of the source whose steps are counted
std::atomic<std::uint64_t> first_optimizer{0};

bool is_in_window() {
  if (window.steps == 0) return true;
  const long seen = marks_seen.load(std::memory_order_relaxed);
  return seen > 0 && seen >= window.skip && seen <= window.skip + window.steps;
}

enum class End { device, pinned, pageable, unknown };

// As the driver sees the address. It is asked when the call has returned: before its first call
// a process has no context.
End end_of(std::uint64_t address) {
  if (address == 0 || pointer_attribute == nullptr) return End::unknown;
  unsigned type = 0;
  const int result = pointer_attribute(&type, attribute_memory_type, address);
  if (result == cuda_invalid_value) return End::pageable;
  if (result != cuda_success) return End::unknown;
  return type == memory_is_of_the_host ? End::pinned : End::device;
}

std::uint16_t flags_of_copy(const CallArguments& arguments, const void* parameters) {
  std::uint64_t direction = by_address;
  if (arguments.direction != no_argument)
    direction = argument(arguments, parameters, arguments.direction) & 0xffff'ffff;
  const auto end = [&](std::int8_t position, bool is_device) {
    if (position == no_argument || is_device) return End::device;
    return end_of(argument(arguments, parameters, position));
  };
  const End source =
      end(arguments.source, direction == device_to_host || direction == device_to_device);
  const End target =
      end(arguments.target, direction == host_to_device || direction == device_to_device);
  std::uint16_t flags = 0;
  if (source == End::unknown || target == End::unknown) flags |= unknown_end;
  if (source != End::device && target == End::device) flags |= to_device;
  if (source == End::device && target != End::device) flags |= from_device;
  if (source == End::pageable || target == End::pageable) flags |= pageable;
  return flags;
}

std::uint64_t number_of(const CallArguments& arguments, const void* parameters) {
  std::uint64_t product = 1;
  for (const std::int8_t position : arguments.numbers) {
    if (position != no_argument) product *= argument(arguments, parameters, position);
  }
  return product;
}

bool has_line_of_interest(CallKind kind, std::uint16_t flags) {
  switch (kind) {
    case CallKind::wait_for_device:
    case CallKind::wait_for_stream:
    case CallKind::wait_for_event:
    case CallKind::allocate:
    case CallKind::release:
    case CallKind::pin:
    case CallKind::unpin:
      return true;
    case CallKind::copy:
      return (flags & (pageable | can_block)) != 0;
    default:
      return false;
  }
}

std::uint64_t innermost_range(const Thread& thread) {
  const int depth =
      thread.range_depth < Thread::most_ranges ? thread.range_depth : Thread::most_ranges;
  return depth > 0 ? thread.ranges[depth - 1] : 0;
}

// An outermost call has returned.
void record_call(Thread& thread, bool is_runtime, std::uint32_t call,
                 const CuptiCallbackData& data) {
  const Watched& meaning = watched[is_runtime ? 1 : 0][call];
  if (meaning.kind == CallKind::poll) {
    ++thread.polls;
    return;
  }
  int result = 0;
  if (data.return_value != nullptr) std::memcpy(&result, data.return_value, sizeof result);
  std::uint16_t flags = 0;
  if (is_runtime) flags |= runtime_call;
  if (result != 0) flags |= failed;
  if (thread.nodes > 0) flags |= captured;
  if (meaning.always_can_block) flags |= can_block;
  std::uint64_t payload = 0;
  if (meaning.arguments != nullptr && data.parameters != nullptr) {
    payload = number_of(*meaning.arguments, data.parameters);
    if (meaning.kind == CallKind::copy && result == 0)
      flags |= flags_of_copy(*meaning.arguments, data.parameters);
    if (meaning.kind == CallKind::launch && data.symbol_name != nullptr)
      put_name(payload, data.symbol_name, std::strlen(data.symbol_name));
  } else if (meaning.kind == CallKind::copy) {
    flags |= unknown_end;
  }
  put_polls(thread);
  const std::uint64_t sequence = put(thread, record_kind(meaning.kind), flags, payload,
                                     innermost_range(thread), call | (is_runtime ? most_calls : 0));
  if (sequence != 0 && has_line_of_interest(meaning.kind, flags) && is_in_window() &&
      has_time_for_line()) {
    write_line(sequence);
  }
}

void record_graph_event(Thread& thread, std::uint32_t event, const void* data) {
  const auto* graph =
      static_cast<const CuptiGraphData*>(static_cast<const CuptiResourceData*>(data)->descriptor);
  if (graph == nullptr) return;
  const auto key = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  switch (event) {
    case graph_was_created:
      put(thread, RecordKind::graph_created, 0, key(graph->graph), 0, event);
      break;
    case graph_was_cloned:
      put(thread, RecordKind::graph_created, 0, key(graph->graph), key(graph->original_graph),
          event);
      break;
    case node_was_created:
      ++thread.nodes;
      put(thread, RecordKind::node_created, static_cast<std::uint16_t>(graph->node_type),
          key(graph->graph), 0, event);
      break;
    case node_was_cloned:
      put(thread, RecordKind::node_created, static_cast<std::uint16_t>(graph->node_type),
          key(graph->graph), 0, event);
      break;
    case exec_was_created:
      put(thread, RecordKind::exec_created, 0, key(graph->exec), key(graph->graph), event);
      break;
    default:
      break;
  }
}

void on_callback(void*, std::uint32_t domain, std::uint32_t call, const void* data) {
  if (header() == nullptr) return;
  Thread& thread = this_thread();
  if (thread.inside) return;
  thread.inside = true;
  if (domain == resource_domain) {
    record_graph_event(thread, call, data);
  } else if (call < most_calls) {
    const auto& about = *static_cast<const CuptiCallbackData*>(data);
    if (about.site != site_of_return) {
      if (thread.depth++ == 0) thread.nodes = 0;
    } else {
      // The call in which the library was loaded returns without having begun.
      if (thread.depth > 0) --thread.depth;
      // A driver call inside a runtime call of the same thread is its implementation.
      if (thread.depth == 0) record_call(thread, domain == runtime_domain, call, about);
    }
  }
  thread.inside = false;
}

int subscribe_as_stepgate(RecordFileHeader& file) {
  if (cupti.subscribe_v2 == nullptr) return cupti.subscribe(&subscriber, on_callback, nullptr);
  CuptiSubscriberParams parameters{.size = sizeof(CuptiSubscriberParams),
                                   .name = "stepgate",
                                   .old_name = file.holder,
                                   .old_name_size = sizeof file.holder};
  return cupti.subscribe_v2(&subscriber, on_callback, nullptr, &parameters);
}

// Callbacks are watched by the names that CUPTI gives them: a list of ids would go stale with every
// version of CUDA.
void watch_calls(RecordFileHeader& file) {
  for (const std::uint32_t domain : {driver_domain, runtime_domain}) {
    const bool is_runtime = domain == runtime_domain;
    for (std::uint32_t call = 1; call < most_calls; ++call) {
      const char* name = nullptr;
      if (cupti.callback_name(domain, call, &name) != 0 || name == nullptr) continue;
      std::string_view plain = plain_call_name(name);
      // nvcc 13 compiles <<<>>> to __cudaLaunchKernel.
      if (plain.starts_with("__cuda")) plain.remove_prefix(2);
      const CallMeaning meaning = meaning_of_call(plain);
      if (meaning.kind == CallKind::other || plain.starts_with("cuLaunchHostFunc")) continue;
      watched[is_runtime ? 1 : 0][call] = {.kind = meaning.kind,
                                           .always_can_block = meaning.always_can_block,
                                           .arguments = arguments_of(plain)};
      put_name(call_name_keys + (call | (is_runtime ? most_calls : 0)), plain.data(), plain.size());
      if (cupti.enable_callback(1, subscriber, domain, call) == 0) ++file.watched_calls;
    }
  }
  for (const std::uint32_t event :
       {graph_was_created, graph_was_cloned, node_was_created, exec_was_created, node_was_cloned}) {
    cupti.enable_callback(1, subscriber, resource_domain, event);
  }
}

void unwatch_calls() {
  if (subscriber == nullptr) return;
  for (std::uint32_t domain = 0; domain < 2; ++domain) {
    for (std::uint32_t call = 1; call < most_calls; ++call) {
      if (watched[domain][call].kind != CallKind::other)
        cupti.enable_callback(0, subscriber, domain == 1 ? runtime_domain : driver_domain, call);
    }
  }
}

void subscribe(RecordFileHeader& file) {
  if (!cupti.open()) {
    file.subscribed = no_cupti;
    return;
  }
  std::memcpy(file.cupti_path, cupti.path, sizeof file.cupti_path);
  std::uint32_t version = 0;
  cupti.version(&version);
  file.cupti_version = version;
  const int result = subscribe_as_stepgate(file);
  if (result == 0) watch_calls(file);
  file.subscribed = static_cast<std::uint64_t>(result);
}

void find_driver(RecordFileHeader& file) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return;
  pointer_attribute = reinterpret_cast<PointerGetAttribute>(dlsym(driver, "cuPointerGetAttribute"));
  using GetVersion = int (*)(int*);
  int version = 0;
  if (const auto get = reinterpret_cast<GetVersion>(dlsym(driver, "cuDriverGetVersion")))
    get(&version);
  file.driver_version = static_cast<std::uint64_t>(version);
}

// A number at the beginning of the text, which then begins behind it.
long take_number(const char*& text) {
  long number = 0;
  for (; *text >= '0' && *text <= '9' && number < 1'000'000'000; ++text)
    number = 10 * number + (*text - '0');
  return number;
}

void read_window() {
  const char* text = std::getenv(window_variable);
  if (text == nullptr) return;
  const long skip = take_number(text);
  if (*text++ != '+') return;
  window = {.skip = skip, .steps = take_number(text)};
  window.is_of_ranges = std::strcmp(text, window_of_ranges) == 0;
}

// Ranks of other machines are not seen here.
void read_world_size(RecordFileHeader& file) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "WORLD_SIZE"}) {
    const char* text = std::getenv(name);
    if (text == nullptr || file.rank[0] == '\0') continue;
    file.world_size = static_cast<std::uint64_t>(take_number(text));
    return;
  }
}

// Counts a boundary between steps. Never called from within a CUDA call.
void mark(MarkSource source, std::uint64_t optimizer) {
  if (header() == nullptr) return;
  Thread& thread = this_thread();
  put_polls(thread);
  put(thread, RecordKind::mark, 0, static_cast<std::uint64_t>(source), optimizer, 0);
  if (source == MarkSource::optimizer) {
    std::uint64_t none = 0;
    // A second optimizer, as of a GAN, is part of the same step.
    if (!first_optimizer.compare_exchange_strong(none, optimizer) && none != optimizer) return;
  }
  const long now = ++marks_of[static_cast<std::uint64_t>(source)];
  if (source != (window.is_of_ranges ? MarkSource::range : leading_source(marks_of))) return;
  marks_seen.store(now);
  tell_marks(static_cast<std::uint64_t>(now));
  if (now == window.skip + 1) begin_lines();
  if (window.steps > 0 && now > window.skip + window.steps) {
    stop_recording();
    unwatch_calls();
  }
}

const char* step_range = default_step_range;

void push_range(const char* name, std::size_t length) {
  if (header() == nullptr) return;
  Thread& thread = this_thread();
  std::uint64_t key = 14695981039346656037ULL;  // FNV-1a
  for (std::size_t at = 0; at < length; ++at)
    key = (key ^ static_cast<unsigned char>(name[at])) * 1099511628211ULL;
  key = (key >> 2) | range_name_keys;
  put_name(key, name, length);
  if (thread.range_depth < Thread::most_ranges) thread.ranges[thread.range_depth] = key;
  ++thread.range_depth;
}

void pop_range() {
  Thread& thread = this_thread();
  if (thread.range_depth > 0) --thread.range_depth;
}

void mark_if_step(const char* name) {
  if (std::strcmp(name, step_range) == 0) mark(MarkSource::range, 0);
}

// Wide names in ASCII; longer ones are cut.
struct Narrow {
  char text[128] = {};
  explicit Narrow(const void* wide) {
    const auto* from = static_cast<const wchar_t*>(wide);
    for (std::size_t at = 0; at + 1 < sizeof text && from[at] != L'\0'; ++at)
      text[at] = from[at] < 128 ? static_cast<char>(from[at]) : '?';
  }
};

template <class Use>
void with_message(const NvtxEventAttributes* event, Use use) {
  if (event == nullptr || event->message == nullptr) return use("");
  if (event->message_type == nvtx_message_ascii)
    return use(static_cast<const char*>(event->message));
  if (event->message_type == nvtx_message_unicode) return use(Narrow(event->message).text);
  use("");
}

void push(const char* name) {
  mark_if_step(name);
  push_range(name, std::strlen(name));
}

int on_push_a(const char* name) {
  push(name != nullptr ? name : "");
  return 0;
}
int on_push_w(const wchar_t* name) {
  push(name != nullptr ? Narrow(name).text : "");
  return 0;
}
int on_push_ex(const NvtxEventAttributes* event) {
  with_message(event, push);
  return 0;
}
int on_domain_push(void*, const NvtxEventAttributes* event) {
  return on_push_ex(event);
}
int on_pop() {
  pop_range();
  return 0;
}
int on_domain_pop(void*) {
  return on_pop();
}
std::uint64_t on_start_a(const char* name) {
  if (name != nullptr) mark_if_step(name);
  return 0;
}
std::uint64_t on_start_ex(const NvtxEventAttributes* event) {
  with_message(event, mark_if_step);
  return 0;
}
std::uint64_t on_domain_start(void*, const NvtxEventAttributes* event) {
  return on_start_ex(event);
}

}  // namespace
}  // namespace stepgate::attached

// Called by the driver at the first CUDA call of the process. 0 would end the program's use of
// CUDA, so it is always 1.
STEPGATE_EXPORTED int InitializeInjection() {
  using namespace stepgate::attached;
  watch_forks();
  // Called again, in this process after its window or in a forked child, which has no CUDA.
  if (subscriber != nullptr) return 1;
  if (!open_record_file()) return 1;
  read_window();
  read_world_size(*header());
  find_driver(*header());
  subscribe(*header());
  return 1;
}

// Called by NVTX at the first range of the process.
STEPGATE_EXPORTED int InitializeInjectionNvtx2(stepgate::attached::NvtxGetExportTable get) {
  using namespace stepgate::attached;
  watch_forks();
  if (const char* name = std::getenv(range_variable)) step_range = name;
  const auto* exports = static_cast<const NvtxExportTable*>(get(nvtx_callbacks_table));
  if (exports == nullptr) return 0;
  const auto set = [&](NvtxModule module, unsigned call, auto* function) {
    void*** table = nullptr;
    unsigned size = 0;
    if (exports->function_table(module, &table, &size) != 0 && call < size &&
        table[call] != nullptr) {
      *table[call] = reinterpret_cast<void*>(function);
    }
  };
  set(nvtx_core, nvtx_range_push_a, on_push_a);
  set(nvtx_core, nvtx_range_push_w, on_push_w);
  set(nvtx_core, nvtx_range_push_ex, on_push_ex);
  set(nvtx_core, nvtx_range_pop, on_pop);
  set(nvtx_core, nvtx_range_start_a, on_start_a);
  set(nvtx_core, nvtx_range_start_ex, on_start_ex);
  set(nvtx_core2, nvtx_domain_range_push_ex, on_domain_push);
  set(nvtx_core2, nvtx_domain_range_pop, on_domain_pop);
  set(nvtx_core2, nvtx_domain_range_start_ex, on_domain_start);
  return 1;
}

// Called by the Python hook. `source` is a MarkSource.
STEPGATE_EXPORTED void stepgate_attach_mark(std::uint64_t source, std::uint64_t optimizer) {
  using namespace stepgate::attached;
  if (source < mark_source_count) mark(static_cast<MarkSource>(source), optimizer);
}
STEPGATE_EXPORTED void stepgate_attach_note(const char* key, const char* value) {
  stepgate::attached::put_note(key, value);
}

// Switches the callbacks off and on, to measure their cost within one process.
STEPGATE_EXPORTED void stepgate_attach_watch(int on) {
  using namespace stepgate::attached;
  if (subscriber == nullptr) return;
  if (on == 0) return unwatch_calls();
  for (std::uint32_t domain = 0; domain < 2; ++domain) {
    for (std::uint32_t call = 1; call < most_calls; ++call) {
      if (watched[domain][call].kind != stepgate::CallKind::other)
        cupti.enable_callback(1, subscriber, domain == 1 ? runtime_domain : driver_domain, call);
    }
  }
}
