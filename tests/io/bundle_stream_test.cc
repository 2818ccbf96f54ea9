#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

// Tensors that are read and written in pieces, and slices that are read alone.
namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::PatternStrings;
using testing::PatternTensor;
using testing::ReadBytes;
using testing::WriteBytes;

Tensor BoxOf(const Tensor& whole, const TensorSlice& slice) {
  const Box box = ResolveSlice(slice, whole.shape());
  Tensor part(whole.dtype(), Shape(box.size));
  CopyBox(whole, ResolveSlice(TensorSlice::Full(whole.rank()), whole.shape()), box, box, &part);
  return part;
}

// Writes `whole` as the tensor "whole", and as "parts" in four parts.
std::string WriteBoth(const Tensor& whole) {
  const std::string prefix = MakeTempDirectory("bundle_stream") + "/m";
  const auto writer = *BundleWriter::Create(prefix);
  for (const char* text : {"0,4:0,7:-", "0,4:7,3:-", "4,1:-:-", "5,1:-:-"}) {
    const TensorSlice slice = *TensorSlice::Parse(text);
    EXPECT_TRUE(writer->AddSlice("parts", whole.shape(), slice, BoxOf(whole, slice)).ok());
  }
  EXPECT_TRUE(writer->Add("text", PatternStrings(Shape({2}), 1)).ok());
  EXPECT_TRUE(writer->Add("whole", whole).ok());
  EXPECT_TRUE(writer->Finish().ok());
  return prefix;
}

// Reads a whole tensor in pieces of `size` bytes.
absl::StatusOr<std::string> ReadInPieces(CheckpointReader& reader, const std::string& name,
                                         size_t total, size_t size) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<TensorStream> stream, reader.Stream(name));
  std::string bytes(total, '\0');
  for (size_t at = 0; at < total; at += size)
    WEIR_RETURN_IF_ERROR(stream->Read(std::min(size, total - at), bytes.data() + at));
  char more[4];
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read(4, more)));
  return bytes;
}

TEST(BundleStream, PiecesAreTheTensor) {
  // All rows of dimension 1 are larger than a stream's block.
  for (const int64_t inner : {5, 420000}) {
    const Tensor whole = PatternTensor(DT_INT8, Shape({6, 10, inner}), 4);
    const std::string want(static_cast<const char*>(whole.raw()), whole.num_bytes());
    const auto reader = *CheckpointReader::Open(WriteBoth(whole));
    for (const char* name : {"whole", "parts"}) {
      for (const size_t size : {whole.num_bytes(), whole.num_bytes() / 4 / 7 * 4}) {
        const auto read = ReadInPieces(*reader, name, want.size(), size);
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_TRUE(*read == want) << name << " in pieces of " << size;
      }
    }
    EXPECT_TRUE(absl::IsInvalidArgument(reader->Stream("text").status()));
    EXPECT_TRUE(absl::IsNotFound(reader->Stream("nothing").status()));
  }
}

TEST(BundleStream, DamageIsFoundByTheLastPiece) {
  const Tensor whole = PatternTensor(DT_FLOAT, Shape({6, 10, 5}), 4);
  const std::string prefix = WriteBoth(whole), data = prefix + ".data-00000-of-00001";
  const std::string intact = ReadBytes(data);
  for (size_t at = 0; at < intact.size(); at += 41) {
    std::string bytes = intact;
    bytes[at] ^= 4;
    WriteBytes(data, bytes);
    const auto reader = *CheckpointReader::Open(prefix);
    int damaged = 0;
    for (const char* name : {"whole", "parts"}) {
      const auto read = ReadInPieces(*reader, name, whole.num_bytes(), 100);
      damaged += read.ok() ? 0 : 1;
      EXPECT_TRUE(read.ok() || absl::IsDataLoss(read.status())) << read.status();
    }
    EXPECT_EQ(damaged, reader->Read("text").ok() ? 1 : 0) << at;
  }
}

TEST(BundleStream, SlicesAloneAreThoseOfTheTensor) {
  const Tensor whole = PatternTensor(DT_INT32, Shape({6, 10, 500}), 4);
  const auto reader = *CheckpointReader::Open(WriteBoth(whole));
  for (const char* name : {"whole", "parts"}) {
    for (const char* text :
         {"-:-:-", "3,2:-:-", "2,3:5,4:-", "1,5:6,3:499,1", "-:-:0,2", "5,1:9,1:7,100"}) {
      const TensorSlice slice = *TensorSlice::Parse(text);
      const auto read = reader->ReadSliceUnverified(name, slice);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(IdenticalTensors(*read, BoxOf(whole, slice))) << name << " " << text;
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      reader->ReadSliceUnverified("whole", *TensorSlice::Parse("6,1:-:-")).status()));
}

