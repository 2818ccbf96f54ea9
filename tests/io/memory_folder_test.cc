#include "weir/core/io/memory_folder.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::Not;
using Contents = std::map<std::string, absl::string_view>;

TEST(MemoryFolder, HasFilesAndFolders) {
  const MemoryFolder folder(
      {{"model.pb", "graph"}, {"variables/v.index", ""}, {"variables/a/b", "c"}});
  EXPECT_TRUE(Files().IsDirectory(folder.path()));
  EXPECT_TRUE(Files().IsDirectory(folder.Path("variables")));
  EXPECT_FALSE(Files().IsDirectory(folder.Path("model.pb")));
  EXPECT_TRUE(Files().Exists(folder.Path("model.pb")));
  EXPECT_TRUE(Files().Exists(folder.Path("variables")));
  EXPECT_FALSE(Files().Exists(folder.Path("model")));
  EXPECT_FALSE(Files().Exists(folder.Path("../model.pb")));
  EXPECT_THAT(*Files().List(folder.path()), ElementsAre("model.pb", "variables"));
  EXPECT_THAT(*Files().List(folder.Path("variables")), ElementsAre("a", "v.index"));
}

TEST(MemoryFolder, ReadsAnyRange) {
  const MemoryFolder folder(Contents{{"f", "0123456789"}});
  EXPECT_EQ(*ReadFile(folder.Path("f")), "0123456789");
  const auto file = Files().Open(folder.Path("f"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10u);
  char bytes[4] = {};
  ASSERT_TRUE((*file)->Read(3, 4, bytes).ok());
  EXPECT_EQ(std::string(bytes, 4), "3456");
  EXPECT_EQ(*(*file)->ReadSome(8, 4, bytes), 2u);
  EXPECT_EQ(*(*file)->ReadSome(10, 4, bytes), 0u);
  EXPECT_EQ(*(*file)->ReadSome(uint64_t{1} << 63, 4, bytes), 0u);
  EXPECT_EQ((*file)->Read(8, 4, bytes).code(), absl::StatusCode::kDataLoss);
}

TEST(MemoryFolder, IsGoneWithTheObject) {
  std::string path;
  {
    const MemoryFolder folder(Contents{{"f", "x"}});
    path = folder.Path("f");
    EXPECT_TRUE(Files().Exists(path));
  }
  EXPECT_FALSE(Files().Exists(path));
  EXPECT_EQ(Files().Open(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(MemoryFolder, CannotBeWritten) {
  const MemoryFolder folder(Contents{{"f", "x"}});
  EXPECT_FALSE(Files().Create(folder.Path("f")).ok());
  EXPECT_FALSE(Files().Remove(folder.Path("f")).ok());
  EXPECT_EQ(*ReadFile(folder.Path("f")), "x");
}

TEST(MemoryFolder, IsFoundOnlyByItsPath) {
  const MemoryFolder one(Contents{{"f", "1"}}), two(Contents{{"f", "2"}});
  EXPECT_THAT(one.path(), Not(two.path()));
  EXPECT_EQ(*ReadFile(two.Path("f")), "2");
  EXPECT_FALSE(Files().Exists("memory:/f"));
  EXPECT_FALSE(Files().Exists("memory:"));
}

}  // namespace
}  // namespace weir
