#include "weir/serving/version_directory.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using testing::MakeTempDirectory;
using ::testing::Pair;
using testing::WriteBytes;

TEST(VersionDirectory, ListsTheSubdirectoriesThatAreNumbers) {
  const std::string base = MakeTempDirectory("versions");
  for (const char* name : {"2", "10", "010", "0", "-3", "3.5", "v4", " 5", "6 ", "0x7",
                           "99999999999999999999", "latest", "1.tmp"})
    ASSERT_TRUE(Files().MakeDirectory(JoinPath(base, name)).ok());
  WriteBytes(base + "/8", "a file");
  ASSERT_EQ(symlink("2", (base + "/9").c_str()), 0);
  const auto versions = ListVersions(base);
  ASSERT_TRUE(versions.ok()) << versions.status();
  EXPECT_THAT(*versions, ElementsAre(Pair(0, base + "/0"), Pair(2, base + "/2"),
                                     Pair(9, base + "/9"), Pair(10, base + "/010")));
  EXPECT_EQ(ListVersions(base + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST(VersionDirectory, SnapshotsDifferAfterAnyChange) {
  const std::string directory = MakeTempDirectory("snapshot");
  ASSERT_TRUE(Files().MakeDirectory(directory + "/variables").ok());
  WriteBytes(directory + "/variables/a", "123");
  const auto first = TakeSnapshot(directory);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->bytes, 3);
  EXPECT_EQ(TakeSnapshot(directory)->digest, first->digest);
  WriteBytes(directory + "/variables/b", "4567");
  const auto second = TakeSnapshot(directory);
  EXPECT_NE(second->digest, first->digest);
  EXPECT_EQ(second->bytes, 7);
  EXPECT_GE(second->changed, first->changed);
  ASSERT_EQ(rename((directory + "/variables/b").c_str(), (directory + "/c").c_str()), 0);
  EXPECT_NE(TakeSnapshot(directory)->digest, second->digest);
}

TEST(VersionDirectory, SnapshotsEndInACycleOfLinks) {
  const std::string directory = MakeTempDirectory("cycle");
  ASSERT_EQ(symlink(".", (directory + "/again").c_str()), 0);
  ASSERT_EQ(symlink("nowhere", (directory + "/dangling").c_str()), 0);
  EXPECT_TRUE(TakeSnapshot(directory).ok());
}

}  // namespace
}  // namespace weir::serving
