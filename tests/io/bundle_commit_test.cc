#include "weir/core/io/bundle_commit.h"

#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/crashing_file_system.h"
#include "weir/tests/io/test_files.h"

// The state of a checkpoint after a crash during the next save, for a crash at every file
// operation, by a power failure or a kill.
namespace weir {
namespace {

using testing::CrashingFileSystem;
using testing::MakeTempDirectory;
using testing::MemoryFileSystem;

// The elements of checkpoint n are n.
Tensor Numbered(int n) {
  Tensor tensor(DT_INT32, Shape({70000}));
  for (int32_t& x : tensor.flat<int32_t>()) x = n;
  return tensor;
}

absl::Status SaveOne(const std::string& prefix, int n) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(prefix));
  WEIR_RETURN_IF_ERROR(writer->Add("a", Numbered(n)));
  WEIR_RETURN_IF_ERROR(writer->Add("b", Numbered(n)));
  return writer->Finish();
}

absl::Status SaveMerged(const std::string& prefix, int n) {
  std::vector<std::string> parts;
  for (const char* name : {"a", "b"}) {
    parts.push_back(absl::StrCat(prefix, "_temp/part-", name));
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer,
                          BundleWriter::Create(parts.back()));
    WEIR_RETURN_IF_ERROR(writer->Add(name, Numbered(n)));
    WEIR_RETURN_IF_ERROR(writer->Finish());
  }
  return MergeBundles(parts, prefix);
}

absl::Status SaveV1(const std::string& path, int n) {
  const Tensor tensor = Numbered(n);
  const TensorSlice all = TensorSlice::Full(1);
  return WriteCheckpointV1(
      path, {{"a", tensor.shape(), all, tensor}, {"b", tensor.shape(), all, tensor}});
}

// Returns the number of the checkpoint at `prefix` if it is complete, otherwise -1.
int NumberAt(const std::string& prefix) {
  const auto reader = CheckpointReader::Open(prefix);
  if (!reader.ok()) return -1;
  const auto a = (*reader)->Read("a"), b = (*reader)->Read("b");
  if (!a.ok() || !b.ok()) return -1;
  const int n = a->data<int32_t>()[0];
  return IdenticalTensors(*a, Numbered(n)) && IdenticalTensors(*b, *a) ? n : -1;
}

using Save = absl::Status (*)(const std::string&, int);
constexpr MemoryFileSystem::Survivors kSurvivors[] = {
    MemoryFileSystem::Survivors::kSyncedOnly, MemoryFileSystem::Survivors::kNamesButNotBytes,
    MemoryFileSystem::Survivors::kEverything, MemoryFileSystem::Survivors::kOneNameOfTwo};

class Commit : public ::testing::TestWithParam<Save> {};

TEST_P(Commit, APowerFailureAtAnyOperationLeavesTheOldOrTheNewCheckpoint) {
  const Save save = GetParam();
  for (int stop = 0;; ++stop) {
    MemoryFileSystem files;
    int total;
    bool done;
    {
      ScopedFileSystem scope(&files);
      ASSERT_TRUE(save("/m", 1).ok());
      const int before = files.operations();
      files.set_stop_after(before + stop);
      done = save("/m", 2).ok();
      total = files.operations() - before;
    }
    for (const auto survivors : kSurvivors) {
      const auto after = files.AfterPowerFailure(survivors);
      ScopedFileSystem scope(after.get());
      const int n = NumberAt("/m");
      EXPECT_TRUE(n == 2 || (n == 1 && !done)) << "stopped after " << stop << " operations: " << n;
      // The next save works, and survives a second failure too.
      const auto again = after->AfterPowerFailure(MemoryFileSystem::Survivors::kEverything);
      again->set_stop_after(stop / 2);
      {
        ScopedFileSystem inner(again.get());
        save("/m", 3).IgnoreError();
      }
      const auto twice = again->AfterPowerFailure(survivors);
      {
        ScopedFileSystem inner(twice.get());
        const int m = NumberAt("/m");
        EXPECT_TRUE(m == n || m == 3)
            << "stopped after " << stop << ", then " << stop / 2 << ": " << m;
      }
      ASSERT_TRUE(save("/m", 4).ok());
      EXPECT_EQ(NumberAt("/m"), 4);
      if (save != SaveV1) {
        EXPECT_TRUE(VerifyBundle("/m")->problems.empty());
      }
    }
    if (total < stop) break;
  }
}

TEST_P(Commit, EqualCheckpointsStayReadableWhenOverwritten) {
  for (int stop = 0; stop < 60; ++stop) {
    MemoryFileSystem files;
    {
      ScopedFileSystem scope(&files);
      ASSERT_TRUE(GetParam()("/m", 1).ok());
      files.set_stop_after(files.operations() + stop);
      GetParam()("/m", 1).IgnoreError();
    }
    for (const auto survivors : kSurvivors) {
      const auto after = files.AfterPowerFailure(survivors);
      ScopedFileSystem scope(after.get());
      EXPECT_EQ(NumberAt("/m"), 1) << stop;
    }
  }
}

