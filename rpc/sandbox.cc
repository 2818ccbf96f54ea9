#include "weir/rpc/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <type_traits>

namespace weir::rpc {

namespace {

// The descriptors of a worker: standard streams, its socket, gRPC's epolls and events.
constexpr rlim_t kMaxDescriptors = 64;

// System calls that act on this process's memory, threads, time and open descriptors only.
constexpr int kAllowed[] = {
    // Memory.
    SCMP_SYS(brk),
    SCMP_SYS(madvise),
    SCMP_SYS(mmap),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(membarrier),
    // Threads.
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(futex),
    SCMP_SYS(getcpu),
    SCMP_SYS(gettid),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_getscheduler),
    SCMP_SYS(sched_yield),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(sigaltstack),
    // Time, random numbers, facts about the process.
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(getegid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(getrandom),
    SCMP_SYS(getrusage),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getuid),
    SCMP_SYS(nanosleep),
    SCMP_SYS(sysinfo),
    SCMP_SYS(uname),
    // Open descriptors, and new ones that lead nowhere else.
    SCMP_SYS(close),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(eventfd2),
    SCMP_SYS(fstat),
    SCMP_SYS(getpeername),
    SCMP_SYS(getsockname),
    SCMP_SYS(getsockopt),
    SCMP_SYS(lseek),
    SCMP_SYS(pipe2),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),
    SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(write),
    SCMP_SYS(writev),
};

struct FreeFilter {
  void operator()(scmp_filter_ctx filter) const { seccomp_release(filter); }
};

// Functions of libseccomp return a negative errno.
absl::Status Filter(int result) {
  if (result >= 0) return absl::OkStatus();
  return absl::ErrnoToStatus(-result, "cannot install the filter of system calls");
}

absl::Status InstallFilter() {
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, FreeFilter> owner(
      seccomp_init(SCMP_ACT_ERRNO(EPERM)));
  scmp_filter_ctx const filter = owner.get();
  if (filter == nullptr) return Internal("cannot create the filter of system calls");
  WEIR_RETURN_IF_ERROR(Filter(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1)));  // all threads
  const auto allow = [&](int call, const auto&... conditions) {
    return Filter(
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...));
  };
  for (const int call : kAllowed) WEIR_RETURN_IF_ERROR(allow(call));
  // Threads, but not processes. A filter cannot read the arguments of clone3: without it, the C
  // library uses clone.
  WEIR_RETURN_IF_ERROR(
      allow(SCMP_SYS(clone), SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)));
  WEIR_RETURN_IF_ERROR(
      Filter(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0)));
  // Signals to this process: abort() needs one.
  WEIR_RETURN_IF_ERROR(
      allow(SCMP_SYS(tgkill), SCMP_A0(SCMP_CMP_EQ, static_cast<scmp_datum_t>(getpid()))));
  // Reading limits, but not changing them; naming threads.
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0)));
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(prctl), SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)));
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFL)));
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFL)));
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_GETFD)));
  WEIR_RETURN_IF_ERROR(allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, F_SETFD)));
  return Filter(seccomp_load(filter));  // also sets no_new_privs
}

absl::Status Limit(__rlimit_resource resource, rlim_t value, const char* name, rlim_t beyond = 0) {
  const rlimit limit = {value, value + beyond};
  if (setrlimit(resource, &limit) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot limit ", name));
}

}  // namespace

absl::Status EnterSandbox(const SandboxLimits& limits) {
  WEIR_RETURN_IF_ERROR(Limit(RLIMIT_CORE, 0, "core dumps"));
  WEIR_RETURN_IF_ERROR(Limit(RLIMIT_FSIZE, 0, "the size of files"));
  WEIR_RETURN_IF_ERROR(Limit(RLIMIT_NOFILE, kMaxDescriptors, "descriptors"));
  if (limits.data_bytes > 0) WEIR_RETURN_IF_ERROR(Limit(RLIMIT_DATA, limits.data_bytes, "memory"));
  // At the limit the system sends SIGXCPU, which tells what happened; beyond it, SIGKILL.
  if (limits.cpu_seconds > 0)
    WEIR_RETURN_IF_ERROR(Limit(RLIMIT_CPU, limits.cpu_seconds, "CPU time", 1));
  return InstallFilter();
}

}  // namespace weir::rpc
