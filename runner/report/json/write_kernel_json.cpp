// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text/json_line.h"
#include "report/text/print_kernels.h"

namespace stepgate {

void write_kernel_check_json(std::ostream& out, const KernelCheck& check) {
  nlohmann::ordered_json faults = nlohmann::ordered_json::array();
  for (const KernelFault& fault : check.faults)
    faults.push_back({{"check", fault.check}, {"first", fault.first}, {"trials", fault.trials}});
  const nlohmann::ordered_json line{{"schema", "stepgate.kernel_check/1"},
                                    {"kernel", check.kernel},
                                    {"library", check.library},
                                    {"is_it", check.is_it()},
                                    {"trials", check.trials},
                                    {"unsupported", check.unsupported},
                                    {"left_out", check.left_out},
                                    {"seed", check.seed},
                                    {"faults", faults}};
  out << json_line(line) << '\n';
}

}  // namespace stepgate
