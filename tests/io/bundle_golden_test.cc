#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

// Files written by TensorFlow (golden/make_goldens.py): Weir writes the same bytes, and reads them.
namespace weir {
namespace {

using testing::MakeTempDirectory;
using testing::PatternStrings;
using testing::PatternTensor;
using testing::ReadBytes;

constexpr char kGolden[] = "tests/io/golden/";

struct Row {
  std::string name, slice;
  Tensor tensor;
};

void Save(const std::string& prefix, const std::vector<Row>& rows) {
  const auto writer = BundleWriter::Create(prefix);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const Row& row : rows) {
    if (row.slice.empty()) {
      ASSERT_TRUE((*writer)->Add(row.name, row.tensor).ok()) << row.name;
    } else {
      const auto parsed = ShapeAndSlice::Parse(row.slice);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      ASSERT_TRUE((*writer)->AddSlice(row.name, parsed->shape, parsed->slice, row.tensor).ok())
          << row.name;
    }
  }
  ASSERT_TRUE((*writer)->Finish().ok());
}

// Returns true if both files are equal; otherwise prints where they first differ.
void ExpectSameFile(const std::string& ours, const std::string& theirs) {
  const std::string a = ReadBytes(ours), b = ReadBytes(theirs);
  const size_t n = std::min(a.size(), b.size());
  const size_t at = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(n), b.begin()).first - a.begin());
  EXPECT_TRUE(a == b) << ours << " (" << a.size() << " bytes) and " << theirs << " (" << b.size()
                      << " bytes) differ at offset " << at;
}

std::vector<Row> AllDtypes() {
  std::vector<Row> rows;
  std::map<std::string, DataType> dtypes;  // sorted by name, as in the script
  for (int t = DT_FLOAT; t <= DT_UINT4; ++t) {
    const auto dtype = static_cast<DataType>(t);
    if (IsPlain(dtype) && (dtype < DT_FLOAT8_E4M3FNUZ || dtype > DT_FLOAT8_E5M2FNUZ)) {
      dtypes[DataTypeName(dtype)] = dtype;
    }
  }
  int seed = 0;
  for (const auto& [name, dtype] : dtypes) {
    rows.push_back({"t/" + name + "/", "", PatternTensor(dtype, Shape(), seed)});
    rows.push_back({"t/" + name + "/0x3", "", PatternTensor(dtype, Shape({0, 3}), seed)});
    rows.push_back({"t/" + name + "/2x3", "", PatternTensor(dtype, Shape({2, 3}), seed)});
    ++seed;
  }
  rows.push_back({"t/string/", "", PatternStrings(Shape(), 0)});
  rows.push_back({"t/string/0", "", PatternStrings(Shape({0}), 1)});
  rows.push_back({"t/string/5x2", "", PatternStrings(Shape({5, 2}), 2)});
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
  return rows;
}

TEST(BundleGolden, AllDtypesHaveTensorFlowsBytes) {
  const std::string prefix = MakeTempDirectory("golden") + "/all_dtypes";
  Save(prefix, AllDtypes());
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    ExpectSameFile(prefix + suffix, absl::StrCat(kGolden, "all_dtypes", suffix));
  }
}

