#include "weir/tools/lib/npz.h"

#include <numeric>

#include "gmock/gmock.h"
#include "weir/core/io/file.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns a file that NumPy or Python wrote.
std::string Golden(const std::string& name) {
  const auto bytes = ReadFile("tests/tools/lib/golden/" + name);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

absl::Status ReadStatus(const std::string& bytes, const std::string& name) {
  auto npz = NpzReader::Open(bytes);
  return npz.ok() ? npz->Read(name).status() : npz.status();
}

TEST(Npz, ReadsWhatNumPyStores) {
  auto npz = NpzReader::Open(Golden("stored.npz"));
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_THAT(npz->names(), ElementsAre("names", "x"));
  const auto x = npz->Read("x"), names = npz->Read("names");
  ASSERT_TRUE(x.ok() && names.ok()) << x.status() << names.status();
  EXPECT_TRUE(IdenticalTensors(*x, Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(IdenticalTensors(*names, Tensor::Vector<std::string>({"ab", "c"})));
}

TEST(Npz, ReadsWhatNumPyCompresses) {
  auto npz = NpzReader::Open(Golden("deflated.npz"));
  ASSERT_TRUE(npz.ok()) << npz.status();
  std::vector<int64_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  for (int again = 0; again < 2; ++again) {
    const auto x = npz->Read("x"), y = npz->Read("y");
    ASSERT_TRUE(x.ok() && y.ok()) << x.status() << y.status();
    EXPECT_TRUE(IdenticalTensors(*x, Tensor::Vector<int64_t>(values)));
    EXPECT_TRUE(IdenticalTensors(*y, Tensor::Scalar(0.5)));
  }
}

TEST(Npz, NamesTheArraysThatAreThere) {
  EXPECT_EQ(ReadStatus(Golden("stored.npz"), "z").message(), "no array 'z'; arrays: names, x");
  EXPECT_TRUE(absl::IsNotFound(ReadStatus(Golden("other.zip"), "readme.txt")));
}

TEST(Npz, WrittenArraysAreReadAgain) {
  const std::vector<std::pair<std::string, Tensor>> arrays = {
      {"scope/x", Tensor::Of<float>({2, 1}, {1, 2})},
      {"b", Tensor::Vector<bfloat16>({bfloat16(1.5f)})},
      {"empty", Tensor::Zeros(DT_INT32, {0, 3})},
      {"text", Tensor::Vector<std::string>({"", "a"})}};
  const auto bytes = SerializeNpz(arrays);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto npz = NpzReader::Open(*bytes);
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_EQ(npz->names().size(), arrays.size());
  for (const auto& [name, tensor] : arrays) {
    const auto read = npz->Read(name);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(IdenticalTensors(*read, tensor)) << name;
  }
  EXPECT_EQ(*SerializeNpz(arrays), *bytes) << "the time of day is not written";
}

TEST(Npz, AnArchiveMayBeEmpty) {
  const auto bytes = SerializeNpz({});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto npz = NpzReader::Open(*bytes);
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_THAT(npz->names(), ElementsAre());
  EXPECT_TRUE(absl::IsNotFound(npz->Read("x").status()));
}

TEST(Npz, RefusesToWriteWhatItCannotRead) {
  const Tensor one = Tensor::Scalar(1);
  EXPECT_FALSE(SerializeNpz({{std::string("a\0b", 3), one}}).ok());
  EXPECT_FALSE(SerializeNpz({{std::string(100000, 'a'), one}}).ok());
  EXPECT_THAT(SerializeNpz({{"x", one}, {"x", one}}).status().message(), HasSubstr("'x'"));
  EXPECT_THAT(
      SerializeNpz({{"x", Tensor::Scalar<std::string>(std::string("a\0", 2))}}).status().message(),
      HasSubstr("zero byte"));
}

TEST(Npz, DamageIsFoundByTheChecksum) {
  std::string bytes = Golden("stored.npz");
  const size_t six = bytes.find(std::string("\0\0\xc0\x40", 4));
  ASSERT_NE(six, std::string::npos);
  bytes[six + 2] ^= 1;
  const absl::Status status = ReadStatus(bytes, "x");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("checksum"));
}

TEST(Npz, AFileThatIsCutOffHasNoDirectory) {
  const std::string bytes = Golden("stored.npz");
  const absl::Status status = NpzReader::Open(bytes.substr(0, bytes.size() - 30)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is the file complete?"));
  EXPECT_FALSE(NpzReader::Open("").ok());
}

// The directory's size of a member is a bomb's size until the .npy header says the same.
TEST(Npz, NothingIsAllocatedForASizeThatTheHeaderContradicts) {
  std::string bytes = *SerializeNpz({{"x", Tensor::Vector<float>({1, 2})}});
  const size_t entry = bytes.find("PK\1\2");
  ASSERT_NE(entry, std::string::npos);
  constexpr size_t kSizeOffset = 24;
  bytes.replace(entry + kSizeOffset, 4, std::string("\0\0\0\x70", 4));
  const absl::Status status = ReadStatus(bytes, "x");
  EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsInvalidArgument(status)) << status;
}

TEST(Npz, EncryptedAndOtherwiseCompressedArraysAreRefused) {
  const std::string bytes = Golden("stored.npz");
  const size_t entry = bytes.find("PK\1\2");
  ASSERT_NE(entry, std::string::npos);
  const auto with = [&](size_t offset, char value) {
    std::string changed = bytes;
    changed[entry + offset] = value;
    return ReadStatus(changed, "x");
  };
  constexpr size_t kFlagOffset = 8, kMethodOffset = 10;
  constexpr char kBzip2 = 12;
  EXPECT_TRUE(absl::IsUnimplemented(with(kFlagOffset, 1))) << with(kFlagOffset, 1);
  EXPECT_TRUE(absl::IsUnimplemented(with(kMethodOffset, kBzip2))) << with(kMethodOffset, kBzip2);
}

}  // namespace
}  // namespace weir::tools
