#include "weir/core/io/bundle.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MakeTempDirectory;
using testing::PatternStrings;
using testing::PatternTensor;
using testing::ReadBytes;

// Writes (name, tensor) rows.
absl::Status Save(const std::string& prefix,
                  const std::vector<std::pair<std::string, Tensor>>& rows) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Create(prefix));
  for (const auto& [name, tensor] : rows) WEIR_RETURN_IF_ERROR(writer->Add(name, tensor));
  return writer->Finish();
}

// Checksums on another thread, preallocation and early writeback do not change the bytes.
TEST(Bundle, BytesDoNotDependOnWriteOptions) {
  std::vector<std::pair<std::string, Tensor>> rows;
  for (int i = 0; i < 20; ++i)
    rows.emplace_back(absl::StrCat("large", i), PatternTensor(DT_FLOAT, Shape({1000003 + i}), i));
  rows.emplace_back("small", PatternTensor(DT_INT64, Shape({7}), 1));
  rows.emplace_back("strings", PatternStrings(Shape({300}), 2));
  const std::string plain = MakeTempDirectory("bundle") + "/m";
  ASSERT_TRUE(Save(plain, rows).ok());
  ThreadPool pool(3);
  for (const Durability durability : {Durability::kSynced, Durability::kUnsynced}) {
    for (const uint64_t reserved : {uint64_t{0}, uint64_t{1000}, uint64_t{100} << 20}) {
      const std::string prefix = MakeTempDirectory("bundle") + "/m";
      const auto writer = *BundleWriter::Create(prefix, durability, &pool);
      writer->Reserve(reserved);
      for (const auto& [name, tensor] : rows) ASSERT_TRUE(writer->Add(name, tensor).ok());
      ASSERT_TRUE(writer->Finish().ok());
      for (const char* part : {".index", ".data-00000-of-00001"})
        EXPECT_EQ(ReadBytes(prefix + part), ReadBytes(plain + part)) << part << reserved;
    }
  }
}

std::unique_ptr<CheckpointReader> Open(const std::string& prefix) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(prefix);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

std::vector<std::string> FilesIn(const std::string& dir) { return *Files().List(dir); }

TEST(Bundle, EveryDtypeRoundTrips) {
  std::vector<std::pair<std::string, Tensor>> rows;
  for (int t = DT_FLOAT; t <= DT_UINT4; ++t) {
    const auto dtype = static_cast<DataType>(t);
    if (!IsPlain(dtype)) continue;
    for (const Shape& shape : {Shape({}), Shape({0, 2}), Shape({3, 2}), Shape({400000})}) {
      rows.emplace_back(absl::StrCat("t/", t, "/", shape.ToString()),
                        PatternTensor(dtype, shape, t));
    }
  }
  rows.emplace_back("strings", PatternStrings(Shape({5, 3}), 2));
  rows.emplace_back("no_strings", PatternStrings(Shape({0}), 2));
  rows.emplace_back("long_string", Tensor::Scalar(std::string(300000, 'x')));
  const std::string prefix = MakeTempDirectory("bundle") + "/m";
  ASSERT_TRUE(Save(prefix, rows).ok());
  const auto reader = Open(prefix);
  for (const auto& [name, tensor] : rows) {
    const auto read = reader->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(IdenticalTensors(*read, tensor)) << name;
  }
  EXPECT_EQ(reader->List()->size(), rows.size());
  const auto report = VerifyBundle(prefix);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_EQ(report->tensors, static_cast<int64_t>(rows.size()));
}

TEST(Bundle, OnlyTheTwoFilesRemain) {
  const std::string dir = MakeTempDirectory("bundle");
  ASSERT_TRUE(Save(dir + "/m", {{"a", Tensor::Scalar(1.0f)}}).ok());
  ASSERT_TRUE(Save(dir + "/m", {{"a", Tensor::Scalar(2.0f)}}).ok());
  EXPECT_THAT(FilesIn(dir), ElementsAre("m.data-00000-of-00001", "m.index"));
  EXPECT_EQ(Open(dir + "/m")->Read("a")->scalar<float>(), 2.0f);
}

TEST(Bundle, AnUnfinishedWriterLeavesNothing) {
  const std::string dir = MakeTempDirectory("bundle");
  { ASSERT_TRUE((*BundleWriter::Create(dir + "/m"))->Add("a", Tensor::Scalar(1.0f)).ok()); }
  EXPECT_THAT(FilesIn(dir), IsEmpty());
}

