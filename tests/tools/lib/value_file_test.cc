#include "weir/tools/lib/value_file.h"

#include <string>

#include "gmock/gmock.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"

namespace weir::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Parsed(const std::string& text, const ValueSpec& spec) {
  const auto t = ParseValue(text, spec);
  return t.ok() ? t->Description() + " " + t->ToString() : t.status().ToString();
}
std::string Parsed(const std::string& text, DataType dtype) {
  return Parsed(text, ValueSpec{.dtype = dtype});
}

// Writes a file of the running test and returns its path.
std::string Write(const std::string& name, absl::string_view contents) {
  const std::string path = JoinPath(testing::TempDir(), name);
  EXPECT_TRUE(MakeDirectories(DirectoryOf(path)).ok());
  EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
  return path;
}

TEST(ParseValue, JsonBecomesTheRequestedType) {
  EXPECT_EQ(Parsed("0.5", DT_FLOAT), "float[] 0.5");
  EXPECT_EQ(Parsed("[[1, 2, 3], [4, 5, 6]]", DT_INT32), "int32[2,3] [[1 2 3]\n [4 5 6]]");
  EXPECT_EQ(Parsed("[true, false]", DT_BOOL), "bool[2] [ True False]");
  EXPECT_EQ(Parsed("[]", DT_FLOAT), "float[0] []");
  EXPECT_EQ(Parsed("-inf", DT_FLOAT), "float[] -inf");
  const auto text = ParseValue("[\"a\", \"b\"]", {.dtype = DT_STRING});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(IdenticalTensors(*text, Tensor::Vector<std::string>({"a", "b"})));
}

TEST(ParseValue, UnrepresentableValuesAreRejected) {
  for (const auto& [text, dtype] : {std::pair<const char*, DataType>{"256", DT_UINT8},
                                    {"-1", DT_UINT32},
                                    {"1.5", DT_INT32},
                                    {"9223372036854775808", DT_INT64},
                                    {"1", DT_BOOL},
                                    {"\"a\"", DT_FLOAT},
                                    {"1", DT_STRING},
                                    {"[[1], [2, 3]]", DT_FLOAT},
                                    {"[1, [2]]", DT_FLOAT},
                                    {"[[1], 2]", DT_FLOAT},
                                    {"{}", DT_FLOAT},
                                    {"nonsense", DT_FLOAT},
                                    {"1", DT_RESOURCE}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseValue(text, {.dtype = dtype}).status())) << text;
  }
  EXPECT_FALSE(ParseValue(std::string(100000, '['), {}).ok());
  EXPECT_FALSE(ParseValue(std::string(100, '[') + std::string(100, ']'), {}).ok());
}

TEST(ParseValue, NamesTheFileThatIsMissing) {
  EXPECT_EQ(Parsed("missing.npy", DT_FLOAT), "NOT_FOUND: missing.npy: no such file");
  EXPECT_EQ(Parsed("@none/missing", DT_STRING),
            "NOT_FOUND: cannot open none/missing: No such file or directory");
  EXPECT_EQ(Parsed("nonsense", DT_STRING),
            "INVALID_ARGUMENT: the value 'nonsense' is neither JSON nor the name of a file; a text "
            "is in quotes: '\"...\"'");
}

TEST(ParseValue, ArraysAreConverted) {
  const std::string path = JoinPath(testing::TempDir(), "halves.npy");
  ASSERT_TRUE(WriteValueFile(path, Tensor::Vector<double>({1, -2.5})).ok());
  EXPECT_EQ(Parsed(path, DT_FLOAT), "float[2] [ 1.  -2.5]");
  EXPECT_EQ(Parsed(path, DT_INT32), "INVALID_ARGUMENT: " + path +
                                        ": element 1 is -2.5 (double), which is not a value of "
                                        "type int32; --round allows rounding");
  EXPECT_EQ(Parsed(path, {.dtype = DT_INT32, .rounding = Rounding::kAllowed}), "int32[2] [ 1 -2]");
  EXPECT_THAT(Parsed(path + ":x", DT_FLOAT), HasSubstr("no member 'x'"));
}

