#include "weir/rpc/worker_process.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

#include "absl/time/time.h"
#include "weir/rpc/worker.h"

extern char** environ;

namespace weir::rpc {

namespace {

// How long the system may take to report the end of a process whose socket has closed.
constexpr absl::Duration kTimeToEnd = absl::Seconds(5);

absl::StatusOr<pid_t> Spawn(const std::string& program, const std::vector<std::string>& arguments,
                            int socket) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, socket, kWorkerSocket);
  posix_spawn_file_actions_addclosefrom_np(&files, kWorkerSocket + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error == 0) return pid;
  return absl::UnavailableError(
      absl::StrCat("Cannot start a process for the session: ", std::strerror(error)));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::string Describe(int wait_status) {
  if (WIFEXITED(wait_status))
    return absl::StrCat("it exited with status ", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  std::string text = absl::StrCat("signal ", signal, " (", strsignal(signal), ") ended it");
  if (signal == SIGXCPU) absl::StrAppend(&text, ": it used its CPU time");
  if (signal == SIGKILL)
    absl::StrAppend(&text, ", as the system does when memory is short, or an administrator");
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(
    const std::string& program, const std::vector<std::string>& arguments) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) != 0)
    return absl::UnavailableError(
        absl::StrCat("Cannot create a socket for a session: ", std::strerror(errno)));
  std::unique_ptr<WorkerProcess> process(new WorkerProcess);
  try {
    process->thread_ = std::thread([self = process.get(), program, arguments, socket = sockets[1]] {
      self->Watch(program, arguments, socket);
    });
  } catch (const std::system_error&) {
    close(sockets[0]);
    close(sockets[1]);
    return absl::UnavailableError("Cannot start a thread for a session");
  }
  process->started_.WaitForNotification();
  if (!process->start_.ok()) {
    close(sockets[0]);
    return process->start_;
  }
  grpc::ChannelArguments channel;
  channel.SetMaxReceiveMessageSize(-1);
  channel.SetMaxSendMessageSize(-1);
  process->channel_ = grpc::CreateCustomInsecureChannelFromFd("session", sockets[0], channel);
  return process;
}

void WorkerProcess::Watch(const std::string& program, const std::vector<std::string>& arguments,
                          int socket) {
  const absl::StatusOr<pid_t> pid = Spawn(program, arguments, socket);
  close(socket);
  {
    const MutexLock lock(mutex_);
    start_ = pid.status();
    pid_ = pid.value_or(-1);
    is_running_ = pid.ok();
  }
  started_.Notify();
  if (!pid.ok()) return ended_.Notify();
  // Until waitpid the system keeps the pid, even of a process that has ended.
  siginfo_t info;
  while (waitid(P_PID, *pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  {
    const MutexLock lock(mutex_);
    is_running_ = false;
    rusage usage = {};
    while (wait4(*pid, &wait_status_, 0, &usage) < 0 && errno == EINTR) {
    }
    final_cpu_seconds_ = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  }
  ended_.Notify();
}

double WorkerProcess::CpuSeconds() {
  const MutexLock lock(mutex_);
  clockid_t clock;
  timespec used;
  if (!is_running_ || clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0)
    return final_cpu_seconds_;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void WorkerProcess::Kill() {
  const MutexLock lock(mutex_);
  if (is_running_) kill(pid_, SIGKILL);
}

absl::Status WorkerProcess::HowItEnded() {
  const bool has_ended = ended_.WaitForNotificationWithTimeout(kTimeToEnd);
  return absl::UnavailableError(
      absl::StrCat("The process of the session is gone: ",
                   has_ended ? Describe(wait_status_) : "it has closed its socket"));
}

WorkerProcess::~WorkerProcess() {
  Kill();
  if (thread_.joinable()) thread_.join();
}

}  // namespace weir::rpc
