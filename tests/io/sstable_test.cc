#include "weir/core/io/sstable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/table_builder.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/snappy.h"
#include "weir/core/io/sstable_writer.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::WriteBytes;

std::string Key(int i) { return absl::StrCat("key/", 100000 + i); }
std::string Value(int i) {
  return std::string(static_cast<size_t>(i % 97), static_cast<char>('a' + i % 26));
}

std::string WriteSSTable(int entries) {
  const std::string path = MakeTempDirectory("table") + "/t";
  BufferedFile file(*Files().Create(path));
  SSTableWriter table(&file);
  for (int i = 0; i < entries; ++i) EXPECT_TRUE(table.Add(Key(i), Value(i)).ok());
  EXPECT_TRUE(table.Finish().ok());
  EXPECT_TRUE(file.Close().ok());
  return path;
}

absl::StatusOr<std::unique_ptr<SSTableReader>> OpenSSTable(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  return SSTableReader::Open(std::move(file));
}

// Returns the number of entries that ScanSSTable visits, and its problems.
int Scan(const std::string& path, std::vector<SSTableProblem>* problems) {
  const auto file = Files().Open(path);
  int visited = 0;
  *problems =
      *ScanSSTable(**file, [&](absl::string_view key, absl::string_view value) { ++visited; });
  return visited;
}

constexpr int kEntries = 12000;  // about 700 KiB, three blocks

