#include "weir/tools/data/data.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/tests/tools/lib/tools_testing.h"
#include "weir/tools/lib/text_width.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// What TensorFlow wrote (make_records.py).
constexpr char kExamples[] = "tests/tools/data/golden/examples.tfrecord";
constexpr char kLines[] =
    R"({"image": [{"b64": "iVBORw0KGgoAAAANSUhEUgAAAAQAAAACCAIAAADwyuo0AAAAF0lEQVQImU3BMQEAAADCIPqXnq8ghCpva64F+4z+ie0AAAAASUVORK5CYII="}], "label": [3], "name": ["cat"], "score": [0.1, 1.0, 16777216.0]}
{"label": [9223372036854775807, -9223372036854775808, 9007199254740993], "name": ["größe\n\"x\", [y", {"b64": "//4="}, ""], "score": [NaN, Infinity, -Infinity, -0.0, 1e-45]}
{"label": {"int64_list": []}, "name": {"bytes_list": []}, "none": null, "score": {"float_list": []}}
{"context": {"id": [7]}, "feature_lists": {"words": [["a"], ["b", "c"], {"bytes_list": []}]}}
)";

std::string WriteText(const std::string& path, const std::string& text) {
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

CommandResult Data(std::vector<std::string> args) {
  args.insert(args.begin(), "data");
  return Weir(args);
}

TEST(WeirData, HeadPrintsTensorFlowsExamplesAsJson) {
  const CommandResult head = Data({"head", kExamples, "--json"});
  EXPECT_EQ(head.status, kOk) << head.err;
  EXPECT_EQ(head.out, kLines);
  EXPECT_EQ(Data({"head", kExamples, "--json", "-n", "1"}).out,
            std::string(kLines).substr(0, std::string(kLines).find('\n') + 1));
}

// Runs the command on a terminal of so many columns.
std::string OnTerminal(std::vector<std::string> args, int width) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .width = width, .fits = true};
  args.insert(args.begin(), "data");
  EXPECT_EQ(RunWeir(args, console), kOk) << err.str();
  return out.str();
}

// Returns the columns of the widest line that does not name the file.
size_t Widest(const std::string& text, const std::string& path) {
  size_t widest = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StrContains(line, path)) widest = std::max<size_t>(widest, TextWidth(line));
  }
  return widest;
}

TEST(WeirData, FitsTheTerminalUnlessWide) {
  std::string line = "{";
  for (char c = 'a'; c <= 'f'; ++c) {
    const std::string text(20, c);
    absl::StrAppend(&line, c == 'a' ? "" : ", ", "\"feature_", text, "\": [\"", text, "\", \"",
                    text, "\"]");
  }
  const std::string path = WriteText(TestFolder() + "/a.jsonl", line + "}\n" + line + "}\n");
  for (const char* command : {"head", "show", "stats"}) {
    SCOPED_TRACE(command);
    const std::string whole = Data({command, path}).out, narrow = OnTerminal({command, path}, 80);
    EXPECT_LE(Widest(narrow, path), 80);
    EXPECT_THAT(narrow, HasSubstr("..."));
    EXPECT_GT(Widest(whole, path), 80);
    EXPECT_EQ(OnTerminal({command, path, "--wide"}, 80), whole);
  }
}

TEST(WeirData, TextIsCutOffAtColumns) {
  EXPECT_EQ(CutText("größe", 5), "größe");
  EXPECT_EQ(CutText("größen", 5), "gr...");
  EXPECT_EQ(CutText("重み重み", 7), "重み...");
}

TEST(WeirData, ConvertsToJsonAndBack) {
  const std::string folder = TestFolder();
  for (const char* const name : {"/a.jsonl", "/a.jsonl.gz"}) {
    const CommandResult there = Data({"convert", kExamples, "-o", folder + name});
    EXPECT_EQ(there.out, absl::StrCat("4 records written to ", folder, name, "\n")) << there.err;
    const CommandResult back = Data({"convert", folder + name, "-o", folder + "/b.tfrecord"});
    EXPECT_EQ(back.status, kOk) << back.err;
    EXPECT_EQ(*ReadFile(folder + "/b.tfrecord"), *ReadFile(kExamples));
  }
  EXPECT_EQ(*ReadFile(folder + "/a.jsonl"), kLines);
}

