// SPDX-License-Identifier: MIT
// The tiny models of the device contract, and a step on more streams than knobs allow.
// device_contract_ways.cpp lists the variations in which models are run.
#include <ostream>
#include <tuple>

#include "base/require.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

// The models are as small as possible, since they run in hundreds of variations. They have three
// blocks, so that a segment of two is followed by a shorter one, and two heads of the least width.
// Length and vocabulary are odd; each of two micro-batches has several samples. With fewer tokens,
// the first fp16 gradients overflow and nothing is learned.
void append_transformers(std::vector<ModelCase>& cases) {
  Knobs plain;
  plain.transfer.host = HostMemory::resident;
  plain.model = {.kind = ModelKind::transformer, .layers = 3, .hidden = 16};
  plain.model.seq = 5;
  plain.model.heads = 2;
  plain.model.vocab = 11;
  plain.batch.size = 4;
  plain.optim.kind = OptimKind::adamw;
  cases.push_back({"fp32_transformer", plain});
  Knobs narrow = plain;
  narrow.model.dtype = DType::bf16;
  narrow.model.norm = ModelNorm::rms;
  narrow.batch.accumulate = 2;
  narrow.optim.master = true;
  narrow.optim.clip = 1;
  cases.push_back({"bf16_transformer", narrow});
  Knobs scaled = plain;
  scaled.model.dtype = DType::fp16;
  scaled.model.positions = 7;
  scaled.model.vocab_multiple = 4;  // a row that is no token
  scaled.optim.master = true;
  scaled.optim.average = 0.9;
  scaled.launch.fuse = Fuse::none;
  cases.push_back({"fp16_transformer", scaled});
  Knobs current = narrow;  // one part of a batch has 16 tokens, as GEMMs in fp8 need
  current.model.seq = 8;
  current.model.fp8 = ModelFp8::current;
  cases.push_back({"fp8_transformer", current});
  Knobs llama = plain;
  llama.model.norm = ModelNorm::rms;
  llama.model.mlp = ModelMlp::swiglu;
  llama.model.ffn = 24;
  llama.model.position = ModelPosition::rope;
  llama.model.tied = true;
  llama.model.vocab_multiple = 8;
  llama.model.kv_heads = 1;
  llama.optim.clip = 1;
  cases.push_back({"fp32_llama", llama});
  llama.model.bias = false;
  cases.push_back({"fp32_llama_without_biases", llama});
  Knobs delayed = llama;
  delayed.model.dtype = DType::bf16;
  delayed.model.ffn = 32;
  delayed.model.seq = 8;
  delayed.model.fp8 = ModelFp8::delayed;
  cases.push_back({"fp8_llama_with_delayed_scales", delayed});
  Knobs packed = plain;
  packed.batch.lengths = {3, 5};
  packed.batch.packed = true;
  cases.push_back({"fp32_packed_transformer", packed});
  Knobs padded = narrow;
  padded.batch.accumulate = 1;
  padded.batch.lengths = {5, 3};
  cases.push_back({"bf16_padded_transformer", padded});
  Knobs unbiased = plain;
  unbiased.model.bias = false;
  unbiased.model.dtype = DType::bf16;
  cases.push_back({"bf16_transformer_without_biases", unbiased});
}

void append_elementwise(std::vector<ModelCase>& cases) {
  Knobs strided;
  strided.transfer.host = HostMemory::resident;
  strided.model = {.kind = ModelKind::elementwise, .hidden = 8, .kernels = 3};
  strided.model.stride = 4;
  strided.model.extra_copies = 1;
  strided.batch.size = 4;
  cases.push_back({"fp32_strided", strided});
  Knobs records = strided;
  records.model.dtype = DType::bf16;
  records.model.inplace = false;
  records.model.layout = Layout::records;
  records.model.stride = 1;
  records.model.extra_copies = 2;
  cases.push_back({"bf16_records", records});
}

// Tables have few rows, so that samples share rows; the numbers of tables and rows are odd.
void append_recommenders(std::vector<ModelCase>& cases) {
  Knobs plain;
  plain.transfer.host = HostMemory::resident;
  plain.model = {.kind = ModelKind::recommender, .layers = 2, .hidden = 8};
  plain.model.tables = 3;
  plain.model.vocab = 5;
  plain.batch.size = 4;
  plain.optim.kind = OptimKind::adamw;
  cases.push_back({"fp32_recommender", plain});
  Knobs narrow = plain;
  narrow.model.dtype = DType::bf16;
  narrow.optim.kind = OptimKind::sgd;
  narrow.launch.fuse = Fuse::none;
  cases.push_back({"bf16_recommender", narrow});
  Knobs passes = plain;
  passes.optim.impl = OptimImpl::foreach;
  cases.push_back({"foreach_recommender", passes});
  passes.optim.impl = OptimImpl::operations;
  passes.optim.average = 0.9;
  cases.push_back({"operations_recommender", passes});
}

