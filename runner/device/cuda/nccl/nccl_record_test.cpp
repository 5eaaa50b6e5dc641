// SPDX-License-Identifier: MIT
// Compares the plan with reports of a fake NCCL to this program's plugin.
#include "device/cuda/nccl/nccl_record.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/files/temporary_folder.h"
#include "device/cuda/nccl/compare_collectives.h"
#include "device/cuda/nccl/fake_nccl.h"
#include "device/cuda/nccl/nccl_profiler_api.h"
#include "device/cuda/nccl/nccl_words.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

constexpr IssuedSteps steps{.first_of_load = 5, .first = 6, .count = 2};

Operation collective(std::string name, const Collective& what) {
  return {.name = std::move(name), .action = what};
}

// A plan with two reductions and, on its own communicator, an all-gather in every other step.
StepPlan plan_of_two() {
  const BufferUse whole{0, 0, 4096};
  const BufferUse half{0, 0, 2048};
  StepPlan plan;
  plan.ranks = {.count = 2, .rank = 1, .communicators = 2};
  plan.operations = {{.name = "forward", .action = HostWork{}},
                     collective("reduce bucket 1", {.from = whole, .to = whole}),
                     collective("reduce bucket 2", {.kind = CollectiveKind::reduce_scatter,
                                                    .from = whole,
                                                    .to = half,
                                                    .dtype = DType::bf16}),
                     collective("gather weights", {.kind = CollectiveKind::all_gather,
                                                   .from = half,
                                                   .to = whole,
                                                   .dtype = DType::bf16,
                                                   .communicator = 1})};
  plan.operations.back().every = 2;
  return plan;
}

class RecordOfFakeNccl : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv(nccl_profiler_api::plugin_variable);
    setenv("STEPGATE_NCCL", STEPGATE_FAKE_NCCL, 1);
    nccl_.emplace();
    fake_ = loaded_fake_nccl(STEPGATE_FAKE_NCCL);
    begin_anew();
  }
  void TearDown() override {
    communicators_.clear();
    begin_anew();
    unsetenv("STEPGATE_NCCL");
    unsetenv(nccl_profiler_api::plugin_variable);
  }

  void begin_anew() {
    std::destroy_at(fake_);
    std::construct_at(fake_);
  }

  void join() {
    for (int number = 0; number < 2; ++number) {
      communicators_.push_back(std::make_unique<NcclCommunicator>(
          *nccl_, RankMembership{.rank = 1, .count = 2, .rendezvous = std::string(128, 'r')},
          [] {}));
    }
  }

  // Issues the plan's collectives as a device does.
  void issue(const StepPlan& plan) {
    float somewhere = 0;
    for (std::int64_t step = steps.first; step < steps.first + steps.count; ++step) {
      for (const Operation& operation : plan.operations) {
        const auto* what = std::get_if<Collective>(&operation.action);
        if (what == nullptr || !acts_for(operation, step, steps.first_of_load)) continue;
        communicators_.at(static_cast<std::size_t>(what->communicator))
            ->issue({.kind = what->kind,
                     .from = &somewhere,
                     .to = &somewhere,
                     .elements = nccl_elements_of(*what),
                     .dtype = what->dtype,
                     .reduction = what->reduction},
                    nullptr);
      }
    }
  }

  LibraryRecord record_of_two_steps() {
    begin_nccl_record();
    join();
    (void)take_nccl_record();
    const StepPlan plan = plan_of_two();
    issue(plan);
    return library_record_of(plan, steps, communicators_, {.issued = take_nccl_record()});
  }

  // Returns the record of the same plan in a graph for each of two slots; NCCL does not see the
  // launches of graphs.
  LibraryRecord record_of_two_graphs(bool is_captured = true) {
    begin_nccl_record();
    join();
    StepPlan plan = plan_of_two();
    plan.operations.back().every = 1;
    for (Operation& operation : plan.operations) operation.captured = true;
    (void)take_nccl_record();
    fake_->is_captured = is_captured;
    issue(plan);
    const NcclRecord captured = take_nccl_record();
    IssuedSteps launched = steps;
    launched.graphs = 2;
    return library_record_of(plan, launched, communicators_, {captured, take_nccl_record()});
  }

  std::string difference_in_graphs_with(Mistake mistake, int mistaken_at) {
    fake_->mistake = mistake;
    fake_->mistaken_at = mistaken_at;
    return record_of_two_graphs().difference;
  }

  std::string difference_with(Mistake mistake, int mistaken_at) {
    fake_->mistake = mistake;
    fake_->mistaken_at = mistaken_at;
    return record_of_two_steps().difference;
  }

  std::optional<Nccl> nccl_;
  FakeNccl* fake_ = nullptr;
  std::vector<std::unique_ptr<NcclCommunicator>> communicators_;
};

