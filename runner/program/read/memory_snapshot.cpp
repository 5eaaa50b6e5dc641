// SPDX-License-Identifier: MIT
#include "program/read/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/text/diagnostic.h"
#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/first_fit_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "program/read/byte_stream.h"

namespace stepgate {
namespace {

constexpr char first_byte_of_a_pickle = '\x80';
constexpr std::size_t longest_kept_text = 64;
constexpr std::int64_t endless_bytes = std::int64_t{1} << 50;
// A value may be referred to by many others. A snapshot of PyTorch's needs five looks a value.
constexpr std::size_t most_looks = 20 * most_snapshot_values;

// A value of the pickle. Texts and containers are indexes into its lists.
struct PickleValue {
  enum Kind : std::uint8_t { none, number, text, container, mark } kind = none;
  std::int64_t at = 0;
};

// The data of a pickle (protocols 2 to 5): numbers, texts, lists, tuples and dictionaries. No code
// of it is carried out.
class Pickle {
 public:
  explicit Pickle(const std::filesystem::path& path) : file_(path.string()), stream_(path) {
    while (step()) {
    }
  }

  // The value of a key of a dictionary; none where it has no such key.
  PickleValue in(PickleValue dictionary, std::string_view key) const {
    const auto& values = elements(dictionary);
    looks_ += values.size() + 1;
    if (looks_ > most_looks) refuse("refers to its values too often");
    for (std::size_t index = 0; index + 1 < values.size(); index += 2) {
      if (values[index].kind == PickleValue::text && text(values[index]) == key)
        return values[index + 1];
    }
    return {};
  }
  const std::vector<PickleValue>& elements(PickleValue value) const {
    static const std::vector<PickleValue> nothing;
    return value.kind == PickleValue::container ? containers_[static_cast<std::size_t>(value.at)]
                                                : nothing;
  }
  std::string_view text(PickleValue value) const {
    return value.kind == PickleValue::text
               ? std::string_view(texts_[static_cast<std::size_t>(value.at)])
               : std::string_view();
  }
  static std::int64_t number(PickleValue value) {
    return value.kind == PickleValue::number ? value.at : 0;
  }
  PickleValue whole() const { return stack_.back(); }
  // The bytes, where a device can have so many.
  std::int64_t on_device(std::int64_t bytes) const {
    if (bytes < 0 || bytes > endless_bytes) refuse("has sizes that no device has");
    return bytes;
  }

  [[noreturn]] void refuse(const std::string& fact) const {
    throw RequestError(Diagnostic{{file_, 0, 0},
                                  fact,
                                  "write it by torch.cuda.memory._dump_snapshot, after "
                                  "torch.cuda.memory._record_memory_history()"});
  }

 private:
  std::uint8_t byte() {
    if (at_ == piece_.size()) {
      piece_ = stream_.next();
      at_ = 0;
      if (piece_.empty()) refuse("is a snapshot that ends half-way");
    }
    return static_cast<std::uint8_t>(piece_[at_++]);
  }
  std::uint64_t little(int bytes) {
    std::uint64_t value = 0;
    for (int index = 0; index < bytes; ++index) value |= std::uint64_t{byte()} << (8 * index);
    return value;
  }
  void push(PickleValue value) {
    if (++values_ > most_snapshot_values)
      refuse(fmt::format("has more than {} million values", most_snapshot_values / 1'000'000));
    stack_.push_back(value);
  }
  void push_number(std::int64_t value) { push({PickleValue::number, value}); }
  PickleValue pop() {
    if (stack_.empty()) refuse("is a damaged pickle");
    const PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }
  void push_text(std::uint64_t bytes) {
    std::string text;
    for (std::uint64_t index = 0; index < bytes; ++index) {
      const auto letter = static_cast<char>(byte());
      if (text.size() < longest_kept_text) text += letter;
    }
    const auto [found, is_new] =
        by_text_.try_emplace(text, static_cast<std::int64_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    if (texts_.size() > most_snapshot_values / 10) refuse("has too many texts");
    push({PickleValue::text, found->second});
  }
  void push_container(std::vector<PickleValue> elements) {
    containers_.push_back(std::move(elements));
    push({PickleValue::container, static_cast<std::int64_t>(containers_.size()) - 1});
  }
  std::vector<PickleValue> since_mark() {
    std::vector<PickleValue> values;
    for (PickleValue value = pop(); value.kind != PickleValue::mark; value = pop())
      values.push_back(value);
    std::ranges::reverse(values);
    return values;
  }
  void push_tuple(int elements) {
    std::vector<PickleValue> values;
    for (int index = 0; index < elements; ++index) values.push_back(pop());
    std::ranges::reverse(values);
    push_container(std::move(values));
  }
  void add(const std::vector<PickleValue>& values) {
    if (stack_.empty() || stack_.back().kind != PickleValue::container)
      refuse("is a damaged pickle");
    auto& elements = containers_[static_cast<std::size_t>(stack_.back().at)];
    elements.insert(elements.end(), values.begin(), values.end());
  }
  void put(std::uint64_t index) {
    if (stack_.empty()) refuse("is a damaged pickle");
    memo_[index] = stack_.back();
  }
  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("is a damaged pickle");
    push(found->second);
  }

