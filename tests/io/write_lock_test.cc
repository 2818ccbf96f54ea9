#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

// Several writers of one checkpoint, in one process and in several, and what killed writers leave
// behind.
namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::MemoryFileSystem;
using testing::WriteBytes;

// The elements of checkpoint n are n.
Tensor Numbered(int n) {
  Tensor tensor(DT_INT32, Shape({70000}));
  for (int32_t& x : tensor.flat<int32_t>()) x = n;
  return tensor;
}

absl::Status Save(const std::string& prefix, int n) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(prefix));
  WEIR_RETURN_IF_ERROR(writer->Add("a", Numbered(n)));
  return writer->Finish();
}

absl::Status SaveV1(const std::string& path, int n) {
  const Tensor tensor = Numbered(n);
  return WriteCheckpointV1(path, {{"a", tensor.shape(), TensorSlice::Full(1), tensor}});
}

// Returns the number of the checkpoint if it is complete, otherwise -1.
int NumberAt(const std::string& prefix) {
  const auto reader = CheckpointReader::Open(prefix);
  if (!reader.ok()) return -1;
  const auto a = (*reader)->Read("a");
  if (!a.ok()) return -1;
  const int n = a->data<int32_t>()[0];
  return IdenticalTensors(*a, Numbered(n)) ? n : -1;
}

void ExpectAborted(const absl::Status& status, const std::string& prefix) {
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(prefix + " is being written"));
}

TEST(WriteLock, TheSecondWriterOfAPrefixIsAborted) {
  const std::string prefix = MakeTempDirectory("second") + "/m";
  {
    const auto first = BundleWriter::Create(prefix);
    ASSERT_TRUE(first.ok()) << first.status();
    ExpectAborted(Save(prefix, 2), prefix);
    ExpectAborted(SaveV1(prefix, 2), prefix);
    ExpectAborted(MergeBundles({prefix + "_part"}, prefix), prefix);
    ASSERT_TRUE((*first)->Add("a", Numbered(1)).ok());
    ASSERT_TRUE((*first)->Finish().ok());
    EXPECT_TRUE(Save(prefix, 3).ok()) << "finished: the lock is free";
  }
  EXPECT_EQ(NumberAt(prefix), 3);
  EXPECT_THAT(*Files().List(DirectoryOf(prefix)), ElementsAre("m.data-00000-of-00001", "m.index"));
}

TEST(WriteLock, ShardsOfOneCheckpointDoNotExcludeEachOther) {
  const std::string prefix = MakeTempDirectory("shards") + "/m";
  const std::vector<std::string> parts = {prefix + "_part-0", prefix + "_part-1"};
  const auto one = BundleWriter::Create(parts[0]), two = BundleWriter::Create(parts[1]);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  ASSERT_TRUE((*one)->Add("a", Numbered(5)).ok());
  ASSERT_TRUE((*two)->Add("b", Numbered(6)).ok());
  ASSERT_TRUE((*one)->Finish().ok());
  ASSERT_TRUE((*two)->Finish().ok());
  const absl::Status merged = MergeBundles(parts, prefix);
  EXPECT_TRUE(merged.ok()) << merged;
  EXPECT_EQ(NumberAt(prefix), 5);
}

TEST(WriteLock, ManyThreadsLeaveTheCheckpointOfOneOfThem) {
  const std::string prefix = MakeTempDirectory("threads") + "/m";
  for (const auto save : {Save, SaveV1}) {
    std::atomic<int> saved{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const absl::Status status = save(prefix, 100 * t + i);
          if (status.ok()) ++saved;
          if (!status.ok()) ExpectAborted(status, prefix);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GT(saved, 0);
    EXPECT_GE(NumberAt(prefix), 0);
    ASSERT_TRUE(Files().Remove(save == Save ? prefix + ".index" : prefix).ok());
  }
}

TEST(WriteLock, IsReleasedWhenItsProcessEnds) {
  const std::string prefix = MakeTempDirectory("dies") + "/m";
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto writer = BundleWriter::Create(prefix);
    (*writer)->Add("a", Numbered(1)).IgnoreError();
    if (write(pipe_fds[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char ready;
  ASSERT_EQ(read(pipe_fds[0], &ready, 1), 1);
  ExpectAborted(Save(prefix, 2), prefix);
  EXPECT_GT(Files().List(DirectoryOf(prefix))->size(), 1u) << "its files remain";
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const absl::Status saved = Save(prefix, 3);
  EXPECT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(NumberAt(prefix), 3);
  EXPECT_THAT(*Files().List(DirectoryOf(prefix)), ElementsAre("m.data-00000-of-00001", "m.index"));
}

// Three processes at a time save under one prefix and are killed at arbitrary points. The
// checkpoint is complete at all times, and the next writer removes everything they left.
TEST(WriteLock, SaversKilledAtRandomLeaveACompleteCheckpointAndNothingElse) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::string prefix = MakeTempDirectory("killed") + "/m";
  ASSERT_TRUE(Save(prefix, 0).ok());
  for (int round = 0; round < 25; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 3; ++i) {
      children.push_back(fork());
      if (children.back() == 0) {
        for (int n = 1;; ++n) Save(prefix, 1000 * round + 10 * n + i).IgnoreError();
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) ASSERT_EQ(waitpid(child, nullptr, 0), child);
    ASSERT_GE(NumberAt(prefix), 0) << "round " << round;
  }
  const std::string other = DirectoryOf(prefix) + "/other";
  ASSERT_TRUE(Save(other, 7).ok());
  ASSERT_TRUE(Save(prefix, 8).ok());
  EXPECT_EQ(NumberAt(prefix), 8);
  EXPECT_THAT(
      *Files().List(DirectoryOf(prefix)),
      ElementsAre("m.data-00000-of-00001", "m.index", "other.data-00000-of-00001", "other.index"));
}

TEST(WriteLock, SweepingKeepsForeignAndLockedFiles) {
  const std::string directory = MakeTempDirectory("swept");
  const auto alive = BundleWriter::Create(directory + "/alive");
  ASSERT_TRUE(alive.ok());
  for (const char* const name :
       {"m.index.weir-temp17", "gone.weir-lock", "m.index.tempstate5", "weir-temp.txt",
        "m.weir-temperature", "old.data-00000-of-00001.previous"})
    WriteBytes(directory + "/" + name, "x");
  ASSERT_TRUE(Save(directory + "/m", 1).ok());
  const std::vector<std::string> names = *Files().List(directory);
  std::vector<std::string> left;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "alive.")) left.push_back(name);
  }
  EXPECT_THAT(left, ElementsAre("m.data-00000-of-00001", "m.index", "m.index.tempstate5",
                                "m.weir-temperature", "weir-temp.txt"));
  ASSERT_TRUE((*alive)->Add("a", Numbered(4)).ok());
  ASSERT_TRUE((*alive)->Finish().ok());
  EXPECT_EQ(NumberAt(directory + "/alive"), 4);
}

TEST(WriteLock, WithoutLocksBothSaveWithAWarning) {
  MemoryFileSystem files;  // has no locks
  ScopedFileSystem scope(&files);
  ::testing::internal::CaptureStderr();
  const auto first = BundleWriter::Create("/m");
  ASSERT_TRUE(Save("/m", 2).ok());
  ASSERT_TRUE((*first)->Add("a", Numbered(1)).ok());
  ASSERT_TRUE((*first)->Finish().ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the file system of /m has no"));
  EXPECT_EQ(NumberAt("/m"), 1);
}

}  // namespace
}  // namespace weir