// Four stages of one block each. Odd images are halved to one pixel, rounded up, so that norms of
// the last stage have a row a sample.
void append_resnets(std::vector<ModelCase>& cases) {
  Knobs plain;
  plain.transfer.host = HostMemory::resident;
  plain.model.kind = ModelKind::resnet;
  plain.model.layers = 14;
  plain.model.stem = ModelStem::cifar;
  plain.model.width = 8;
  plain.model.image = 5;
  plain.model.classes = 7;
  plain.batch.size = 4;
  plain.optim.kind = OptimKind::momentum;
  cases.push_back({"fp32_resnet", plain});
  Knobs unfused = plain;
  unfused.launch.fuse = Fuse::none;
  cases.push_back({"unfused_resnet", unfused});
  Knobs narrow = plain;
  narrow.model.stem = ModelStem::imagenet;
  narrow.model.image = 9;
  narrow.model.dtype = DType::bf16;
  narrow.optim.master = true;
  narrow.optim.clip = 1;
  cases.push_back({"bf16_resnet", narrow});
}

void append_chase(std::vector<ModelCase>& cases) {
  Knobs chase;
  chase.model = {.kind = ModelKind::chase, .footprint_bytes = 4096, .accesses = 7};
  chase.batch.size = 3;
  cases.push_back({"chase", chase});
}

}  // namespace

void PrintTo(const DeviceCase& device, std::ostream* out) {
  *out << device.name;
}

void PrintTo(const ModelCase& model, std::ostream* out) {
  *out << model.name;
}

std::vector<ModelCase> model_cases() {
  Knobs spin;
  spin.transfer.host = HostMemory::resident;
  spin.model = {.kind = ModelKind::spin, .kernels = 2, .kernel_us = 1};
  spin.batch = {.size = 3, .sample_bytes = 24};
  std::vector<ModelCase> cases = {{"spin", spin}};
  for (const auto& [name, dtype, kind] : {std::tuple{"fp32_sgd", DType::fp32, OptimKind::sgd},
                                          {"fp32_adamw", DType::fp32, OptimKind::adamw},
                                          {"fp32_lion", DType::fp32, OptimKind::lion},
                                          {"fp32_momentum", DType::fp32, OptimKind::momentum},
                                          {"tf32_sgd", DType::tf32, OptimKind::sgd},
                                          {"bf16_adamw", DType::bf16, OptimKind::adamw}}) {
    Knobs mlp;
    mlp.transfer.host = HostMemory::resident;
    // Activations and moments of four layers alternate between two places.
    const std::int64_t layers = kind == OptimKind::adamw ? 4 : 2;
    mlp.model = {.layers = layers, .hidden = 8, .dtype = dtype};
    mlp.batch.size = 4;
    mlp.optim.kind = kind;
    cases.push_back({name, mlp});
  }
  Knobs bytes = cases[1].knobs;
  bytes.batch.format = BatchFormat::uint8;
  cases.push_back({"uint8_sgd", bytes});
  append_transformers(cases);
  append_elementwise(cases);
  append_recommenders(cases);
  append_resnets(cases);
  append_chase(cases);
  return cases;
}

Knobs model_knobs(const std::string& name) {
  for (const ModelCase& model : model_cases()) {
    if (model.name == name) return model.knobs;
  }
  require(false, "the model exists");
  return {};
}

StepPlan plan_over_the_side_stream() {
  Knobs knobs = model_knobs("fp32_sgd");
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  return plan_of(knobs);
}

StepPlan plan_over_three_streams() {
  StepPlan plan = plan_over_the_side_stream();
  const int third = static_cast<int>(plan.streams.size());
  plan.streams.push_back({.name = "third", .kind = StreamKind::non_blocking});
  const int between = static_cast<int>(plan.buffers.size());
  plan.buffers.push_back({.name = "batch in between",
                          .purpose = Purpose::batch,
                          .bytes = plan.batch_bytes,
                          .slots = 2});
  const int arrived = static_cast<int>(plan.events.size());
  const int passed_on = arrived + 1;
  plan.events.push_back({"batch has arrived", 2});
  plan.events.push_back({"batch is passed on", 2});
  std::vector<Operation> operations;
  for (const Operation& operation : plan.operations) {
    const auto add = [&](int stream, Action action) {
      Operation& added = operations.emplace_back(operation);
      added.stream = stream;
      added.action = std::move(action);
    };
    const auto* copy = std::get_if<CopyBytes>(&operation.action);
    if (operation.name == "copy the batch") {
      const BufferUse in_between{between, 0, copy->to.bytes};
      add(operation.stream, StreamWaitsEvent{passed_on});
      add(operation.stream, CopyBytes{in_between, copy->from});
      add(operation.stream, RecordEvent{arrived});
      add(third, StreamWaitsEvent{arrived});
      add(third, CopyBytes{copy->to, in_between});
      add(third, RecordEvent{passed_on});
    } else {
      // These are the operations that waited until the model had read the batch, and signalled that
      // the next batch was ready.
      const bool hands_over =
          operation.name == "wait until the slot is free" || operation.name == "batch is filled";
      add(hands_over ? third : operation.stream, operation.action);
    }
  }
  plan.operations = std::move(operations);
  return plan;
}

}  // namespace stepgate
