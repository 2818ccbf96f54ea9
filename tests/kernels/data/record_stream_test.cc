#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/kernels/data/byte_stream.h"

namespace weir {
namespace {

using testing::HasSubstr;

std::string PathOf(const std::string& bytes) {
  const std::string path = testing::TempDir() + "/" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() +
                           ".tfrecord";
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return path;
}

std::string Header(uint64_t size) {
  std::string header;
  PutFixed64(&header, size);
  PutFixed32(&header, MaskCrc32c(Crc32c(header)));
  return header;
}

std::string Frame(const std::string& record) {
  std::string frame = Header(record.size()) + record;
  PutFixed32(&frame, MaskCrc32c(Crc32c(record)));
  return frame;
}

std::string Damaged(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  return bytes;
}

// The intact records of a file, and its damage as "[begin, end) records torn".
struct Scan {
  std::vector<std::string> records, damage;
};

Scan ScanFile(const std::string& path, const std::string& compression = "") {
  Scan scan;
  absl::StatusOr<RecordStream> stream = RecordStream::Open(path, compression, 1 << 20);
  EXPECT_TRUE(stream.ok()) << stream.status();
  for (int i = 0; i < 100'000; ++i) {
    const auto next = stream->Next();
    if (next.ok() && !next->has_value()) return scan;
    if (next.ok()) {
      scan.records.push_back(**next);
      continue;
    }
    EXPECT_TRUE(absl::IsDataLoss(next.status())) << next.status();
    const auto damage = stream->SkipDamage();
    if (!damage.ok()) {
      scan.damage.push_back(std::string(damage.status().message()));
      return scan;
    }
    scan.damage.push_back(absl::StrCat("[", damage->begin, ", ", damage->end, ") ", damage->records,
                                       damage->is_torn_tail ? " torn" : ""));
  }
  ADD_FAILURE() << "the scan does not end";
  return scan;
}

using Strings = std::vector<std::string>;

TEST(RecordStream, OneDamagedRecordIsSkippedByItsLength) {
  const Scan scan = ScanFile(PathOf(Frame("one") + Damaged(Frame("two"), 13) + Frame("three")));
  EXPECT_EQ(scan.records, (Strings{"one", "three"}));
  EXPECT_EQ(scan.damage, Strings{"[19, 38) 1"});
}

TEST(RecordStream, TheRecordAfterADamagedLengthIsFound) {
  for (size_t at = 0; at < 12; ++at) {
    const Scan scan = ScanFile(PathOf(Frame("one") + Damaged(Frame("two"), at) + Frame("three")));
    EXPECT_EQ(scan.records, (Strings{"one", "three"})) << at;
    EXPECT_EQ(scan.damage, Strings{"[19, 38) 0"}) << at;
  }
}

// A record of which a part is missing covers those that follow.
TEST(RecordStream, RecordsBehindMissingBytesAreFound) {
  const std::string cut = Frame(std::string(1000, 'x')).substr(0, 500);
  const Scan scan = ScanFile(PathOf(Frame("one") + cut + Frame("two") + Frame("three")));
  EXPECT_EQ(scan.records, (Strings{"one", "two", "three"}));
  EXPECT_EQ(scan.damage, Strings{"[19, 519) 1"});
}

TEST(RecordStream, SeveralRegionsAreTold) {
  const std::string noise(300'000, '\x5a');
  const Scan scan = ScanFile(PathOf(noise + Frame("one") + Damaged(Frame("two"), 12) +
                                    Frame("three") + "junk" + Frame("four")));
  EXPECT_EQ(scan.records, (Strings{"one", "three", "four"}));
  EXPECT_EQ(scan.damage, (Strings{"[0, 300000) 0", "[300019, 300038) 1", "[300059, 300063) 0"}));
}

TEST(RecordStream, ATornTailIsToldFromDamage) {
  const std::string whole = Frame("one") + Frame("second");
  for (size_t size = 20; size < whole.size(); ++size) {
    const Scan scan = ScanFile(PathOf(whole.substr(0, size)));
    EXPECT_EQ(scan.records, Strings{"one"});
    EXPECT_EQ(scan.damage, Strings{absl::StrCat("[19, ", size, ") ", size < 31 ? 0 : 1, " torn")});
  }
  EXPECT_EQ(ScanFile(PathOf(Frame("one") + Damaged(Frame("two"), 3))).damage,
            Strings{"[19, 38) 0"});
}

TEST(RecordStream, ACompressedFileIsScannedToWhereItsCompressionFails) {
  const std::string path = testing::TempDir() + "/damaged.gz";
  const auto sink = ByteSink::Create(path, "GZIP");
  ASSERT_TRUE(sink.ok());
  ASSERT_TRUE(AppendRecord(**sink, "one").ok());
  ASSERT_TRUE((*sink)->Append(Damaged(Frame("two"), 12)).ok());
  ASSERT_TRUE(AppendRecord(**sink, "three").ok());
  ASSERT_TRUE((*sink)->Finish().ok());
  const Scan scan = ScanFile(path, "GZIP");
  EXPECT_EQ(scan.records, (Strings{"one", "three"}));
  EXPECT_EQ(scan.damage, Strings{"[19, 38) 1"});
  const std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, bytes.size() - 10)).ok());
  EXPECT_THAT(ScanFile(path, "GZIP").damage.back(), HasSubstr("compressed data is truncated"));
}

TEST(RecordStream, ARecordBeyondTheLimitIsRefused) {
  const std::string path = PathOf(Header(uint64_t{1} << 40) + "x");
  auto stream = RecordStream::Open(path, "", 1000);
  EXPECT_TRUE(absl::IsResourceExhausted(stream->Next().status()));
  stream = RecordStream::Open(PathOf(Frame(std::string(1000, 'x'))), "", 1000);
  EXPECT_EQ((*stream->Next())->size(), 1000);
  EXPECT_EQ(*stream->Next(), std::nullopt);
}

// In quadratic time, this would take minutes.
TEST(RecordStream, ForgedLengthsTakeLinearTime) {
  std::string forged;
  for (int i = 0; i < 500'000; ++i) forged += Header(1'000'000);
  EXPECT_EQ(ScanFile(PathOf(forged)).records, Strings{});
}

}  // namespace
}  // namespace weir
