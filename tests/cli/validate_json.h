// SPDX-License-Identifier: MIT
// For tests only: checks in Python whether a verb's output matches docs/json_schema.json.
#pragma once

namespace stepgate {

// Arguments: the schema, and a file of JSON Lines.
inline constexpr const char* validate_json = R"py(
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit("no module jsonschema: install python3-jsonschema")
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
wrong = 0
for number, line in enumerate(open(sys.argv[2]), 1):
    for error in validator.iter_errors(json.loads(line)):
        wrong += 1
        print(number, list(error.absolute_path), error.message[:300])
sys.exit(1 if wrong else 0)
)py";

}  // namespace stepgate
