#include "weir/core/io/record.h"

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::WriteBytes;

std::string WriteRecords(const std::vector<std::string>& records) {
  const std::string path = MakeTempDirectory("record") + "/r";
  const auto writer = RecordWriter::Create(path);
  for (const std::string& record : records) EXPECT_TRUE((*writer)->Append(record).ok());
  EXPECT_TRUE((*writer)->Close().ok());
  return path;
}

TEST(Record, MatchesTensorFlowsBytes) {
  // The output of tf.io.TFRecordWriter for b"abc" and b"".
  EXPECT_EQ(absl::BytesToHexString(ReadBytes(WriteRecords({"abc", ""}))),
            "0300000000000000"
            "b099490e"
            "616263"
            "6e57f121"
            "0000000000000000"
            "29039807"
            "d8ea82a2");
}

TEST(Record, RoundTrips) {
  std::vector<std::string> records = {"", "a", std::string(1 << 20, 'x')};
  for (int i = 0; i < 1000; ++i)
    records.push_back(std::string(static_cast<size_t>(i), static_cast<char>(i)));
  const auto reader = RecordReader::Open(WriteRecords(records));
  ASSERT_TRUE(reader.ok());
  for (const std::string& record : records) {
    const auto read = (*reader)->Next();
    ASSERT_TRUE(read.ok() && read->has_value()) << read.status();
    ASSERT_EQ(**read, record);
  }
  EXPECT_EQ(*(*reader)->Next(), std::nullopt);
}

TEST(Record, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string path = WriteRecords({"first", "second"});
  const std::string bytes = ReadBytes(path);
  const auto count = [&]() -> absl::StatusOr<int> {
    const auto reader = RecordReader::Open(path);
    for (int n = 0;; ++n) {
      WEIR_ASSIGN_OR_RETURN(const auto record, (*reader)->Next());
      if (!record) return n;
      EXPECT_EQ(*record, n == 0 ? "first" : "second");
    }
  };
  for (size_t size = 0; size <= bytes.size(); ++size) {
    WriteBytes(path, bytes.substr(0, size));
    const auto n = count();
    const bool whole = size == 0 || size == 21 || size == bytes.size();
    EXPECT_EQ(n.ok(), whole) << size;
    EXPECT_TRUE(whole || absl::IsDataLoss(n.status()));
  }
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] ^= static_cast<char>(1 << i % 8);
    WriteBytes(path, damaged);
    EXPECT_TRUE(absl::IsDataLoss(count().status())) << i;
  }
}

TEST(Record, AGrowingFileCanBeReadFurther) {
  const std::string path = WriteRecords({"first", "second"});
  const std::string bytes = ReadBytes(path);
  WriteBytes(path, bytes.substr(0, 30));
  auto reader = RecordReader::Open(path);
  EXPECT_EQ(**(*reader)->Next(), "first");
  const auto cut = (*reader)->Next();
  EXPECT_THAT(cut.status().message(), HasSubstr("offset 21"));
  const uint64_t offset = (*reader)->offset();
  WriteBytes(path, bytes);
  reader = RecordReader::Open(path);
  (*reader)->Seek(offset);
  EXPECT_EQ(**(*reader)->Next(), "second");
}

}  // namespace
}  // namespace weir
