// SPDX-License-Identifier: MIT
// Several ranks as one device. A call that loads or runs a step does so on all ranks at once and
// returns one result. Decides nothing about a run; line/ranks/rank_team.h starts the ranks.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/ranked/claimed_time.h"
#include "device/ranked/rank_link.h"
#include "device/ranked/rank_protocol.h"
#include "plan/planned_step.h"

namespace stepgate {

struct RankedSettings {
  // Time limit for each answer of each rank.
  std::chrono::nanoseconds stall{std::chrono::seconds(60)};
  // Time limit between two heartbeats of a rank that is working on an answer. A rank sends one
  // every second.
  std::chrono::nanoseconds silence{std::chrono::seconds(6)};
  std::function<bool()> stopped = {};  // called while waiting; if true, waits throw Interrupted
  std::string launcher = {};           // that started the ranks; empty: this program
  std::string only = {};  // name of the only rank where nobody asked for ranks; empty: "rank 0"
  // The clock that tells how long an answer took; empty: the times that ranks claim are believed.
  std::function<std::chrono::nanoseconds()> clock = [] {
    return std::chrono::steady_clock::now().time_since_epoch();
  };
};

class RankedDevice : public Device {
 public:
  // Takes the links of ranks 0, 1, ..., at least one. Throws DeviceLost if a rank does not start or
  // runs a different program.
  RankedDevice(std::vector<std::unique_ptr<RankLink>>, RankedSettings);
  // Ends all ranks.
  ~RankedDevice() override;

  int count() const { return static_cast<int>(ranks_.size()); }
  // Throws DeviceLost, which names the first rank with a different plan and the difference.
  void refuse_other_plans(std::span<const NamedPlan>);

  DeviceIdentity identity() const override;
  std::vector<DeviceKey> libraries_for(const StepPlan&) override;
  // A plan with fewer ranks than this device uses the first ones.
  std::unique_ptr<LoadedStep> load(const StepPlan&, const LoadDraw&) override;
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan&, const LoadDraw&) override;
  std::chrono::nanoseconds now() const override;
  // Interleaves only steps of one rank.
  std::vector<StepResult> run_interleaved(std::span<LoadedStep* const>,
                                          const Interleaving&) override;
  std::string reason_against_tracing() const override;
  std::optional<EnvironmentReading> read_environment() override;

 private:
  std::string name_of_rank(std::size_t rank) const;
  class Step;
  struct Rank {
    std::unique_ptr<RankLink> link;
    MessageReader reader{longest_rank_answer};
    std::string name{};  // "rank 2", and once its process is known "rank 2 (process 4711)"
    RankHello hello{};
    Communication communication{};
    // Set while an answer is awaited.
    std::optional<RankAnswer> answer{};
    std::chrono::steady_clock::time_point last_sign{};
    std::string crashed_in{};  // " in 'norm', which is 'f' of 'x.so',", where a library crashed
  };

  // Sends the request to the first `count` ranks at once. Throws the error of a rank, DeviceLost
  // when one is gone, unresponsive or sends invalid messages, and Interrupted.
  std::vector<RankAnswer> all(std::size_t count, const RankRequest&);
  template <class Value>
  std::vector<Value> all_values(std::size_t count, const RankRequest&);

  void send(Rank&, const RankRequest&);
  std::vector<RankAnswer> taken(std::span<Rank>, const RankRequest&);
  void take_all(std::span<Rank>, const RankRequest&);
  static void wait_for_news(std::span<const Rank>);
  static bool has_failed(const Rank&);
  static std::string answered_in_words(std::span<const Rank>);
  void refuse_errors(std::span<const Rank>);
  void give_up_silent(std::span<const Rank>, const RankRequest&);
  [[noreturn]] void give_up(std::span<const Rank>, const RankRequest&);
  [[noreturn]] void give_up_after_error(std::span<const Rank>, const RankRequest&);
  void check_one_program();
  void ask_what_they_communicate_with();
  void connect(int count);
  std::size_t ranks_of(const StepPlan&) const;
  void end_all(const std::string& why);
  // Throws DeviceLost, or Interrupted where this process was told to stop.
  [[noreturn]] void lose(const std::string& assertion);
  [[noreturn]] void interrupt();
  void interrupt_if_told_soon();
  StepResult run(Step&, const Observe&);
  // Ends all ranks if the times that they claim cannot be true.
  void refuse_claims(const Rank& slowest, const std::string& steps, std::chrono::nanoseconds asked,
                     ClaimedTime);
  void refuse_claims_of_turns(std::span<LoadedStep* const>, const Interleaving&,
                              std::chrono::nanoseconds asked, const RanTogether&);
  // Ends all ranks if ranks that ran the same steps got different results.
  void refuse_disagreement(std::span<const RankRan>, const std::string& step);

  std::vector<Rank> ranks_;
  RankedSettings settings_;
  bool have_parts_ = false;
  ClaimedTimes claimed_times_;
  std::chrono::nanoseconds away_{0};  // this process was stopped for so long while it waited
  // The key of both is the number of ranks. Values are the number of loaded steps that communicate;
  // `joined_` has the groups whose ranks have joined. After a failure they must join again.
  std::map<int, std::int64_t> communicating_;
  std::set<int> joined_;
  std::int64_t next_step_ = 0;
  std::chrono::nanoseconds now_{0};  // simulated time of rank 0
  std::string lost_;                 // why a rank was lost; empty while all are there
  bool is_interrupted_ = false;      // and every further request throws Interrupted
};

}  // namespace stepgate
