// Datasets that read and write files: elements, errors, and the files of TensorFlow. The expected
// elements and errors are answers of TensorFlow 2.21.

#include <sqlite3.h>
#include <zlib.h>

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetFilesTest : public ::testing::Test {
 protected:
  struct Set {
    Output handle;
    DataTypes types;
  };

  Output Number(int64_t n) { return Const(g_, Tensor::Scalar(n)); }
  Output Numbers(std::vector<int64_t> n) {
    return Const(g_, Tensor::Vector(absl::MakeConstSpan(n)));
  }
  Output Text(const std::string& text) { return Const(g_, text); }
  Output Texts(std::vector<std::string> texts) {
    return Const(g_, Tensor::Vector(absl::MakeConstSpan(texts)));
  }
  static Attrs ElementAttrs(const DataTypes& types) {
    return {{"output_types", types},
            {"output_shapes", std::vector<Shape>(types.size(), Shape::UnknownRank())}};
  }
  Set Range(int64_t stop) {
    return {AddOp("RangeDataset", {Number(0), Number(stop), Number(1)}, ElementAttrs({DT_INT64})),
            {DT_INT64}};
  }
  Set Slices(const std::vector<Tensor>& tensors) {
    Set set;
    Outputs components;
    for (const Tensor& t : tensors) {
      components.push_back(Const(g_, t));
      set.types.push_back(t.dtype());
    }
    const std::vector<Shape> shapes(tensors.size(), Shape::UnknownRank());
    set.handle = AddOp("TensorSliceDataset", {components},
                       {{"Toutput_types", set.types}, {"output_shapes", shapes}});
    return set;
  }
  // Numbers, strings of different lengths, and vectors.
  Set Mixed() {
    return Slices({Tensor::Vector<int64_t>({0, 1, 2, 3, 4}),
                   Tensor::Vector<std::string>({"a", "bb", "ccc", "", "e"}),
                   Tensor::Of<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})});
  }
  FunctionRef Define(const std::string& prefix, const DataTypes& types,
                     const std::function<Outputs(Graph&, const Outputs&)>& build) {
    const std::string name = absl::StrCat(prefix, num_functions_++);
    Graph body;
    Outputs args;
    for (const DataType type : types) args.push_back(Placeholder(body, type));
    EXPECT_TRUE(DefineFunction(g_, name, body, args, build(body, args)).ok());
    return FunctionRef{name, nullptr};
  }

  struct Walk {
    Output iterator;
    Operation start;
    Outputs next;
  };
  Walk Iterate(const Set& set) {
    Attrs attrs = ElementAttrs(set.types);
    attrs.emplace_back("shared_name", "");
    attrs.emplace_back("container", "");
    Walk walk;
    walk.iterator = AddNode(g_, "IteratorV2", {}, attrs)->output(0);
    walk.start = Operation(AddNode("MakeIterator", {set.handle, walk.iterator}));
    Node* next = AddNode("IteratorGetNext", {walk.iterator}, ElementAttrs(set.types));
    for (int i = 0; i < next->num_outputs(); ++i) walk.next.push_back(next->output(i));
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    return walk;
  }
  static std::string Shown(const absl::StatusOr<Tensors>& element) {
    if (!element.ok()) {
      const bool ended = element.status().code() == absl::StatusCode::kOutOfRange;
      return ended ? "END" : std::string(element.status().message());
    }
    std::string text;
    for (const Tensor& t : *element) absl::StrAppend(&text, text.empty() ? "" : " ", t.ToString());
    return text;
  }
  // Returns the elements and errors as text, up to the end.
  std::vector<std::string> Read(const Set& set, size_t limit = 20) {
    const Walk walk = Iterate(set);
    Session session = *Session::Create(g_, {.num_threads = 2});
    const absl::Status started = session.Run(walk.start);
    last_ = started;
    if (!started.ok()) return {std::string(started.message())};
    std::vector<std::string> all;
    while (all.size() < limit) {
      const auto element = session.Run(walk.next);
      last_ = element.status();
      all.push_back(Shown(element));
      if (all.back() == "END") break;
    }
    return all;
  }
  std::vector<std::string> Whole(const Set& set) {
    std::vector<std::string> all = Read(set);
    EXPECT_EQ(all.back(), "END");
    all.pop_back();
    return all;
  }

  Graph g_;
  int num_functions_ = 0;
  absl::Status last_;
  testing::MemoryFileSystem files_;
  ScopedFileSystem scope_{&files_};
};

void Write(const std::string& path, absl::string_view bytes) {
  auto file = *Files().Create(path);
  ASSERT_TRUE(file->Append(bytes).ok());
  ASSERT_TRUE(file->Close().ok());
}