TEST(WeirData, ConvertsExamplesToCsvAndBack) {
  const std::string folder = TestFolder();
  const std::string lines = WriteText(folder + "/a.jsonl",
                                      "{\"i\": [1], \"s\": [\"x, \\\"y\\\"\"]}\n{\"f\": [0.1, "
                                      "NaN], \"s\": [{\"b64\": \"/w==\"}]}\n");
  ASSERT_EQ(Data({"convert", lines, "-o", folder + "/a.tfrecord"}).status, kOk);
  ASSERT_EQ(Data({"convert", folder + "/a.tfrecord", "-o", folder + "/a.csv"}).status, kOk);
  EXPECT_EQ(*ReadFile(folder + "/a.csv"),
            "f:float,i:int64,s:bytes\n,1,\"x, \"\"y\"\"\"\n"
            "\"[0.1, NaN]\",,\"[{\"\"b64\"\": \"\"/w==\"\"}]\"\n");
  ASSERT_EQ(Data({"convert", folder + "/a.csv", "-o", folder + "/b.tfrecord"}).status, kOk);
  EXPECT_EQ(*ReadFile(folder + "/b.tfrecord"), *ReadFile(folder + "/a.tfrecord"));
  const CommandResult refused = Data({"convert", kExamples, "-o", folder + "/c.csv"});
  EXPECT_EQ(refused.status, kFailure);
  EXPECT_THAT(refused.err, HasSubstr("CSV holds Examples only"));
  EXPECT_FALSE(Files().Exists(folder + "/c.csv"));
}

TEST(WeirData, ConvertRefusesWhatItWouldOverwriteOrCannotName) {
  const std::string folder = TestFolder();
  const std::string path = WriteText(folder + "/a.jsonl", "{}\n");
  EXPECT_THAT(Data({"convert", path, "-o", path}).err, HasSubstr("would overwrite"));
  EXPECT_THAT(Data({"convert", path, "-o", folder + "/x"}).err, HasSubstr("--to"));
  EXPECT_THAT(Data({"convert", path, "-o", folder + "/none/x.csv"}).err, HasSubstr("NOT_FOUND"));
  EXPECT_THAT(Data({"convert", folder, "-o", folder + "/x.csv"}).err, HasSubstr("is a folder"));
  EXPECT_THAT(Data({"convert", path, "-o", folder + "/x.tfrecord", "--compress", "lz"}).err,
              HasSubstr("valid names: gzip, zlib, none"));
  EXPECT_EQ(Files().List(folder)->size(), 1);  // nothing temporary stays
}

TEST(WeirData, MixedKindsAreToldAndAvoided) {
  const std::string folder = TestFolder();
  const std::string path = WriteText(folder + "/a.jsonl", "{\"x\": 1}\n{\"x\": 1.5}\n");
  const CommandResult mixed = Data({"convert", path, "-o", folder + "/a.tfrecord"});
  EXPECT_EQ(mixed.status, kOk);
  EXPECT_THAT(mixed.err, HasSubstr("'x' has lists of int64 and of float; --kind 'x=float'"));
  const CommandResult one =
      Data({"convert", path, "-o", folder + "/a.tfrecord", "--kind", "x=float"});
  EXPECT_EQ(one.err, "");
  EXPECT_EQ(Data({"head", folder + "/a.tfrecord", "--json"}).out,
            "{\"x\": [1.0]}\n{\"x\": [1.5]}\n");
}

