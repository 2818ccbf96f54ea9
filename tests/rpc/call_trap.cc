#include "tests/rpc/call_trap.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

// A filter of seccomp (a program for the kernel's packet filter) sees the number of each system
// call and selects the ones below. The kernel stops the calling thread and notifies the listener,
// which reads the path from memory and answers that the call may continue.

namespace weir::testing {

namespace {

// A system call, and which of its arguments are what; -1: none is.
struct CallSpec {
  int number;
  const char* name;
  int directory, path, flags;
  bool looks;  // never opens or changes anything
};

constexpr CallSpec kCalls[] = {
#ifdef SYS_open  // x86; newer architectures have only the calls with a directory
    {SYS_open, "open", -1, 0, 1, false},
    {SYS_creat, "creat", -1, 0, -1, false},
    {SYS_rename, "rename", -1, 1, -1, false},
    {SYS_unlink, "unlink", -1, 0, -1, false},
    {SYS_mkdir, "mkdir", -1, 0, -1, false},
    {SYS_rmdir, "rmdir", -1, 0, -1, false},
    {SYS_link, "link", -1, 1, -1, false},
    {SYS_symlink, "symlink", -1, 1, -1, false},
    {SYS_mknod, "mknod", -1, 0, -1, false},
    {SYS_chmod, "chmod", -1, 0, -1, false},
    {SYS_chown, "chown", -1, 0, -1, false},
    {SYS_stat, "stat", -1, 0, -1, true},
    {SYS_lstat, "lstat", -1, 0, -1, true},
    {SYS_access, "access", -1, 0, -1, true},
    {SYS_readlink, "readlink", -1, 0, -1, true},
#endif
    {SYS_openat, "openat", 0, 1, 2, false},
    {SYS_openat2, "openat2", 0, 1, 2, false},
    {SYS_renameat, "renameat", 2, 3, -1, false},
    {SYS_renameat2, "renameat2", 2, 3, -1, false},
    {SYS_unlinkat, "unlinkat", 0, 1, -1, false},
    {SYS_mkdirat, "mkdirat", 0, 1, -1, false},
    {SYS_linkat, "linkat", 2, 3, -1, false},
    {SYS_symlinkat, "symlinkat", 1, 2, -1, false},
    {SYS_mknodat, "mknodat", 0, 1, -1, false},
    {SYS_fchmodat, "fchmodat", 0, 1, -1, false},
    {SYS_fchownat, "fchownat", 0, 1, -1, false},
    {SYS_truncate, "truncate", -1, 0, -1, false},
    {SYS_chdir, "chdir", -1, 0, -1, false},
    {SYS_newfstatat, "newfstatat", 0, 1, -1, true},
    {SYS_statx, "statx", 0, 1, -1, true},
    {SYS_faccessat, "faccessat", 0, 1, -1, true},
    {SYS_faccessat2, "faccessat2", 0, 1, -1, true},
    {SYS_readlinkat, "readlinkat", 0, 1, -1, true},
    {SYS_statfs, "statfs", -1, 0, -1, true},
    {SYS_execve, "execve", -1, 0, -1, false},
    {SYS_execveat, "execveat", 0, 1, -1, false},
    {SYS_connect, "connect", -1, -1, -1, false},
    {SYS_bind, "bind", -1, -1, -1, false},
};

// Copies a string of this process, which need not be valid memory. Stops at the end of a page that
// cannot be read.
std::string StringAt(uint64_t address) {
  std::string text;
  constexpr uint64_t kPage = 4096;
  while (text.size() < PATH_MAX) {
    char page[kPage];
    const size_t size = kPage - address % kPage;
    const iovec from = {reinterpret_cast<void*>(address), size}, to = {page, size};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(size)) break;
    const size_t length = strnlen(page, size);
    text.append(page, length);
    if (length < size) break;
    address += size;
  }
  return text;
}

std::string LinkTarget(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  return size < 0 ? path : std::string(target, static_cast<size_t>(size));
}

std::string DescriptorPath(int fd) { return LinkTarget(absl::StrCat("/proc/self/fd/", fd)); }

TrappedCall Describe(const CallSpec& spec, const seccomp_notif& request) {
  const auto& arguments = request.data.args;
  TrappedCall call{spec.name, "", spec.looks, static_cast<int>(request.pid)};
  if (spec.path < 0) return call;
  call.path = StringAt(arguments[spec.path]);
  const int directory = spec.directory < 0 ? AT_FDCWD : static_cast<int>(arguments[spec.directory]);
  if (absl::StartsWith(call.path, "/proc/self/fd/")) {
    call.path = LinkTarget(call.path);
  } else if (!absl::StartsWith(call.path, "/") && directory != AT_FDCWD) {
    const std::string above = DescriptorPath(directory);
    call.path = call.path.empty() || call.path == "." ? above : absl::StrCat(above, "/", call.path);
  }
  if (spec.flags < 0) return call;
  uint64_t flags = arguments[spec.flags];
  if (spec.number == SYS_openat2) flags = reinterpret_cast<const open_how*>(flags)->flags;
  call.only_looks = (flags & O_PATH) != 0;
  return call;
}

// Installs the filter for this thread. Returns the listener, or -1 with errno.
int InstallFilter() {
  std::vector<sock_filter> program;
  const auto add = [&](unsigned code, unsigned value, unsigned char jump = 0) {
    program.push_back({static_cast<uint16_t>(code), jump, 0, value});
  };
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  auto left = static_cast<unsigned char>(std::size(kCalls));
  for (const CallSpec& call : kCalls)
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call.number), left--);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  add(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
  const sock_fprog filter = {static_cast<uint16_t>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

}  // namespace

// The listening thread starts before the filter exists, so that its own calls are not stopped.
CallTrap* CallTrap::Start() {
  auto* const trap = new CallTrap;  // lives as long as the process
  std::promise<int> installed;
  std::thread([trap, listener = installed.get_future()]() mutable {
    trap->Listen(listener.get());
  }).detach();
  const int listener = InstallFilter();
  const int error = errno;
  installed.set_value(listener);
  errno = error;
  return listener < 0 ? nullptr : trap;
}

void CallTrap::Listen(int listener) {
  while (listener >= 0) {
    seccomp_notif request{};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;  // ENOENT: the thread has ended
      return;
    }
    for (const CallSpec& spec : kCalls) {
      if (spec.number != request.data.nr) continue;
      TrappedCall call = Describe(spec, request);
      const MutexLock lock(mutex_);
      call.from_door =
          std::count(threads_in_door_.begin(), threads_in_door_.end(), call.thread) > 0;
      calls_.push_back(std::move(call));
    }
    seccomp_notif_resp response{};
    response.id = request.id;
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

std::vector<TrappedCall> CallTrap::Take() {
  const MutexLock lock(mutex_);
  return std::exchange(calls_, {});
}

CallTrap::Door::Door(CallTrap& trap) : trap_(trap) {
  const MutexLock lock(trap_.mutex_);
  trap_.threads_in_door_.push_back(gettid());
}

CallTrap::Door::~Door() {
  const MutexLock lock(trap_.mutex_);
  auto& threads = trap_.threads_in_door_;
  threads.erase(std::find(threads.begin(), threads.end(), gettid()));
}

}  // namespace weir::testing
