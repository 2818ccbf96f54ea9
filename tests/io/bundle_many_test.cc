#include <atomic>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/sstable_writer.h"
#include "weir/tests/io/test_files.h"

// Reads of many tensors of a checkpoint at once.
namespace weir {
namespace {

using internal::BundleEntry;
using ::testing::HasSubstr;
using testing::PatternStrings;
using testing::PatternTensor;

// Counts the reads of data files.
class CountingFiles : public testing::MemoryFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    class File : public ReadableFile {
     public:
      File(std::unique_ptr<ReadableFile> file, std::atomic<int>* count)
          : ReadableFile(file->path(), file->size()), file_(std::move(file)), count_(count) {}
      absl::StatusOr<size_t> ReadSome(uint64_t offset, size_t size, char* out) const override {
        ++*count_;
        return file_->ReadSome(offset, size, out);
      }

     private:
      const std::unique_ptr<ReadableFile> file_;
      std::atomic<int>* const count_;
    };
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, MemoryFileSystem::Open(path));
    if (path.find(".data-") == std::string::npos) return file;
    return std::unique_ptr<ReadableFile>(new File(std::move(file), &reads));
  }
  std::atomic<int> reads{0};
};

class Many : public ::testing::Test {
 protected:
  Many() : scope_(&files_) {}

