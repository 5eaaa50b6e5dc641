// SPDX-License-Identifier: MIT
#include "line/job.h"

#include <gtest/gtest.h>

#include "base/testing/planted_record.h"
#include "base/text/diagnostic.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

template <class One>
Job job_with() {
  auto job = planted_record<Job>();
  job.task = planted_record<One>();
  return job;
}
const std::vector<Job> every_job{job_with<TraceTask>(), job_with<RankTask>(),
                                 job_with<AcceptTask>()};

std::string fault_of(const std::string& line) {
  try {
    (void)read_job(line);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

TEST(Job, CarriesEveryField) {
  for (const Job& job : every_job) EXPECT_TRUE(read_job(to_line(job)) == job) << to_line(job);
  Job of_bytes = job_with<TraceTask>();
  of_bytes.files = {"a b\n\xff.toml", "-x.toml"};
  EXPECT_EQ(read_job(to_line(of_bytes)).files, of_bytes.files);
}

// tests/fuzz begins with these lines.
TEST(Job, IsWrittenAsInTheGoldenFile) {
  std::string lines;
  for (const Job& job : every_job) lines += to_line(job) + '\n';
  expect_golden(STEPGATE_SOURCE_DIR "/tests/golden/jobs.jsonl", lines);
}

TEST(Job, IsWhatWasTyped) {
  Job job = job_with<TraceTask>();
  const LineArguments typed = arguments_of(job);
  EXPECT_TRUE(job_of(typed, typed.device.spec, typed.seed.value(), job.task) == job);
}

TEST(Job, SaysWhatIsWrongWithIt) {
  const auto fault = [](std::string line, const std::string& part, const std::string& planted) {
    return fault_of(line.replace(line.find(part), part.size(), planted));
  };
  const std::string way_out =
      "; `stepgate serve` is started by other verbs: use those (`stepgate --help`)";
  const std::string line = to_line(job_with<RankTask>());
  const std::string it = "the job on standard input ";
  EXPECT_EQ(fault_of(""), it + "is missing" + way_out);
  EXPECT_EQ(fault_of("trace"), it + "is not JSON" + way_out);
  EXPECT_EQ(fault(line, "\"traces\":true", "\"traces\":false,\"traces\":true"),
            it + "has 'task.rank.traces' twice" + way_out);
  EXPECT_EQ(fault(line, "\"seed\"", "\"sed\""), it + "has no 'seed'" + way_out);
  EXPECT_EQ(fault(line, "\"rank\":{", "\"dig\":{\"x\":1},\"ranks\":{").substr(0, it.size() + 10),
            it + "has 'task'");
  EXPECT_EQ(fault(line, "\"traces\":true", "\"traces\":1"),
            it + "has 'task.rank.traces' 1, which is neither true nor false" + way_out);
  EXPECT_EQ(fault(line, "\"traces\":true", "\"traces\":true,\"paints\":true"),
            it + "has more than a job of this build" + way_out);
}

}  // namespace
}  // namespace stepgate
