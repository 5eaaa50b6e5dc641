// SPDX-License-Identifier: MIT
// Calls the verb of the command line, and converts its errors to exit codes.
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string_view>
#include <vector>

#include "base/interruption.h"
#include "base/process/child.h"
#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "report/exit_code.h"
#include "verbs/command_line.h"

namespace stepgate {
namespace {

int run(int argc, char** argv) {
  CLI::App app("stepgate: did this change make the training step slower, and by what mechanism?",
               "stepgate");
  Arguments arguments;
  Verb chosen = nullptr;
  declare_verbs(app, arguments, chosen);
  try {
    app.parse(argc, argv);
    if (chosen == nullptr) throw RequestError("no verb", "`stepgate --help` lists them");
    if (arguments.files.empty()) arguments.files = {"scenarios"};
    return chosen(arguments);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    const std::vector<std::string_view> typed(argv + 1, argv + argc);
    if (const std::string meant = suggestion_for(app, typed); !meant.empty())
      std::cerr << meant << '\n';
    return status_of(ExitCode::wrong_request);
  } catch (const RequestError& error) {
    std::cerr << error.what() << '\n';
    return status_of(ExitCode::wrong_request);
  } catch (const NotGatedError& error) {
    std::cerr << "not gated: " << error.what() << '\n';
    return status_of(ExitCode::not_gated);
  } catch (const std::filesystem::filesystem_error& error) {
    std::cerr << error.path1().generic_string() << ": cannot be read: " << error.code().message()
              << "; check the permissions of its folders\n";
    return status_of(ExitCode::wrong_request);
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return interrupted_exit_code(interrupted);
  } catch (const ProcessError& error) {
    std::cerr << error.what() << '\n';
    return status_of(ExitCode::device_failed);
  } catch (const std::bad_alloc&) {
    std::cerr << "the device failed: " << no_host_memory << '\n';
    return status_of(ExitCode::device_failed);
  } catch (const WorkerError& error) {
    std::cerr << "a worker failed: " << error.what() << '\n';
    return status_of(ExitCode::device_failed);
  } catch (const std::exception& error) {
    std::cerr << "the device failed: " << error.what() << '\n';
    return status_of(ExitCode::device_failed);
  }
}

// Returns an error if the output could not be written, unless `status` is worse.
int after_output(int status) {
  if (std::cout.flush()) return status;
  std::cerr << "standard output cannot be written; make room, or write it elsewhere\n";
  for (const ExitCode lesser : {ExitCode::passes, ExitCode::not_gated, ExitCode::undecided}) {
    if (status == status_of(lesser)) return status_of(ExitCode::wrong_request);
  }
  return status;
}

}  // namespace
}  // namespace stepgate

int main(int argc, char** argv) {
  return stepgate::after_output(stepgate::run(argc, argv));
}