TEST(WeirData, CountsFilesOfAllForms) {
  const std::string folder = TestFolder();
  ASSERT_EQ(Data({"convert", kExamples, "-o", folder + "/a.tfrecord", "--compress", "zlib"}).status,
            kOk);
  ASSERT_EQ(Data({"convert", kExamples, "-o", folder + "/b.jsonl.gz"}).status, kOk);
  WriteText(folder + "/c.txt", "a\n1\n2\n");
  WriteText(folder + "/d.tfrecord", "");
  const json count = json::parse(Data({"count", folder + "/*", "--json"}).out);
  EXPECT_EQ(count["records"], 10);
  const std::vector<std::vector<std::string>> kinds = {
      {"records", "ZLIB"}, {"JSON lines", "GZIP"}, {"CSV", ""}, {"records", ""}};
  for (size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(count["files"][i]["form"], kinds[i][0]);
    EXPECT_EQ(count["files"][i]["compression"], kinds[i][1]);
  }
  EXPECT_THAT(Data({"count", folder + "/*"}).out, HasSubstr("10 records in 4 files"));
  EXPECT_THAT(Data({"count", folder + "/*.none"}).err, HasSubstr("no such file"));
}

TEST(WeirData, SchemaTellsKindsAndLengths) {
  const json schema = json::parse(Data({"schema", kExamples, "--json"}).out);
  EXPECT_EQ(schema["examples"], 3);
  EXPECT_EQ(schema["sequence_examples"], 1);
  const json& label = schema["features"][2];
  EXPECT_EQ(label["name"], "label");
  EXPECT_EQ(label["kind"], "int64");
  EXPECT_EQ(label["present"], 3);
  EXPECT_EQ(label["missing"], 1);
  EXPECT_EQ(label["length"], json({{"min", 0}, {"max", 3}}));
  const json& words = schema["features"].back();
  EXPECT_EQ(words["sequence"], true);
  EXPECT_EQ(words["frames"], json({{"min", 3}, {"max", 3}}));
  EXPECT_THAT(Data({"schema", kExamples}).out,
              HasSubstr("label    int64        3        1    0..3\n"));
}

TEST(WeirData, StatisticsAreOfValues) {
  const std::string path =
      WriteText(TestFolder() + "/a.jsonl",
                "{\"i\": [1, 2], \"f\": [0.5, NaN], \"s\": [\"b\", \"a\"]}\n"
                "{\"i\": [9007199254740993], \"s\": [\"a\", {\"b64\": \"/w==\"}]}\n");
  const json all = json::parse(Data({"stats", path, "--json", "--distinct", "2"}).out);
  const json &f = all["features"][0], &i = all["features"][1], &s = all["features"][2];
  EXPECT_EQ(f["mean"], 0.5);
  EXPECT_EQ(f["nan"], 1);
  EXPECT_EQ(f["missing"], 1);
  EXPECT_EQ(i["max"], 9007199254740993);
  EXPECT_EQ(i["values"], 3);
  EXPECT_EQ(s["distinct"], 2);
  EXPECT_EQ(s["distinct_is_complete"], false);
  EXPECT_EQ(s["strings"][0], json({{"value", "a"}, {"count", 2}}));
  EXPECT_EQ(s["bytes"]["mean"], 1);
  EXPECT_THAT(Data({"stats", path, "--distinct", "2"}).out, HasSubstr(">2"));
}

TEST(WeirData, ShowDrawsImages) {
  const CommandResult show = Data({"show", kExamples});
  EXPECT_EQ(show.status, kOk) << show.err;
  EXPECT_THAT(show.out,
              HasSubstr("record 0 of tests/tools/data/golden/examples.tfrecord at offset 0: "
                        "Example, 158 bytes\n"));
  EXPECT_THAT(show.out, HasSubstr("score    float       3  [0.1, 1.0, 16777216.0]\n"));
  EXPECT_THAT(show.out, HasSubstr("image  PNG 4x2\n.: =\n"));
  EXPECT_THAT(Data({"show", kExamples, "--no-images"}).out, Not(HasSubstr("PNG 4x2")));
  EXPECT_THAT(Data({"show", kExamples, "-n", "3"}).out,
              HasSubstr("3 frames  [\"a\"] [\"b\", \"c\"]"));
  EXPECT_EQ(json::parse(Data({"show", kExamples, "-n", "2", "--json"}).out)["offset"], 304);
  EXPECT_THAT(Data({"show", kExamples, "-n", "4"}).err, HasSubstr("there are 4 records"));
}