// ---- concurrent readers and writers

TEST_P(Commit, AReaderKeepsTheCheckpointItHasOpened) {
  const std::string prefix = MakeTempDirectory("reader") + "/m";
  ASSERT_TRUE(GetParam()(prefix, 1).ok());
  const auto reader = CheckpointReader::Open(prefix);
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_TRUE(GetParam()(prefix, 2).ok());
  for (const char* name : {"a", "b"}) {
    const auto read = (*reader)->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(IdenticalTensors(*read, Numbered(1)));
  }
}

// Calls a callback once, before a file is opened or checked for existence.
class InterruptedFiles : public MemoryFileSystem {
 public:
  void InterruptAt(int count, std::function<void()> what) {
    left_ = count;
    what_ = std::move(what);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    Count();
    return MemoryFileSystem::Open(path);
  }
  bool Exists(const std::string& path) override {
    Count();
    return MemoryFileSystem::Exists(path);
  }
  bool interrupted() const { return what_ == nullptr; }

 private:
  void Count() {
    if (what_ == nullptr || left_-- > 0) return;
    std::exchange(what_, nullptr)();
  }
  int left_ = 0;
  std::function<void()> what_;
};

TEST_P(Commit, AReaderSeesTheOldOrTheNewCheckpoint) {
  int read_again = 0;
  for (int stop = 0; stop < 40; ++stop) {
    for (int at = 0;; ++at) {
      InterruptedFiles files;
      ScopedFileSystem scope(&files);
      ASSERT_TRUE(GetParam()("/m", 1).ok());
      bool saved = false;
      files.InterruptAt(at, [&] {
        files.set_stop_after(files.operations() + stop);
        saved = GetParam()("/m", 2).ok();
      });
      const auto reader = CheckpointReader::Open("/m");
      ASSERT_TRUE(reader.ok()) << reader.status();
      const auto a = (*reader)->Read("a"), b = (*reader)->Read("b");
      if (!files.interrupted()) break;
      if (absl::IsAborted(a.status()) || absl::IsAborted(b.status())) {
        ++read_again;
        const int n = NumberAt("/m");
        EXPECT_TRUE(n == 1 || n == 2) << n;
        continue;
      }
      ASSERT_TRUE(a.ok()) << a.status() << " after " << stop << " operations at " << at;
      ASSERT_TRUE(b.ok()) << b.status() << " after " << stop << " operations at " << at;
      EXPECT_TRUE(IdenticalTensors(*a, *b));
      EXPECT_TRUE(IdenticalTensors(*a, Numbered(1)) || IdenticalTensors(*a, Numbered(2)));
    }
  }
  EXPECT_EQ(read_again, 0);  // it retries
}

TEST_P(Commit, ConcurrentReadersSeeCompleteCheckpoints) {
  const std::string prefix = MakeTempDirectory("beside") + "/m";
  ASSERT_TRUE(GetParam()(prefix, 0).ok());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int n = 1; n <= 60; ++n) EXPECT_TRUE(GetParam()(prefix, n).ok());
    stop = true;
  });
  int last = 0;
  while (!stop) {
    const auto reader = CheckpointReader::Open(prefix);
    if (absl::IsAborted(reader.status())) continue;
    ASSERT_TRUE(reader.ok()) << reader.status();
    const auto a = (*reader)->Read("a"), b = (*reader)->Read("b");
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_TRUE(IdenticalTensors(*a, *b));
    EXPECT_GE(a->data<int32_t>()[0], last);
    last = a->data<int32_t>()[0];
  }
  writer.join();
}

TEST_P(Commit, AKillAtAnyWriteLeavesTheOldOrTheNewCheckpoint) {
  const std::string prefix = MakeTempDirectory("commit") + "/m";
  ASSERT_TRUE(GetParam()(prefix, 1).ok());
  int expected = 1;
  bool finished = false;
  for (int operations = 0; !finished; ++operations) {
    const int next = expected + 1;
    const pid_t child = fork();
    if (child == 0) {
      CrashingFileSystem files(&Files(), operations);
      ScopedFileSystem scope(&files);
      _exit(GetParam()(prefix, next).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    ASSERT_TRUE(finished ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    const int found = NumberAt(prefix);
    ASSERT_TRUE(found == next || (found == expected && !finished))
        << "killed after " << operations << ": " << found;
    expected = found;
  }
  EXPECT_GT(expected, 1);
}

INSTANTIATE_TEST_SUITE_P(All, Commit, ::testing::Values(SaveOne, SaveMerged, SaveV1),
                         [](const auto& info) {
                           return info.param == SaveOne  ? "OneFile"
                                  : info.param == SaveV1 ? "V1"
                                                         : "Merged";
                         });

}  // namespace
}  // namespace weir
