// SPDX-License-Identifier: MIT
#include "scenario/knobs/field_documents.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenario/assertions/metric.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

const std::filesystem::path scenarios = std::filesystem::path(STEPGATE_SOURCE_DIR) / "scenarios";

TEST(FieldDocuments, KeepTheEditorSchemaFresh) {
  expect_golden(scenarios / "scenario.schema.json", fields_json_schema());
}

TEST(FieldDocuments, NameEveryBuiltFieldAndMetric) {
  const std::string text = fields_text();
  const nlohmann::json schema = nlohmann::json::parse(fields_json_schema());
  for (const Field& field : field_table()) {
    const std::string name(field.name);
    if (!is_built(field)) continue;
    EXPECT_NE(text.find(name), std::string::npos) << name;
    const std::string group(group_of(field));
    const nlohmann::json& of_group = schema["properties"][group];
    EXPECT_TRUE(name == group || of_group["properties"].contains(name.substr(group.size() + 1)))
        << name;
  }
  for (const MetricRow& row : metric_table()) {
    EXPECT_NE(text.find(row.name), std::string::npos) << row.name;
  }
}

TEST(FieldDocuments, ShowOnlyWhatTheFilterNames) {
  EXPECT_EQ(fields_text("transfer.buffers"),
            "transfer.buffers       device buffers that the batches rotate over\n"
            "                       1 to 4; default 1\n");
  EXPECT_EQ(fields_text("gpu_idle"),
            "metrics:\n"
            "gpu_idle                   traced  share of the time in which no kernel, copy or fill "
            "runs\n");
  EXPECT_EQ(fields_text("zebra"), "");
}

TEST(FieldDocuments, ShowWhatAKindOfModelTakes) {
  for (const char* word : {"resnet", "ResNet-50"}) {
    const std::string text = fields_text(word);
    for (const char* name : {"model.kind ", "model.layers ", "model.image ", "model.width ",
                             "model.classes ", "model.stem ", "batch.format "})
      EXPECT_NE(text.find(name), std::string::npos) << word << ": " << name;
    for (const char* name : {"model.heads ", "model.hidden ", "model.dtype ", "loader.wait_us "})
      EXPECT_EQ(text.find(name), std::string::npos) << word << ": " << name;
  }
  EXPECT_EQ(fields_text("mlp").find("model.image "), std::string::npos);
  EXPECT_NE(fields_text("mlp").find("model.hidden "), std::string::npos);
}

}  // namespace
}  // namespace stepgate
