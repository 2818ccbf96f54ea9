#include "weir/tools/data/record_csv.h"

#include "gmock/gmock.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> ReadCsv(const std::string& text,
                                                 const FeatureKinds& kinds = {}) {
  const std::string path = TestFolder() + "/table.csv";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  std::vector<std::string> lines;
  const DataFile file{.path = path, .form = FileForm::kCsv};
  WEIR_RETURN_IF_ERROR(
      ForEachCsvRecord(file, {}, kinds, [&](const std::string& record) -> absl::StatusOr<bool> {
        lines.push_back(JsonFromRecord(record));
        return true;
      }).status());
  return lines;
}

std::string ErrorOf(const std::string& text) {
  const auto lines = ReadCsv(text);
  EXPECT_TRUE(absl::IsInvalidArgument(lines.status())) << lines.status();
  return std::string(lines.status().message());
}

using Lines = std::vector<std::string>;

TEST(RecordCsv, TheHeaderHasTheKinds) {
  EXPECT_EQ(*ReadCsv("a:int64,b:float,c:bytes\n1,2,3\n,[],\"[\"\"x\"\",\"\"y\"\"]\"\n"),
            (Lines{R"({"a": [1], "b": [2.0], "c": ["3"]})",
                   R"({"b": {"float_list": []}, "c": ["x", "y"]})"}));
}

TEST(RecordCsv, OtherwiseTheNarrowestKindOfAllCells) {
  EXPECT_EQ(*ReadCsv("i,f,id,big,n\r\n1,2,007,1,\r\n-3,1e-3,7,99999999999999999999,\r\n"),
            (Lines{R"({"big": ["1"], "f": [2.0], "i": [1], "id": ["007"]})",
                   R"({"big": ["99999999999999999999"], "f": [0.001], "i": [-3], "id": ["7"]})"}));
  EXPECT_EQ(*ReadCsv("a\n1\n", {{"a", FeatureKind::kFloat}}), Lines{R"({"a": [1.0]})"});
}

TEST(RecordCsv, QuotedFieldsMaySpanLines) {
  EXPECT_EQ(*ReadCsv("\xef\xbb\xbf\"a,\",b\n\"x\n\"\"y\"\"\",2\n"),
            Lines{R"({"a,": ["x\n\"y\""], "b": [2]})"});
}

TEST(RecordCsv, ErrorsHaveTheLine) {
  EXPECT_THAT(ErrorOf("a,b\n1,2\n3\n"), HasSubstr("line 3: 1 fields, but the header has 2"));
  EXPECT_THAT(ErrorOf("a:int64\n1.5\n"), HasSubstr("line 2: column 'a'"));
  EXPECT_THAT(ErrorOf("a:float\n1e39\n"), HasSubstr("'1e39' is not of kind float"));
  EXPECT_THAT(ErrorOf("a,a\n"), HasSubstr("two columns 'a'"));
  EXPECT_THAT(ErrorOf("a,\n"), HasSubstr("a column without a name"));
  EXPECT_THAT(ErrorOf("\xff\n"), HasSubstr("the header is not UTF-8"));
  EXPECT_THAT(ErrorOf("a\n\"x\n"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(ErrorOf("a\n[1\n"), HasSubstr("column 'a'"));
}

TEST(RecordCsv, RowsReadBackTheSame) {
  const std::vector<CsvColumn> columns = {{"a", FeatureKind::kBytes},
                                          {"b, c", FeatureKind::kFloat}};
  for (const char* const line :
       {R"({"a": ["plain"], "b, c": [1.5]})", R"({"a": [""]})", R"({"a": ["[x", "\n"]})",
        R"({"a": ["[x"]})", R"({"a": ["x\r\ny"]})", R"({"a": [" spaces "]})",
        R"({"a": ["a \"quoted\" word, 1"]})", R"({"a": [{"b64": "/w=="}]})",
        R"({"a": {"bytes_list": []}, "b, c": [NaN]})", R"({})", R"({"b, c": [0.1, -Infinity]})"}) {
    const auto row = CsvFromRecord(columns, *RecordFromJson(line));
    ASSERT_TRUE(row.ok()) << line << row.status();
    EXPECT_EQ(*ReadCsv(*CsvHeader(columns) + "\n" + *row + "\n"), Lines{line}) << *row;
  }
  EXPECT_EQ(*CsvFromRecord({{"a", FeatureKind::kInt64}}, ""), "\"\"");
}

TEST(RecordCsv, RefusesWhatItCannotExpress) {
  const std::vector<CsvColumn> columns = {{"a", FeatureKind::kInt64}};
  for (const char* const line : {R"({"a": [0.5]})", R"({"a": null})", R"({"b": [1]})",
                                 R"({"feature_lists": {}})", R"({"b64": "CgA="})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CsvFromRecord(columns, *RecordFromJson(line)).status()))
        << line;
  }
  EXPECT_FALSE(CsvHeader({{"", FeatureKind::kInt64}}).ok());
  EXPECT_FALSE(CsvHeader({{"a", FeatureKind::kNone}}).ok());
}

}  // namespace
}  // namespace weir::tools
