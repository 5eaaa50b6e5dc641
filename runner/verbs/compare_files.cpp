// SPDX-License-Identifier: MIT
// `stepgate compare` says what differs between two results.
#include <iostream>

#include "base/files/write_file.h"
#include "base/text/text_stream.h"
#include "compare/results/compare_results.h"
#include "report/text/print_results.h"
#include "report/text/table.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {

int compare_files(const Arguments& arguments) {
  Arguments outputs = arguments;
  outputs.files.clear();  // they are no scenarios
  check_outputs(outputs, arguments.files);
  const ComparedResults both = compare_results(arguments.files.front(), arguments.files.back());
  print_fitted(std::cout, style_of(descriptor_of_text()),
               [&](std::ostream& out) { print_results(out, both); });
  if (!arguments.json.empty()) {
    TextStream json;
    write_results_json(json, both);
    write_output([&] { write_file(arguments.json, json.str()); });
  }
  return status_of(exit_code(both));
}

}  // namespace stepgate