TEST(Bundle, UnknownKeysAndFilesAreNotFound) {
  const std::string prefix = MakeTempDirectory("bundle") + "/m";
  ASSERT_TRUE(Save(prefix, {{"a", Tensor::Scalar(1.0f)}}).ok());
  const absl::Status key = Open(prefix)->Read("b").status();
  EXPECT_TRUE(absl::IsNotFound(key));
  EXPECT_THAT(key.message(), HasSubstr("Key b not found in checkpoint"));
  EXPECT_THAT(key.message(), HasSubstr(prefix));
  EXPECT_TRUE(absl::IsNotFound(Open(prefix)->Read("").status()));
  const absl::Status file = CheckpointReader::Open(prefix + "x").status();
  EXPECT_TRUE(absl::IsNotFound(file));
  EXPECT_THAT(file.message(), HasSubstr("Failed to find any matching files for " + prefix + "x"));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckpointReader::Open("").status()));
  ASSERT_TRUE(Files().Remove(prefix + ".data-00000-of-00001").ok());
  EXPECT_TRUE(absl::IsNotFound(Open(prefix)->Read("a").status()));
}

TEST(BundleWriter, RejectsUnsupportedTensors) {
  const std::string dir = MakeTempDirectory("bundle");
  EXPECT_TRUE(absl::IsInvalidArgument(BundleWriter::Create("").status()));
  const absl::Status missing = BundleWriter::Create(dir + "/no/such/m").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.message(), HasSubstr(dir + "/no/such"));
  EXPECT_TRUE(BundleWriter::Create(dir + "/one/m").ok());
  const Tensor one = Tensor::Scalar(1.0f);
  const auto add = [&](absl::string_view name, const Tensor& tensor) {
    return (*BundleWriter::Create(dir + "/m"))->Add(name, tensor);
  };
  EXPECT_TRUE(absl::IsInvalidArgument(add("", one)));
  EXPECT_TRUE(absl::IsInvalidArgument(add("r", Tensor(DT_RESOURCE, Shape()))));
  EXPECT_TRUE(absl::IsUnimplemented(add("v", Tensor(DT_VARIANT, Shape()))));
  const auto writer = *BundleWriter::Create(dir + "/m");
  EXPECT_TRUE(writer->Add("a", one).ok());
  const absl::Status twice = writer->Add("a", one);
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(twice.message(), HasSubstr("Adding duplicate key: a"));
  EXPECT_EQ(writer->Finish(), twice) << "errors are sticky";
}

TEST(BundleWriter, SlicesMustFitTheirTensor) {
  const std::string dir = MakeTempDirectory("bundle");
  const Tensor rows = PatternTensor(DT_FLOAT, Shape({2, 3}), 1);
  const auto add = [&](const Shape& full, absl::string_view slice) {
    const auto writer = *BundleWriter::Create(dir + "/m");
    EXPECT_TRUE(writer->AddSlice("p", Shape({5, 3}), *TensorSlice::Parse("0,2:-"), rows).ok());
    return writer->AddSlice("p", full, *TensorSlice::Parse(slice), rows);
  };
  EXPECT_TRUE(add(Shape({5, 3}), "2,2:-").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(add(Shape({5, 3}), "0,2:-"))) << "twice";
  EXPECT_TRUE(absl::IsInvalidArgument(add(Shape({5, 3}), "4,2:-"))) << "outside";
  EXPECT_TRUE(absl::IsInvalidArgument(add(Shape({5, 3}), "2,3:-"))) << "another shape";
  EXPECT_TRUE(absl::IsInvalidArgument(add(Shape({6, 3}), "2,2:-"))) << "another full shape";
  EXPECT_TRUE(absl::IsInvalidArgument(add(Shape({2, 3}), "-:-")))
      << "a slice that is the whole tensor, in addition to slices";
}

