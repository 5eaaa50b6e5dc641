// SPDX-License-Identifier: MIT
// From arguments to a verb, and from what it threw to an exit code.
#include <exception>
#include <iostream>
#include <new>

#include "device/worker/child.h"
#include "report/exit_code.h"
#include "support/diagnostic.h"
#include "verbs/command_line.h"
#include "verbs/interruption.h"

int main(int argc, char** argv) {
  using namespace stepgate;
  CLI::App app("stepgate: did this change make the training step slower, and by what mechanism?",
               "stepgate");
  Arguments arguments;
  Verb chosen = nullptr;
  declare_verbs(app, arguments, chosen);
  try {
    app.parse(argc, argv);
    if (chosen == nullptr) throw RequestError("no verb", "`stepgate --help` lists them");
    if (arguments.files.empty()) arguments.files = {"scenarios"};
    stop_when_interrupted();
    return chosen(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : request_exit_code;
  } catch (const RequestError& error) {
    std::cerr << error.what() << '\n';
    return request_exit_code;
  } catch (const std::bad_alloc&) {
    std::cerr
        << "the device failed: there is not enough host memory for this step; make it smaller\n";
    return device_exit_code;
  } catch (const WorkerError& error) {
    std::cerr << "a worker failed: " << error.what() << '\n';
    return device_exit_code;
  } catch (const std::exception& error) {
    std::cerr << "the device failed: " << error.what() << '\n';
    return device_exit_code;
  }
}
