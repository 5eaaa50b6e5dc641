// SPDX-License-Identifier: MIT
// The field table as a JSON Schema. It helps while typing; reading a scenario checks far more.
#include <nlohmann/json.hpp>
#include <string>

#include "base/text/enumerators.h"
#include "kernels/catalogue.h"
#include "scenario/knobs/field_documents.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

Json whole_or_real(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json number_schema(const FieldValues& values, std::string_view type) {
  Json schema{{"type", type},
              {"minimum", whole_or_real(values.least)},
              {"maximum", whole_or_real(values.most)}};
  if (values.multiple_of != 1) schema["multipleOf"] = values.multiple_of;
  return schema;
}

// Keys are the names of the catalogue.
Json kernels_schema() {
  const Json replacement = {
      {"anyOf", Json::array({{{"type", "string"}, {"minLength", 1}},
                             {{"type", "object"},
                              {"properties",
                               {{"library", {{"type", "string"}}},
                                {"function", {{"type", "string"}}},
                                {"launches", {{"type", "integer"}, {"minimum", 1}}},
                                {"workspace", {{"type", "string"}}},
                                {"time_us", {{"type", "number"}, {"exclusiveMinimum", 0}}},
                                {"otherwise", {{"enum", enumerators<Otherwise>}}}}},
                              {"required", Json::array({"library"})},
                              {"additionalProperties", false}}})}};
  Json names = Json::array();
  for (const Kernel& known : kernel_catalogue()) names.push_back(known.name);
  return {{"type", "object"},
          {"propertyNames", {{"enum", std::move(names)}}},
          {"additionalProperties", replacement}};
}

Json schema_of(const FieldValues& values) {
  switch (values.kind) {
    case FieldKind::integer:
      return number_schema(values, "integer");
    case FieldKind::number:
      return number_schema(values, "number");
    case FieldKind::boolean:
      return {{"type", "boolean"}};
    case FieldKind::bytes:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)? *(B|KiB|MiB|GiB)$"}};
    case FieldKind::version:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?$"}};
    case FieldKind::percent:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?%$"}};
    case FieldKind::capacity:
      return {{"type", "string"},
              {"pattern", "^[0-9]+(\\.[0-9]+)? *(B|KiB|MiB|GiB|% of need|% of device)$"}};
    case FieldKind::integers:
      return {{"type", "array"},
              {"items", number_schema(values, "integer")},
              {"minItems", fewest_in_list},
              {"maxItems", most_in_list}};
    case FieldKind::text:
      return {{"type", "string"}};
    case FieldKind::words:
      return {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
    case FieldKind::variables:
      return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
    case FieldKind::kernels:
      return kernels_schema();
    case FieldKind::choice:
      break;
  }
  Json names = Json::array();
  for (const Choice& choice : values.choices) {
    if (choice.value) names.push_back(choice.name);
  }
  return {{"enum", std::move(names)}};
}

Json schema_of(const Field& field) {
  Json schema = schema_of(field.values);
  if (!field.values.word.empty()) {
    schema = {{"anyOf", Json::array({std::move(schema), {{"const", field.values.word}}})}};
  }
  schema["description"] = meaning_of(field);
  schema["default"] = field_value_text(field, default_of(field));
  return schema;
}

Json object(Json properties, std::string_view description) {
  return {{"type", "object"},
          {"description", description},
          {"properties", std::move(properties)},
          {"additionalProperties", false}};
}

// The groups whose fields may be set in tables of that scope.
Json group_properties(FieldScope widest) {
  Json properties = Json::object();
  for (const FieldGroup& group : field_groups()) {
    Json fields = Json::object();
    for (const Field& field : field_table()) {
      const bool allowed = widest == FieldScope::scenario || field.scope == FieldScope::variant;
      if (group_of(field) != group.name || !is_built(field) || !allowed) continue;
      if (field.name == group.name) {  // the group as a whole is one value
        Json whole = schema_of(field.values);
        whole["description"] = meaning_of(field);
        properties[std::string(group.name)] = std::move(whole);
        continue;
      }
      fields[std::string(field.name.substr(group.name.size() + 1))] = schema_of(field);
    }
    if (!fields.empty()) {
      properties[std::string(group.name)] = object(std::move(fields), group.meaning);
    }
  }
  return properties;
}

Json text(std::string_view description) {
  return {{"type", "string"}, {"description", description}};
}

Json named_assertions(std::string_view description) {
  return {{"type", "object"},
          {"description", description},
          {"additionalProperties", {{"type", "string"}}}};
}

}  // namespace

std::string fields_json_schema() {
  Json properties{
      {"schema", {{"const", 1}, {"description", "version of the format"}}},
      {"claim", text("one sentence: what the scenario shows")},
      {"source", text("where the number comes from")},
      {"tags", {{"type", "array"}, {"items", {{"type", "string"}, {"pattern", "^[a-z0-9_-]+$"}}}}},
      {"extends", text("a scenario file, relative to this one, whose keys hold unless set here")}};
  properties.update(group_properties(FieldScope::scenario));
  Json variant = group_properties(FieldScope::variant);
  variant["like"] = text("the variant to start from, instead of the base");
  properties["variant"] = {{"type", "object"},
                           {"description", "overrides of the base, knob by knob"},
                           {"minProperties", 1},
                           {"additionalProperties", object(std::move(variant), "one variant")}};
  properties["calibrate"] = {
      {"type", "object"},
      {"description",
       "a knob, and the assertion that its value is to make true: found on the machine"},
      {"additionalProperties", named_assertions("a knob of this group")}};
  properties["sweep"] = {
      {"type", "object"},
      {"description", "one knob and its values, each of which makes a scenario of the file"},
      {"maxProperties", 1},
      {"additionalProperties",
       {{"type", "object"},
        {"maxProperties", 1},
        {"additionalProperties", {{"type", "array"}, {"minItems", 2}, {"maxItems", 16}}}}}};
  properties["regime"] = named_assertions("when one is false, timed assertions are skipped");
  properties["expect"] = named_assertions("what must be true, one sentence a line");
  const Json ratio = {{"type", "number"}, {"exclusiveMinimum", 0}};
  Json says = {
      {"description", "the ratio of the assertion's left metric to its right one, or its range"},
      {"oneOf",
       Json::array(
           {ratio, {{"type", "array"}, {"minItems", 1}, {"maxItems", 2}, {"items", ratio}}})}};
  Json figure = object({{"experiment", text("what is compared, in words")}, {"says", says}},
                       "an assertion of [expect] that compares a metric of two variants");
  figure["required"] = Json::array({"experiment", "says"});
  properties["article"] = {{"type", "object"},
                           {"description", "what the source says of an assertion; decides nothing"},
                           {"additionalProperties", std::move(figure)}};
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "stepgate scenario"}};
  schema.update(object(std::move(properties), "a training step, its variants, and assertions"));
  return schema.dump(2) + '\n';
}

}  // namespace stepgate