std::string Compressed(const std::string& text, bool gzip) {
  z_stream z = {};
  deflateInit2(&z, 9, Z_DEFLATED, gzip ? MAX_WBITS + 16 : MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 100, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// ---- records

TEST_F(DatasetFilesTest, RecordsOfAFixedLengthLieBetweenHeaderAndFooter) {
  const auto read = [&](const std::string& path, int64_t header, int64_t record, int64_t footer,
                        const char* compression) {
    const bool v2 = compression != nullptr;
    std::vector<Arg> args = {Texts({path}), Number(header), Number(record), Number(footer),
                             Number(0)};
    if (v2) args.emplace_back(Text(compression));
    return Read(
        {AddOp(v2 ? "FixedLengthRecordDatasetV2" : "FixedLengthRecordDataset", args), {DT_STRING}});
  };
  Write("/plain", "HHaabbccFF");
  Write("/gzip", Compressed("HHaabbccFF", true));
  Write("/zlib", Compressed("HHaabbccFF", false));
  const auto three = ElementsAre("b'aa'", "b'bb'", "b'cc'", "END");
  EXPECT_THAT(read("/plain", 2, 2, 2, nullptr), three);
  EXPECT_THAT(read("/plain", 2, 2, 2, ""), three);
  EXPECT_THAT(read("/gzip", 2, 2, 2, "GZIP"), three);
  EXPECT_THAT(read("/zlib", 2, 2, 2, "ZLIB"), three);
  EXPECT_THAT(read("/plain", 2, 4, 2, nullptr)[0],
              HasSubstr("has body length 6 bytes, which is not an exact multiple of the record"));
  Write("/gzip", Compressed("HHaabbcFF", true));
  const auto rest = read("/gzip", 2, 2, 2, "GZIP");
  ASSERT_EQ(rest.size(), 4u);
  EXPECT_THAT(rest[2], HasSubstr("has body length 5 bytes, which is not an exact multiple"));
  Write("/short", "");
  EXPECT_THAT(read("/short", 4, 4, 0, "")[0], HasSubstr("has body length -4 bytes"));
  EXPECT_THAT(read("/plain", -1, 2, 2, "")[0], HasSubstr("`header_bytes` must be >= 0"));
  EXPECT_THAT(read("/plain", 0, 0, 2, "")[0], HasSubstr("`record_bytes` must be > 0"));
  EXPECT_THAT(read("/plain", 0, 2, -2, "")[0], HasSubstr("`footer_bytes` must be >= 0"));
  EXPECT_THAT(read("/plain", 2, 2, 2, "BZ")[0], HasSubstr("Unsupported compression_type"));
  EXPECT_THAT(read("/plain", INT64_MAX, 1, INT64_MAX, "")[0], HasSubstr("not an exact multiple"));
}

TEST_F(DatasetFilesTest, TFRecordFilesAreReadFromOffsets) {
  auto writer = *RecordWriter::Create("/t");
  for (const char* record : {"one", "twoo", "three"}) ASSERT_TRUE(writer->Append(record).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto read = [&](std::vector<std::string> paths, std::vector<int64_t> offsets) {
    return Read({AddOp("TFRecordDatasetV2",
                       {Texts(paths), Text(""), Number(0), Numbers(std::move(offsets))}),
                 {DT_STRING}});
  };
  EXPECT_THAT(read({"/t", "/t"}, {0, 19}),
              ElementsAre("b'one'", "b'twoo'", "b'three'", "b'twoo'", "b'three'", "END"));
  EXPECT_THAT(read({"/t"}, {1000}), ElementsAre("END"));
  EXPECT_THAT(read({"/t"}, {5})[0], HasSubstr("corrupted record at 5"));
  EXPECT_THAT(read({"/t"}, {-1})[0], HasSubstr("Can't skip a negative number of bytes"));
}

TEST_F(DatasetFilesTest, FilesThatMatchAreListed) {
  for (const char* path : {"/d/b2", "/d/a1", "/d/c3", "/d/sub/x"}) {
    ASSERT_TRUE(MakeDirectories(DirectoryOf(path)).ok());
    Write(path, "");
  }
  const char* op = "ExperimentalMatchingFilesDataset";
  const auto read = [&](std::vector<std::string> patterns) {
    return Read({AddOp(op, {Texts(std::move(patterns))}), {DT_STRING}}, 5);
  };
  EXPECT_THAT(read({"/d/a*"}), ElementsAre("b'/d/a1'", "END"));
  op = "MatchingFilesDataset";
  EXPECT_THAT(read({"/d/*"}), ElementsAre("b'/d/a1'", "b'/d/b2'", "b'/d/c3'", "END"));
  EXPECT_THAT(read({"/d/c*", "/d/a*", "/d/c*"}),
              ElementsAre("b'/d/c3'", "b'/d/a1'", "b'/d/c3'", "END"));
  EXPECT_THAT(read({"/d/z*"})[0], HasSubstr("Don't find any matched files"));
  EXPECT_EQ(last_.code(), absl::StatusCode::kNotFound);
}

// ---- CSV

struct Csv {
  std::vector<Tensor> defaults;
  std::string compression = "", delimiter = ",", missing = "";
  bool header = false, quotes = true;
  std::vector<int64_t> selected = {};
  std::optional<std::vector<int64_t>> excluded = {};
};

class CsvDatasetTest : public DatasetFilesTest {
 protected:
  std::vector<std::string> ReadCsv(const std::string& text, const Csv& csv) {
    Write("/c", text);
    DataTypes types;
    Outputs defaults;
    for (const Tensor& t : csv.defaults) {
      types.push_back(t.dtype());
      defaults.push_back(Const(g_, t));
    }
    std::vector<Arg> args = {Text("/c"),
                             Text(csv.compression),
                             Number(100),
                             Const(g_, csv.header),
                             Text(csv.delimiter),
                             Const(g_, csv.quotes),
                             Text(csv.missing),
                             Numbers(csv.selected),
                             defaults};
    if (csv.excluded) args.emplace_back(Numbers(*csv.excluded));
    const char* const op = csv.excluded ? "CSVDatasetV2"
                           : csv.header ? "ExperimentalCSVDataset"
                                        : "CSVDataset";
    const Output handle = AddOp(op, args, ElementAttrs(types));
    std::vector<std::string> read = Read({handle, types});
    for (std::string& text : read) {  // without the op and the node
      const size_t prefix = text.find("): ");
      if (prefix != std::string::npos) text.erase(0, prefix + 3);
    }
    return read;
  }
  const Tensor required_ = Tensor::Vector<int32_t>({});
  const Csv two_ = {.defaults = {required_, required_}};
  const Csv optional_ = {.defaults = {Tensor::Vector<int32_t>({7}), Tensor::Vector<int32_t>({8})}};
};

TEST_F(CsvDatasetTest, RecordsEndAtLineBreaksOutsideOfQuotes) {
  const auto plain = ElementsAre("1 2", "3 4", "END");
  for (const char* text : {"1,2\n3,4\n", "1,2\n3,4", "1,2\r\n3,4\r\n", "1,2\r3,4\r",
                           "\"1\",\"2\"\n3,\"4\"", "1,\"2\n\"\n3,4"})
    EXPECT_THAT(ReadCsv(text, two_), plain) << text;
  EXPECT_THAT(
      ReadCsv(Compressed("1,2\n3,4", true), {.defaults = two_.defaults, .compression = "GZIP"}),
      plain);
  const Csv texts = {.defaults = {Tensor::Vector<std::string>({}), Tensor::Scalar("d")}};
  EXPECT_THAT(ReadCsv("\"a\nb\",c\n\"x\"\"y\",", texts),
              ElementsAre("b'a\\nb' b'c'", "b'x\"y' b'd'", "END"));
  Csv unquoted = texts;
  unquoted.quotes = false;
  EXPECT_THAT(
      ReadCsv("\"a\nb\",c\na\"b,\"", unquoted),
      ElementsAre("Expect 2 fields but have 1 in record", "b'b\"' b'c'", "b'a\"b' b'\"'", "END"));
}

TEST_F(CsvDatasetTest, AnErrorTakesOneRecord) {
  const std::string missing0 = "Field 0 is required but missing in record!";
  const std::string missing1 = "Field 1 is required but missing in record!";
  const std::string one = "Expect 2 fields but have 1 in record";
  const std::string more = "Expect 2 fields but have more in record";
  const std::string open = "Reached end of file without closing quoted field in record";
  const std::string quote = "Unquoted fields cannot have quotes inside";
  EXPECT_THAT(ReadCsv("1,2\n\n3,4\n", two_), ElementsAre("1 2", missing0, "3 4", "END"));
  EXPECT_THAT(ReadCsv("1,2\n\n3,4\n", optional_), ElementsAre("1 2", one, "3 4", "END"));
  EXPECT_THAT(ReadCsv("1\n3,4\n", two_), ElementsAre(one, "3 4", "END"));
  EXPECT_THAT(ReadCsv("1,2,3\n3,4\n", two_), ElementsAre(more, "3 4", "END"));
  EXPECT_THAT(ReadCsv("1,2,\n3,4", two_), ElementsAre(more, "3 4", "END"));
  EXPECT_THAT(ReadCsv("1,\n,4\n5,6", two_), ElementsAre(missing1, missing0, "5 6", "END"));
  EXPECT_THAT(ReadCsv("1,\n,4\n5,6", optional_), ElementsAre("1 8", "7 4", "5 6", "END"));
  EXPECT_THAT(ReadCsv("1,2\n3,", optional_), ElementsAre("1 2", "3 8", "END"));
  EXPECT_THAT(ReadCsv("1,x\n3,4\n", two_),
              ElementsAre("Field 1 in record is not a valid int32: x", "3 4", "END"));
  EXPECT_THAT(ReadCsv("1\"2,3\n4,5\n", two_), ElementsAre(quote, "4 5", "END"));
  EXPECT_THAT(ReadCsv("1,2\"\n4,5\n", two_), ElementsAre(quote, "4 5", "END"));
  EXPECT_THAT(ReadCsv("\"1\"2,3\n4,5\n", two_), ElementsAre(open, "END"));
  EXPECT_THAT(ReadCsv("1,\"2\n3,4\n", two_), ElementsAre(open, "END"));
  EXPECT_THAT(ReadCsv("", two_), ElementsAre("END"));
}

TEST_F(CsvDatasetTest, HeadersAndColumnsAreSkipped) {
  Csv csv = two_;
  csv.header = true;
  EXPECT_THAT(ReadCsv("\"a\nx\",b\n1,2\n", csv), ElementsAre("1 2", "END"));
  EXPECT_THAT(ReadCsv("a\"x,b\n1,2\n", csv),
              ElementsAre("Can't read header of file", "1 2", "END"));
  EXPECT_THAT(ReadCsv("", csv), ElementsAre("Can't read header of file", "END"));
  csv = two_;
  csv.selected = {0, 2};
  EXPECT_THAT(ReadCsv("1,2,3\n4,5,6\n7,8", csv),
              ElementsAre("1 3", "4 6", "Expect 2 fields but have 1 in record", "END"));
  csv.selected = {1, 0};
  EXPECT_THAT(ReadCsv("1,2", csv)[0], HasSubstr("should be strictly increasing indices"));
  csv.selected = {0};
  EXPECT_THAT(ReadCsv("1,2", csv)[0], HasSubstr("select_cols should match output size"));
  csv.selected = {};
  csv.excluded = {1};
  EXPECT_THAT(ReadCsv("1,2,3\n4,5,6\n", csv), ElementsAre("1 3", "4 6", "END"));
  csv.selected = {0, 1};
  EXPECT_THAT(ReadCsv("1,2", csv)[0],
              HasSubstr("Either select_cols or exclude_cols should be empty"));
  csv = {.defaults = {Tensor::Vector<int32_t>({9}), required_}, .missing = "NA"};
  EXPECT_THAT(ReadCsv("NA,2\n", csv), ElementsAre("9 2", "END"));
  csv.delimiter = ";;";
  EXPECT_THAT(ReadCsv("1,2\n", csv)[0], HasSubstr("field_delim should be only 1 char"));
}

// ---- examples

// A field of a message: its number, and bytes after their length.
std::string Field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  PutVarint64(&out, bytes.size());
  return out + bytes;
}

// An Example with the feature "i" of these integers and, unless it is empty, "s" of this string.
std::string Example(const std::vector<int64_t>& ints, const std::string& text) {
  std::string packed;
  for (const int64_t i : ints) PutVarint64(&packed, static_cast<uint64_t>(i));
  std::string features = Field(1, Field(1, "i") + Field(2, Field(3, Field(1, packed))));
  if (!text.empty()) features += Field(1, Field(1, "s") + Field(2, Field(1, Field(1, text))));
  return Field(1, features);
}

TEST_F(DatasetFilesTest, BatchesOfExamplesAreParsedInTheOrderOfNames) {
  const Output batch = Texts({Example({5, 6}, "x"), Example({}, ""), Example({7}, "z")});
  const Output input = AddOp("TensorDataset", {Outputs{batch}},
                             {{"Toutput_types", DataTypes{DT_STRING}},
                              {"output_shapes", std::vector<Shape>{Shape::UnknownRank()}}});
  const auto parsed = [&](const char* op, bool ragged) {
    const DataTypes types = {DT_VARIANT, DT_STRING};
    Attrs attrs = ElementAttrs(types);
    const std::vector<std::string> ints = {"i"}, none;
    attrs.emplace_back("sparse_keys", ragged ? none : ints);
    attrs.emplace_back("sparse_types", ragged ? DataTypes{} : DataTypes{DT_INT64});
    attrs.emplace_back("dense_keys", std::vector<std::string>{"s"});
    attrs.emplace_back("dense_shapes", std::vector<Shape>{Shape()});
    if (ragged) {
      attrs.emplace_back("ragged_keys", ints);
      attrs.emplace_back("ragged_value_types", DataTypes{DT_INT64});
      attrs.emplace_back("ragged_split_types", DataTypes{DT_INT32});
    }
    return Iterate({AddOp(op, {input, Number(2), Outputs{Text("none")}}, attrs), types});
  };
  const Walk old = parsed("ExperimentalParseExampleDataset", false);
  const Walk sparse = parsed("ParseExampleDataset", false);
  Node* const unpacked = AddNode("DeserializeSparse", {sparse.next[0]}, {{"dtype", DT_INT64}});
  const Walk ragged = parsed("ParseExampleDatasetV2", true);
  Node* const rows = AddNode("RaggedTensorFromVariant", {ragged.next[0]},
                             {{"input_ragged_rank", int64_t{1}},
                              {"output_ragged_rank", int64_t{1}},
                              {"Tvalues", DT_INT64},
                              {"Tsplits", DT_INT32}});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_, {.num_threads = 2});
  ASSERT_TRUE(session.Run({}, {}, {old.start, sparse.start, ragged.start}).ok());
  EXPECT_EQ(Shown(session.Run({old.next[1]})), "[b'x' b'none' b'z']");
  EXPECT_EQ(Shown(session.Run(
                {unpacked->output(0), unpacked->output(1), unpacked->output(2), sparse.next[1]})),
            "[[0 0]\n [0 1]\n [2 0]] [5 6 7] [3 2] [b'x' b'none' b'z']");
  EXPECT_EQ(Shown(session.Run({rows->output(0), rows->output(1)})), "[0 2 2 3] [5 6 7]");
}

// ---- caches

TEST_F(DatasetFilesTest, ACacheFileIsReadInsteadOfTheInput) {
  const auto cached = [&](const Set& set) {
    return Set{AddOp("CacheDataset", {set.handle, Text("/cache")}, ElementAttrs(set.types)),
               set.types};
  };
  const Set first = Mixed();
  const std::vector<std::string> elements = Whole(first);
  ASSERT_EQ(Read(cached(first), 2).size(), 2u);
  EXPECT_FALSE(Files().Exists("/cache.index")) << "of an iteration that did not reach the end";
  EXPECT_EQ(Whole(cached(first)), elements);
  EXPECT_TRUE(Files().Exists("/cache.index"));
  const Set other = Slices({Tensor::Vector<int64_t>({7}), Tensor::Vector<std::string>({"x"}),
                            Tensor::Of<float>({1, 2}, {0, 1})});
  EXPECT_EQ(Whole(cached(other)), elements);
  const auto reader = *CheckpointReader::Open("/cache");
  EXPECT_EQ(reader->Read("      4_1")->scalar<std::string>(), "e") << "the keys are TensorFlow's";
  Write("/other_0.lockfile", "Created at: 1");
  const Set locked{AddOp("CacheDataset", {first.handle, Text("/other")}, ElementAttrs(first.types)),
                   first.types};
  EXPECT_THAT(Read(locked, 1)[0], HasSubstr("There appears to be a concurrent caching iterator"));
  EXPECT_EQ(last_.code(), absl::StatusCode::kAlreadyExists);
  const Set nowhere{
      AddOp("CacheDataset", {first.handle, Text("/no/cache")}, ElementAttrs(first.types)),
      first.types};
  EXPECT_THAT(Read(nowhere, 1)[0], HasSubstr("No such file or directory"));
  EXPECT_EQ(last_.code(), absl::StatusCode::kNotFound);
}

TEST_F(DatasetFilesTest, DatasetsShareAMemoryCache) {
  Node* const cache = AddNode(g_, "AnonymousMemoryCache", {});
  const auto cached = [&](const Set& set) {
    return Set{
        AddOp("CacheDatasetV2", {set.handle, Text(""), cache->output(0)}, ElementAttrs(set.types)),
        set.types};
  };
  const Output both =
      AddOp("ConcatenateDataset", {cached(Range(2)).handle, cached(Range(5)).handle},
            ElementAttrs({DT_INT64}));
  EXPECT_THAT(Whole({both, {DT_INT64}}), ElementsAre("0", "1", "0", "1"));
  const Operation forget(AddNode(
      "DeleteMemoryCache", {cache->output(0), AddNode(g_, "AnonymousMemoryCache", {})->output(1)}));
  EXPECT_TRUE(Session::Create(g_)->Run(forget).ok());
  const Output dummy = AddNode(g_, "DummyMemoryCache", {})->output(0);
  const Set range = Range(2);
  const Output of_dummy =
      AddOp("CacheDatasetV2", {range.handle, Text(""), dummy}, ElementAttrs(range.types));
  EXPECT_THAT(Whole({AddOp("RepeatDataset", {of_dummy, Number(2)}, ElementAttrs(range.types)),
                     range.types}),
              ElementsAre("0", "1", "0", "1"));
}

// ---- saving and loading

class SaveDatasetTest : public DatasetFilesTest {
 protected:
  FunctionRef Interleaved(const DataTypes& types) {
    const FunctionRef same = Define(
        "same", {DT_VARIANT}, [](Graph&, const Outputs& a) { return Outputs{Identity(a[0])}; });
    return Define("reader", {DT_VARIANT}, [&](Graph& body, const Outputs& a) {
      Attrs attrs = ElementAttrs(types);
      attrs.emplace_back("f", same);
      return Outputs{AddOp("InterleaveDataset",
                           {a[0], Outputs(), Const(body, int64_t{2}), Const(body, int64_t{1})},
                           attrs)};
    });
  }
  Set Load(const std::string& path, const DataTypes& types, const std::string& compression) {
    Attrs attrs = ElementAttrs(types);
    attrs.emplace_back("compression", compression);
    attrs.emplace_back("reader_func", Interleaved(types));
    return {AddOp("LoadDataset", {Text(path), Outputs()}, attrs), types};
  }
  absl::Status Save(const Set& set, const std::string& path, const std::string& compression,
                    int64_t shards) {
    const FunctionRef shard = Define("shard", set.types, [&](Graph& body, const Outputs& a) {
      return Outputs{FloorMod(a[0], Const(body, Tensor::Scalar(shards)))};
    });
    const Operation save(AddNode(
        "SaveDataset", {set.handle, Text(path), Outputs()},
        {{"compression", compression}, {"shard_func", shard}, {"use_shard_func", shards > 1}}));
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    return Session::Create(g_)->Run(save);
  }
};

TEST_F(SaveDatasetTest, WhatIsSavedIsLoaded) {
  const Set mixed = Mixed();
  const std::vector<std::string> elements = Whole(mixed);
  for (const char* compression : {"", "GZIP", "SNAPPY"}) {
    const std::string path = absl::StrCat("/saved", compression);
    ASSERT_TRUE(Save(mixed, path, compression, 1).ok());
    EXPECT_EQ(Whole(Load(path, mixed.types, compression)), elements);
  }
  ASSERT_TRUE(Save(mixed, "/saved", "", 3).ok());
  EXPECT_THAT(Whole(Load("/saved", mixed.types, "")),
              ElementsAre(elements[0], elements[1], elements[3], elements[4], elements[2]));
  EXPECT_THAT(Read(Load("/saved", {DT_INT32, DT_STRING, DT_FLOAT}, ""), 1)[0],
              HasSubstr("Data type mismatch at component 0: expected int32 but got int64"));
  EXPECT_THAT(Read(Load("/nothing", mixed.types, ""))[0],
              HasSubstr("Could not find metadata file"));
  EXPECT_EQ(last_.code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Save(Range(0), "/empty", "", 1).ok());
  EXPECT_THAT(Whole(Load("/empty", {DT_INT64}, "")), ElementsAre());
}

// The files are those of make_dataset_goldens.py: two shards, by even and odd numbers.
TEST_F(SaveDatasetTest, FilesOfTensorFlowAreRead) {
  const std::string golden = "tests/session/golden/datasets";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(golden)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = "/" + entry.path().string().substr(golden.size() + 1);
    ASSERT_TRUE(MakeDirectories(DirectoryOf(path)).ok());
    Write(path, testing::ReadBytes(entry.path().string()));
  }
  const Set mixed = Mixed();
  const std::vector<std::string> elements = Whole(mixed);
  for (const auto& [path, compression] : {std::pair("/saved", ""), std::pair("/saved_gzip", "GZIP"),
                                          std::pair("/saved_snappy", "SNAPPY")})
    EXPECT_EQ(Whole(Load(path, mixed.types, compression)), elements) << path;
  const Set empty = Slices({Tensor::Vector<int64_t>({}), Tensor::Vector<std::string>({}),
                            Tensor::Of<float>({0, 2}, {})});
  EXPECT_EQ(Whole({AddOp("CacheDataset", {empty.handle, Text("/cache")}, ElementAttrs(mixed.types)),
                   mixed.types}),
            elements);
}

