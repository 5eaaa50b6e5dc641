// SPDX-License-Identifier: MIT
#include "verbs/failure.h"

#include <unistd.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "base/process/child.h"
#include "base/process/run_program.h"
#include "base/text/diagnostic.h"
#include "device/device.h"
#include "device/open_device.h"

namespace stepgate {

ExitCode say_failure() try { throw; } catch (const RequestError& error) {
  std::cerr << error.what() << '\n';
  return ExitCode::wrong_request;
} catch (const NotGatedError& error) {
  std::cerr << "not gated: " << error.what() << '\n';
  return ExitCode::not_gated;
} catch (const std::filesystem::filesystem_error& error) {
  if (error.code() == std::errc::not_enough_memory) return say_out_of_memory();
  const std::string path = error.path1().generic_string();
  std::cerr << (path.empty() ? "the current folder" : path)
            << ": cannot be read: " << error.code().message()
            << "; check the permissions of its folders\n";
  return ExitCode::wrong_request;
} catch (const std::system_error& error) {
  if (error.code() == std::errc::not_enough_memory) return say_out_of_memory();
  std::cerr << "the system refused: " << error.what()
            << "; look at its limits, such as `ulimit -a` and `df`\n";
  return ExitCode::device_failed;
} catch (const ProcessError& error) {
  std::cerr << error.what() << '\n';
  return ExitCode::device_failed;
} catch (const std::bad_alloc&) {
  return say_out_of_memory();
} catch (const WorkerError& error) {
  std::cerr << "a worker failed: " << error.what() << '\n';
  return ExitCode::device_failed;
} catch (const std::exception& error) {
  std::cerr << "the device failed: " << error.what() << '\n';
  return ExitCode::device_failed;
}

void write_failure(std::string_view fact) {
  for (const std::string_view words :
       {std::string_view("the device failed: "), fact, std::string_view("\n")}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
  }
}

ExitCode say_out_of_memory() {
  write_failure(no_host_memory);
  return ExitCode::device_failed;
}

}  // namespace stepgate
