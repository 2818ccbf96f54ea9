#include "weir/ops/containers/table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class TablesTest : public ::testing::Test {
 protected:
  Output Keys(const Strings& keys) { return Const(g_, keys); }
  Session& session() {
    if (!session_) {
      EXPECT_TRUE(g_.status().ok()) << g_.status();
      session_.emplace(*Session::Create(g_));
    }
    return *session_;
  }
  absl::Status Run(const Operation& op) { return session().Run(op); }
  Tensor Get(const Output& y) {
    const auto out = session().Run({y});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor();
  }
  template <class T>
  std::vector<T> Values(const Output& y) {
    const Tensor t = Get(y);
    if (!t.initialized()) return {};
    EXPECT_EQ(t.dtype(), DataTypeOf<T>::value);
    return std::vector<T>(t.flat<T>().begin(), t.flat<T>().end());
  }

  Graph g_;
  std::optional<Session> session_;
};

TEST_F(TablesTest, AStaticTableIsFilledOnceAndThenRead) {
  const StaticHashTable table(Keys({"a", "b", "c"}), Const<int64_t>(g_, {1, 2, 3}),
                              Const<int64_t>(g_, -1));
  const Output found =
      table.Lookup(Const(g_, Tensor::Of<std::string>({2, 2}, {"c", "x", "a", "b"})));
  const Output size = table.Size();
  const auto [keys, values] = table.Export();
  EXPECT_EQ(found.node->name(), "hash_table_Lookup/LookupTableFindV2");
  EXPECT_EQ(found.shape(), Shape({2, 2}));
  EXPECT_EQ(size.node->name(), "hash_table_Size/LookupTableSizeV2");
  EXPECT_EQ(table.initializer().name(), "key_value_init/LookupTableImportV2");
  const Operation init = TablesInitializer(g_);
  const absl::Status early = session().Run({found}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  EXPECT_THAT(early.message(), HasSubstr("Table not initialized"));
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(0));
  ASSERT_TRUE(Run(init).ok());
  ASSERT_TRUE(Run(init).ok());
  EXPECT_THAT(Values<int64_t>(found), ElementsAre(3, -1, 1, 2));
  EXPECT_EQ(Get(found).shape(), Shape({2, 2}));
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(3));
  EXPECT_THAT(Values<std::string>(keys), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Values<int64_t>(values), ElementsAre(1, 2, 3));
}

TEST_F(TablesTest, InitializersMustAgree) {
  const StaticHashTable table(Keys({"a", "b", "a"}), Const<int64_t>(g_, {1, 2, 1}),
                              Const<int64_t>(g_, -1));
  const StaticHashTable twice(Keys({"a", "a"}), Const<int64_t>(g_, {1, 2}), Const<int64_t>(g_, -1));
  const auto import = [&](const Strings& keys, std::initializer_list<int64_t> values) {
    return Operation(
        AddNode("InitializeTableV2", {table.handle(), Keys(keys), Const<int64_t>(g_, values)}));
  };
  const Operation other = import({"a", "b", "c"}, {1, 2, 3}), same = import({"a", "b"}, {1, 2});
  const Operation empty(
      AddNode("LookupTableImportV2", {twice.handle(), Const(g_, Tensor(DT_STRING, Shape({0}))),
                                      Const(g_, Tensor(DT_INT64, Shape({0})))}));
  const Output size = table.Size(), no_size = twice.Size();
  ASSERT_TRUE(Run(table.initializer()).ok());
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(2));
  EXPECT_TRUE(Run(same).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Run(other)));
  const absl::Status s = Run(twice.initializer());
  EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("HashTable has different value for same key. Key a has 1"));
  EXPECT_THAT(Values<int64_t>(no_size), ElementsAre(0));
  EXPECT_TRUE(absl::IsInvalidArgument(Run(empty)));
}

