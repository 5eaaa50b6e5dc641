// SPDX-License-Identifier: MIT
// Tests that the words of PyTorch and of profilers lead to the knobs and metrics that mean the
// same.
#include "scenario/familiar_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "scenario/assertions/metric.h"
#include "scenario/knobs/field_documents.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// A knob that is built, with one of its choices where the name has one, or a metric.
bool exists(std::string_view name) {
  const std::size_t sign = name.find(" = \"");
  const Field* field = field_named(name.substr(0, sign));
  if (sign == std::string_view::npos)
    return (field != nullptr && is_built(*field)) || metric_named(name).has_value();
  if (field == nullptr) return false;
  const std::string_view choice = name.substr(sign + 4, name.size() - sign - 5);
  return std::ranges::any_of(field->values.choices,
                             [&](const Choice& one) { return one.name == choice && one.value; });
}

TEST(FamiliarWords, LeadToKnobsChoicesAndMetricsThatExist) {
  for (const FamiliarWord& row : familiar_words()) {
    EXPECT_TRUE(!row.names.empty() || !row.remark.empty()) << row.words;
    for (const std::string_view name : names_for(row.words.substr(0, row.words.find(','))))
      EXPECT_TRUE(exists(name)) << row.words << ": " << name;
  }
  EXPECT_FALSE(exists("loader.prefetch_factor"));
  EXPECT_FALSE(exists("model.dtype = \"fp8\""));
  EXPECT_FALSE(exists("transfer.host = \"mapped\"")) << "it is not built yet";
}

TEST(FamiliarWords, StandInOneRow) {
  std::set<const FamiliarWord*> seen;
  for (const FamiliarWord& row : familiar_words()) {
    std::string_view words = row.words;
    while (!words.empty()) {
      const std::size_t length = std::min(words.find(", "), words.size());
      EXPECT_EQ(familiar_word(words.substr(0, length)), &row) << words.substr(0, length);
      words.remove_prefix(std::min(length + 2, words.size()));
    }
  }
}

TEST(FamiliarWords, LeadFirstToTheOneThatIsMeant) {
  const std::pair<std::string_view, std::string_view> expected[] = {
      {"throughput", "samples_per_s"},
      {"latency", "step_ms_mean"},
      {"iteration time", "step_ms_mean"},
      {"tokens/second", ""},
      {"GPU util", "gpu_idle"},
      {"DataLoader", "loader.wait_us"},
      {"num_workers", "loader.workers"},
      {"num-workers", "loader.workers"},
      {"prefetch_factor", "loader.depth"},
      {"persistent_workers", "loader.restart_every"},
      {"pin_memory", "transfer.host"},
      {"non_blocking", "transfer.blocking"},
      {"torch.cuda.synchronize", "sync.where"},
      {"loss.item", "log.every"},
      {".item()", "log.every"},
      {"AMP", "model.dtype"},
      {"autocast", "model.dtype"},
      {"bfloat16", "model.dtype = \"bf16\""},
      {"GradScaler", "model.dtype = \"fp16\""},
      {"DDP", "ranks.count"},
      {"FSDP", "ranks.shard"},
      {"bucket_cap_mb", "ranks.bucket"},
      {"no_sync", "ranks.sync_each_part"},
      {"torch.compile", "launch.fuse"},
      {"CUDA graph", "launch.via = \"graph\""},
      {"torch.use_deterministic_algorithms", "launch.attention_sums"},
      {"cudnn.benchmark", "launch.gemm = \"autotune\""},
      {"flash attention", "launch.fuse = \"attention\""},
      {"gradient checkpointing", "memory.checkpoint"},
      {"gradient_accumulation_steps", "batch.accumulate"},
      {"micro-batch", "batch.accumulate"},
      {"zero_grad", "memory.zero_grad"},
      {"set_to_none", "memory.zero_grad"},
      {"empty_cache", "alloc.empty_cache_every"},
      {"PYTORCH_CUDA_ALLOC_CONF", "alloc.with = \"caching\""},
      {"expandable_segments", "alloc.with = \"expandable\""},
      {"max_memory_allocated", "peak_live"},
      {"max_memory_reserved", "peak_reserved"},
      {"nanoGPT", "model.kind = \"transformer\""},
      {"DLRM", "model.kind = \"recommender\""},
      {"ResNet-50", "model.kind = \"resnet\""},
      {"BatchNorm", "model.kind = \"resnet\""},
      {"UNet", "model.kind = \"unet\""},
      {"memory_format", "model.layout_copies"},
      {"fp8", "model.fp8"},
      {"float8", "model.fp8"},
      {"transformer engine", "model.fp8"},
      {"channels_last", "model.layout_copies"},
      {"fused_mlp", "launch.fuse = \"epilogue\""},
      {".contiguous()", "model.layout_copies"},
      {"channels", "model.width"},
      {"in_chans", "model.image_channels"},
      {"resolution", "model.image"},
      {"int8", "batch.format = \"uint8\""},
      {"n_layer", "model.layers"},
      {"d_model", "model.hidden"},
      {"seq_len", "model.seq"},
      {"batch_size", "batch.size"},
      {"clip_grad_norm_", "optim.clip"},
      {"fused adam", "optim.impl"},
      {"EMA", "optim.average"},
      {"warmup", "measure.warmup"},
      {"all_reduce", "all_reduces_per_step"},
      {"zebra", ""},
      {"", ""},
      {"...", ""}};
  for (const auto& [word, name] : expected) {
    const auto names = names_for(word);
    EXPECT_EQ(names.empty() ? "" : names.front(), name) << word;
  }
}

