#include <zlib.h>

#include <complex>

#include "weir/ops/lib/array.h"
#include "weir/tests/kernels/lib/recorded.h"

// Bytes, records and serialized tensors.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

void AddRaw(std::vector<OpCase>* rows) {
  const auto decode = [&](const char* label, std::initializer_list<std::string> bytes,
                          const Tensor& out, bool little_endian = true) {
    rows->push_back(
        Row("DecodeRaw", label, {Strings(bytes)}, {out}, {{"little_endian", little_endian}})
            .TypeAttr("out_type")
            .Types({out.dtype()}));
  };
  const std::string one_to_four = "\x01\x02\x03\x04";
  decode("int16", {one_to_four, one_to_four}, Tensor::Of<int16_t>({2, 2}, {513, 1027, 513, 1027}));
  decode("int16_big", {one_to_four}, Tensor::Of<int16_t>({1, 2}, {258, 772}), false);
  decode("uint8", {one_to_four}, Tensor::Of<uint8_t>({1, 4}, {1, 2, 3, 4}));
  decode("int8_big", {"\xff"}, Tensor::Of<int8_t>({1, 1}, {-1}), false);
  decode("uint16", {"\xff\xff"}, Tensor::Of<uint16_t>({1, 1}, {65535}));
  decode("int32", {one_to_four}, Tensor::Of<int32_t>({1, 1}, {67305985}));
  decode("int64_big", {Raw("\x00\x00\x00\x00\x00\x00\x01\x00")}, Tensor::Of<int64_t>({1, 1}, {256}),
         false);
  decode("float", {Raw("\x00\x00\x80?")}, Tensor::Of<float>({1, 1}, {1}));
  decode("double_big", {Raw("?\xf0\x00\x00\x00\x00\x00\x00")}, Tensor::Of<double>({1, 1}, {1}),
         false);
  decode("half", {Raw("\x00>")}, Tensor::Of<half>({1, 1}, {half(1.5f)}));
  decode("bfloat16", {Raw("\x80?\x00@")},
         Tensor::Of<bfloat16>({1, 2}, {bfloat16(1.f), bfloat16(2.f)}));
  decode("bool", {Raw("\x00\x01\x02")}, Tensor::Of<bool>({1, 3}, {false, true, true}));
  decode("complex64_big", {Raw("?\x80\x00\x00@\x00\x00\x00")},
         Tensor::Of<std::complex<float>>({1, 1}, {{1, 2}}), false);
  decode("empty_strings", {"", ""}, Tensor(DT_INT32, {2, 0}));
  decode("no_strings", {}, Tensor(DT_INT32, {0, 0}));
  const Tensor ragged = Strings({"\x01\x02\x03", "", "abcdef"});
  const auto padded = [&](const char* label, const Tensor& in, const Tensor& out, bool little) {
    rows->push_back(Row("DecodePaddedRaw", label, {in, Tensor::Scalar<int32_t>(4)}, {out},
                        {{"little_endian", little}})
                        .TypeAttr("out_type")
                        .Types({out.dtype()}));
  };
  padded("little", ragged, Tensor::Of<int16_t>({3, 2}, {513, 3, 0, 0, 25185, 25699}), true);
  padded("big", ragged, Tensor::Of<int16_t>({3, 2}, {258, 768, 0, 0, 24930, 25444}), false);
  padded("bytes", Strings({"ab"}), Tensor::Of<uint8_t>({1, 4}, {97, 98, 0, 0}), true);
  padded("nothing", Strings({0, 2}, {}), Tensor(DT_FLOAT, {0, 2, 1}), true);
}

Tensors CsvDefaults() {
  return {Tensor(DT_FLOAT, {0}), Tensor::Vector<int32_t>({7}), Tensor::Scalar("x")};
}