TEST_F(TablesTest, AMutableTableChanges) {
  const MutableHashTable table(DT_INT64, Const(g_, -1.f));
  const Output k = Placeholder(g_, DT_INT64), v = Placeholder(g_, DT_FLOAT);
  const Operation insert = table.Insert(k, v), remove = table.Remove(k);
  const Output found = table.Lookup(k), size = table.Size();
  const auto [keys, values] = table.Export();
  EXPECT_EQ(insert.name(), "MutableHashTable_lookup_table_insert/LookupTableInsertV2");
  EXPECT_EQ(insert.node->colocations(), std::vector<std::string>{"MutableHashTable"});
  const auto put = [&](const std::vector<int64_t>& a, const std::vector<float>& b) {
    return session()
        .Run({{k, Tensor::Vector<int64_t>(a)}, {v, Tensor::Vector<float>(b)}}, {}, {insert})
        .status();
  };
  ASSERT_TRUE(put({1, 2, 3}, {1, 2, 3}).ok());
  ASSERT_TRUE(put({2, 4}, {20, 4}).ok());
  ASSERT_TRUE(put({}, {}).ok());
  ASSERT_TRUE(session().Run({{k, Tensor::Vector<int64_t>({1, 99})}}, {}, {remove}).ok());
  const auto out = session().Run({{k, Tensor::Vector<int64_t>({1, 2, 3, 4})}}, {found, size});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<float>(), ElementsAre(-1, 20, 3, 4));
  EXPECT_EQ((*out)[1].scalar<int64_t>(), 3);
  EXPECT_THAT(Values<int64_t>(keys), ElementsAre(4, 2, 3));
  EXPECT_THAT(Values<float>(values), ElementsAre(4, 20, 3));
  const absl::Status wrong = put({1, 2}, {1});
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(wrong.message(), HasSubstr("Expected shape [2] for value, got [1]"));
}

TEST_F(TablesTest, ValuesMayBeVectorsAndDefaultsOneForEachKey) {
  const MutableHashTable table(DT_STRING, Const(g_, {-1, -2}));
  EXPECT_EQ(table.handle().node->op_name(), "MutableHashTableOfTensorsV2");
  const Operation insert = table.Insert(Keys({"a", "b"}), Const<int32_t>(g_, {2, 2}, {1, 2, 3, 4}));
  const Output found = table.Lookup(Keys({"b", "x"}));
  const Output each(AddNode("LookupTableFindV2", {table.handle(), Keys({"x", "a"}),
                                                  Const<int32_t>(g_, {2, 2}, {5, 6, 7, 8})}));
  const Output bad(
      AddNode("LookupTableFindV2", {table.handle(), Keys({"x", "a"}), Const(g_, {5, 6, 7})}));
  ASSERT_TRUE(Run(insert).ok());
  EXPECT_TRUE(IdenticalTensors(Get(found), Tensor::Of<int32_t>({2, 2}, {3, 4, -1, -2})));
  EXPECT_THAT(Values<int32_t>(each), ElementsAre(5, 6, 1, 2));
  EXPECT_TRUE(absl::IsInvalidArgument(session().Run({bad}).status()));
}

// Buckets recorded with TensorFlow 2.21.
TEST_F(TablesTest, DenseTableBucketsMatchTensorFlow) {
  const DenseHashTable table(Const<int64_t>(g_, -1), Const(g_, ""), Const(g_, "-"),
                             {.initial_num_buckets = 8});
  const Operation insert =
      table.Insert(Keys({"brain", "salad", "surgery", "tarkus", "a longer key of many bytes"}),
                   Const<int64_t>(g_, {0, 1, 2, 3, 4}));
  const Operation remove = table.Remove(Keys({"salad"}));
  const auto [keys, values] = table.Export();
  const Output found = table.Lookup(Keys({"salad", "tarkus", "x"})), size = table.Size();
  ASSERT_TRUE(Run(insert).ok());
  ASSERT_TRUE(Run(remove).ok());
  EXPECT_THAT(
      Values<std::string>(keys),
      ElementsAre("tarkus", "", "-", "brain", "a longer key of many bytes", "", "", "surgery"));
  EXPECT_THAT(Values<int64_t>(values), ElementsAre(3, 0, 1, 0, 4, 0, 0, 2));
  EXPECT_EQ(Get(keys).shape(), Shape({8, 1}));
  EXPECT_THAT(Values<int64_t>(found), ElementsAre(-1, 3, -1));
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(4));
}