TEST(ParseValue, LinesOfCsvHaveTheTensorsDimensions) {
  const std::string path = Write("six.csv", "1,2,3,4,5,6\n7,8,9,10,11,12\n");
  const auto shape_of = [&](const Shape& shape) {
    const auto t = ParseValue(path, {.shape = shape});
    return t.ok() ? t->shape().ToString() : std::string(t.status().message());
  };
  EXPECT_EQ(shape_of(Shape::UnknownRank()), "[2,6]");
  EXPECT_EQ(shape_of({-1, 2, 3}), "[2,2,3]");
  EXPECT_EQ(shape_of({-1, -1, 3, 1}), "[2,2,3,1]");
  EXPECT_EQ(shape_of({2, 6}), "[2,6]");
  EXPECT_EQ(shape_of({-1, 4}),
            path + ": it has 2 lines of 6 fields, which do not fit the tensor's shape [?,4]");
  for (const Shape& shape : {Shape({3, 6}), Shape({-1}), Shape({}), Shape({-1, -1, -1}),
                             Shape({-1, 0}), Shape({-1, 0, -1})}) {
    EXPECT_THAT(shape_of(shape), HasSubstr("do not fit")) << shape.ToString();
  }
  const std::string line = Write("line.csv", "1,2,3\n");
  EXPECT_EQ(Parsed(line, {.shape = {-1}}), "float[3] [1. 2. 3.]");
}

TEST(ParseValue, AnAtSignReadsBytes) {
  const std::string path = Write("bytes", std::string("\0\xff", 2));
  const auto bytes = ParseValue("@" + path, {.dtype = DT_STRING});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->scalar<std::string>(), std::string("\0\xff", 2));
  EXPECT_EQ(Parsed("@" + path, {.dtype = DT_STRING, .shape = {-1}}).substr(0, 9), "string[1]");
  EXPECT_EQ(Parsed("@" + path, DT_UINT8), "uint8[2] [  0 255]");
  EXPECT_EQ(Parsed("@" + path, DT_INT16), "int16[1] [-256]");
  EXPECT_EQ(Parsed("@" + path, {.dtype = DT_UINT8, .shape = {-1, 2}}), "uint8[1,2] [[  0 255]]");
  EXPECT_EQ(Parsed("@" + path, DT_BOOL), "bool[2] [False  True]");
  EXPECT_THAT(Parsed("@" + path, DT_FLOAT), HasSubstr("no multiple of the 4 bytes"));
  EXPECT_THAT(Parsed("@" + path, {.dtype = DT_UINT8, .shape = {3}}),
              HasSubstr("its 2 elements do not fit the tensor's shape [3]"));
  EXPECT_THAT(Parsed("@" + path, {.dtype = DT_UINT8, .shape = {-1, -1}}),
              HasSubstr("only one dimension may be unknown"));
}

TEST(ParseValue, ContentsTellWhatAFileIs) {
  const auto npy = SerializeNpy(Tensor::Vector<float>({1, -2.5}));
  ASSERT_TRUE(npy.ok()) << npy.status();
  EXPECT_EQ(Parsed(Write("array.data", *npy), DT_FLOAT), "float[2] [ 1.  -2.5]");
  EXPECT_THAT(Parsed(Write("empty.npy", ""), DT_FLOAT), HasSubstr("not a .npy file"));
  EXPECT_THAT(Parsed(Write("unknown", "abc"), DT_FLOAT),
              HasSubstr("its contents are no array (.npy, .npz), image, or TFRecord file"));
  EXPECT_THAT(Parsed(Write("unknown", "abc"), DT_STRING), HasSubstr("abc"));
  EXPECT_THAT(Parsed(Write("broken.gz", "\x1f\x8b\x08 nonsense"), DT_FLOAT),
              HasSubstr("DATA_LOSS"));
}