TEST_F(RecordOfFakeNccl, IsThePlanAndSaysHow) {
  const LibraryRecord said = record_of_two_steps();
  EXPECT_EQ(said.library, "NCCL 2.28.9");
  EXPECT_EQ(said.unavailable, "");
  EXPECT_EQ(said.difference, "");
  const std::vector<CollectiveAlgorithm> expected{
      {CollectiveKind::all_reduce, 4096, "ring", "simple", 16},
      {CollectiveKind::reduce_scatter, 4096, "ring", "simple", 16},
      {CollectiveKind::all_gather, 4096, "ring", "simple", 16}};
  EXPECT_EQ(said.algorithms, expected);
  communicators_.clear();
  EXPECT_EQ(fake_->finalized, 2);
}

TEST_F(RecordOfFakeNccl, HasWhatWasCalledInItsOrder) {
  (void)record_of_two_steps();
  issue(plan_of_two());
  const NcclRecord taken = take_nccl_record();
  ASSERT_EQ(taken.collectives.size(), 5U);
  EXPECT_EQ(taken.lost, 0);
  const RecordedCollective& reduction = taken.collectives[1];
  EXPECT_STREQ(reduction.function, "ReduceScatter");
  EXPECT_STREQ(reduction.type, "ncclBfloat16");
  EXPECT_EQ(reduction.count, 1024U);
  EXPECT_EQ(reduction.channels, 16);
  EXPECT_EQ(taken.collectives[4].communicator, taken.collectives[0].communicator + 1);
  EXPECT_TRUE(take_nccl_record().collectives.empty());
}

TEST_F(RecordOfFakeNccl, NamesACollectiveThatIsMissing) {
  EXPECT_EQ(difference_with(Mistake::forgets_it, 1),
            "collective 2 of communicator 0 in the traced steps is 'reduce bucket 2' of step 6, "
            "ReduceScatter of 1024 ncclBfloat16 by the plan and AllReduce of 1024 ncclFloat32 by "
            "NCCL, which enqueued 3 of them there, and the plan has 4");
}

TEST_F(RecordOfFakeNccl, NamesALastCollectiveThatIsMissing) {
  EXPECT_EQ(difference_with(Mistake::forgets_it, 4),
            "collective 1 of communicator 1 in the traced steps is 'gather weights' of step 7, "
            "AllGather of 1024 ncclBfloat16 by the plan and no further one by NCCL, which enqueued "
            "0 of them there, and the plan has 1");
}

TEST_F(RecordOfFakeNccl, NamesACollectiveOfAnotherSize) {
  EXPECT_EQ(difference_with(Mistake::counts_other_elements, 0),
            "collective 1 of communicator 0 in the traced steps is 'reduce bucket 1' of step 6, "
            "AllReduce of 1024 ncclFloat32 by the plan and AllReduce of 512 ncclFloat32 by NCCL, "
            "which enqueued 4 of them there, and the plan has 4");
}

TEST_F(RecordOfFakeNccl, NamesACollectiveOfAnotherKind) {
  EXPECT_EQ(difference_with(Mistake::takes_another_kind, 3),
            "collective 4 of communicator 0 in the traced steps is 'reduce bucket 2' of step 7, "
            "ReduceScatter of 1024 ncclBfloat16 by the plan and Broadcast of 1024 ncclBfloat16 by "
            "NCCL, which enqueued 4 of them there, and the plan has 4");
}

TEST_F(RecordOfFakeNccl, NamesMoreThreadBlocksThanThereMayBe) {
  begin_nccl_record();
  join();
  (void)take_nccl_record();
  StepPlan plan = plan_of_two();
  issue(plan);
  const NcclRecord issued = take_nccl_record();
  const auto difference_with_at_most = [&](int ctas) {
    plan.ranks.collectives.max_ctas = ctas;
    return library_record_of(plan, steps, communicators_, {.issued = issued}).difference;
  };
  EXPECT_EQ(difference_with_at_most(16), "");
  EXPECT_EQ(difference_with_at_most(8),
            "NCCL takes 16 thread blocks for the all-reduce of 4096 bytes, and 'ranks.max_ctas' is "
            "8; look whether NCCL_MAX_CTAS or NCCL_MIN_CTAS is set");
}

TEST_F(RecordOfFakeNccl, OfGraphsIsThePlanOnceForEach) {
  const LibraryRecord said = record_of_two_graphs();
  EXPECT_EQ(said.difference, "");
  EXPECT_TRUE(said.captured);
  EXPECT_EQ(said.algorithms.size(), 3U);
  EXPECT_FALSE(record_of_two_steps().captured);
}

TEST_F(RecordOfFakeNccl, OfGraphsNamesACollectiveThatIsMissing) {
  EXPECT_EQ(difference_in_graphs_with(Mistake::forgets_it, 4),
            "collective 4 of communicator 0 in the step's graph is 'reduce bucket 2' of graph 1, "
            "ReduceScatter of 1024 ncclBfloat16 by the plan and no further one by NCCL, which "
            "captured 3 of them there, and the plan has 4");
}

