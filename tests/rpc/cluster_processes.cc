#include "weir/tests/rpc/cluster_processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/rpc/lib/listener.h"

extern char** environ;

namespace weir::testing {

namespace {

// Its port is free again when this returns.
int FreePort() { return (*rpc::Listener::Bind("127.0.0.1", 0))->port(); }

// Reads a line of a pipe.
std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

}  // namespace

ClusterProcesses::ClusterProcesses(std::string program, const std::map<std::string, int>& jobs,
                                   std::vector<std::string> options)
    : program_(std::move(program)), options_(std::move(options)) {
  for (const auto& [job, count] : jobs) {
    for (int i = 0; i < count; ++i) jobs_[job].push_back({absl::StrCat("127.0.0.1:", FreePort())});
  }
}

ClusterProcesses::~ClusterProcesses() {
  for (const auto& [job, tasks] : jobs_) {
    for (size_t i = 0; i < tasks.size(); ++i) Kill(job, static_cast<int>(i));
  }
}

std::string ClusterProcesses::Spec() const {
  return absl::StrJoin(jobs_, ",", [](std::string* out, const auto& job) {
    absl::StrAppend(out, job.first, "|",
                    absl::StrJoin(job.second, ";", [](std::string* address, const Task& task) {
                      absl::StrAppend(address, task.address);
                    }));
  });
}

void ClusterProcesses::Start(const std::string& job, int task,
                             const std::vector<std::string>& more_options) {
  std::vector<std::string> arguments = {program_, "serve", "--cluster=" + Spec(), "--job=" + job,
                                        absl::StrCat("--task=", task)};
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  arguments.insert(arguments.end(), more_options.begin(), more_options.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  pid_t pid = 0;
  if (posix_spawn(&pid, program_.c_str(), &actions, nullptr, argv.data(), environ) != 0)
    std::abort();
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  const std::string line = ReadLine(out[0]);
  close(out[0]);
  if (!absl::StrContains(line, "Serving on")) {
    std::fprintf(stderr, "%s task %d has not started: %s\n", job.c_str(), task, line.c_str());
    std::abort();
  }
  jobs_[job][task].pid = pid;
}

void ClusterProcesses::StartAll() {
  for (const auto& [job, tasks] : jobs_) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].pid == 0) Start(job, static_cast<int>(i));
    }
  }
}

void ClusterProcesses::Kill(const std::string& job, int task) {
  pid_t& pid = jobs_[job][task].pid;
  if (pid == 0) return;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  pid = 0;
}

void ClusterProcesses::Signal(const std::string& job, int task, int signal) {
  kill(jobs_[job][task].pid, signal);
}

const std::string& ClusterProcesses::address(const std::string& job, int task) const {
  return jobs_.at(job)[task].address;
}

std::string ClusterProcesses::target(const std::string& job, int task) const {
  return "grpc://" + address(job, task);
}

}  // namespace weir::testing