void AddCsv(std::vector<OpCase>* rows) {
  const auto csv = [&](const char* label, std::initializer_list<std::string> records,
                       std::initializer_list<float> a, std::initializer_list<int32_t> b,
                       std::initializer_list<std::string> c, const Attrs& attrs = {}) {
    rows->push_back(Row("DecodeCSV", label, {Strings(records)},
                        {Tensor::Vector<float>(a), Tensor::Vector<int32_t>(b), Strings(c)}, attrs,
                        CsvDefaults()));
  };
  csv("plain", {"1.5,2,a", "2,,"}, {1.5, 2}, {2, 7}, {"a", "x"});
  csv("quotes", {"1.5,2,\"a,b\"", "2,\"3\",\"a\"\"b\""}, {1.5, 2}, {2, 3}, {"a,b", "a\"b"});
  csv("line_break_in_quotes", {"1,2,\"a\nb\""}, {1}, {2}, {"a\nb"});
  csv("quotes_are_text", {"1,2,\"a\""}, {1}, {2}, {"\"a\""}, {{"use_quote_delim", false}});
  csv("space", {"1 2 3"}, {1}, {2}, {"3"}, {{"field_delim", " "}});
  csv("not_there", {"1,NA,NA"}, {1}, {7}, {"x"}, {{"na_value", "NA"}});
  csv("white_space", {"0x10, 3 ,a", "\n1,2,b"}, {16, 1}, {3, 2}, {"a", "b"});
  const std::vector<int64_t> some = {0, 3, 4};
  csv("columns", {"1.5,2,a,4,x", "2,2,a,5,y,\"z"}, {1.5, 2}, {4, 5}, {"x", "y"},
      {{"select_cols", some}});
  csv("last_column_missing", {"1.5,2,a,4,"}, {1.5}, {4}, {"x"}, {{"select_cols", some}});
  csv("no_records", {}, {}, {}, {});
  rows->push_back(Row("DecodeCSV", "wide_types", {Strings({"1e300,9007199254740993"})},
                      {Tensor::Vector<double>({1e300}), Longs({9007199254740993})}, {},
                      {Tensor(DT_DOUBLE, {0}), Tensor(DT_INT64, {0})}));
}