TEST_F(TablesTest, DenseTablesSupportVectorKeysAndGrow) {
  const DenseHashTable table(Const(g_, {-1.f, -2.f}), Const<int64_t>(g_, {0, 0}),
                             Const<int64_t>(g_, {-1, -1}), {.initial_num_buckets = 4});
  const Operation insert = table.Insert(Const<int64_t>(g_, {3, 2}, {0, 1, 5, 7, 100, -3}),
                                        Const<float>(g_, {3, 2}, {1, 2, 3, 4, 5, 6}));
  const Output more_keys = Placeholder(g_, DT_INT64), more_values = Placeholder(g_, DT_FLOAT);
  const Operation more = table.Insert(more_keys, more_values);
  const auto [keys, values] = table.Export();
  const Output found = table.Lookup(Const<int64_t>(g_, {2, 2}, {5, 7, 9, 9})), size = table.Size();
  ASSERT_TRUE(Run(insert).ok());
  EXPECT_TRUE(
      IdenticalTensors(Get(keys), Tensor::Of<int64_t>({4, 2}, {0, 0, 0, 1, 5, 7, 100, -3})));
  EXPECT_THAT(Values<float>(found), ElementsAre(3, 4, -1, -2));
  Tensor many(DT_INT64, Shape({100, 2}));
  for (int64_t i = 0; i < 200; ++i) many.data<int64_t>()[i] = i + 1;
  ASSERT_TRUE(
      session()
          .Run({{more_keys, many}, {more_values, Tensor::Zeros(DT_FLOAT, {100, 2})}}, {}, {more})
          .ok());
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(103));
  EXPECT_THAT(Values<float>(found), ElementsAre(3, 4, -1, -2));
  const auto marker = session().Run({{more_keys, Tensor::Zeros(DT_INT64, {1, 2})},
                                     {more_values, Tensor::Zeros(DT_FLOAT, {1, 2})}},
                                    {}, {more});
  EXPECT_THAT(marker.status().message(),
              HasSubstr("Using the empty_key as a table key is not allowed"));
  const auto one = session().Run(
      {{more_keys, Tensor::Vector<int64_t>({5, 7})}, {more_values, Tensor::Zeros(DT_FLOAT, {2})}},
      {}, {more});
  EXPECT_THAT(one.status().message(), HasSubstr("Expected key shape [2,2] got [2]"));
}

TEST_F(TablesTest, AnExportedDenseTableCanBeImported) {
  const DenseHashTableOptions options{.initial_num_buckets = 4};
  const DenseHashTable a(Const(g_, -1), Const(g_, 0), Const(g_, -1), options),
      b(Const(g_, -1), Const(g_, 0), Const(g_, -1), options);
  const Operation insert = a.Insert(Const(g_, {1, 2, 9}), Const(g_, {10, 20, 90}));
  const auto [keys, values] = a.Export();
  const Operation import(AddNode("LookupTableImportV2", {b.handle(), keys, values}));
  // Of an unknown shape: otherwise building the graph fails.
  const Output matrix =
      PlaceholderWithDefault(Const<int32_t>(g_, {3, 1}, {1, 2, 3}), Shape::UnknownRank());
  const Operation bad(AddNode("LookupTableImportV2", {b.handle(), matrix, matrix}));
  const Output found = b.Lookup(Const(g_, {9, 2, 3})), size = b.Size();
  ASSERT_TRUE(Run(insert).ok());
  ASSERT_TRUE(Run(import).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Run(bad)));
  EXPECT_THAT(Values<int32_t>(found), ElementsAre(90, 20, -1));
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(3));
}