TEST_F(SaveDatasetTest, AnUnfinishedSaveKeepsTheOlderElements) {
  ASSERT_TRUE(Save(Range(2), "/saved", "", 1).ok());
  const Set endless{AddOp("SaveDatasetV2", {Range(100).handle, Text("/saved"), Outputs()},
                          {{"output_types", DataTypes{DT_INT64}},
                           {"output_shapes", std::vector<Shape>{Shape()}},
                           {"shard_func", Interleaved({DT_INT64})},
                           {"use_shard_func", false}}),
                    {DT_INT64}};
  EXPECT_THAT(Read(endless, 3), ElementsAre("0", "1", "2"));
  EXPECT_THAT(Whole(Load("/saved", {DT_INT64}, "")), ElementsAre("0", "1"));
  EXPECT_EQ(Read(endless, 200).size(), 101u);
  EXPECT_EQ(Read(Load("/saved", {DT_INT64}, ""), 200).size(), 101u);
}

TEST_F(SaveDatasetTest, ElementsBecomeATFRecordFile) {
  for (const char* compression : {"", "GZIP", "ZLIB"}) {
    const bool is_last = compression == std::string("ZLIB");
    const Operation write(
        AddNode(is_last ? "ExperimentalDatasetToTFRecord" : "DatasetToTFRecord",
                {Slices({Tensor::Vector<std::string>({"one", "", "three"})}).handle, Text("/t"),
                 Text(compression)}));
    ASSERT_TRUE(Session::Create(g_)->Run(write).ok());
    EXPECT_THAT(
        Whole({AddOp("TFRecordDataset", {Text("/t"), Text(compression), Number(0)}), {DT_STRING}}),
        ElementsAre("b'one'", "b''", "b'three'"));
  }
  const Operation numbers(AddNode("DatasetToTFRecord", {Range(2).handle, Text("/n"), Text("")}));
  EXPECT_EQ(Session::Create(g_)->Run(numbers).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Files().Exists("/n"));
  const Operation unnamed(AddNode("DatasetToTFRecord", {Range(2).handle, Text(""), Text("")}));
  EXPECT_EQ(Session::Create(g_)->Run(unnamed).code(), absl::StatusCode::kNotFound);
}

