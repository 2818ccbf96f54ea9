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
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// A filter of seccomp (a program for the kernel's packet filter) sees the number of each system
// call and selects the ones below. The kernel stops the calling thread and notifies the listener,
// which reads the path from memory and answers that the call may continue.
//
// The stopped thread may hold any lock until then, also the allocator's: the C library looks into
// /proc/sys/vm when it first trims a heap. So the listening thread neither allocates nor frees.

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

// A path, with the directory that it starts from, in memory of its own.
class PathText {
 public:
  const char* c_str() const { return text_; }
  absl::string_view text() const { return {text_, size_}; }

  // Cuts off what is too long for the system.
  void Append(absl::string_view more) {
    more = more.substr(0, sizeof(text_) - 1 - size_);
    std::copy(more.begin(), more.end(), text_ + size_);
    size_ += more.size();
    text_[size_] = 0;
  }

 private:
  char text_[2 * PATH_MAX] = {};
  size_t size_ = 0;
};

// Copies a string of this process, which need not be valid memory. Stops at the end of a page that
// cannot be read.
PathText StringAt(uint64_t address) {
  PathText text;
  constexpr uint64_t kPage = 4096;
  while (text.text().size() < PATH_MAX) {
    char page[kPage];
    const size_t size = kPage - address % kPage;
    const iovec from = {reinterpret_cast<void*>(address), size}, to = {page, size};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(size)) break;
    const size_t length = strnlen(page, size);
    text.Append({page, length});
    if (length < size) break;
    address += size;
  }
  return text;
}

PathText LinkTarget(const PathText& path) {
  char target[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), target, sizeof(target));
  if (size < 0) return path;
  PathText text;
  text.Append({target, static_cast<size_t>(size)});
  return text;
}

PathText DescriptorPath(int fd) {
  PathText link;
  link.Append("/proc/self/fd/");
  link.Append(absl::AlphaNum(fd).Piece());
  return LinkTarget(link);
}

// Returns the path that a call leads to.
PathText PathOf(const CallSpec& spec, const seccomp_notif& request) {
  const auto& arguments = request.data.args;
  if (spec.path < 0) return {};
  const PathText path = StringAt(arguments[spec.path]);
  const int directory = spec.directory < 0 ? AT_FDCWD : static_cast<int>(arguments[spec.directory]);
  if (absl::StartsWith(path.text(), "/proc/self/fd/")) return LinkTarget(path);
  if (absl::StartsWith(path.text(), "/") || directory == AT_FDCWD) return path;
  PathText whole = DescriptorPath(directory);
  if (path.text().empty() || path.text() == ".") return whole;
  whole.Append("/");
  whole.Append(path.text());
  return whole;
}

bool OnlyLooks(const CallSpec& spec, const seccomp_notif& request) {
  if (spec.flags < 0) return spec.looks;
  uint64_t flags = request.data.args[spec.flags];
  if (spec.number == SYS_openat2) flags = reinterpret_cast<const open_how*>(flags)->flags;
  return (flags & O_PATH) != 0;
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

// A call as the listening thread notes it.
struct CallTrap::Record {
  const char* name;
  PathText path;
  bool only_looks;
  int thread;
  bool from_door;
};

CallTrap::CallTrap() {
  constexpr size_t kMaxCalls = 2048;  // between two calls of Take
  constexpr size_t kMaxThreads = 256;
  taken_.reserve(kMaxCalls);
  calls_.reserve(kMaxCalls);
  threads_in_door_.reserve(kMaxThreads);
}

// The listening thread starts before the filter exists, so that its own calls are not stopped.
CallTrap* CallTrap::Start() {
  auto* const trap = new CallTrap;  // lives as long as the process
  std::thread([trap] { trap->Listen(); }).detach();
  trap->listener_ = InstallFilter();
  const int error = errno;
  trap->installed_.count_down();
  errno = error;
  return trap->listener_ < 0 ? nullptr : trap;
}

void CallTrap::Listen() {
  installed_.wait();
  while (listener_ >= 0) {
    seccomp_notif request{};
    if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;  // ENOENT: the thread has ended
      return;
    }
    for (const CallSpec& spec : kCalls) {
      if (spec.number != request.data.nr) continue;
      const int thread = static_cast<int>(request.pid);
      Record call{spec.name, PathOf(spec, request), OnlyLooks(spec, request), thread, false};
      const MutexLock lock(mutex_);
      call.from_door = std::count(threads_in_door_.begin(), threads_in_door_.end(), thread) > 0;
      calls_.push_back(call);
    }
    seccomp_notif_resp response{};
    response.id = request.id;
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

std::vector<TrappedCall> CallTrap::Take() {
  {
    const MutexLock lock(mutex_);
    calls_.swap(taken_);
  }
  std::vector<TrappedCall> calls;
  for (const Record& call : taken_) {
    calls.push_back(
        {call.name, std::string(call.path.text()), call.only_looks, call.thread, call.from_door});
  }
  taken_.clear();
  return calls;
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
