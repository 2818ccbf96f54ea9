#include "weir/tools/case/process_pool.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace weir::tools {
namespace {

using std::chrono::milliseconds;

std::vector<ProcessResult> RunAll(int count, int jobs, milliseconds limit,
                                  const std::function<std::string(int)>& work) {
  std::vector<ProcessResult> results;
  RunInProcesses(count, jobs, limit, work, [&](int i, const ProcessResult& result) {
    EXPECT_EQ(i, static_cast<int>(results.size()));
    results.push_back(result);
  });
  return results;
}

TEST(ProcessPool, ResultsComeInOrderWhateverEndsFirst) {
  const auto results = RunAll(5, 3, milliseconds(60000), [](int i) {
    std::this_thread::sleep_for(milliseconds(i == 0 ? 100 : 1));
    return std::string(i * 40000, 'x');  // larger than a pipe's buffer
  });
  ASSERT_EQ(results.size(), 5u);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].output.size(), i * 40000);
    EXPECT_EQ(results[i].death, "");
  }
}

TEST(ProcessPool, ACrashAffectsOneItemAndIsReported) {
  const auto results = RunAll(3, 1, milliseconds(60000), [](int i) -> std::string {
    if (i == 0) std::raise(SIGKILL);
    if (i == 1) _exit(3);
    return "fine";
  });
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].death, "killed by signal 9 (Killed)");
  EXPECT_EQ(results[1].death, "ended with exit status 3");
  EXPECT_EQ(results[2].output, "fine");
}

TEST(ProcessPool, AHangIsKilled) {
  const auto results = RunAll(2, 2, milliseconds(200), [](int i) -> std::string {
    if (i == 0) std::this_thread::sleep_for(std::chrono::hours(1));
    return "fine";
  });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].death, "took longer than 0.2 s");
  EXPECT_EQ(results[1].output, "fine");
}

}  // namespace
}  // namespace weir::tools