// ---- other uses

TEST_F(DatasetFilesTest, ATableIsInitializedFromADataset) {
  Node* const table =
      AddNode(g_, "HashTableV2", {}, {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT64}});
  const Set pairs =
      Slices({Tensor::Vector<std::string>({"a", "b"}), Tensor::Vector<int64_t>({1, 2})});
  const Operation initialize(
      AddNode("InitializeTableFromDataset", {table->output(0), pairs.handle}));
  const Operation wrong(AddNode("InitializeTableFromDataset", {table->output(0), Range(2).handle}));
  const Output found =
      AddOp("LookupTableFindV2", {table->output(0), Texts({"b", "c"}), Number(-1)});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_EQ(session.Run(wrong).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(session.Run(initialize).ok());
  EXPECT_EQ(Shown(session.Run({found})), "[ 2 -1]");
}

TEST_F(DatasetFilesTest, ImmutableConstReadsAFile) {
  const float numbers[] = {1, 2, 3};
  Write("/numbers", absl::string_view(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  const auto read = [&](int64_t count, const char* path) {
    Node* const node =
        AddNode(g_, "ImmutableConst", {},
                {{"dtype", DT_FLOAT}, {"shape", Shape({count})}, {"memory_region_name", path}});
    return Shown(Session::Create(g_)->Run({node->output(0)}));
  };
  EXPECT_EQ(read(2, "/numbers"), "[1. 2.]");
  EXPECT_THAT(read(4, "/numbers"), HasSubstr("/numbers has only 12 bytes"));
  EXPECT_THAT(read(1, "/missing"), HasSubstr("/missing"));
}

// ---- databases

// A database with the table t of (n INTEGER, s TEXT, x REAL): (1, 'a', 0.5), (2, NULL, 1.5).
void WriteDatabase(const std::string& path) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &database), SQLITE_OK);
  const char* const make =
      "CREATE TABLE t (n INTEGER, s TEXT, x REAL);"
      "INSERT INTO t VALUES (1, 'a', 0.5), (2, NULL, 1.5);";
  ASSERT_EQ(sqlite3_exec(database, make, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_int64 size = 0;
  unsigned char* const bytes = sqlite3_serialize(database, "main", &size, 0);
  Write(path, absl::string_view(reinterpret_cast<char*>(bytes), static_cast<size_t>(size)));
  sqlite3_free(bytes);
  sqlite3_close(database);
}

TEST_F(DatasetFilesTest, RowsOfAQueryAreElements) {
  WriteDatabase("/db");
  const DataTypes all = {DT_INT32, DT_STRING, DT_DOUBLE};
  const auto read = [&](const std::string& query, const DataTypes& types, const char* path = "/db",
                        const char* driver = "sqlite") {
    const char* const op = query == "SELECT n FROM t" ? "ExperimentalSqlDataset" : "SqlDataset";
    std::vector<std::string> rows =
        Read({AddOp(op, {Text(driver), Text(path), Text(query)}, ElementAttrs(types)), types}, 3);
    return rows;
  };
  EXPECT_THAT(read("SELECT n, s, x FROM t ORDER BY n DESC", all),
              ElementsAre("2 b'' 1.5", "1 b'a' 0.5", "END"));
  EXPECT_THAT(read("SELECT n FROM t", {DT_BOOL}), ElementsAre("True", "True", "END"));
  EXPECT_THAT(read("SELECT n FROM t", all)[0],
              HasSubstr("The number of columns in query (1) must match the number of elements in "
                        "output_types (3)"));
  EXPECT_THAT(read("SELECT", all)[0], HasSubstr("query cannot be prepared"));
  EXPECT_THAT(read("SELECT n FROM t", {DT_FLOAT})[0], HasSubstr("must be one of: DT_STRING"));
  EXPECT_THAT(read("SELECT n FROM t", all, "/db", "mysql")[0],
              HasSubstr("The set of supported databases is: {'sqlite'}"));
  // Nothing but reading this database.
  for (const char* query : {"ATTACH '/other' AS o", "DELETE FROM t", "PRAGMA journal_mode",
                            "VACUUM INTO '/copy'", "CREATE TEMP TABLE u (n)"})
    EXPECT_THAT(read(query, {DT_INT32})[0],
                AnyOf(HasSubstr("not authorized"), HasSubstr("columns in query (0)")))
        << query;
  Write("/noise", std::string(4096, 'x'));
  EXPECT_THAT(read("SELECT n FROM t", {DT_INT32}, "/noise")[0], HasSubstr("/noise"));
  EXPECT_THAT(read("SELECT n FROM t", {DT_INT32}, "/missing")[0], HasSubstr("/missing"));
}

// ---- snapshots

TEST_F(SaveDatasetTest, ASnapshotIsComputedOnce) {
  const FunctionRef shard = Define("shard", {DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{FloorMod(a[0], Const(body, Tensor::Scalar(int64_t{2})))};
  });
  const FunctionRef reader = Interleaved({DT_INT64});
  // A hash of 0: that of the graph.
  const auto snapshot = [&](const Set& set, int64_t hash) {
    Attrs attrs = ElementAttrs(set.types);
    attrs.emplace_back("compression", "AUTO");
    attrs.emplace_back("reader_func", reader);
    attrs.emplace_back("shard_func", shard);
    attrs.emplace_back("hash_valid", hash != 0);
    attrs.emplace_back("hash", hash);
    return Set{AddOp("SnapshotDatasetV2", {set.handle, Text("/snap"), Outputs(), Outputs()}, attrs),
               set.types};
  };
  EXPECT_EQ(Read(snapshot(Range(4), 17), 2).size(), 2u);
  EXPECT_THAT(Whole(snapshot(Range(3), 17)), ElementsAre("0", "1", "2")) << "beside the writer";
  ASSERT_TRUE(Files().Remove("/snap/17/snapshot.metadata").ok());
  EXPECT_THAT(Whole(snapshot(Range(4), 17)), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(Whole(snapshot(Range(7), 17)), ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(Whole(snapshot(Range(7), 0)).size(), 7u) << "another graph, another snapshot";
  EXPECT_EQ(Whole(snapshot(Range(8), 0)).size(), 8u);
  const Set old{AddOp("SnapshotDataset", {Range(2).handle, Text("/old")}, ElementAttrs({DT_INT64})),
                {DT_INT64}};
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Whole(old), ElementsAre("0", "1"));
  const auto in_mode = [&](const char* mode, int64_t stop) {
    Attrs attrs = ElementAttrs({DT_INT64});
    attrs.emplace_back("mode", mode);
    return Set{AddOp("SnapshotDataset", {Range(stop).handle, Text("/modes")}, attrs), {DT_INT64}};
  };
  const Set reads = in_mode("read", 3), writes = in_mode("write", 3);
  EXPECT_THAT(Read(reads, 1)[0], HasSubstr("snapshot.metadata"));
  EXPECT_EQ(last_.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Whole(in_mode("passthrough", 2)), ElementsAre("0", "1"));
  EXPECT_FALSE(Files().Exists("/modes"));
  for (int i = 0; i < 2; ++i) EXPECT_THAT(Whole(writes), ElementsAre("0", "1", "2"));
  EXPECT_EQ(Files().List("/modes")->size(), 1u);
  Attrs moved = ElementAttrs({DT_INT64});
  moved.emplace_back("writer_path_prefix", "/moved");
  EXPECT_THAT(
      Whole({AddOp("SnapshotDataset", {Range(2).handle, Text("modes")}, moved), {DT_INT64}}),
      ElementsAre("0", "1"));
  EXPECT_EQ(Files().List("/moved/modes")->size(), 1u);
  EXPECT_THAT(Read(in_mode("often", 3))[0], HasSubstr("mode must be either 'auto'"));

  // The parts of a snapshot.
  EXPECT_EQ(Whole(snapshot(Range(4), 18)).size(), 4u);
  const std::string odd =
      absl::StrCat("/snap/18/", (*Files().List("/snap/18"))[0], "/00000001.shard");
  Attrs attrs = ElementAttrs({DT_INT64});
  attrs.emplace_back("compression", "SNAPPY");
  EXPECT_THAT(
      Whole({AddOp("SnapshotChunkDataset", {Text(odd + "/00000000.snapshot")}, attrs), {DT_INT64}}),
      ElementsAre("1", "3"));
  attrs.emplace_back("version", int64_t{2});
  const auto from = [&](int64_t start) {
    return Set{AddOp("SnapshotDatasetReader", {Text(odd), Number(start)}, attrs), {DT_INT64}};
  };
  EXPECT_THAT(Whole(from(1)), ElementsAre("3"));
  const Set nested{AddOp("SnapshotNestedDatasetReader", {Outputs{from(0).handle, from(1).handle}},
                         ElementAttrs({DT_VARIANT})),
                   {DT_VARIANT}};
  EXPECT_EQ(Whole(nested).size(), 2u);
}

// ---- saving iterators

class IteratorPositionTest : public DatasetFilesTest {
 protected:
  // An unpredictable order that differs from epoch to epoch, in batches, computed ahead.
  Set Shuffled() {
    const Set range = Range(40);
    const Output shuffled =
        AddOp("ShuffleDataset", {range.handle, Number(16), Number(0), Number(0)},
              ElementAttrs(range.types));
    const Output repeated =
        AddOp("RepeatDataset", {shuffled, Number(-1)}, ElementAttrs(range.types));
    const FunctionRef f = Define(
        "f", {DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{Multiply(a[0], a[0])}; });
    Attrs attrs = ElementAttrs(range.types);
    attrs.emplace_back("f", f);
    const Output mapped = AddOp("ParallelMapDatasetV2", {repeated, Outputs(), Number(2)}, attrs);
    const Output batched = AddOp("BatchDataset", {mapped, Number(3)}, ElementAttrs(range.types));
    return {AddOp("PrefetchDataset", {batched, Number(4)}, ElementAttrs(range.types)), range.types};
  }
};

TEST_F(IteratorPositionTest, AnIteratorResumesInAnotherSession) {
  const Walk walk = Iterate(Shuffled());
  const Output saved = AddNode(g_, "SerializeIterator", {walk.iterator})->output(0);
  const Output given = Placeholder(g_, DT_VARIANT);
  const Operation restore(AddNode("DeserializeIterator", {walk.iterator, given}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session first = *Session::Create(g_, {.num_threads = 2});
  EXPECT_EQ(first.Run({saved}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(first.Run(walk.start).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(first.Run(walk.next).ok());
  const auto position = first.Run({saved});
  ASSERT_TRUE(position.ok()) << position.status();
  std::vector<std::string> rest;
  for (int i = 0; i < 60; ++i) rest.push_back(Shown(first.Run(walk.next)));

  const auto loaded = TensorFromBytes(TensorToBytes((*position)[0]));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  Session second = *Session::Create(g_, {.num_threads = 2});
  for (int round = 0; round < 2; ++round) {  // with a new dataset, and with one in use
    if (round == 0) {
      ASSERT_TRUE(second.Run(walk.start).ok());
    }
    const absl::Status restored = second.Run({{given, *loaded}}, {}, {restore}).status();
    ASSERT_TRUE(restored.ok()) << restored;
    for (int i = 0; i < 60; ++i) ASSERT_EQ(Shown(second.Run(walk.next)), rest[i]) << i;
  }
}

TEST_F(IteratorPositionTest, APositionMustFitTheDataset) {
  const Walk walk = Iterate(Range(3));
  const Output saved = AddNode(g_, "SerializeIterator", {walk.iterator})->output(0);
  const Walk shorter = Iterate(Range(2));
  const Output given = Placeholder(g_, DT_VARIANT);
  const Operation restore(AddNode("DeserializeIterator", {walk.iterator, given}));
  const Operation restore_shorter(AddNode("DeserializeIterator", {shorter.iterator, given}));
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run({}, {}, {walk.start, shorter.start}).ok());
  while (session.Run(walk.next).ok()) {
  }
  session.Run(walk.next).status().IgnoreError();
  const auto position = session.Run({saved});
  ASSERT_TRUE(position.ok()) << position.status();
  const auto code = [&](const Operation& op, const Tensor& value) {
    return session.Run({{given, value}}, {}, {op}).status().code();
  };
  EXPECT_EQ(code(restore_shorter, (*position)[0]), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Shown(session.Run(shorter.next)), "0") << "as before";
  EXPECT_EQ(code(restore, (*position)[0]), absl::StatusCode::kOk);
  EXPECT_EQ(Shown(session.Run(walk.next)), "END");
  EXPECT_EQ(code(restore, Tensor(DT_VARIANT, Shape({1}))), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir
