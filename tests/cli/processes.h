// SPDX-License-Identifier: MIT
// For tests only: finds processes that wrote their numbers to a file, or work in a folder, and
// checks whether they still run.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace stepgate {

// Zombie processes count as ended.
inline bool is_alive(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z' && stat[state + 2] != 'X';
}

// Allows some time for a kill to take effect.
inline bool all_end(const std::vector<int>& processes, std::chrono::seconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  const auto alive = [&] { return std::any_of(processes.begin(), processes.end(), is_alive); };
  while (alive() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !alive();
}

// The file has one process number per line.
inline std::vector<int> noted_processes(const std::filesystem::path& ids) {
  std::vector<int> all;
  std::ifstream file(ids);
  for (int process = 0; file >> process;) all.push_back(process);
  return all;
}

// Returns processes whose working directory is the folder.
inline std::vector<int> processes_in(const std::filesystem::path& folder) {
  std::vector<int> all;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string name = process.path().filename();
    std::error_code not_ours;
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        std::filesystem::equivalent(process.path() / "cwd", folder, not_ours))
      all.push_back(std::stoi(name));
  }
  return all;
}

}  // namespace stepgate
