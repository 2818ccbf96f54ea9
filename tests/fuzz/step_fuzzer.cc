#include "weir/tests/fuzz/step_fuzzer.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "weir/core/io/file.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/fuzz/mutate.h"
#include "weir/tests/fuzz/targets.h"

namespace weir::fuzz {

namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kBatch = 300;  // graphs per process
constexpr int kLeaked = 77;       // exit status

int64_t Growth(const std::string& graph, int runs) {
  const int64_t before = MemoryInUse();
  for (int i = 0; i < runs; ++i) Steps(graph);
  return MemoryInUse() - before;
}

// Some memory is retained for some hundreds of runs (tables created on demand, freed blocks in
// thread caches); memory that grows with every run after that is a leak. Slow graphs are excluded:
// they run the same code.
bool Leaks(const std::string& graph) {
  constexpr int kRuns = 100, kMinBytes = 16;  // runs, and leaked bytes per run
  const auto start = Clock::now();
  if (Growth(graph, 1) <= 0 || Clock::now() - start > std::chrono::milliseconds(5)) return false;
  for (int again = 0; again < 5; ++again) {
    if (Growth(graph, 1) <= 0) return false;
  }
  for (int again = 0; again < 10; ++again) {
    if (Growth(graph, kRuns) < kRuns * kMinBytes) return false;
  }
  return true;
}

void Limit(const FuzzOptions& o) {
  const rlim_t bytes = static_cast<rlim_t>(o.memory_mb) << 20;
  [[maybe_unused]] const struct rlimit memory = {bytes, bytes};
  const struct rlimit no_core = {0, 0};
#ifndef WEIR_SANITIZED  // whose shadow memory takes terabytes of address space
  setrlimit(RLIMIT_AS, &memory);
#endif
  setrlimit(RLIMIT_CORE, &no_core);
}

// Restarts both timers: a graph that takes too long ends the process by a signal.
void RestartTimers(const FuzzOptions& o) {
  struct itimerval cpu = {};
  cpu.it_value.tv_sec = o.cpu_seconds;
  setitimer(ITIMER_PROF, &cpu, nullptr);
  alarm(static_cast<unsigned>(o.wall_seconds));
}

// Memory shared between a child and its parent: the child's current seed.
struct SharedPage {
  std::atomic<uint64_t> seed{0};
};

class Worker {
 public:
  Worker(const std::vector<std::string>& graphs, const FuzzOptions& options)
      : graphs_(graphs), options_(options) {
    void* memory = mmap(nullptr, sizeof(SharedPage), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    Require(memory != MAP_FAILED, "mmap succeeds");
    shared_ = new (memory) SharedPage;
    output_ = std::tmpfile();
    Require(output_ != nullptr, "tmpfile succeeds");
  }
  ~Worker() {
    munmap(shared_, sizeof(SharedPage));
    std::fclose(output_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  pid_t pid() const { return pid_; }
  uint64_t first() const { return first_; }
  uint64_t seed() const { return shared_->seed; }

  void Start(uint64_t first) {
    first_ = first;
    shared_->seed = first;
    Require(ftruncate(fileno(output_), 0) == 0, "the temporary file is truncated");
    std::fflush(nullptr);
    pid_ = fork();
    Require(pid_ >= 0, "fork succeeds");
    if (pid_ != 0) return;
    dup2(open("/dev/null", O_RDWR), 0);
    dup2(open("/dev/null", O_RDWR), 1);
    dup2(fileno(output_), 2);
    fcntl(2, F_SETFL, O_APPEND);
    Limit(options_);
    for (uint64_t seed = first; seed < first + kBatch; ++seed) {
      shared_->seed = seed;
      RestartTimers(options_);
      if (Leaks(MutatedGraph(graphs_, seed))) _exit(kLeaked);
    }
    _exit(0);
  }

  // Returns the last lines that the process has printed.
  std::string Output() const {
    std::string text(1 << 14, '\0');
    const off_t size = lseek(fileno(output_), 0, SEEK_END);
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
    const ssize_t n = pread(fileno(output_), text.data(), text.size(), from);
    text.resize(n < 0 ? 0 : static_cast<size_t>(n));
    return text.size() > 1500 ? text.substr(text.size() - 1500) : text;
  }

 private:
  const std::vector<std::string>& graphs_;
  const FuzzOptions& options_;
  SharedPage* shared_ = nullptr;
  std::FILE* output_ = nullptr;
  pid_t pid_ = -1;
  uint64_t first_ = 0;
};

std::string DescribeExit(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kLeaked) return "leaks";
  if (WIFEXITED(status)) return absl::StrCat("exit status ", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGPROF) return "exceeds the CPU time limit";
  if (signal == SIGALRM) return "hangs";
  return absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
}

std::string SaveGraph(const std::string& folder, uint64_t seed, const std::string& graph) {
  if (folder.empty()) return "";
  const std::string path = absl::StrCat(folder, "/", seed, ".pb");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const absl::Status status = WriteFileAtomically(path, graph);
  return status.ok() ? absl::StrCat(" (saved as ", path, ")")
                     : absl::StrCat(" (not saved: ", status.message(), ")");
}

class FuzzRun {
 public:
  FuzzRun(const std::vector<std::string>& graphs, const FuzzOptions& o)
      : graphs_(graphs), options_(o), next_(o.first_seed) {}

  FuzzReport Run() {
    const auto deadline = Clock::now() + std::chrono::seconds(options_.seconds);
    for (int i = 0; i < options_.jobs; ++i) {
      workers_.push_back(std::make_unique<Worker>(graphs_, options_));
      StartNext(workers_.back().get());
    }
    while (Clock::now() < deadline) {
      WaitForOne();
      usleep(20000);
    }
    for (const auto& worker : workers_) {
      kill(worker->pid(), SIGKILL);
      waitpid(worker->pid(), nullptr, 0);
      report_.runs += worker->seed() - worker->first();
    }
    return std::move(report_);
  }

 private:
  void StartNext(Worker* worker) {
    worker->Start(next_);
    next_ += kBatch;
  }

  void WaitForOne() {
    for (const auto& worker : workers_) {
      int status = 0;
      if (waitpid(worker->pid(), &status, WNOHANG) != worker->pid()) continue;
      const std::string failure = DescribeExit(status);
      report_.runs += worker->seed() - worker->first() + 1;
      if (!failure.empty()) Report(*worker, failure);
      StartNext(worker.get());
    }
  }

  void Report(const Worker& worker, const std::string& failure) {
    const std::string graph = MutatedGraph(graphs_, worker.seed());
    report_.finds.push_back(absl::StrCat("seed ", worker.seed(), ": ", failure,
                                         SaveGraph(options_.keep, worker.seed(), graph), "\n",
                                         worker.Output()));
    std::fprintf(stderr, "%s\n", report_.finds.back().c_str());
  }

  const std::vector<std::string>& graphs_;
  const FuzzOptions& options_;
  uint64_t next_;
  std::vector<std::unique_ptr<Worker>> workers_;
  FuzzReport report_;
};

}  // namespace

int64_t MemoryInUse() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

std::string MutatedGraph(const std::vector<std::string>& graphs, uint64_t seed) {
  std::mt19937_64 random(seed);
  proto::GraphDef graph;
  Require(graph.ParseFromString(graphs[random() % graphs.size()]), "a seed graph parses");
  Mutate(random(), &graph);
  return graph.SerializeAsString();
}

FuzzReport Fuzz(const std::vector<std::string>& graphs, const FuzzOptions& options) {
  return FuzzRun(graphs, options).Run();
}

}  // namespace weir::fuzz