// The rest of the file may be damaged or missing.
TEST(BundleStream, ASliceAloneReadsOnlyItsBytes) {
  const Tensor whole = PatternTensor(DT_FLOAT, Shape({6, 10, 5}), 4);
  const std::string prefix = WriteBoth(whole), data = prefix + ".data-00000-of-00001";
  std::string bytes = ReadBytes(data);
  const size_t start = bytes.size() - whole.num_bytes(), row = 50 * sizeof(float);
  for (size_t at = start; at < bytes.size(); ++at) {
    if (at < start + 2 * row || at >= start + 4 * row) bytes[at] = '\xff';
  }
  WriteBytes(data, bytes);
  const auto reader = *CheckpointReader::Open(prefix);
  const TensorSlice slice = *TensorSlice::Parse("2,2:-:-");
  EXPECT_TRUE(absl::IsDataLoss(reader->ReadSlice("whole", slice).status()));
  EXPECT_TRUE(IdenticalTensors(*reader->ReadSliceUnverified("whole", slice), BoxOf(whole, slice)));
}

TEST(BundleWriter, PiecesMakeTheSameFile) {
  const std::string folder = MakeTempDirectory("bundle_writer");
  const Tensor a = PatternTensor(DT_DOUBLE, Shape({30, 7}), 1), none(DT_FLOAT, {0, 3});
  const auto whole = *BundleWriter::Create(folder + "/whole"),
             pieces = *BundleWriter::Create(folder + "/pieces");
  ASSERT_TRUE(whole->Add("a", a).ok());
  ASSERT_TRUE(whole->Add("none", none).ok());
  ASSERT_TRUE(whole->Finish().ok());
  ASSERT_TRUE(pieces->Begin("a", DT_DOUBLE, a.shape()).ok());
  const absl::string_view bytes(static_cast<const char*>(a.raw()), a.num_bytes());
  for (size_t at = 0; at < bytes.size(); at += 11)
    ASSERT_TRUE(pieces->Append(bytes.substr(at, 11)).ok());
  ASSERT_TRUE(pieces->Begin("none", DT_FLOAT, none.shape()).ok());
  ASSERT_TRUE(pieces->Finish().ok());
  for (const char* ending : {".index", ".data-00000-of-00001"})
    EXPECT_EQ(ReadBytes(folder + "/whole" + ending), ReadBytes(folder + "/pieces" + ending));
}

TEST(BundleWriter, PiecesMustBeWhole) {
  const std::string folder = MakeTempDirectory("bundle_writer");
  const auto begun = [&] {
    auto writer = *BundleWriter::Create(folder + "/m");
    EXPECT_TRUE(writer->Begin("a", DT_FLOAT, Shape({2})).ok());
    return writer;
  };
  const auto is_refused = [](const absl::Status& status) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("a lacks 8"));
    return absl::IsFailedPrecondition(status);
  };
  EXPECT_TRUE(is_refused(begun()->Finish()));
  EXPECT_TRUE(is_refused(begun()->Add("b", Tensor::Scalar(1.f))));
  EXPECT_TRUE(is_refused(begun()->Begin("b", DT_FLOAT, Shape({2}))));
  EXPECT_TRUE(is_refused(begun()->Append("123456789")));
  EXPECT_TRUE(absl::IsFailedPrecondition((*BundleWriter::Create(folder + "/m"))->Append("1")));
  const auto writer = *BundleWriter::Create(folder + "/m");
  EXPECT_TRUE(absl::IsInvalidArgument(writer->Begin("s", DT_STRING, Shape({2}))));
  EXPECT_TRUE(Files().List(folder)->empty() || !Files().Exists(folder + "/m.index"));
}

TEST(WriteCheckpointV1, OneTensorAtATimeMakesTheSameFile) {
  const std::string folder = MakeTempDirectory("v1");
  const std::vector<Tensor> tensors = {PatternTensor(DT_FLOAT, Shape({3, 2}), 1),
                                       PatternStrings(Shape({3}), 2)};
  std::vector<SavedSlice> slices;
  std::vector<CheckpointTensor> listed;
  for (size_t i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "b" : "a";
    const Shape& shape = tensors[i].shape();
    slices.push_back({name, shape, TensorSlice::Full(shape.rank()), tensors[i]});
    listed.push_back({name, tensors[i].dtype(), shape, {}});
  }
  ASSERT_TRUE(WriteCheckpointV1(folder + "/whole", slices).ok());
  std::vector<size_t> order;
  const auto read = [&](size_t i) {
    order.push_back(i);
    return tensors[i];
  };
  ASSERT_TRUE(WriteCheckpointV1(folder + "/single", listed, read).ok());
  EXPECT_THAT(order, ::testing::ElementsAre(1, 0));
  EXPECT_EQ(ReadBytes(folder + "/whole"), ReadBytes(folder + "/single"));
  const auto swapped = [&](size_t i) { return tensors[1 - i]; };
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpointV1(folder + "/bad", listed, swapped)));
  EXPECT_FALSE(Files().Exists(folder + "/bad"));
}

}  // namespace
}  // namespace weir
