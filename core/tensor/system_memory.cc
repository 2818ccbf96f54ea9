#include "weir/core/tensor/system_memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace weir {

namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxReserve = int64_t{256} << 20;

// The contents of a file of the system, up to 8 KiB; empty if it cannot be read.
class SmallFile {
 public:
  explicit SmallFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t n = 0;
    while ((n = read(file, text_.data() + size_, text_.size() - 1 - size_)) > 0)
      size_ += static_cast<size_t>(n);
    close(file);
    text_[size_] = 0;
  }
  absl::string_view text() const { return {text_.data(), size_}; }

  // Returns the number at the beginning; -1 if there is none ("max").
  int64_t Number() const { return NumberAt(0); }
  // Returns the number behind the line's first word, such as "MemAvailable:"; -1 if there is none.
  int64_t Number(absl::string_view word) const {
    for (size_t at = 0; at < size_; ++at) {
      const absl::string_view rest = text().substr(at);
      if (absl::StartsWith(rest, word) && rest.size() > word.size() && rest[word.size()] == ' ')
        return NumberAt(at + word.size());
      at = text().find('\n', at);
      if (at == absl::string_view::npos) break;
    }
    return -1;
  }

 private:
  int64_t NumberAt(size_t at) const {
    char* end = nullptr;
    const int64_t number = std::strtoll(text_.data() + at, &end, 10);
    return end == text_.data() + at ? -1 : number;
  }

  std::array<char, 8192> text_{};
  size_t size_ = 0;
};

// A cgroup that limits the process's memory, and what its use is computed from.
struct Container {
  int64_t limit;
  std::string used, statistics;  // files
  // The words in `statistics` for the pages of files, which the system takes back before it refuses
  // memory. Most of them are active after a build.
  std::array<absl::string_view, 2> cached;
};

struct CgroupVersion {
  absl::string_view root, limit, used;
  std::array<absl::string_view, 2> cached;
};
constexpr CgroupVersion kVersion1 = {"/sys/fs/cgroup/memory",
                                     "memory.limit_in_bytes",
                                     "memory.usage_in_bytes",
                                     {"total_inactive_file", "total_active_file"}};
constexpr CgroupVersion kVersion2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};

// Adds the cgroup with this path and those around it, if they have limits. Inside a container the
// path may be the machine's, of which only the root exists.
void AddContainers(const CgroupVersion& version, std::string path,
                   std::vector<Container>* containers) {
  constexpr int64_t kLikeUnlimited = int64_t{1} << 60;  // a cgroup of version 1 without a limit
  while (true) {
    const std::string folder = absl::StrCat(version.root, path == "/" ? "" : path, "/");
    const int64_t limit = SmallFile(absl::StrCat(folder, version.limit).c_str()).Number();
    if (limit >= 0 && limit < kLikeUnlimited) {
      containers->push_back({limit, absl::StrCat(folder, version.used),
                             absl::StrCat(folder, "memory.stat"), version.cached});
    }
    const size_t slash = path.rfind('/');
    if (path.size() <= 1 || slash == std::string::npos) return;
    path.resize(std::max<size_t>(slash, 1));
  }
}

// Lines of /proc/self/cgroup: "4:memory:/a/b" (version 1), "0::/a/b" (version 2).
std::vector<Container> FindContainers() {
  std::vector<Container> containers;
  const SmallFile cgroups("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(cgroups.text(), '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) AddContainers(kVersion2, std::string(parts[2]), &containers);
    if (std::count(controllers.begin(), controllers.end(), "memory") > 0)
      AddContainers(kVersion1, std::string(parts[2]), &containers);
  }
  return containers;
}

const std::vector<Container>& Containers() {
  static const auto& containers = *new std::vector<Container>(FindContainers());
  return containers;
}

// Returns the bytes that the process's containers can still use.
int64_t ContainerBytesFree() {
  int64_t available = kUnlimited;
  for (const Container& container : Containers()) {
    int64_t used = SmallFile(container.used.c_str()).Number();
    const SmallFile statistics(container.statistics.c_str());
    for (const absl::string_view word : container.cached)
      used -= std::max<int64_t>(0, statistics.Number(word));
    available = std::min(available, container.limit - used);
  }
  return available;
}

int64_t LimitOf(__rlimit_resource resource) {
  rlimit limit;
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnlimited));
}

// The numbers in /proc/self/statm, in bytes; 0 where they are unknown.
struct ProcessSize {
  int64_t space = 0, resident = 0, data = 0;
};
ProcessSize SizeOfProcess() {
  static const int64_t page = sysconf(_SC_PAGESIZE);
  const SmallFile file("/proc/self/statm");
  std::array<int64_t, 6> numbers{};
  const char* next = file.text().data();
  for (int64_t& number : numbers) {
    char* end = nullptr;
    number = std::strtoll(next, &end, 10) * page;
    next = end;
  }
  return {numbers[0], numbers[1], numbers[5]};
}

// Returns the bytes that the limits of the process itself leave. What the C library has and nobody
// uses counts as well; it is asked only when less than `little` is left, since it goes through its
// lists.
int64_t ProcessBytesFree(int64_t little) {
  const int64_t space = LimitOf(RLIMIT_AS), data = LimitOf(RLIMIT_DATA);
  if (space == kUnlimited && data == kUnlimited) return kUnlimited;
  const ProcessSize size = SizeOfProcess();
  int64_t left = std::min(space - size.space, data - size.data);
  if (left < little) left += static_cast<int64_t>(mallinfo2().fordblks);
  return left;
}

}  // namespace

int64_t ProcessMemoryLimit() {
  int64_t least = std::min(LimitOf(RLIMIT_AS), LimitOf(RLIMIT_DATA));
  for (const Container& container : Containers()) least = std::min(least, container.limit);
  return least;
}

int64_t SystemBytesFree(MemoryUse use) {
  // MemTotal is in KiB: 1/32 of it.
  static const int64_t total = SmallFile("/proc/meminfo").Number("MemTotal:") << 5;
  const int64_t reserve =
      std::min({total > 0 ? total : kMaxReserve, kMaxReserve, ProcessMemoryLimit() / 8});
  const SmallFile memory("/proc/meminfo");
  int64_t available = memory.Number("MemAvailable:");
  available = available < 0 ? kUnlimited  // not reported
                            : (available + std::max<int64_t>(memory.Number("SwapFree:"), 0)) << 10;
  available = std::min({available, ContainerBytesFree(), ProcessBytesFree(2 * reserve)});
  return std::max<int64_t>(available - (use == MemoryUse::kTensors ? reserve : reserve / 2), 0);
}

int64_t ResidentBytes() { return SizeOfProcess().resident; }

}  // namespace weir
