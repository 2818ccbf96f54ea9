#include "weir/core/io/npy.h"

#include <complex>
#include <string>

#include "gtest/gtest.h"
#include "weir/core/io/file.h"

namespace weir {
namespace {

// Returns a file of the given format version, with the header that NumPy writes.
std::string File(const std::string& dict, const std::string& elements, int version = 1) {
  std::string header = dict + "\n";
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(version);
  out += '\0';
  out += static_cast<char>(header.size());
  out += std::string(version == 1 ? 1 : 3, '\0');
  return out + header + elements;
}
std::string Dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

template <class T>
void ExpectRoundTrip(const Tensor& tensor) {
  const auto bytes = SerializeNpy(tensor);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->size() % 64, tensor.num_bytes() % 64) << "elements are not aligned";
  const auto back = ParseNpy(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(IdenticalTensors(tensor, *back)) << back->Description();
}

TEST(Npy, EveryPlainTypeRoundTrips) {
  ExpectRoundTrip<bool>(Tensor::Of<bool>({2, 1}, {true, false}));
  ExpectRoundTrip<int8_t>(Tensor::Vector<int8_t>({-128, 127}));
  ExpectRoundTrip<int16_t>(Tensor::Vector<int16_t>({-300}));
  ExpectRoundTrip<int32_t>(Tensor::Scalar<int32_t>(7));
  ExpectRoundTrip<int64_t>(Tensor::Of<int64_t>({1, 2, 1}, {int64_t{1} << 40, -1}));
  ExpectRoundTrip<uint8_t>(Tensor::Vector<uint8_t>({255}));
  ExpectRoundTrip<uint16_t>(Tensor::Vector<uint16_t>({65535}));
  ExpectRoundTrip<uint32_t>(Tensor::Vector<uint32_t>({4000000000u}));
  ExpectRoundTrip<uint64_t>(Tensor::Vector<uint64_t>({~uint64_t{0}}));
  ExpectRoundTrip<half>(Tensor::Vector<half>({half(0.5f), half(-2.f)}));
  ExpectRoundTrip<float>(Tensor::Of<float>({0, 3}, {}));
  ExpectRoundTrip<double>(Tensor::Of<double>({2, 2}, {1, 2, 3, 4}));
  ExpectRoundTrip<std::complex<float>>(Tensor::Vector<std::complex<float>>({{1, -2}}));
  ExpectRoundTrip<std::complex<double>>(Tensor::Vector<std::complex<double>>({{1, -2}}));
}

TEST(Npy, HeaderIsTheOneNumPyWrites) {
  const auto bytes = SerializeNpy(Tensor::Of<float>({3}, {1, 2, 3}));
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }");
  EXPECT_EQ((*bytes)[127], '\n');
  EXPECT_EQ(bytes->size(), 128u + 12);
}

TEST(Npy, AllHeaderVersionsAreRead) {
  for (const int version : {1, 2, 3}) {
    const auto t = ParseNpy(File(Dict("|u1", "(2,)"), "ab", version));
    ASSERT_TRUE(t.ok()) << version << ": " << t.status();
    EXPECT_EQ(t->data<uint8_t>()[1], 'b');
  }
}

TEST(Npy, FortranOrderBecomesRowMajor) {
  const std::string columns("\0\3\1\4\2\5", 6);  // [[0 1 2] [3 4 5]] in column-major order
  const auto t = ParseNpy(File(Dict("|i1", "(2, 3)", true), columns));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_TRUE(IdenticalTensors(*t, Tensor::Of<int8_t>({2, 3}, {0, 1, 2, 3, 4, 5})));
}

TEST(Npy, BigEndianIsSwappedNumberByNumber) {
  const auto ints = ParseNpy(File(Dict(">i4", "(1,)"), std::string("\0\0\1\2", 4)));
  ASSERT_TRUE(ints.ok()) << ints.status();
  EXPECT_EQ(ints->data<int32_t>()[0], 258);
  const auto complex = ParseNpy(File(Dict(">c8", "()"), std::string("\x3f\x80\0\0\x40\0\0\0", 8)));
  ASSERT_TRUE(complex.ok()) << complex.status();
  EXPECT_EQ(complex->scalar<std::complex<float>>(), std::complex<float>(1, 2));
}

TEST(Npy, StringsLoseTheirPadding) {
  const auto bytes = ParseNpy(File(Dict("|S3", "(2,)"), std::string("ab\0\xff\0c", 6)));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(
      IdenticalTensors(*bytes, Tensor::Vector<std::string>({"ab", std::string("\xff\0c", 3)})));
  const std::string little("\xe9\0\0\0\0\xf6\1\0\0\0\0\0", 12),
      big("\0\0\0\xe9\0\1\xf6\0\0\0\0\0", 12);
  for (const auto& [code, elements] : {std::pair{"<U3", little}, {">U3", big}}) {
    const auto text = ParseNpy(File(Dict(code, "()"), elements));
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->scalar<std::string>(), "\xc3\xa9\xf0\x9f\x98\x80");
  }
  const auto columns = ParseNpy(File(Dict("|S1", "(2, 2)", true), "acbd"));
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_TRUE(IdenticalTensors(*columns, Tensor::Of<std::string>({2, 2}, {"a", "b", "c", "d"})));
}