TEST(BatchFiles, AreThoseOfAFolderOrAPattern) {
  const std::string folder = JoinPath(testing::TempDir(), "batch");
  const std::string b = Write("batch/b.txt", "1"), a = Write("batch/a.txt", "2");
  Write("batch/.hidden", "3");
  EXPECT_THAT(*BatchFiles(folder), ElementsAre(a, b));
  EXPECT_THAT(*BatchFiles("@" + folder), ElementsAre(a, b));
  EXPECT_THAT(*BatchFiles(folder + "/b*"), ElementsAre(b));
  EXPECT_THAT(*BatchFiles(a), ElementsAre());
  EXPECT_THAT(*BatchFiles("\"what?\""), ElementsAre());
  EXPECT_TRUE(absl::IsNotFound(BatchFiles(folder + "/c*").status()));
  EXPECT_EQ(Parsed(folder, {.shape = {-1, 1, 1}}), "float[2,1,1] [[[2.]]\n\n [[1.]]]");
  EXPECT_THAT(Parsed(folder, {.shape = {}}), HasSubstr("the tensor is a scalar"));
  Write("batch/c.txt", "1,2");
  EXPECT_THAT(Parsed(folder, DT_FLOAT), HasSubstr("values of one shape"));
  Write("batch/inner/d.txt", "1");
  EXPECT_THAT(Parsed(folder, DT_FLOAT), HasSubstr("it has the folder inner in it"));
}

TEST(ValueNames, AreThoseOfArraysColumnsAndMembers) {
  EXPECT_THAT(*ValueNames("tests/tools/lib/golden/stored.npz"), ElementsAre("names", "x"));
  EXPECT_THAT(*ValueNames(Write("named.csv", "b,a\n1,2\n")), ElementsAre("b", "a"));
  EXPECT_THAT(*ValueNames(Write("named.json", "{\"y\": 1, \"x\": 2}")), ElementsAre("x", "y"));
  EXPECT_THAT(ValueNames(Write("list.json", "[1]")).status().message(),
              HasSubstr("it has no named values"));
}

TEST(ValueFile, StringsRoundTripWithAnyBytes) {
  const std::string path = testing::TempDir() + "/strings.json";
  const Tensor t = Tensor::Of<std::string>({1, 2}, {std::string("\0\xff", 2), ""});
  ASSERT_TRUE(WriteValueFile(path, t).ok());
  const auto back = ReadValueFile(path);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(IdenticalTensors(t, *back));
}

TEST(ValueFile, MalformedStringsAreRejectedWithTheirFile) {
  for (const char* json :
       {"", "[]", "{\"shape\": [2], \"data_base64\": [\"YQ==\"]}",
        "{\"shape\": [-1], \"data_base64\": []}", "{\"shape\": [1], \"data_base64\": [\"*\"]}",
        "{\"shape\": [1], \"data_base64\": [1]}", "{\"shape\": [1.5], \"data_base64\": [\"\"]}"}) {
    const std::string path = testing::TempDir() + "/bad.json";
    ASSERT_TRUE(WriteFileAtomically(path, json).ok());
    const auto t = ReadValueFile(path);
    EXPECT_EQ(t.status().code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_NE(t.status().message().find("bad.json"), absl::string_view::npos);
  }
}

TEST(AsCarrier, OnlyIntegersOfTheSameSizeChange) {
  EXPECT_EQ(AsCarrier(Tensor::Vector<int8_t>({1}), DT_QINT8).dtype(), DT_QINT8);
  EXPECT_EQ(AsCarrier(Tensor::Vector<int8_t>({1}), DT_QINT32).dtype(), DT_INT8);
  EXPECT_EQ(AsCarrier(Tensor::Vector<float>({1}), DT_QINT32).dtype(), DT_FLOAT);
  EXPECT_EQ(AsCarrier(Tensor::Vector<int32_t>({1}), DT_FLOAT).dtype(), DT_INT32);
}

}  // namespace
}  // namespace weir::tools