TEST(SSTable, FindsEveryKeyAndNoOthers) {
  const auto table = OpenSSTable(WriteSSTable(kEntries));
  ASSERT_TRUE(table.ok()) << table.status();
  for (int i = 0; i < kEntries; i += 7) {
    const auto value = (*table)->Get(Key(i));
    ASSERT_TRUE(value.ok() && value->has_value()) << i;
    EXPECT_EQ(**value, Value(i));
    EXPECT_EQ(*(*table)->Get(Key(i) + "x"), std::nullopt);
  }
  EXPECT_EQ(*(*table)->Get(""), std::nullopt);
  EXPECT_EQ(*(*table)->Get("zzz"), std::nullopt);
  int next = 0;
  EXPECT_TRUE((*table)
                  ->ForEach([&](absl::string_view key, absl::string_view value) {
                    EXPECT_EQ(key, Key(next));
                    EXPECT_EQ(value, Value(next++));
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(next, kEntries);
}

TEST(SSTable, EmptyTable) {
  const auto table = OpenSSTable(WriteSSTable(0));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*(*table)->Get("a"), std::nullopt);
}

TEST(SSTableWriter, RejectsKeysOutOfOrder) {
  BufferedFile file(*Files().Create(MakeTempDirectory("table") + "/t"));
  SSTableWriter table(&file);
  EXPECT_TRUE(table.Add("b", "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(table.Add("b", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(table.Add("a", "")));
  EXPECT_TRUE(table.Add("c", "").ok());
}

TEST(SSTable, DamageIsReportedWithFileOffsetAndChecksums) {
  const std::string path = WriteSSTable(kEntries);
  std::string bytes = ReadBytes(path);
  bytes[300000] ^= 1;
  WriteBytes(path, bytes);
  const auto table = OpenSSTable(path);
  ASSERT_TRUE(table.ok());
  const absl::Status status =
      (*table)->ForEach([](absl::string_view, absl::string_view) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(), HasSubstr(path + ": block checksum mismatch at offset 26"));
  EXPECT_THAT(status.message(), HasSubstr("stored "));
  EXPECT_THAT(status.message(), HasSubstr("computed "));
  EXPECT_TRUE((*table)->Get(Key(0)).ok());
}

TEST(ScanSSTable, AccountsForEveryByteOfAnIntactTable) {
  std::vector<SSTableProblem> problems;
  EXPECT_EQ(Scan(WriteSSTable(kEntries), &problems), kEntries);
  EXPECT_TRUE(problems.empty());
}

TEST(ScanSSTable, ReadsTheOtherBlocksOfADamagedTable) {
  const std::string path = WriteSSTable(kEntries);
  std::string bytes = ReadBytes(path);
  bytes[300000] ^= 1;
  WriteBytes(path, bytes);
  std::vector<SSTableProblem> problems;
  const int visited = Scan(path, &problems);
  EXPECT_GT(visited, kEntries / 4);
  EXPECT_LT(visited, kEntries);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_LE(problems[0].offset, 300000u);
  EXPECT_GT(problems[0].offset + problems[0].size, 300000u);
}

TEST(ScanSSTable, FindsBlocksWithoutFooterAndIndex) {
  const std::string path = WriteSSTable(kEntries);
  const std::string bytes = ReadBytes(path);
  for (const size_t cut : {size_t{1}, size_t{48}, size_t{60}, size_t{100}}) {
    WriteBytes(path, bytes.substr(0, bytes.size() - cut));
    std::vector<SSTableProblem> problems;
    EXPECT_EQ(Scan(path, &problems), kEntries) << cut;
    EXPECT_FALSE(problems.empty());
  }
  std::string damaged = bytes;
  damaged[bytes.size() - 60] ^= 1;  // in the index block
  WriteBytes(path, damaged);
  std::vector<SSTableProblem> problems;
  EXPECT_EQ(Scan(path, &problems), kEntries);
  EXPECT_FALSE(problems.empty());
}

TEST(ScanSSTable, ReportsBytesOutsideOfBlocks) {
  const std::string path = WriteSSTable(10);
  const std::string bytes = ReadBytes(path);
  WriteBytes(path, bytes.substr(0, bytes.size() - 48) + "extra" + bytes.substr(bytes.size() - 48));
  std::vector<SSTableProblem> problems;
  EXPECT_EQ(Scan(path, &problems), 10);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].size, 5u);
}

TEST(SSTable, ReadsSnappyBlocks) {
  const std::string path = MakeTempDirectory("table") + "/snappy";
  leveldb::WritableFile* file = nullptr;
  ASSERT_TRUE(leveldb::Env::Default()->NewWritableFile(path, &file).ok());
  leveldb::Options options;
  options.compression = leveldb::kSnappyCompression;
  {
    leveldb::TableBuilder builder(options, file);
    for (int i = 0; i < 2000; ++i) builder.Add(Key(i), Value(i));
    ASSERT_TRUE(builder.Finish().ok());
  }
  ASSERT_TRUE(file->Close().ok());
  delete file;
  ASSERT_LT(ReadBytes(path).size(), 60000u) << "LevelDB without Snappy would need more";
  const auto table = OpenSSTable(path);
  ASSERT_TRUE(table.ok()) << table.status();
  for (int i = 0; i < 2000; ++i) {
    const auto value = (*table)->Get(Key(i));
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(value->value_or("none"), Value(i));
  }
}

// ---- adversarial SSTables

// Encodes a block: entries with full keys, and one restart point.
std::string BlockOf(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string block;
  for (const auto& [key, value] : entries) {
    PutVarint64(&block, 0);
    PutVarint64(&block, static_cast<uint32_t>(key.size()));
    PutVarint64(&block, static_cast<uint32_t>(value.size()));
    block += key + value;
  }
  PutFixed32(&block, 0);
  PutFixed32(&block, 1);
  return block;
}

std::string HandleOf(uint64_t offset, uint64_t size) {
  std::string handle;
  PutVarint64(&handle, offset);
  PutVarint64(&handle, size);
  return handle;
}

// Appends a block with its trailer, and returns its handle.
std::string AppendBlock(std::string* file, const std::string& block) {
  const std::string handle = HandleOf(file->size(), block.size());
  const std::string covered = block + '\0';
  *file += covered;
  PutFixed32(file, MaskCrc32c(ExtendCrc32c(0, covered.data(), covered.size())));
  return handle;
}

// Builds an SSTable with these index entries after the data blocks in `file`.
std::string Finish(std::string file,
                   const std::vector<std::pair<std::string, std::string>>& index) {
  std::string footer = AppendBlock(&file, BlockOf({}));
  footer += AppendBlock(&file, BlockOf(index));
  footer.resize(40, '\0');
  PutFixed32(&footer, 0x8b80fb57u);
  PutFixed32(&footer, 0xdb477524u);
  const std::string path = MakeTempDirectory("table") + "/made";
  WriteBytes(path, file + footer);
  return path;
}

absl::Status ReadAll(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<SSTableReader> table, OpenSSTable(path));
  return table->ForEach([](absl::string_view, absl::string_view) { return absl::OkStatus(); });
}

TEST(AdversarialSSTable, IsValidIfInOrder) {
  std::string file;
  const std::string first = AppendBlock(&file, BlockOf({{"a", "1"}, {"b", "2"}}));
  const std::string second = AppendBlock(&file, BlockOf({{"d", "3"}}));
  const std::string path = Finish(file, {{"c", first}, {"d", second}});
  EXPECT_EQ(ReadAll(path), absl::OkStatus());
  std::vector<SSTableProblem> problems;
  EXPECT_EQ(Scan(path, &problems), 3);
  EXPECT_EQ(problems.size(), 0u);
}

TEST(AdversarialSSTable, WithADuplicateBlockIsDataLoss) {
  std::string file;
  const std::string block = AppendBlock(&file, BlockOf({{"a", std::string(1 << 20, 'x')}}));
  std::vector<std::pair<std::string, std::string>> index;
  for (int i = 0; i < 100000; ++i) index.emplace_back(Key(i), block);
  const std::string path = Finish(file, index);
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(path))) << ReadAll(path);
  std::vector<SSTableProblem> problems;
  EXPECT_EQ(Scan(path, &problems), 1);  // quickly
  EXPECT_FALSE(problems.empty());
  EXPECT_LT(problems.size(), 10u);
}

