// SPDX-License-Identifier: MIT
// Calls the verb of the command line, and converts its errors to exit codes.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>
#include <vector>

#include "base/interruption.h"
#include "base/text/diagnostic.h"
#include "base/text/visible_stream.h"
#include "base/text/visible_text.h"
#include "line/planned.h"
#include "report/exit_code.h"
#include "report/text/table.h"
#include "verbs/command_line.h"
#include "verbs/failure.h"
#include "verbs/outputs.h"
#include "verbs/settings.h"

namespace stepgate {
namespace {

// An allocation may fail where no exception can pass: before main, in functions of libraries that
// promise to throw nothing, while another error is on its way.
[[noreturn]] void end_in_words() {
  if (!std::current_exception()) {
    write_failure("stepgate cannot go on, as where there is not enough host memory");
    ::_exit(status_of(ExitCode::device_failed));
  }
  try {
    throw;
  } catch (const std::bad_alloc&) {
    ::_exit(status_of(say_out_of_memory()));
  } catch (const std::exception& error) {
    write_failure(one_line(error.what()));
  } catch (...) {
  }
  std::abort();
}

// Priorities up to 100 are the implementation's: this comes before all objects of files.
[[gnu::constructor(101)]] void set_end_in_words() {
  std::set_terminate(end_in_words);
}

// Faults of the file are told by verbs that need it.
RepositorySettings settings_for_help() {
  try {
    return settings_here();
  } catch (const RequestError&) {
    return {};
  }
}

int call_verb(int argc, char** argv) {
  CLI::App app;
  Arguments arguments;
  Verb chosen = nullptr;
  declare_verbs(app, arguments, chosen, settings_for_help());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0) return 0;
    const std::vector<std::string_view> typed(argv + 1, argv + argc);
    if (const std::string meant = suggestion_for(app, typed); !meant.empty())
      std::cerr << meant << '\n';
    return status_of(ExitCode::wrong_request);
  }
  if (chosen == nullptr) throw RequestError("no verb", "`stepgate --help` lists them");
  arguments.command = command_of(app, arguments);
  apply_settings(app, arguments);
  if (arguments.files.empty()) arguments.files = {default_scenarios};
  if (!arguments.patterns.empty()) arguments.files = files_that_match(arguments);
  return chosen(arguments);
}

int run(int argc, char** argv) {
  try {
    return call_verb(argc, argv);
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return interrupted_exit_code(interrupted);
  } catch (const std::exception&) {
    return status_of(say_failure());
  }
}

// Makes sure that no file which is opened later becomes standard output, standard error or input,
// with what is meant for those in it: some parents start a process without them. Reading and
// writing there fails as it did.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
      std::_Exit(status_of(ExitCode::wrong_request));
  }
}

}  // namespace
}  // namespace stepgate

int main(int argc, char** argv) {
  stepgate::occupy_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of a file's size fails, and is told
  try {
    const stepgate::VisibleStreams visible(stepgate::style_of(STDOUT_FILENO).has_colours,
                                           stepgate::style_of(STDERR_FILENO).has_colours);
    return stepgate::status_after_outputs(stepgate::run(argc, argv));
  } catch (const std::bad_alloc&) {  // while an error was printed, or before anything was
    return stepgate::status_of(stepgate::say_out_of_memory());
  }
}