TEST_F(TablesTest, RejectsMalformedDenseTables) {
  const auto size = [&](Output empty, Output deleted, DenseHashTableOptions options) {
    return DenseHashTable(Const(g_, -1), empty, deleted, options).Size();
  };
  // Of an unknown shape: otherwise building the graph fails.
  const auto matrix = [&](int32_t value) {
    return PlaceholderWithDefault(Const<int32_t>(g_, {1, 1}, {value}), Shape::UnknownRank());
  };
  const Output sizes[] = {
      size(Const(g_, 1), Const(g_, 1), {}),
      size(Const(g_, 1), Const(g_, {1}), {}),
      size(Const(g_, 1), Const(g_, 2), {.initial_num_buckets = 5}),
      size(Const(g_, 1), Const(g_, 2), {.initial_num_buckets = -8}),
      size(Const(g_, 1), Const(g_, 2), {.max_load_factor = 1.5f}),
      size(matrix(1), matrix(2), {}),
  };
  for (const Output& s : sizes) {
    const absl::Status status = session().Run({s}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
}

// ---- files

class TextFileTest : public TablesTest {
 protected:
  TextFileTest() { testing::WriteBytes(path_, "brain\t5\t1.5\r\nsalad\t6\t2.5\nsurgery\t7\t3.5"); }
  StaticHashTable Table(const TextFileTable& file, Output fallback) {
    TextFileTable with_path = file;
    with_path.path = path_;
    return StaticHashTable(with_path, fallback);
  }
  const std::string path_ = testing::MakeTempDirectory("tables") + "/vocabulary.txt";
};

TEST_F(TextFileTest, KeysAndValuesAreColumnsLinesOrNumbers) {
  const auto words =
      Table({.key_index = 0, .value_index = 1, .offset = 10}, Const<int64_t>(g_, -1));
  const auto lines = Table({.offset = 10}, Const<int64_t>(g_, -1));
  const auto numbers = Table({.key_type = DT_INT64,
                              .value_type = DT_STRING,
                              .key_index = TextFileIndex::kLineNumber,
                              .value_index = 0},
                             Const(g_, "?"));
  const auto reals = Table(
      {.key_type = DT_INT32, .value_type = DT_FLOAT, .key_index = 1, .value_index = 2, .offset = 1},
      Const(g_, -1.f));
  const auto doubles =
      Table({.value_type = DT_DOUBLE, .key_index = 0, .value_index = 2}, Const<double>(g_, -1.0));
  EXPECT_EQ(words.initializer().name(), "text_file_init/InitializeTableFromTextFileV2");
  const Output a = words.Lookup(Keys({"salad", "x"})), b = lines.Lookup(Keys({"salad\t6\t2.5"})),
               c = numbers.Lookup(Const<int64_t>(g_, {0, 2, 3})),
               d = reals.Lookup(Const(g_, {6, 8})), e = doubles.Lookup(Keys({"surgery"}));
  ASSERT_TRUE(Run(TablesInitializer(g_)).ok());
  EXPECT_THAT(Values<int64_t>(a), ElementsAre(6, -1));
  EXPECT_THAT(Values<int64_t>(b), ElementsAre(11));
  EXPECT_THAT(Values<std::string>(c), ElementsAre("brain", "surgery", "?"));
  EXPECT_THAT(Values<float>(d), ElementsAre(1.5, 3.5));
  EXPECT_THAT(Values<double>(e), ElementsAre(3.5));
}

TEST_F(TextFileTest, TheSizeOfTheVocabularyIsChecked) {
  const auto two = Table({.vocab_size = 2}, Const<int64_t>(g_, -1)),
             four = Table({.vocab_size = 4}, Const<int64_t>(g_, -1));
  const Output size = two.Size();
  ASSERT_TRUE(Run(two.initializer()).ok());
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(2));
  const absl::Status s = Run(four.initializer());
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("expected 4 but got 3"));
}

TEST_F(TextFileTest, ReportsTheCauseOfFileErrors) {
  const auto status = [&](const TextFileTable& file, Output fallback) {
    return Run(Table(file, fallback).initializer());
  };
  EXPECT_THAT(status({.key_index = 0, .value_index = 3}, Const<int64_t>(g_, -1)).message(),
              HasSubstr("expected at least 4 got 3"));
  session_.reset();
  EXPECT_THAT(status({.key_index = 1, .value_index = 0}, Const<int64_t>(g_, -1)).message(),
              HasSubstr("Field brain in line 0 is not a valid int64"));
  session_.reset();
  EXPECT_THAT(status({.value_type = DT_FLOAT}, Const(g_, -1.f)).message(),
              HasSubstr("requires table value dtype of int64, got float"));
  session_.reset();
  testing::WriteBytes(path_, "a\n\nb\n");
  EXPECT_THAT(status({.offset = 1}, Const<int64_t>(g_, -1)).message(), HasSubstr("empty line"));
  session_.reset();
  testing::WriteBytes(path_, "");
  EXPECT_TRUE(absl::IsOutOfRange(status({.offset = 2}, Const<int64_t>(g_, -1))));
}

// ---- forms without a name, and with a reference

TEST_F(TablesTest, AnonymousTablesLiveForOneStep) {
  Node* const node = AddNode(g_, "AnonymousMutableHashTable", {},
                             {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT32}});
  const Operation insert(
      AddNode("LookupTableInsertV2", {Output(node), Keys({"a"}), Const(g_, {7})}));
  Output size, before;
  {
    const ControlDependencies after(g_, {insert});
    size = AddOp("LookupTableSizeV2", {Output(node)});
  }
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(1));
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(1));
  const Output dense = AddOp("AnonymousMutableDenseHashTable", {Const(g_, 0), Const(g_, -1)},
                             {{"value_dtype", DT_INT32}, {"initial_num_buckets", 4}});
  const Output fixed(
      AddNode(g_, "AnonymousHashTable", {}, {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT32}}));
  const Output rows(
      AddNode(g_, "AnonymousMutableHashTableOfTensors", {},
              {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT32}, {"value_shape", Shape({2})}}));
  for (const Output& handle : {dense, fixed, rows})
    EXPECT_THAT(Values<int64_t>(AddOp("LookupTableSizeV2", {handle})), ElementsAre(0));
}