TEST(Npy, BooleansAreZeroOrOneWhateverTheFileSays) {
  const auto t = ParseNpy(File(Dict("|b1", "(2,)"), std::string("\7\0", 2)));
  ASSERT_TRUE(t.ok());
  EXPECT_EQ(static_cast<const uint8_t*>(t->raw())[0], 1);
}

TEST(Npy, Bfloat16TravelsAsBitsInANamedFile) {
  const std::string path = testing::TempDir() + "/x.bf16.npy";
  const Tensor t = Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-3.f)});
  ASSERT_TRUE(WriteNpy(path, t).ok());
  const auto back = ReadNpy(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(IdenticalTensors(t, *back));
  EXPECT_EQ(WriteNpy(testing::TempDir() + "/x.npy", t).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Npy, QuantizedIntegersAreStoredPlain) {
  const auto bytes = SerializeNpy(Tensor::Vector<int8_t>({-3}).BitcastTo(DT_QINT8));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(ParseNpy(*bytes)->dtype(), DT_INT8);
}

TEST(Npy, MalformedFilesAreRejectedWithAReason) {
  const std::string good = File(Dict("<f4", "(2,)"), "12345678");
  ASSERT_TRUE(ParseNpy(good).ok());
  const std::string bad[] = {
      "",
      "PK\3\4",
      std::string("\x93NUMPY\1\0\xff\xff", 10),
      File(Dict("<f4", "(2,)"), "1234567"),
      File(Dict("<f4", "(2,)"), "123456789"),
      File(Dict("<f4", "(-2,)"), ""),
      File(Dict("<f4", "(9223372036854775807, 9223372036854775807)"), ""),
      File(Dict("<f4", "(99999999999999999999,)"), ""),
      File(Dict("<f4", "(2305843009213693952,)"), ""),
      File(Dict("|O", "(1,)"), "12345678"),
      File(Dict("<", "(1,)"), "12345678"),
      File(Dict("<U3", "(1,)"), "123456781234"),  // no code points
      File(Dict("|S3", "(2,)"), "12345"),
      File(Dict("|S0", "(1000000000000,)"), ""),
      File(Dict("|S3", "(6148914691236517206,)"), ""),
      File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "12345678"),
      File("{'descr': '<f4', 'shape': (2,), }", "12345678"),
      File("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678"),
      File("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "12345678"),
      File(Dict("<f4", "(2,)"), "12345678", 4),
  };
  for (const std::string& bytes : bad) {
    const auto t = ParseNpy(bytes);
    ASSERT_FALSE(t.ok()) << bytes;
    EXPECT_EQ(t.status().code(), absl::StatusCode::kInvalidArgument) << t.status();
    EXPECT_FALSE(t.status().message().empty());
  }
  for (size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_FALSE(ParseNpy(good.substr(0, cut)).ok()) << cut;
}

TEST(Npy, ErrorsNameTheFile) {
  const std::string path = testing::TempDir() + "/broken.npy";
  ASSERT_TRUE(WriteFileAtomically(path, "no array").ok());
  EXPECT_NE(ReadNpy(path).status().message().find("broken.npy"), absl::string_view::npos);
  EXPECT_EQ(ReadNpy(testing::TempDir() + "/missing.npy").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Npy, StringsAreAsLongAsTheLongest) {
  const Tensor texts = Tensor::Of<std::string>({2, 1}, {"", std::string("a\0\xff", 3)});
  const auto bytes = SerializeNpy(texts);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_NE(bytes->find("'descr': '|S3', 'fortran_order': False, 'shape': (2, 1)"), bytes->npos);
  EXPECT_TRUE(IdenticalTensors(*ParseNpy(*bytes), texts));
  EXPECT_NE(SerializeNpy(Tensor::Scalar(""))->find("'|S1'"), bytes->npos);
  EXPECT_TRUE(
      absl::IsInvalidArgument(SerializeNpy(Tensor::Scalar(std::string("a\0", 2))).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SerializeNpy(Tensor(DT_RESOURCE, {})).status()));
}

TEST(Npy, StringsThatWouldBePaddedTooMuchAreRefused) {
  Tensor texts(DT_STRING, {1 << 12});
  texts.data<std::string>()[0] = std::string(1 << 20, 'a');
  EXPECT_TRUE(absl::IsResourceExhausted(SerializeNpy(texts).status()));
}

TEST(CheckNpySize, ComparesTheHeaderWithTheSize) {
  const std::string bytes = *SerializeNpy(Tensor::Vector<float>({1, 2, 3}));
  const absl::string_view head = absl::string_view(bytes).substr(0, bytes.size() - 12);
  EXPECT_TRUE(CheckNpySize(head, bytes.size()).ok());
  EXPECT_TRUE(CheckNpySize(bytes, bytes.size()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckNpySize(head, bytes.size() + 4)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckNpySize(head, head.size())));
  EXPECT_FALSE(CheckNpySize(head.substr(0, 20), bytes.size()).ok());
}

}  // namespace
}  // namespace weir