// `window_bits` is zlib's deflateInit2 argument.
std::string Deflate(const std::string& bytes, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void AddSerialized(std::vector<OpCase>* rows) {
  const auto both = [&](const char* label, const Tensor& tensor, const std::string& bytes) {
    rows->push_back(Row("SerializeTensor", label, {tensor}, {Tensor::Scalar(bytes)}));
    rows->push_back(Row("ParseTensor", label, {Tensor::Scalar(bytes)}, {tensor})
                        .TypeAttr("out_type")
                        .Types({tensor.dtype()}));
  };
  both("float", Tensor::Of<float>({2, 2}, {1, 2, 3, 4}),
       Raw("\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\"\x10\x00\x00\x80?\x00\x00\x00@\x00"
           "\x00@@\x00\x00\x80@"));
  both("string", Strings({"a", "bc"}),
       Raw("\x08\x07\x12\x04\x12\x02\x08\x02"
           "B\x01"
           "aB\x02"
           "bc"));
  both("half", Tensor::Scalar(half(1.5f)), Raw("\x08\x13\x12\x00\"\x02\x00>"));
  both("bool", Tensor::Vector<bool>({true, false}),
       Raw("\x08\n\x12\x04\x12\x02\x08\x02\"\x02\x01\x00"));
  std::string large;
  for (int i = 0; i < 100000; ++i) large += std::to_string(i);
  rows->push_back(Row("DecodeCompressed", "zlib",
                      {Strings({Deflate("hello", 15), Deflate(large, 15)})},
                      {Strings({"hello", large})}, {{"compression_type", "ZLIB"}}));
  // gzip streams may be concatenated; bytes after a zlib stream are ignored.
  rows->push_back(Row("DecodeCompressed", "gzip", {Strings({Deflate("a", 31) + Deflate("b", 31)})},
                      {Strings({"ab"})}, {{"compression_type", "GZIP"}}));
  rows->push_back(Row("DecodeCompressed", "trailing", {Strings({Deflate("a", 15) + "junk", ""})},
                      {Strings({"a", ""})}, {{"compression_type", "ZLIB"}}));
  rows->push_back(Row("DecodeCompressed", "none", {Strings({"x"})}, {Strings({"x"})}));
  const auto json = [&](const char* label, const char* text, const std::string& bytes) {
    rows->push_back(Row("DecodeJSONExample", label, {Strings({text})}, {Strings({bytes})}));
  };
  json("ints", R"({"features":{"feature":{"a":{"int64List":{"value":["5",6]}}}}})",
       "\n\r\n\x0b\n\x01"
       "a\x12\x06\x1a\x04\x08\x05\x08\x06");
  json("bytes", R"({"features":{"feature":{"c":{"bytes_list":{"value":["YQ=="]}}}}})",
       "\n\x0c\n\n\n\x01"
       "c\x12\x05\n\x03\n\x01"
       "a");
  json("empty", "{}", "");
}

std::vector<OpCase> ParsingCases() {
  std::vector<OpCase> rows;
  AddRaw(&rows);
  AddCsv(&rows);
  AddSerialized(&rows);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Parsing, OpSweepTest, testing::ValuesIn(ParsingCases()), OpCaseName);

namespace {

TEST(Parsing, RejectsBytesOfTheWrongLength) {
  const Attrs int16 = {{"out_type", DT_INT16}};
  const auto padded = [&](int32_t length, const char* message) {
    return Rejection{"DecodePaddedRaw", {Strings({"ab"}), Tensor::Scalar(length)}, int16, message};
  };
  ExpectRejections({
      {"DecodeRaw", {Strings({"abc"})}, int16, "not a multiple of 2, the size of int16"},
      {"DecodeRaw", {Strings({"ab", "abcd"})}, int16, "to all be the same size, but element 1"},
      padded(3, "fixed_length (3) must be a multiple of the size of out_type (2)"),
      padded(0, "fixed_length (0) must be greater than zero."),
      padded(-2, "fixed_length (-2) must be greater than zero."),
      {"ParseTensor",
       {Tensor::Scalar("\xff")},
       {{"out_type", DT_FLOAT}},
       "Could not parse `serialized` as TensorProto, base64: /w=="},
      {"ParseTensor", {Tensor::Scalar("")}, {{"out_type", DT_FLOAT}}, ""},
      {"ParseTensor",
       {Strings({""})},
       {{"out_type", DT_FLOAT}},
       "Expected `serialized` to be a scalar, got shape: [1]"},
      {"ParseTensor",
       {Tensor::Scalar(Raw("\x08\x13\x12\x00\"\x02\x00>"))},
       {{"out_type", DT_FLOAT}},
       "Type mismatch between parsed tensor (half) and dtype (float)"},
      {"DecodeCompressed", {Strings({"x"})}, {{"compression_type", "SNAPPY"}}, "are supported"},
      {"DecodeCompressed",
       {Strings({"garbage"})},
       {{"compression_type", "ZLIB"}},
       "inflate() failed with error -3: incorrect header check",
       0,
       absl::StatusCode::kDataLoss},
  });
  for (const char* text : {"", "[]", "{\"x\":1}"}) {
    ExpectRejections({{"DecodeJSONExample", {Strings({text})}, {}, "Error while parsing JSON"}});
  }
}

TEST(Parsing, RejectsMalformedRecords) {
  const struct {
    const char* record;
    Attrs attrs;
    const char* message;
  } rows[] = {
      {"1.5,2,\"a,b\"", {{"use_quote_delim", false}}, "Expect 3 fields but have 4 in record 0"},
      {"1,2", {}, "Expect 3 fields but have 2 in record 0"},
      {"", {}, "Expect 3 fields but have 0 in record 0"},
      {",2,a", {}, "Field 0 is required but missing in record 0!"},
      {"NA,2,a", {{"na_value", "NA"}}, "Field 0 is required but missing in record 0!"},
      {"x,2,a", {}, "Field 0 in record 0 is not a valid float: x"},
      {"1,2.5,a", {}, "Field 1 in record 0 is not a valid int32: 2.5"},
      {"1,2,a\"b", {}, "Unquoted fields cannot have quotes/CRLFs inside"},
      {"1,2,a\r", {}, "Unquoted fields cannot have quotes/CRLFs inside"},
      {"1,2,\"ab", {}, "Quoted field has to end with quote followed by delim or end"},
      {"1,2,\"", {}, "Quoted field has to end with quote followed by delim or end"},
      {"1,2,\"a\"b", {}, "Quote inside a string has to be escaped by another quote"},
      {"1,2,a", {{"field_delim", ",,"}}, "field_delim should be only 1 char"},
      {"1,2,a", {{"select_cols", std::vector<int64_t>{0, 4, 3}}}, "strictly increasing"},
      {"1,2,a", {{"select_cols", std::vector<int64_t>{-1, 3, 4}}}, "non-negative"},
      {"1,2,a", {{"select_cols", std::vector<int64_t>{0, 1}}}, "should match output size"},
      {"1.5,2", {{"select_cols", std::vector<int64_t>{0, 3, 4}}}, "Expect 3 fields but have 1"},
  };
  for (const auto& row : rows) {
    Graph g;
    const Output records = Placeholder(g, DT_STRING);
    Outputs defaults;
    for (const Tensor& t : CsvDefaults()) defaults.push_back(Const(g, t));
    Node* node = AddNode("DecodeCSV", {records, defaults}, row.attrs);
    ASSERT_NE(node, nullptr) << g.status();
    const auto out = Evaluate(g, {{records, Strings({row.record})}}, {node->output(0)});
    EXPECT_TRUE(absl::IsInvalidArgument(out.status())) << row.record;
    EXPECT_NE(out.status().message().find(row.message), std::string::npos) << out.status();
  }
}

}  // namespace

}  // namespace weir