TEST_F(TablesTest, TheReferenceFormsWorkAlike) {
  const Attrs types = {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT32}};
  const Output fixed(AddNode(g_, "HashTable", {}, types)),
      scalars(AddNode(g_, "MutableHashTable", {}, types));
  Attrs of_tensors = types;
  of_tensors.emplace_back("value_shape", Shape({2}));
  const Output tensors(AddNode(g_, "MutableHashTableOfTensors", {}, of_tensors));
  const Output dense = AddOp("MutableDenseHashTable", {Const(g_, "")}, {{"value_dtype", DT_INT32}});
  EXPECT_EQ(fixed.shape(), Shape({2}));
  const Output keys = Keys({"a", "b"}), values = Const(g_, {1, 2});
  const Operation init(AddNode("InitializeTable", {fixed, keys, values})),
      insert(AddNode("LookupTableInsert", {scalars, keys, values})),
      into_dense(AddNode("LookupTableImport", {scalars, Keys({"z"}), Const(g_, {26})})),
      not_fixed(AddNode("InitializeTable", {scalars, keys, values})),
      from_file(AddNode("InitializeTableFromTextFile", {fixed, Const(g_, "/nowhere")},
                        {{"key_index", -2}, {"value_index", 0}}));
  const Output found = AddOp("LookupTableFind", {fixed, Keys({"b", "c"}), Const(g_, -1)}),
               size = AddOp("LookupTableSize", {scalars}),
               rows = AddOp("LookupTableSize", {tensors}), none = AddOp("LookupTableSize", {dense});
  const Output exported(
      AddNode("LookupTableExport", {scalars}, {{"Tkeys", DT_STRING}, {"Tvalues", DT_INT32}}));
  ASSERT_TRUE(Run(init).ok());
  EXPECT_THAT(Values<int32_t>(found), ElementsAre(2, -1));
  ASSERT_TRUE(Run(insert).ok());
  EXPECT_THAT(Values<int64_t>(size), ElementsAre(2));
  ASSERT_TRUE(Run(into_dense).ok());
  EXPECT_THAT(Values<std::string>(exported), ElementsAre("z"));
  EXPECT_THAT(Values<int64_t>(rows), ElementsAre(0));
  EXPECT_THAT(Values<int64_t>(none), ElementsAre(0));
  EXPECT_THAT(Run(not_fixed).message(), HasSubstr("is not initializable"));
  EXPECT_TRUE(absl::IsNotFound(Run(from_file)));
}

TEST_F(TablesTest, RejectsMismatchedTypes) {
  const MutableHashTable table(DT_STRING, Const(g_, -1));
  const Output wrong_key =
                   AddOp("LookupTableFindV2", {table.handle(), Const(g_, {1}), Const(g_, -1)}),
               wrong_value =
                   AddOp("LookupTableFindV2", {table.handle(), Keys({"a"}), Const(g_, -1.f)});
  const Output no_table = AddOp("LookupTableSizeV2", {Placeholder(g_, DT_RESOURCE, Shape())});
  const Output wrong_export(AddNode("LookupTableExportV2", {table.handle()},
                                    {{"Tkeys", DT_INT64}, {"Tvalues", DT_INT32}}));
  const Attrs shared = {{"shared_name", "t"}, {"key_dtype", DT_INT64}};
  const auto maker = [&](DataType value) {
    Attrs attrs = shared;
    attrs.emplace_back("value_dtype", value);
    return AddOp("LookupTableSizeV2", {Output(AddNode(g_, "HashTableV2", {}, attrs))});
  };
  const Output one = maker(DT_FLOAT), other = maker(DT_INT32);
  for (const Output& y : {wrong_key, wrong_value, wrong_export}) {
    const absl::Status s = session().Run({y}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  }
  EXPECT_TRUE(session().Run({one}).ok());
  EXPECT_THAT(session().Run({other}).status().message(),
              HasSubstr("Conflicting key/value dtypes int64->int32 with int64-float"));
  EXPECT_FALSE(session().Run({no_table}).ok());
}

}  // namespace
}  // namespace weir
