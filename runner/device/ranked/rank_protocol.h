// SPDX-License-Identifier: MIT
// Requests to a rank process and its answers, with their text format. A message is JSON in one or
// several lines, which rank_link.h carries.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/record/fields.h"
#include "device/device.h"

namespace stepgate {

// The most bytes of a line, a request and an answer. Traces make answers long.
constexpr std::size_t longest_rank_line = (std::size_t{1} << 18) + 1;
constexpr std::size_t longest_request = std::size_t{1} << 20;
constexpr std::size_t longest_rank_answer = std::size_t{1} << 29;

// Splits a message into lines with a mark at the start of each.
std::vector<std::string> lines_of(std::string_view message);
// Sent while a request is carried out, so the waiting process sees that the rank is alive.
constexpr std::string_view alive_line = "~";
// Begins the last line of a rank that crashes in a library: what it did there.
constexpr char crash_mark = '!';

// Joins the lines of a message.
class MessageReader {
 public:
  explicit MessageReader(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  // Returns the complete message if this line is its last. Throws RankProtocolError, also for a
  // message that is too long.
  std::optional<std::string> take(std::string_view line);

 private:
  std::size_t most_bytes_;
  std::string begun_;
};

// A message is invalid. The text continues a rank's name: "said `x`, which is ...".
class RankProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace ask {

struct Hello {};
struct MakeRendezvous {};
struct Join {
  RankMembership membership;
};
struct Libraries {
  std::string digest;  // digest of the plan
};
struct CommunicatesWith {
  std::vector<std::string> uuids;  // UUIDs of the ranks' GPUs
};
// `step` is the number that later requests use for the loaded step.
struct Load {
  std::int64_t step = 0;
  int slot = 0;
  std::string digest;  // digest of the plan
  std::string scenario;
  std::string variant;
  LoadDraw draw;
};
struct Run {
  std::int64_t step = 0;
  Observe observe;
};
struct RunInterleaved {
  std::vector<std::int64_t> steps;
  Interleaving how;
};
struct Unload {
  std::int64_t step = 0;
};
struct Restart {
  std::int64_t step = 0;
};
struct Environment {};
struct End {};

}  // namespace ask

template <>
inline constexpr auto fields_of<ask::Hello> = fields<>;
template <>
inline constexpr auto fields_of<ask::MakeRendezvous> = fields<>;
template <>
inline constexpr auto fields_of<ask::Join> = fields<&ask::Join::membership>;
template <>
inline constexpr auto fields_of<ask::Libraries> = fields<&ask::Libraries::digest>;
template <>
inline constexpr auto fields_of<ask::CommunicatesWith> = fields<&ask::CommunicatesWith::uuids>;
template <>
inline constexpr auto fields_of<ask::Load> =
    fields<&ask::Load::step, &ask::Load::slot, &ask::Load::digest, &ask::Load::scenario,
           &ask::Load::variant, &ask::Load::draw>;
template <>
inline constexpr auto fields_of<ask::Run> = fields<&ask::Run::step, &ask::Run::observe>;
template <>
inline constexpr auto fields_of<ask::RunInterleaved> =
    fields<&ask::RunInterleaved::steps, &ask::RunInterleaved::how>;
template <>
inline constexpr auto fields_of<ask::Unload> = fields<&ask::Unload::step>;
template <>
inline constexpr auto fields_of<ask::Restart> = fields<&ask::Restart::step>;
template <>
inline constexpr auto fields_of<ask::Environment> = fields<>;
template <>
inline constexpr auto fields_of<ask::End> = fields<>;

using RankRequest = std::variant<ask::Hello, ask::MakeRendezvous, ask::Join, ask::Libraries,
                                 ask::Load, ask::Run, ask::RunInterleaved, ask::Unload,
                                 ask::Environment, ask::End, ask::CommunicatesWith, ask::Restart>;

// "load", "run": the name of the request, also in messages.
std::string_view name_of(const RankRequest&);

std::string message_of(const RankRequest&);
// Throws RankProtocolError for an invalid message, also for a number out of bounds (rank_bounds.h).
RankRequest read_rank_request(std::string_view message);

// A plan that the process has, with its digest.
struct NamedPlan {
  std::string scenario;
  std::string variant;
  std::string digest;
  bool operator==(const NamedPlan&) const = default;
};

struct RankHello {
  int rank = 0;
  std::string build;
  std::string host;
  std::int64_t process = 0;
  DeviceIdentity identity;
  std::string reason_against_tracing;
  std::vector<NamedPlan> plans;
};

// Result of one run. Tensors are sent as digests of their bits.
struct RankRan {
  StepResult result;
  std::optional<std::uint64_t>
      weights;  // digest of the weights that all ranks have; only with tensors
};

enum class RankFault { device, lost, memory_full, host_memory };
struct RankError {
  RankFault fault = RankFault::device;
  std::string message;
};

struct Done {};
struct Restarted {
  bool in_place = false;  // LoadedStep::restart
};
struct Rendezvous {
  std::string bytes;
};
template <>
inline constexpr auto fields_of<NamedPlan> =
    fields<&NamedPlan::scenario, &NamedPlan::variant, &NamedPlan::digest>;
template <>
inline constexpr auto fields_of<RankHello> =
    fields<&RankHello::rank, &RankHello::build, &RankHello::host, &RankHello::process,
           &RankHello::identity, &RankHello::reason_against_tracing, &RankHello::plans>;
template <>
inline constexpr auto fields_of<RankRan> = fields<&RankRan::result, &RankRan::weights>;
template <>
inline constexpr auto fields_of<RankError> = fields<&RankError::fault, &RankError::message>;
template <>
inline constexpr auto fields_of<Done> = fields<>;
template <>
inline constexpr auto fields_of<Restarted> = fields<&Restarted::in_place>;
template <>
inline constexpr auto fields_of<Rendezvous> = fields<&Rendezvous::bytes>;

using Libraries = std::vector<DeviceKey>;
using Choices = std::vector<KernelChoice>;
using RanTogether = std::vector<StepResult>;
using Surroundings = std::optional<EnvironmentReading>;

using RankValue = std::variant<Done, RankError, RankHello, Rendezvous, Libraries, Choices, RankRan,
                               RanTogether, Surroundings, Communication, Restarted>;

struct RankAnswer {
  RankValue value;
  std::chrono::nanoseconds now{0};  // Device::now of the rank
};

std::string message_of(const RankAnswer&);
// Throws RankProtocolError for an invalid message, also for a number out of bounds.
RankAnswer read_rank_answer(std::string_view message);

}  // namespace stepgate