TEST(FamiliarWords, AreHintsOfKnobsWhereAKnobIsMeantAndOfMetricsElsewhere) {
  EXPECT_EQ(familiar_hint("overlap", FamiliarPlace::knob),
            "did you mean 'transfer.stream' or 'ranks.overlap'?");
  EXPECT_EQ(familiar_hint("overlap", FamiliarPlace::metric),
            "did you mean 'copy_overlap' or 'comm_overlap'?");
  EXPECT_EQ(familiar_hint("num_workers", FamiliarPlace::metric), "did you mean 'loader.workers'?");
  EXPECT_EQ(familiar_hint("zebra", FamiliarPlace::knob), "");
  EXPECT_EQ(choice_for("model.dtype", "bfloat16"), "bf16");
  EXPECT_EQ(choice_for("model.dtype", "nanogpt"), "");
  EXPECT_EQ(choice_for("sync.how", "cudaStreamSynchronize"), "stream");
  EXPECT_EQ(choice_for("optim.kind", "sgd_momentum"), "momentum");
  EXPECT_EQ(choice_for("optim.kind", "nesterov"), "momentum");
  EXPECT_EQ(choice_for("batch.format", "int8"), "uint8");
  EXPECT_EQ(choice_for("model.dtype", "int8"), "");
}

TEST(FamiliarWords, ShowTheirKnobsWithEveryChoice) {
  const std::string shown = fields_text("cudaStreamSynchronize");
  EXPECT_NE(shown.find("sync.how "), std::string::npos) << shown;
  EXPECT_NE(shown.find("poll             cudaEventQuery, again and again\n"), std::string::npos)
      << shown;
  EXPECT_NE(shown.find("host_waits_per_step"), std::string::npos) << shown;
  EXPECT_NE(fields_text("dropout").find("no step here has that yet"), std::string::npos);
}

TEST(FamiliarWords, AreNotNeededForAChoiceToHaveALine) {
  for (const Field& field : field_table()) {
    for (const Choice& choice : field.values.choices)
      EXPECT_EQ(choice.meaning.empty(), !choice.value) << field.name << ' ' << choice.name;
  }
}

}  // namespace
}  // namespace stepgate
