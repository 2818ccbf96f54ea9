#include "weir/core/io/file.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::MemoryFileSystem;
using testing::ReadBytes;
using testing::WriteBytes;

TEST(File, ErrorsNameThePathAndHaveTheCodeOfErrno) {
  const std::string dir = MakeTempDirectory("file");
  const auto missing = Files().Open(dir + "/none");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(missing.status().message(), HasSubstr(dir + "/none"));
  EXPECT_TRUE(absl::IsNotFound(Files().Create(dir + "/none/x").status()));
  EXPECT_TRUE(absl::IsNotFound(Files().Rename(dir + "/a", dir + "/b")));
  EXPECT_TRUE(absl::IsAlreadyExists(Files().MakeDirectory(dir)));
  EXPECT_FALSE(Files().Open(dir).ok());
  EXPECT_FALSE(Files().Create(dir).ok());
}

TEST(File, DirectoriesAreNotMadeBelowFiles) {
  const std::string dir = MakeTempDirectory("file");
  ASSERT_TRUE(MakeDirectories(dir + "/a/b").ok());
  ASSERT_TRUE(MakeDirectories(dir + "/a/b").ok());
  WriteBytes(dir + "/a/file", "text");
  for (const char* name : {"/a/file", "/a/file/c"}) {
    const absl::Status made = MakeDirectories(dir + name);
    EXPECT_EQ(made.code(), absl::StatusCode::kFailedPrecondition) << made;
    EXPECT_THAT(made.message(), HasSubstr("/a/file is not a directory"));
  }
}

TEST(File, RejectsPathsWithAZeroByte) {
  const std::string dir = MakeTempDirectory("file");
  WriteBytes(dir + "/a", "old");
  const std::string path = dir + std::string("/a\0b", 4);
  FileSystem& files = Files();
  for (const absl::Status& s :
       {files.Open(path).status(), files.Create(path).status(), files.OpenAtEnd(path).status(),
        files.Lock(path).status(), files.Remove(path), files.MakeDirectory(path),
        files.Rename(path, dir + "/c"), files.Rename(dir + "/a", path), files.List(path).status(),
        ReadFile(path).status(), WriteFileAtomically(path, "new", Durability::kUnsynced)}) {
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
    EXPECT_THAT(std::string(s.message()), HasSubstr("zero byte"));
  }
  EXPECT_FALSE(files.Exists(path));
  EXPECT_THAT(*files.List(dir), ElementsAre("a"));
  EXPECT_EQ(ReadBytes(dir + "/a"), "old");
}

TEST(WriteFileAtomically, DoesNotReplacePipesOrDevices) {
  const std::string dir = MakeTempDirectory("file");
  ASSERT_EQ(mkfifo((dir + "/pipe").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/dev/null", (dir + "/link").c_str()), 0);
  for (const char* name : {"/pipe", "/link"}) {
    const absl::Status s = WriteFileAtomically(dir + name, "new", Durability::kUnsynced);
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument) << s;
  }
  EXPECT_THAT(*Files().List(dir), ElementsAre("link", "pipe"));
}

TEST(File, ReadsAtAnyOffsetAndReportsTheEnd) {
  const std::string path = MakeTempDirectory("file") + "/f";
  WriteBytes(path, "0123456789");
  const auto file = Files().Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 10u);
  char bytes[10];
  ASSERT_TRUE((*file)->Read(3, 4, bytes).ok());
  EXPECT_EQ(absl::string_view(bytes, 4), "3456");
  const absl::Status past = (*file)->Read(8, 4, bytes);
  EXPECT_TRUE(absl::IsDataLoss(past));
  EXPECT_THAT(past.message(), HasSubstr("ends at offset 10"));
  EXPECT_EQ(*(*file)->ReadSome(UINT64_MAX - 2, 8, bytes), 0u);
}

TEST(File, OpenAtEndAppends) {
  const std::string path = MakeTempDirectory("file") + "/f";
  const std::unique_ptr<WritableFile> first = *Files().OpenAtEnd(path),
                                      second = *Files().OpenAtEnd(path);
  ASSERT_TRUE(first->Append("one ").ok());
  ASSERT_TRUE(second->Append("two ").ok());
  ASSERT_TRUE(first->Append("three").ok());
  EXPECT_TRUE(first->Close().ok());
  EXPECT_TRUE(second->Close().ok());
  EXPECT_EQ(ReadBytes(path), "one two three");
  EXPECT_FALSE(Files().OpenAtEnd(path + "/below a file").ok());
}

// Preallocated blocks are not part of the file's contents, and the unused ones are released.
TEST(File, PreallocationDoesNotChangeTheContents) {
  const std::string path = MakeTempDirectory("file") + "/f";
  const std::unique_ptr<WritableFile> file = *Files().Create(path);
  constexpr uint64_t kReserved = uint64_t{8} << 20;
  file->Reserve(uint64_t{1} << 60);  // more than is available: nothing is preallocated
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  file->Reserve(kReserved);
  ASSERT_TRUE(file->Append("abc").ok());
  file->StartSync();
  EXPECT_EQ(ReadBytes(path), "abc");
  ASSERT_TRUE(file->Append("def").ok());
  file->StartSync();
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ReadBytes(path), "abcdef");
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_LT(static_cast<uint64_t>(info.st_blocks) * 512, kReserved / 2);
}