TEST(AdversarialSSTable, WithKeysOutOfOrderIsDataLoss) {
  struct Case {
    const char* what;
    std::vector<std::pair<std::string, std::string>> first, second;
    std::string first_last, second_last;
  };
  for (const Case& c :
       std::vector<Case>{{"in a block", {{"b", ""}, {"a", ""}}, {{"d", ""}}, "c", "d"},
                         {"twice the same", {{"a", ""}, {"a", ""}}, {{"d", ""}}, "c", "d"},
                         {"between blocks", {{"b", ""}}, {{"a", ""}}, "c", "d"},
                         {"beyond the index", {{"a", ""}, {"d", ""}}, {{"e", ""}}, "c", "e"},
                         {"in the index", {{"a", ""}}, {{"a", ""}}, "d", "c"}}) {
    std::string file;
    const std::string first = AppendBlock(&file, BlockOf(c.first));
    const std::string second = AppendBlock(&file, BlockOf(c.second));
    const std::string path = Finish(file, {{c.first_last, first}, {c.second_last, second}});
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(path))) << c.what << ": " << ReadAll(path);
    const auto table = OpenSSTable(path);
    if (!table.ok()) continue;
    bool lost = false;
    for (const char* key : {"a", "b", "c", "d", "e"})
      lost = lost || absl::IsDataLoss((*table)->Get(key).status());
    EXPECT_TRUE(lost) << c.what;
  }
}

TEST(AdversarialSSTable, WithBlocksBeyondItsEndIsDataLoss) {
  std::string file;
  AppendBlock(&file, BlockOf({{"a", ""}}));
  for (const std::string& handle : {HandleOf(1 << 20, 5), HandleOf(0, UINT64_MAX - 2)})
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(Finish(file, {{"a", handle}}))));
}

// The examples of the format's description: literals, overlapping copies, and malformed input.
TEST(Snappy, LiteralsAndCopies) {
  std::string out;
  EXPECT_TRUE(SnappyDecompress(absl::string_view("\x03\x08"
                                                 "abc",
                                                 5),
                               &out));
  EXPECT_EQ(out, "abc");
  EXPECT_TRUE(SnappyDecompress(absl::string_view("\x08\x04"
                                                 "ab"
                                                 "\x09\x02",
                                                 6),
                               &out));  // 6 bytes from offset 2 back
  EXPECT_EQ(out, "abababab");
  EXPECT_TRUE(SnappyDecompress(absl::string_view("\x05\x00"
                                                 "a"
                                                 "\x0e\x01\x00",
                                                 6),
                               &out));
  EXPECT_EQ(out, "aaaaa");
  for (const absl::string_view bad : {absl::string_view("", 0),
                                      absl::string_view("\x03\x08"
                                                        "ab",
                                                        4),
                                      absl::string_view("\x02\x08"
                                                        "abc",
                                                        5),
                                      absl::string_view("\x08\x04"
                                                        "ab"
                                                        "\x09\x03",
                                                        6),
                                      absl::string_view("\x08\x04"
                                                        "ab"
                                                        "\x09\x00",
                                                        6),
                                      absl::string_view("\xff\xff\xff\xff\x0f\x00"
                                                        "a",
                                                        7),
                                      absl::string_view("\x05\xfc\xff\xff\xff\xff"
                                                        "a",
                                                        7)}) {
    EXPECT_FALSE(SnappyDecompress(bad, &out));
  }
}

}  // namespace
}  // namespace weir
