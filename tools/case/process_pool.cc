#include "weir/tools/case/process_pool.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace weir::tools {

namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  int index = 0;
  pid_t pid = -1;
  int pipe = -1;
  Clock::time_point deadline;
  ProcessResult result;
};

void WriteAll(int fd, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(fd, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return;
    at += n < 0 ? 0 : n;
  }
}

// Starts a child. If that fails, the result reports it like any other death of a child.
Child Start(int index, std::chrono::milliseconds limit,
            const std::function<std::string(int)>& work) {
  Child child;
  child.index = index;
  child.deadline = Clock::now() + limit;
  int ends[2];
  if (pipe(ends) != 0) {
    child.result.death = absl::StrCat("not started: ", std::strerror(errno));
    return child;
  }
  std::fflush(nullptr);  // otherwise the child would print the buffered output again
  child.pid = fork();
  if (child.pid == 0) {
    close(ends[0]);
    WriteAll(ends[1], work(index));
    _exit(0);
  }
  close(ends[1]);
  child.pipe = ends[0];
  if (child.pid < 0) {
    child.result.death = absl::StrCat("not started: ", std::strerror(errno));
    close(child.pipe);
    child.pipe = -1;
  }
  return child;
}

// Closes the pipe and waits for the process.
void Finish(Child* child) {
  close(child->pipe);
  child->pipe = -1;
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!child->result.death.empty()) return;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    child->result.death = absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
  } else if (WEXITSTATUS(status) != 0) {
    child->result.death = absl::StrCat("ended with exit status ", WEXITSTATUS(status));
  }
}

// Reads the available output; at its end, finishes the child.
void ReadSome(Child* child) {
  char buffer[4096];
  const ssize_t n = read(child->pipe, buffer, sizeof(buffer));
  if (n > 0) {
    child->result.output.append(buffer, n);
  } else if (n == 0 || errno != EINTR) {
    Finish(child);
  }
}

void KillIfLate(Child* child, std::chrono::milliseconds limit) {
  if (child->pipe < 0 || Clock::now() < child->deadline) return;
  child->result.death = absl::StrCat("took longer than ", limit.count() / 1000.0, " s");
  kill(child->pid, SIGKILL);
  Finish(child);
}

// Waits until a child has output, ends, or exceeds its time limit.
void WaitForAny(std::vector<Child>* running, std::chrono::milliseconds limit) {
  std::vector<pollfd> fds;
  Clock::time_point first = Clock::time_point::max();
  for (const Child& child : *running) {
    if (child.pipe < 0) return;
    fds.push_back({child.pipe, POLLIN, 0});
    first = std::min(first, child.deadline);
  }
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now());
  poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(wait.count() + 1, 0, 1000)));
  for (size_t i = 0; i < fds.size(); ++i) {
    Child* child = &(*running)[i];
    if (fds[i].revents != 0) ReadSome(child);
    KillIfLate(child, limit);
  }
}

}  // namespace

void RunInProcesses(int count, int jobs, std::chrono::milliseconds limit,
                    const std::function<std::string(int)>& work,
                    const std::function<void(int, const ProcessResult&)>& done) {
  std::vector<std::optional<ProcessResult>> results(count);
  std::vector<Child> running;
  int started = 0, reported = 0;
  while (reported < count) {
    while (started < count && static_cast<int>(running.size()) < jobs) {
      running.push_back(Start(started++, limit, work));
    }
    WaitForAny(&running, limit);
    for (size_t i = running.size(); i-- > 0;) {
      if (running[i].pipe >= 0) continue;
      results[running[i].index] = std::move(running[i].result);
      running.erase(running.begin() + static_cast<int64_t>(i));
    }
    while (reported < count && results[reported]) {
      done(reported, *results[reported]);
      ++reported;
    }
  }
}

}  // namespace weir::tools