TEST(BufferedFile, SmallWritesAreMergedAndLargeOnesStayInOrder) {
  MemoryFileSystem files;
  BufferedFile file(*files.Create("/f"));
  const int before = files.operations();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(file.Append("ab").ok());
  EXPECT_EQ(files.operations(), before);
  const std::string large(BufferedFile::kCapacity + 1, 'x');
  ASSERT_TRUE(file.Append(large).ok());
  ASSERT_TRUE(file.Append("end").ok());
  ASSERT_TRUE(file.Close().ok());
  EXPECT_EQ(files.operations(), before + 3);
  EXPECT_EQ(file.size(), 2000 + large.size() + 3);
  EXPECT_EQ(files.Contents("/f")->substr(1998), "ab" + large + "end");
}

TEST(BufferedFile, ErrorsAreSticky) {
  MemoryFileSystem files;
  BufferedFile file(*files.Create("/f"));
  ASSERT_TRUE(file.Append("x").ok());
  files.set_stop_after(files.operations());
  EXPECT_FALSE(file.Flush().ok());
  files.set_stop_after(-1);
  EXPECT_FALSE(file.Append("y").ok());
  EXPECT_FALSE(file.Sync().ok());
  EXPECT_FALSE(file.Close().ok());
}

TEST(Paths, SplitAndJoin) {
  EXPECT_EQ(DirectoryOf("a/b/c"), "a/b");
  EXPECT_EQ(DirectoryOf("c"), ".");
  EXPECT_EQ(DirectoryOf("/c"), "/");
  EXPECT_EQ(BaseName("a/b/c"), "c");
  EXPECT_EQ(BaseName("c"), "c");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("a", "/b"), "/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(ReadFile, ReadsFilesWithoutASize) {
  const auto text = ReadFile("/proc/self/status");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("Pid:"));
}

TEST(MakeDirectories, CreatesParentsAndAcceptsExistingOnes) {
  const std::string dir = MakeTempDirectory("file") + "/a/b/c";
  EXPECT_TRUE(MakeDirectories(dir).ok());
  EXPECT_TRUE(MakeDirectories(dir).ok());
  EXPECT_TRUE(Files().IsDirectory(dir));
  WriteBytes(dir + "/f", "");
  EXPECT_FALSE(MakeDirectories(dir + "/f").ok());
}

TEST(MatchFiles, WildcardsStayWithinOneComponent) {
  const std::string dir = MakeTempDirectory("file");
  ASSERT_TRUE(MakeDirectories(dir + "/x1/deep").ok());
  ASSERT_TRUE(MakeDirectories(dir + "/x2").ok());
  for (const char* name : {"/x1/a-00", "/x1/a-01", "/x2/a-00", "/x1/deep/a-00", "/b"})
    WriteBytes(dir + name, "");
  EXPECT_THAT(*MatchFiles(dir + "/x*/a-0?"),
              ElementsAre(dir + "/x1/a-00", dir + "/x1/a-01", dir + "/x2/a-00"));
  EXPECT_THAT(*MatchFiles(dir + "/x[2-9]/*"), ElementsAre(dir + "/x2/a-00"));
  EXPECT_THAT(*MatchFiles(dir + "/b"), ElementsAre(dir + "/b"));
  EXPECT_THAT(*MatchFiles(dir + "/c"), ElementsAre());
  EXPECT_THAT(*MatchFiles(dir + "/none/*"), ElementsAre());
}

TEST(FixedFolder, IsAboveTheFirstWildcard) {
  EXPECT_EQ(FixedFolder("a/b/c-*/d?"), "a/b");
  EXPECT_EQ(FixedFolder("a/b/[cd]"), "a/b");
  EXPECT_EQ(FixedFolder("a/b\\*/c"), "a");
  EXPECT_EQ(FixedFolder("a/b"), "a");
  EXPECT_EQ(FixedFolder("/*"), "/");
  EXPECT_EQ(FixedFolder("*/b"), "");
  EXPECT_EQ(FixedFolder(""), "");
}

TEST(WriteFileAtomically, LeavesTheOldOrTheNewContentsAfterACrash) {
  for (int stop = 0; stop < 20; ++stop) {
    MemoryFileSystem files;
    {
      ScopedFileSystem scope(&files);
      ASSERT_TRUE(WriteFileAtomically("/f", "old").ok());
      files.set_stop_after(files.operations() + stop);
      const bool done = WriteFileAtomically("/f", "new").ok();
      files.set_stop_after(-1);
      for (const auto survivors :
           {MemoryFileSystem::Survivors::kSyncedOnly,
            MemoryFileSystem::Survivors::kNamesButNotBytes,
            MemoryFileSystem::Survivors::kEverything, MemoryFileSystem::Survivors::kOneNameOfTwo}) {
        const auto after = files.AfterPowerFailure(survivors);
        const std::string* contents = after->Contents("/f");
        ASSERT_NE(contents, nullptr) << stop;
        EXPECT_TRUE(*contents == "new" || (!done && *contents == "old"))
            << stop << " " << *contents;
      }
    }
  }
}

}  // namespace
}  // namespace weir