TEST(WeirData, VerifyTellsWhatIsIntact) {
  const std::string path = TestFolder() + "/a.tfrecord";
  EXPECT_EQ(Data({"verify", kExamples}).status, kOk);
  std::string bytes = *ReadFile(kExamples);
  bytes[30] ^= 1;
  WriteText(path, bytes.substr(0, bytes.size() - 1));
  const CommandResult verify = Data({"verify", path});
  EXPECT_EQ(verify.status, kFailure);
  EXPECT_THAT(verify.out, HasSubstr("DAMAGED " + path + ": 2 intact records"));
  EXPECT_THAT(verify.out, HasSubstr("damaged bytes [0, 174), after 0 intact records"));
  EXPECT_THAT(verify.out, HasSubstr("torn tail bytes ["));
  const json file = json::parse(Data({"verify", path, "--json"}).out)[0];
  EXPECT_EQ(file["sound"], false);
  EXPECT_EQ(file["num_regions"], 2);
  EXPECT_EQ(file["regions"][1]["records_before"], 2);
  EXPECT_EQ(file["regions"][1]["torn_tail"], true);

  EXPECT_THAT(Data({"count", path}).err,
              HasSubstr("is it a TFRecord file?; 0 intact records before"));
}

TEST(WeirData, SkipsDamageWhereAsked) {
  const std::string folder = TestFolder();
  std::string bytes = *ReadFile(kExamples);
  bytes[30] ^= 1;
  const std::string path = WriteText(folder + "/a.tfrecord", bytes);
  EXPECT_EQ(Data({"convert", path, "-o", folder + "/b.tfrecord"}).status, kFailure);
  const CommandResult saved =
      Data({"convert", path, "-o", folder + "/b.tfrecord", "--skip-damage"});
  EXPECT_EQ(saved.out, "3 records written to " + folder + "/b.tfrecord\n");
  EXPECT_THAT(saved.err, HasSubstr("skipped: "));
  EXPECT_EQ(*ReadFile(folder + "/b.tfrecord"), bytes.substr(174));
}

TEST(WeirData, ABombIsRefused) {
  const std::string path = TestFolder() + "/bomb.gz";
  const auto sink = ByteSink::Create(path, "GZIP");
  ASSERT_TRUE(AppendRecord(**sink, std::string(3 << 20, '\0')).ok());
  ASSERT_TRUE((*sink)->Finish().ok());
  const CommandResult count = Data({"count", path, "--max-record-mb", "2"});
  EXPECT_THAT(count.err, HasSubstr("the limit is 2097152; --max-record-mb raises it"));
  EXPECT_EQ(Data({"count", path, "--max-record-mb", "3"}).status, kOk);
}

TEST(WeirData, RecordsOfOtherMessagesAreBytes) {
  const std::string path = TestFolder() + "/other.tfrecord";
  const auto sink = ByteSink::Create(path, "");
  ASSERT_TRUE(AppendRecord(**sink, "\x09\x01\x02\x03\x04\x05\x06\x07\x08 an event").ok());
  ASSERT_TRUE((*sink)->Finish().ok());
  EXPECT_THAT(Data({"show", path}).out, HasSubstr("not an Example"));
  EXPECT_THAT(Data({"head", path, "--json"}).out, HasSubstr("{\"b64\": \""));
  EXPECT_THAT(Data({"schema", path}).out, HasSubstr("1 record in 1 file"));
}

}  // namespace
}  // namespace weir::tools