  using Row = std::pair<std::string, Tensor>;
  static std::string Name(int i) { return absl::StrCat("t", 1000 + i); }
  static std::vector<Row> SmallRows(int count) {
    std::vector<Row> rows;
    for (int i = 0; i < count; ++i)
      rows.emplace_back(Name(i), PatternTensor(DT_FLOAT, Shape({i % 50}), i));
    return rows;
  }
  static void Save(const std::vector<Row>& rows) {
    const auto writer = *BundleWriter::Create("/m");
    for (const auto& [name, tensor] : rows) ASSERT_TRUE(writer->Add(name, tensor).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  static std::unique_ptr<CheckpointReader> Open() { return *CheckpointReader::Open("/m"); }

  // Returns the results of ReadMany in the form that Read returns them.
  std::vector<absl::StatusOr<std::string>> ReadMany(CheckpointReader& reader,
                                                    const std::vector<std::string>& names) {
    std::vector<absl::StatusOr<std::string>> out(names.size(), NotFound("not called"));
    std::vector<std::atomic<int>> calls(names.size());
    const std::vector<absl::string_view> views(names.begin(), names.end());
    reader.ReadMany(views, pool_, [&](size_t i, const absl::StatusOr<absl::string_view>& bytes) {
      ++calls[i];
      out[i] = bytes.ok() ? absl::StatusOr<std::string>(*bytes) : bytes.status();
    });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
    return out;
  }

  static std::string BytesOf(const Tensor& t) {
    return std::string(static_cast<const char*>(t.raw()), t.num_bytes());
  }

  // Checks that ReadMany and Read agree on all of `names`. Returns the number of readable tensors.
  int Compare(const std::vector<std::string>& names) {
    const auto reader = Open(), one_by_one = Open();
    const auto many = ReadMany(*reader, names);
    int sound = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto one = one_by_one->Read(names[i]);
      EXPECT_EQ(many[i].ok(), one.ok()) << names[i] << many[i].status() << one.status();
      if (one.ok() && many[i].ok()) {
        EXPECT_EQ(*many[i], BytesOf(*one)) << names[i];
        ++sound;
      } else {
        EXPECT_EQ(many[i].status(), one.status());
      }
    }
    return sound;
  }

  // Builds a checkpoint by hand.
  void Write(const std::vector<std::pair<std::string, BundleEntry>>& entries, int num_shards) {
    BufferedFile file(*files_.Create("/m.index"));
    SSTableWriter table(&file);
    ASSERT_TRUE(table.Add("", internal::SerializeBundleHeader({num_shards})).ok());
    for (const auto& [name, entry] : entries)
      ASSERT_TRUE(table.Add(name, internal::SerializeBundleEntry(entry)).ok());
    ASSERT_TRUE(table.Finish().ok() && file.Close().ok());
  }

  CountingFiles files_;
  ScopedFileSystem scope_;
  ThreadPool pool_{3};
};

std::vector<std::string> NamesOf(const std::vector<std::pair<std::string, Tensor>>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.push_back(row.first);
  return names;
}

TEST_F(Many, ReadsOfNeighborsAreCoalesced) {
  const auto rows = SmallRows(1000);
  Save(rows);
  const auto reader = Open();
  const auto read = ReadMany(*reader, NamesOf(rows));
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(*read[i], BytesOf(rows[i].second)) << i;
  EXPECT_EQ(files_.reads, 1);  // 98 KB
}

TEST_F(Many, LargeTensorsAndAnyOrder) {
  auto rows = SmallRows(300);
  rows.emplace_back("u", PatternTensor(DT_DOUBLE, Shape({100'000}), 1));
  rows.emplace_back("v", PatternTensor(DT_INT8, Shape({65536}), 1));
  rows.emplace_back("w", PatternTensor(DT_INT8, Shape({65537}), 1));
  Save(rows);
  std::shuffle(rows.begin(), rows.end(), std::mt19937(5));
  EXPECT_EQ(Compare(NamesOf(rows)), 303);
  EXPECT_EQ(Compare({"v", "v", "t1003"}), 3) << "few, and one of them twice";
}

TEST_F(Many, StringsAndMissingNamesAreErrors) {
  auto rows = SmallRows(200);
  rows.emplace_back("w", PatternStrings(Shape({3}), 1));
  Save(rows);
  auto names = NamesOf(rows);
  names.push_back("x");
  const auto read = ReadMany(*Open(), names);
  EXPECT_TRUE(read[199].ok());
  EXPECT_TRUE(absl::IsInvalidArgument(read[200].status())) << read[200].status();
  EXPECT_TRUE(absl::IsNotFound(read[201].status())) << read[201].status();
  const std::vector<absl::string_view> views(names.begin(), names.end());
  size_t found = 0;
  const absl::Status missing =
      Open()->FindMany(views, [&](size_t i, DataType dtype, const Shape& shape) {
        EXPECT_EQ(i, found++);
        EXPECT_EQ(dtype, rows[i].second.dtype());
        EXPECT_EQ(shape, rows[i].second.shape());
        return absl::OkStatus();
      });
  EXPECT_EQ(found, rows.size());
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.message(), HasSubstr("Key x not found in checkpoint"));
}

TEST_F(Many, ADamagedByteFailsOnlyItsTensor) {
  const auto rows = SmallRows(500);
  Save(rows);
  const auto names = NamesOf(rows);
  std::string* const data = files_.Contents("/m.data-00000-of-00001");
  for (const size_t place : {size_t{0}, data->size() / 2, data->size() - 1}) {
    (*data)[place] ^= 1;
    EXPECT_EQ(Compare(names), 499);
    (*data)[place] ^= 1;
  }
  data->resize(data->size() - 1);
  EXPECT_EQ(Compare(names), 499) << "a byte is missing";
}

// An adversarial index: entries of any location and size, with the checksums of the bytes there.
TEST_F(Many, AdversarialEntriesAreHarmless) {
  std::mt19937 random(7);
  std::string shards[3];
  for (int shard = 0; shard < 3; ++shard) {
    for (int i = 0; i < 500'000; ++i) shards[shard].push_back(static_cast<char>(random()));
    files_.Create(absl::StrCat("/m.data-0000", shard, "-of-00003")).status().IgnoreError();
    *files_.Contents(absl::StrCat("/m.data-0000", shard, "-of-00003")) = shards[shard];
  }
  std::vector<std::pair<std::string, BundleEntry>> entries;
  std::vector<std::string> names;
  int sound = 0;
  for (int i = 0; i < 600; ++i) {
    BundleEntry entry;
    entry.dtype = DT_INT8;
    entry.shard = static_cast<int>(random() % 3);
    entry.offset = static_cast<int64_t>(random() % 500'000);
    entry.size = static_cast<int64_t>(random() % (i % 3 == 0 ? 100 : 70'000));
    if (i % 50 == 1) entry.size = int64_t{1} << 61;
    if (i % 50 == 2) entry.offset = (int64_t{1} << 62) + i;
    if (i % 50 == 3) entry.shard = 3;
    const bool inside =
        entry.shard < 3 && entry.offset <= 500'000 && entry.size <= 500'000 - entry.offset;
    entry.shape = Shape({entry.size + (i % 50 == 4 ? 1 : 0)});
    if (inside) {
      entry.crc =
          MaskCrc32c(ExtendCrc32c(0, shards[entry.shard].data() + entry.offset, entry.size));
      sound += i % 50 == 4 ? 0 : 1;
    }
    names.push_back(Name(i));
    entries.emplace_back(names.back(), entry);
  }
  Write(entries, 3);
  EXPECT_EQ(Compare(names), sound);
  EXPECT_GT(sound, 400);
}

// Entries in the encoding of common writers are parsed without protobuf, others with it.
TEST(BundleEntry, AcceptsFieldsInAnyOrderAndUnknownFields) {
  BundleEntry entry;
  entry.dtype = DT_DOUBLE;
  entry.shape = Shape({3, 0, 300});
  entry.shard = 2;
  entry.offset = int64_t{1} << 40;
  entry.crc = 0x12345678;
  const std::string plain = internal::SerializeBundleEntry(entry);
  const std::string dtype = plain.substr(0, 2), rest = plain.substr(2);
  const std::string unknown = "\x50\x01";
  for (const std::string& bytes :
       {plain, rest + dtype, plain + unknown, unknown + plain, dtype + plain}) {
    const auto read = internal::ParseBundleEntry(bytes, "k", "f");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(internal::SerializeBundleEntry(*read), plain);
  }
  for (size_t size = 0; size + 1 < plain.size(); ++size) {
    const auto cut = internal::ParseBundleEntry(plain.substr(0, size), "k", "f");
    EXPECT_FALSE(cut.ok() && internal::SerializeBundleEntry(*cut) == plain) << size;
  }
}

TEST(BundleEntry, InvalidEntryIsDataLossWithTheKey) {
  BundleEntry entry;
  entry.dtype = DT_DOUBLE;
  entry.shape = Shape({3});
  entry.crc = 1;
  const std::string plain = internal::SerializeBundleEntry(entry);
  ASSERT_EQ(plain[1], DT_DOUBLE);
  std::string wrong = plain;
  wrong[1] = 99;
  const absl::Status status = internal::ParseBundleEntry(wrong, "k", "f").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(), HasSubstr("f: entry of k: unknown dtype 99"));
}

}  // namespace
}  // namespace weir