TEST_F(RecordOfFakeNccl, NamesACollectiveThatWasNotCaptured) {
  EXPECT_EQ(record_of_two_graphs(false).difference,
            "collective 1 of communicator 0 in the step's graph is 'reduce bucket 1' of graph 0, "
            "AllReduce of 1024 ncclFloat32 by the plan and AllReduce of 1024 ncclFloat32, not "
            "captured, by NCCL, which captured 4 of them there, and the plan has 4");
}

// The step issues one by one the collectives that its plan has in a graph.
TEST_F(RecordOfFakeNccl, SeesWhatIsIssuedBesideAGraph) {
  (void)record_of_two_graphs();
  StepPlan plan = plan_of_two();
  for (Operation& operation : plan.operations) operation.captured = true;
  fake_->is_captured = false;
  issue(plan);
  EXPECT_EQ(
      library_record_of(plan, steps, communicators_, {.issued = take_nccl_record()}).difference,
      "collective 1 of communicator 0 in the traced steps is no further one by the plan and "
      "AllReduce of 1024 ncclFloat32 by NCCL, which enqueued 4 of them there, and "
      "the plan has 0");
}

TEST_F(RecordOfFakeNccl, SaysThatItIsFullAndGoesOn) {
  EXPECT_EQ(difference_with(Mistake::repeats_it, 2),
            "NCCL's record is full: 68932 of its collectives were not written down beside 131072 "
            "that were");
  fake_->mistake = Mistake::none;
  issue(plan_of_two());
  EXPECT_EQ(library_record_of(plan_of_two(), steps, communicators_, {.issued = take_nccl_record()})
                .difference,
            "");
}

TEST_F(RecordOfFakeNccl, SeesWhatThePlanHasNot) {
  begin_nccl_record();
  join();
  (void)take_nccl_record();
  const StepPlan plan = plan_of_two();
  issue(plan);
  communicators_[1]->issue({.kind = CollectiveKind::all_gather, .elements = 7}, nullptr);
  EXPECT_EQ(
      library_record_of(plan, steps, communicators_, {.issued = take_nccl_record()}).difference,
      "collective 2 of communicator 1 in the traced steps is no further one by the plan and "
      "AllGather of 7 ncclFloat32 by NCCL, which enqueued 2 of them there, and the plan has "
      "1");
}

TEST_F(RecordOfFakeNccl, IsNotTakenWhereTheUserHasAnotherPlugin) {
  setenv(nccl_profiler_api::plugin_variable, "/opt/inspector.so", 1);
  const LibraryRecord said = record_of_two_steps();
  EXPECT_STREQ(std::getenv(nccl_profiler_api::plugin_variable), "/opt/inspector.so");
  EXPECT_EQ(said.unavailable, "NCCL_PROFILER_PLUGIN names '/opt/inspector.so'");
  EXPECT_EQ(said.difference, "");
}

TEST_F(RecordOfFakeNccl, LeavesThePluginOfAConfigurationFileAlone) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "nccl.conf").string();
  std::ofstream(file) << "NCCL_PROFILER_PLUGIN=/opt/inspector.so\n";
  setenv("NCCL_CONF_FILE", file.c_str(), 1);
  begin_nccl_record();
  unsetenv("NCCL_CONF_FILE");
  EXPECT_EQ(std::getenv(nccl_profiler_api::plugin_variable), nullptr);
  EXPECT_EQ(reason_against_nccl_record(),
            "NCCL_PROFILER_PLUGIN in " + file + " names '/opt/inspector.so'");
  begin_nccl_record();
  EXPECT_EQ(reason_against_nccl_record(), "");
}

TEST_F(RecordOfFakeNccl, IsNotTakenOfALibraryThatKnowsNoPlugin) {
  fake_->version = 22703;
  fake_->has_profilers = false;
  nccl_.emplace();
  const LibraryRecord said = record_of_two_steps();
  EXPECT_EQ(said.unavailable,
            "NCCL 2.27.3 did not ask this program for it, which it does from 2.28.3 on");
  EXPECT_EQ(said.difference, "");
}

TEST_F(RecordOfFakeNccl, TakesWhatSeveralThreadsCall) {
  begin_nccl_record();
  join();
  (void)take_nccl_record();
  constexpr int calls = 1000;
  const auto plugin = static_cast<const nccl_profiler_api::Plugin*>(
      dlsym(dlopen(nullptr, RTLD_NOW), nccl_profiler_api::plugin_symbol));
  ASSERT_NE(plugin, nullptr);
  const auto call_often = [plugin](std::uintptr_t context) {
    for (int call = 0; call < calls; ++call) {
      nccl_profiler_api::Event event{};
      event.type = nccl_profiler_api::call_event;
      event.call = {.function = "AllReduce", .count = 1, .type = "ncclFloat32"};
      void* handle = nullptr;
      plugin->start_event(reinterpret_cast<void*>(context), &handle, &event);
      plugin->stop_event(handle);
    }
  };
  std::thread one(call_often, 1);
  std::thread other(call_often, 2);
  one.join();
  other.join();
  EXPECT_EQ(std::ssize(take_nccl_record().collectives), 2 * calls);
}

}  // namespace
}  // namespace stepgate