  bool step();

  std::string file_;
  ByteStream stream_;
  std::span<const char> piece_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  mutable std::size_t looks_ = 0;
  std::vector<PickleValue> stack_;
  std::vector<std::vector<PickleValue>> containers_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int64_t> by_text_;
  std::unordered_map<std::uint64_t, PickleValue> memo_;
};

// One operation of the pickle's machine, by the names of Python's pickletools. False at the end.
bool Pickle::step() {
  switch (byte()) {
    case 0x80:  // PROTO
      (void)byte();
      break;
    case 0x95:  // FRAME
      (void)little(8);
      break;
    case '}':  // EMPTY_DICT
    case ']':  // EMPTY_LIST
    case ')':  // EMPTY_TUPLE
      push_container({});
      break;
    case '(':
      push({PickleValue::mark, 0});
      break;
    case 't':
      push_container(since_mark());
      break;
    case 0x85:
      push_tuple(1);
      break;
    case 0x86:
      push_tuple(2);
      break;
    case 0x87:
      push_tuple(3);
      break;
    case 'a': {  // APPEND
      const PickleValue value = pop();
      add({value});
      break;
    }
    case 's': {  // SETITEM
      const PickleValue value = pop();
      const PickleValue key = pop();
      add({key, value});
      break;
    }
    case 'e':  // APPENDS
    case 'u':  // SETITEMS
      add(since_mark());
      break;
    case 0x94:  // MEMOIZE
      put(memo_.size());
      break;
    case 'q':
      put(byte());
      break;
    case 'r':
      put(little(4));
      break;
    case 'h':
      get(byte());
      break;
    case 'j':
      get(little(4));
      break;
    case 0x8c:  // SHORT_BINUNICODE
    case 'C':   // SHORT_BINBYTES
      push_text(byte());
      break;
    case 'X':  // BINUNICODE
    case 'B':  // BINBYTES
      push_text(little(4));
      break;
    case 0x8d:  // BINUNICODE8
      push_text(little(8));
      break;
    case 'J':
      push_number(static_cast<std::int32_t>(little(4)));
      break;
    case 'K':
      push_number(byte());
      break;
    case 'M':
      push_number(static_cast<std::int64_t>(little(2)));
      break;
    case 0x8a: {  // LONG1
      const int bytes = byte();
      if (bytes > 9) refuse("has a number that is too large");
      std::uint64_t value = little(std::min(bytes, 8));
      if (bytes == 9 && byte() != 0) refuse("has a number that is too large");
      const bool is_negative = bytes > 0 && bytes < 8 && (value >> (8 * bytes - 1) & 1) != 0;
      if (is_negative) value |= ~std::uint64_t{0} << (8 * bytes);
      push_number(static_cast<std::int64_t>(value));
      break;
    }
    case 'G':  // BINFLOAT: no field that is read is one
      (void)little(8);
      push({});
      break;
    case 'N':
      push({});
      break;
    case 0x88:
      push_number(1);
      break;
    case 0x89:
      push_number(0);
      break;
    case '.':
      if (stack_.size() != 1) refuse("is a damaged pickle");
      return false;
    default:
      refuse("is a pickle that holds more than data, such as code");
  }
  return true;
}

// The requests of one device's history.
std::vector<SnapshotRequest> history_of(const Pickle& pickle, PickleValue events,
                                        MemorySnapshot& snapshot) {
  std::vector<SnapshotRequest> requests;
  for (const PickleValue event : pickle.elements(events)) {
    const std::string_view action = pickle.text(pickle.in(event, "action"));
    const bool refused = action == "oom";
    if (refused && snapshot.refusals == 0)
      snapshot.device_free_bytes =
          pickle.on_device(Pickle::number(pickle.in(event, "device_free")));
    if (!refused && action != "alloc" && action != "free_completed") continue;
    // A block that was refused has no address.
    if (refused) ++snapshot.refusals;
    requests.push_back(
        {.is_free = action == "free_completed",
         .address = refused ? ~static_cast<Address>(snapshot.refusals)
                            : static_cast<Address>(Pickle::number(pickle.in(event, "addr"))),
         .bytes = std::max<std::int64_t>(Pickle::number(pickle.in(event, "size")), 1),
         .stream = static_cast<StreamId>(Pickle::number(pickle.in(event, "stream")) & 0x7fffffff)});
  }
  return requests;
}

// Blocks that the history frees or leaves held and never allocated were held before it.
void hold_earlier_blocks(const Pickle& pickle, MemorySnapshot& snapshot) {
  std::vector<SnapshotRequest> earlier;
  std::unordered_map<Address, bool> held;
  for (const SnapshotRequest& request : snapshot.requests) {
    const auto known = held.try_emplace(request.address, false);
    if (request.is_free && !known.first->second && known.second)
      earlier.push_back({false, request.address, request.bytes, request.stream});
    known.first->second = !request.is_free;
  }
  for (const PickleValue segment : pickle.elements(pickle.in(pickle.whole(), "segments"))) {
    snapshot.reserved_bytes += pickle.on_device(Pickle::number(pickle.in(segment, "total_size")));
    (void)pickle.on_device(snapshot.reserved_bytes);
    const auto stream =
        static_cast<StreamId>(Pickle::number(pickle.in(segment, "stream")) & 0x7fffffff);
    Address next = static_cast<Address>(Pickle::number(pickle.in(segment, "address")));
    for (const PickleValue block : pickle.elements(pickle.in(segment, "blocks"))) {
      const PickleValue own = pickle.in(block, "address");
      const Address address = own.kind == PickleValue::number ? static_cast<Address>(own.at) : next;
      const std::int64_t bytes = pickle.on_device(Pickle::number(pickle.in(block, "size")));
      next = address + static_cast<Address>(bytes);
      const bool is_live = pickle.text(pickle.in(block, "state")) == "active_allocated";
      if (is_live && bytes > 0 && !held.contains(address))
        earlier.push_back({false, address, bytes, stream});
    }
  }
  snapshot.held_before = std::ssize(earlier);
  snapshot.requests.insert(snapshot.requests.begin(), earlier.begin(), earlier.end());
}

// Carries the requests out. A request that is refused leaves its block out.
struct Carried {
  std::int64_t live = 0, reserved = 0, refused = 0;
};
Carried carry_out(const MemorySnapshot& snapshot, MemoryAllocator& allocator) {
  std::unordered_map<Address, BlockId> held;
  Carried carried;
  for (const SnapshotRequest& request : snapshot.requests) {
    const auto block = held.find(request.address);
    if (request.is_free) {
      if (block == held.end()) continue;
      allocator.free(block->second);
      held.erase(block);
      continue;
    }
    if (block != held.end()) {  // its end is not in the history
      allocator.free(block->second);
      held.erase(block);
    }
    const BlockOrRefusal answer = allocator.allocate(request.bytes, request.stream);
    if (const auto* got = std::get_if<HeldBlock>(&answer))
      held[request.address] = got->id;
    else
      ++carried.refused;
  }
  carried.live = allocator.statistics().allocated_bytes.all.peak;
  carried.reserved = allocator.statistics().reserved_bytes.all.peak;
  for (const auto& [address, block] : held) allocator.free(block);
  return carried;
}

}  // namespace

bool is_memory_snapshot(const std::filesystem::path& path) {
  if (path == "-") return false;
  ByteStream stream(path);
  const std::span<const char> piece = stream.next();
  return !piece.empty() && piece.front() == first_byte_of_a_pickle;
}

MemorySnapshot read_memory_snapshot(const std::filesystem::path& path) {
  const Pickle pickle(path);
  MemorySnapshot snapshot{.file = path.filename().string()};
  PickleValue longest;
  for (const PickleValue events : pickle.elements(pickle.in(pickle.whole(), "device_traces"))) {
    if (pickle.elements(events).size() > pickle.elements(longest).size()) longest = events;
  }
  snapshot.requests = history_of(pickle, longest, snapshot);
  if (snapshot.requests.empty()) pickle.refuse("is a snapshot without a history of requests");
  hold_earlier_blocks(pickle, snapshot);
  return snapshot;
}

std::vector<AllocatorNeed> needs_of(const MemorySnapshot& snapshot,
                                    std::optional<std::int64_t> cap_bytes) {
  using Cap = std::optional<std::int64_t>;
  using Made = std::unique_ptr<MemoryAllocator>;
  const auto caching = [](SegmentKind segments) {
    return [segments](DeviceMemory& memory, Cap cap) -> Made {
      return std::make_unique<CachingAllocator>(memory, CachingRules{.segments = segments}, cap);
    };
  };
  const auto first_fit = [](DeviceMemory& memory, Cap cap) -> Made {
    return std::make_unique<FirstFitAllocator>(memory, cap);
  };
  const std::array<std::pair<const char*, std::function<Made(DeviceMemory&, Cap)>>, 3> all{
      {{"caching", caching(SegmentKind::fixed)},
       {"expandable", caching(SegmentKind::expandable)},
       {"first_fit", first_fit}}};
  std::vector<AllocatorNeed> needs;
  for (const auto& [name, make] : all) {
    const auto carried = [&, &make = make](Cap cap) {
      SimulatedMemory memory(endless_bytes);
      const Made allocator = make(memory, cap);
      return carry_out(snapshot, *allocator);
    };
    const Carried free = carried(std::nullopt);
    AllocatorNeed& need = needs.emplace_back();
    need.name = name;
    need.live_bytes = free.live;
    need.reserved_bytes = free.reserved;
    if (cap_bytes) need.fits = carried(cap_bytes).refused == 0;
  }
  return needs;
}

}  // namespace stepgate
