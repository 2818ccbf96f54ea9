#include "weir/rpc/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"

namespace weir::rpc {
namespace {

using testing::MakeTempDirectory;
using testing::WriteBytes;

class FileAccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Files().MakeDirectory(inside_).ok());
    WriteBytes(inside_ + "/file", "mine");
    WriteBytes(root_ + "/secret", "theirs");
    auto files = RestrictFiles({inside_});
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }

  const std::string root_ = MakeTempDirectory("file_access");
  const std::string inside_ = root_ + "/inside";
  std::unique_ptr<FileSystem> files_;
};

TEST_F(FileAccessTest, InsideIsUnrestricted) {
  EXPECT_TRUE(files_->Open(inside_ + "/file").ok());
  EXPECT_TRUE(files_->Exists(inside_ + "/./file"));
  EXPECT_TRUE(files_->MakeDirectory(inside_ + "/new").ok());
  EXPECT_TRUE(files_->Create(inside_ + "/new/x").ok());
  EXPECT_TRUE(files_->OpenAtEnd(inside_ + "/new/x").ok());
  EXPECT_EQ(files_->List(inside_ + "/new")->size(), 1u);
  EXPECT_TRUE(files_->IsDirectory(root_));  // a parent directory
}

TEST_F(FileAccessTest, OutsideDoesNotExist) {
  for (const std::string& path :
       {root_ + "/secret", inside_ + "/../secret", inside_ + "/none/../../secret",
        std::string("/etc/passwd"), root_, inside_ + "x", std::string("/"), std::string()}) {
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Open(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Create(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(files_->OpenAtEnd(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Remove(path))) << path;
    EXPECT_FALSE(files_->Exists(path)) << path;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Rename(inside_ + "/file", root_ + "/file")));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Link(root_ + "/secret", inside_ + "/copy")));
  // Of the siblings, only the directories that lead to allowed ones are listed.
  EXPECT_EQ(*files_->List(root_), std::vector<std::string>{"inside"});
}

TEST_F(FileAccessTest, LinksAreResolved) {
  ASSERT_EQ(symlink("../secret", (inside_ + "/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (inside_ + "/up").c_str()), 0);
  ASSERT_EQ(symlink("../nothing", (inside_ + "/dangling").c_str()), 0);
  for (const char* name : {"/link", "/up/secret", "/up/new"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Open(inside_ + name).status())) << name;
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Create(inside_ + name).status())) << name;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Create(inside_ + "/dangling").status()));
  EXPECT_FALSE(Files().Exists(root_ + "/nothing"));
}

TEST_F(FileAccessTest, NamesOfLinksAreInside) {
  ASSERT_EQ(symlink("../secret", (inside_ + "/link").c_str()), 0);
  EXPECT_TRUE(files_->Rename(inside_ + "/file", inside_ + "/link").ok());  // replaces the link
  EXPECT_EQ(*ReadFile(root_ + "/secret"), "theirs");
  EXPECT_EQ(*ReadFile(inside_ + "/link"), "mine");
  ASSERT_EQ(symlink("../secret", (inside_ + "/other").c_str()), 0);
  EXPECT_TRUE(files_->Remove(inside_ + "/other").ok());
  EXPECT_TRUE(Files().Exists(root_ + "/secret"));
}

// Another user replaces a directory by a link to elsewhere while files in it are opened.
TEST_F(FileAccessTest, LinksReplacedMeanwhileDoNotLeadOutside) {
  const std::string here = inside_ + "/d", there = inside_ + "/e";
  ASSERT_TRUE(Files().MakeDirectory(here).ok());
  WriteBytes(here + "/secret", "mine");
  ASSERT_EQ(symlink(root_.c_str(), there.c_str()), 0);
  std::atomic<bool> stop{false};
  std::thread attacker([&] {
    while (!stop) renameat2(AT_FDCWD, here.c_str(), AT_FDCWD, there.c_str(), RENAME_EXCHANGE);
  });
  int mine = 0, refused = 0, wrong = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto file = files_->Open(here + "/secret");
    char got[16] = {};
    if (file.ok() && (*file)->ReadSome(0, sizeof(got), got).ok()) {
      ++(got == std::string("mine") ? mine : wrong);
    } else {
      ++refused;
    }
    files_->Create(here + "/new").IgnoreError();
  }
  stop = true;
  attacker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(mine, 0);
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(Files().Exists(root_ + "/new"));
}

TEST_F(FileAccessTest, OnlyRegularFilesAreOpened) {
  const auto all = RestrictFiles({"/"});
  ASSERT_TRUE(all.ok()) << all.status();
  const std::string pipe = inside_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {pipe, std::string("/dev/zero"), std::string("/dev/null"), std::string("/proc/self/environ"),
        std::string("/proc/version")}) {
    EXPECT_TRUE(absl::IsPermissionDenied((*all)->Open(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied((*all)->Create(path).status())) << path;
    EXPECT_TRUE(absl::IsPermissionDenied((*all)->OpenAtEnd(path).status())) << path;
    EXPECT_FALSE((*all)->Exists(path)) << path;
  }
  EXPECT_TRUE(absl::IsPermissionDenied((*all)->List("/proc").status()));
  EXPECT_FALSE((*all)->Open("/proc/self/root" + root_ + "/none").ok());
  EXPECT_TRUE((*all)->Open(root_ + "/secret").ok());
  EXPECT_FALSE((*all)->List("/")->empty());
}

TEST_F(FileAccessTest, RejectsPathsOfAnyLength) {
  for (const size_t length : {3'000, 3'900, 4'090, 5'000, 1'000'000}) {
    std::string outside, inside = inside_, dots = inside_;
    while (outside.size() < length) outside += "/a";
    while (inside.size() < length) inside += "/a";
    while (dots.size() < length) dots += "/x/..";
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Open(outside).status())) << length;
    EXPECT_TRUE(absl::IsPermissionDenied(files_->Create(dots + "/../secret").status())) << length;
    EXPECT_FALSE(files_->Open(inside).ok()) << length;
    EXPECT_FALSE(files_->Exists(inside)) << length;
  }
}

TEST_F(FileAccessTest, PatternsMatchOnlyInside) {
  const ScopedFileSystem scope(files_.get());
  using Paths = std::vector<std::string>;
  EXPECT_EQ(*MatchFiles(inside_ + "/*"), Paths({inside_ + "/file"}));
  EXPECT_EQ(*MatchFiles(inside_ + "/file"), Paths({inside_ + "/file"}));
  EXPECT_EQ(*MatchFiles(root_ + "/i*e/f*"), Paths({inside_ + "/file"}));
  EXPECT_EQ(*MatchFiles(root_ + "/*"), Paths({inside_}));  // and not the secret next to it
  EXPECT_EQ(*MatchFiles(root_ + "/sec*"), Paths());
  EXPECT_EQ(*MatchFiles(inside_ + "/../sec*"), Paths());
  std::string deep = inside_;
  while (deep.size() < 100'000) deep += "/*";
  EXPECT_EQ(*MatchFiles(deep), Paths());
}

TEST_F(FileAccessTest, DirectoryMustExist) {
  EXPECT_TRUE(absl::IsNotFound(RestrictFiles({root_ + "/none"}).status()));
  const auto nothing = RestrictFiles({});
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE((*nothing)->Open(inside_ + "/file").ok());
}

}  // namespace
}  // namespace weir::rpc
