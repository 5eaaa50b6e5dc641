// SPDX-License-Identifier: MIT
// `stepgate devices`: what can be run on, and the profile of the local GPU.
#include <iostream>

#include "report/text/print_list.h"
#include "support/files/write_file.h"
#include "verbs/outputs.h"
#include "verbs/verbs.h"

namespace stepgate {

int show_devices(const Arguments& arguments) {
  if (arguments.profile.empty()) {
    print_devices(std::cout, list_devices(arguments.device.baselines));
    return 0;
  }
  check_outputs(arguments);
  DeviceProfile profile = measure_local_profile();
  profile.measured = arguments.date;
  write_file(arguments.profile, to_toml(profile));
  return 0;
}

}  // namespace stepgate