TEST(BundleGolden, AllDtypesAreReadFromTensorFlowsFile) {
  const auto reader = CheckpointReader::Open(absl::StrCat(kGolden, "all_dtypes"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const Row& row : AllDtypes()) {
    const auto read = (*reader)->Read(row.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(IdenticalTensors(*read, row.tensor)) << row.name;
  }
  EXPECT_TRUE(VerifyBundle(absl::StrCat(kGolden, "all_dtypes"))->problems.empty());
}

Tensor Part(const Tensor& whole, absl::string_view slice) {
  const Box box = ResolveSlice(*TensorSlice::Parse(slice), whole.shape());
  Tensor out(whole.dtype(), Shape(box.size));
  CopyBox(whole, ResolveSlice(TensorSlice::Full(whole.rank()), whole.shape()), box, box, &out);
  return out;
}

TEST(BundleGolden, MergedShardsWithSlicesHaveTensorFlowsBytes) {
  const std::string dir = MakeTempDirectory("golden");
  const std::string a = dir + "/t/part-00000-of-00002", b = dir + "/t/part-00001-of-00002",
                    merged = dir + "/parts";
  const Tensor whole = PatternTensor(DT_FLOAT, Shape({7, 4}), 3);
  const Tensor text = PatternStrings(Shape({4}), 9);
  Save(a, {{"p", "7 4 0,3:0,2", Part(whole, "0,3:0,2")},
           {"p", "7 4 0,3:2,2", Part(whole, "0,3:2,2")},
           {"q", "7 4 -:0,4", whole},
           {"text", "4 0,1", Part(text, "0,1")},
           {"z", "", PatternTensor(DT_INT64, Shape({300}), 1)}});
  Save(b, {{"a", "", PatternTensor(DT_DOUBLE, Shape({3}), 2)},
           {"p", "7 4 3,4:-", Part(whole, "3,4:-")},
           {"text", "4 1,3", Part(text, "1,3")}});
  ASSERT_TRUE(MergeBundles({a, b}, merged).ok());
  for (const char* suffix : {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
    ExpectSameFile(merged + suffix, absl::StrCat(kGolden, "parts", suffix));
  }
  const auto reader = CheckpointReader::Open(absl::StrCat(kGolden, "parts"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("p"), whole));
  EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("text"), text));
  EXPECT_TRUE(VerifyBundle(absl::StrCat(kGolden, "parts"))->problems.empty());
}

TEST(BundleGolden, IndexesOfSeveralBlocksAndHugeKeysHaveTensorFlowsChecksums) {
  const std::string dir = MakeTempDirectory("golden");
  std::vector<Row> rows;
  for (int i = 0; i < 15000; ++i) {
    rows.push_back(
        {absl::StrFormat("layer_%05d/weights_%s", i, std::string(static_cast<size_t>(i % 50), 'x')),
         "", PatternTensor(DT_FLOAT, Shape({i % 3}), i)});
  }
  Save(dir + "/many", rows);
  for (const size_t length : {524270, 524271}) {
    rows.clear();
    for (const std::string& name :
         {std::string("a"), std::string(length, 'b'), std::string("c"), std::string("d")}) {
      rows.push_back({name, "", PatternTensor(DT_FLOAT, Shape({2}), 1)});
    }
    Save(absl::StrCat(dir, "/long", length), rows);
  }
  std::string lines;
  for (const char* name : {"many", "long524270", "long524271"}) {
    for (const char* suffix : {".index", ".data-00000-of-00001"}) {
      const std::string bytes = ReadBytes(absl::StrCat(dir, "/", name, suffix));
      absl::StrAppend(&lines, name, suffix, " ", bytes.size(),
                      absl::StrFormat(" %08x\n", Crc32c(bytes)));
    }
  }
  EXPECT_EQ(lines, ReadBytes(absl::StrCat(kGolden, "large.txt")));
}

SavedSlice Whole(const std::string& name, const Tensor& tensor) {
  return {name, tensor.shape(), TensorSlice::Full(tensor.rank()), tensor};
}

std::vector<SavedSlice> V1Dtypes() {
  std::vector<SavedSlice> rows;
  int seed = 0;
  for (const char* name : {"bool", "complex128", "complex64", "double", "float", "half", "int16",
                           "int32", "int64", "int8", "qint32", "qint8", "quint8", "uint8"}) {
    rows.push_back(Whole(name, PatternTensor(DataTypeFromName(name), Shape({2, 3}), seed++)));
  }
  rows.push_back(Whole("string", PatternStrings(Shape({3}), 4)));
  rows.push_back(Whole("scalar", PatternTensor(DT_FLOAT, Shape(), 1)));
  return rows;
}

TEST(CheckpointV1, EveryDtypeIsRead) {
  const auto reader = CheckpointReader::Open(absl::StrCat(kGolden, "v1"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const SavedSlice& row : V1Dtypes()) {
    const auto read = (*reader)->Read(row.name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(IdenticalTensors(*read, row.tensor)) << row.name;
  }
  EXPECT_EQ((*reader)->List()->size(), V1Dtypes().size());
  EXPECT_TRUE(absl::IsNotFound((*reader)->Read("none").status()));
}

TEST(CheckpointV1, EveryDtypeHasTensorFlowsBytes) {
  const std::string path = MakeTempDirectory("golden") + "/v1";
  ASSERT_TRUE(WriteCheckpointV1(path, V1Dtypes()).ok());
  ExpectSameFile(path, absl::StrCat(kGolden, "v1"));
}

TEST(CheckpointV1, SlicesHaveTensorFlowsBytes) {
  const std::string path = MakeTempDirectory("golden") + "/p";
  const Tensor whole = PatternTensor(DT_FLOAT, Shape({7, 4}), 3);
  for (const char* slice : {"0,3:-", "3,4:-"}) {
    ASSERT_TRUE(WriteCheckpointV1(
                    path, {{"p", whole.shape(), *TensorSlice::Parse(slice), Part(whole, slice)}})
                    .ok());
    ExpectSameFile(path, absl::StrCat(kGolden, "v1_parts-0000", slice[0] == '3', "-of-00002"));
  }
}

TEST(CheckpointV1, RejectsUnsupportedValues) {
  const std::string path = MakeTempDirectory("golden") + "/v1";
  const SavedSlice x = Whole("x", Tensor::Vector<float>({1, 2}));
  SavedSlice part = x;
  part.slice = *TensorSlice::Parse("0,1");
  const auto code = [&](const std::vector<SavedSlice>& slices) {
    return WriteCheckpointV1(path, slices).code();
  };
  EXPECT_EQ(code({x, x}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({part}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({x, Whole("x", Tensor::Scalar(1.0f))}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({x, Whole("x", Tensor::Vector<double>({1, 2}))}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Whole("x", Tensor::Zeros(DT_BFLOAT16, Shape({2})))}),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(WriteCheckpointV1("", {x}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteCheckpointV1(path + "/none/x", {x}).code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Files().Exists(path));
}

TEST(CheckpointV1, SlicesAreReadFromShards) {
  const auto reader = CheckpointReader::Open(absl::StrCat(kGolden, "v1_parts-*-of-00002"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Tensor whole = PatternTensor(DT_FLOAT, Shape({7, 4}), 3);
  EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("p"), whole));
  EXPECT_TRUE(IdenticalTensors(*(*reader)->ReadSlice("p", *TensorSlice::Parse("2,3:1,2")),
                               Part(whole, "2,3:1,2")));
  const auto half = CheckpointReader::Open(absl::StrCat(kGolden, "v1_parts-00000-of-00002"));
  EXPECT_TRUE(absl::IsDataLoss((*half)->Read("p").status()));
}

}  // namespace
}  // namespace weir