TEST(Bundle, SlicesCanBeReadInAnyDivision) {
  const Tensor whole = PatternTensor(DT_INT16, Shape({6, 5}), 4);
  const Box full = ResolveSlice(TensorSlice::Full(2), whole.shape());
  const std::string prefix = MakeTempDirectory("bundle") + "/m";
  {
    const auto writer = *BundleWriter::Create(prefix);
    for (const char* text : {"0,4:0,2", "0,4:2,3", "4,2:-"}) {
      const TensorSlice slice = *TensorSlice::Parse(text);
      Tensor part(DT_INT16, *slice.ShapeIn(whole.shape()));
      const Box box = ResolveSlice(slice, whole.shape());
      CopyBox(whole, full, box, box, &part);
      ASSERT_TRUE(writer->AddSlice("p", whole.shape(), slice, part).ok());
    }
    ASSERT_TRUE(writer->Add("whole", whole).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }
  const auto reader = Open(prefix);
  EXPECT_EQ(reader->List()->size(), 2u);
  EXPECT_EQ(reader->Find("p")->slices.size(), 3u);
  EXPECT_EQ(reader->Find("p")->shape, whole.shape());
  EXPECT_TRUE(IdenticalTensors(*reader->Read("p"), whole));
  for (const char* name : {"p", "whole"}) {
    for (const char* text : {"-:-", "0,4:0,2", "3,2:1,3", "5,1:4,1", "0,6:2,2"}) {
      const TensorSlice slice = *TensorSlice::Parse(text);
      const Box box = ResolveSlice(slice, whole.shape());
      Tensor part(DT_INT16, Shape(box.size));
      CopyBox(whole, full, box, box, &part);
      const auto read = reader->ReadSlice(name, slice);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(IdenticalTensors(*read, part)) << name << " " << text;
    }
    EXPECT_TRUE(
        absl::IsInvalidArgument(reader->ReadSlice(name, *TensorSlice::Parse("5,2:-")).status()));
    EXPECT_TRUE(
        absl::IsInvalidArgument(reader->ReadSlice(name, *TensorSlice::Parse("5,1")).status()));
  }
}

TEST(Bundle, SlicesThatDoNotCoverTheTensorAreDataLoss) {
  const std::string prefix = MakeTempDirectory("bundle") + "/m";
  const auto writer = *BundleWriter::Create(prefix);
  ASSERT_TRUE(writer
                  ->AddSlice("p", Shape({4}), *TensorSlice::Parse("0,2"),
                             PatternTensor(DT_FLOAT, Shape({2}), 1))
                  .ok());
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(absl::IsDataLoss(Open(prefix)->Read("p").status()));
  EXPECT_TRUE(Open(prefix)->ReadSlice("p", *TensorSlice::Parse("1,1")).ok());
  EXPECT_EQ(VerifyBundle(prefix)->problems.size(), 1u);
}

TEST(MergeBundles, MergesPartsAndRemovesThem) {
  const std::string dir = MakeTempDirectory("bundle");
  ASSERT_TRUE(Save(dir + "/t/a", {{"x", Tensor::Scalar(1.0f)}, {"z", Tensor::Scalar(3.0f)}}).ok());
  ASSERT_TRUE(Save(dir + "/t/b", {{"y", Tensor::Scalar(2.0f)}}).ok());
  ASSERT_TRUE(Save(dir + "/t/c", {}).ok());
  ASSERT_TRUE(MergeBundles({dir + "/t/a", dir + "/t/b", dir + "/t/c"}, dir + "/m").ok());
  EXPECT_THAT(FilesIn(dir),
              ElementsAre("m.data-00000-of-00002", "m.data-00001-of-00002", "m.index", "t"));
  EXPECT_THAT(FilesIn(dir + "/t"), IsEmpty());
  const auto reader = Open(dir + "/m");
  EXPECT_EQ(reader->Read("x")->scalar<float>(), 1.0f);
  EXPECT_EQ(reader->Read("y")->scalar<float>(), 2.0f);
  EXPECT_EQ(reader->Read("z")->scalar<float>(), 3.0f);
  EXPECT_THAT(VerifyBundle(dir + "/m")->problems, IsEmpty());
}

TEST(MergeBundles, RejectsDuplicatesAndMissingParts) {
  const std::string dir = MakeTempDirectory("bundle");
  ASSERT_TRUE(Save(dir + "/a", {{"x", Tensor::Scalar(1.0f)}}).ok());
  ASSERT_TRUE(Save(dir + "/b", {{"x", Tensor::Scalar(1.0f)}}).ok());
  const absl::Status twice = MergeBundles({dir + "/a", dir + "/b"}, dir + "/m");
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(twice.message(), HasSubstr("Duplicate tensor keyed by x"));
  EXPECT_TRUE(absl::IsNotFound(MergeBundles({dir + "/a", dir + "/none"}, dir + "/m")));
  EXPECT_TRUE(absl::IsNotFound(MergeBundles({dir + "/none"}, dir + "/m", true)));
  EXPECT_TRUE(MergeBundles({dir + "/none", dir + "/a"}, dir + "/m", true).ok());
  EXPECT_TRUE(Open(dir + "/m")->Read("x").ok());
}

}  // namespace
}  // namespace weir
