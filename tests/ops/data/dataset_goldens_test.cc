// Data sets as TensorFlow's tf.compat.v1.data makes them: the nodes of the graph and of its
// functions, and the elements in their order (make_dataset_goldens.py).
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weir/ops/data/iterator.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

Dataset Numbers(Graph& g, int64_t n = 10) { return Dataset::Range(g, n); }

// A data set of one vector for each length: n times n.
Dataset Repeated(const Dataset& lengths) {
  return lengths.Map([](const Outputs& e) {
    return Outputs{AddOp("Fill", {Stack({e[0]}, 0, "Fill/dims"), e[0]})};
  });
}

Dataset FromTensors(Graph& g) { return Dataset::FromTensors({Const(g, {1, 2}), Const(g, "a")}); }

Dataset Slices(Graph& g) {
  return Dataset::FromTensorSlices(
      {Const<int32_t>(g, Shape({2, 2}), {1, 2, 3, 4}), Const(g, {1.5f, 2.5f})});
}

Dataset Selection(Graph& g) {
  return Dataset::Range(g, 2, 30, 3)
      .Skip(1)
      .Take(7)
      .Shard(2, 1)
      .Concatenate(Numbers(g, 2))
      .Repeat(2);
}

Dataset Shuffled(Graph& g) {
  return Numbers(g).Shuffle(4, 3).Shuffle(5, 7, /*reshuffle_each_iteration=*/false).Repeat(2);
}

Dataset ShuffledWithGraphSeed(Graph& g) {
  g.set_seed(5);
  return Numbers(g).Shuffle(4).Shuffle(6, 2).Repeat(2);
}

Dataset ShuffleAndRepeat(Graph& g) { return Numbers(g, 5).ShuffleAndRepeat(4, 2, 1); }

Dataset Random(Graph& g) { return Dataset::Random(g, 3).Take(4); }

Dataset Mapped(Graph& g) {
  return Numbers(g).Map([](const Outputs& e) {
    return Outputs{e[0] + int64_t{1}, Cast(e[0], DT_FLOAT)};
  });
}

Dataset MappedInParallel(Graph& g) {
  return Numbers(g)
      .Map([](const Outputs& e) { return Outputs{e[0] * int64_t{2}}; }, {.num_parallel_calls = 4})
      .Map([](const Outputs& e) { return Outputs{e[0] + int64_t{1}}; },
           {.num_parallel_calls = kAutotune, .deterministic = true});
}

Dataset Filtered(Graph& g) {
  return Numbers(g)
      .Filter([](const Outputs& e) { return Equal(e[0] % int64_t{3}, int64_t{0}); })
      .TakeWhile([](const Outputs& e) { return Less(e[0], int64_t{8}); });
}

Dataset FlatMapped(Graph& g) {
  return Numbers(g, 4).FlatMap([](const Outputs& e) {
    return Dataset::Range(e[0].graph(), e[0]).Map([](const Outputs& y) {
      return Outputs{y[0] + int64_t{1}};
    });
  });
}

Dataset ThreeTimes(const Outputs& e) { return Dataset::FromTensors(e).Repeat(3); }

Dataset Interleaved(Graph& g) {
  return Numbers(g, 5).Interleave(ThreeTimes, {.cycle_length = 2, .block_length = 2});
}

Dataset InterleavedInParallel(Graph& g) {
  return Numbers(g, 5).Interleave(
      ThreeTimes,
      {.cycle_length = 2, .block_length = 2, .num_parallel_calls = 2, .deterministic = true});
}

Dataset Batched(Graph& g) {
  return Numbers(g).Batch(4).Unbatch().Batch(3, /*drop_remainder=*/true).Prefetch(2);
}

Dataset BatchedInParallel(Graph& g) {
  return Numbers(g).Batch(4, false, {.num_parallel_calls = 2, .deterministic = false});
}

Dataset Padded(Graph& g) {
  const Dataset lengths = Numbers(g, 5).Map([](const Outputs& e) {
    return Outputs{AddOp("Fill", {Stack({e[0]}, 0, "Fill/dims"), e[0]}), e[0]};
  });
  const Dataset once = lengths.PaddedBatch(2, {.padded_shapes = {{Shape({-1}), Shape()}}});
  return once.PaddedBatch(2, {.padded_shapes = {{Shape({2, 5}), Shape({3})}},
                              .padding_values = {Const(g, int64_t{-1}), Output()},
                              .drop_remainder = true});
}

Dataset Windows(Graph& g) {
  return Numbers(g).Window(3, 2, 2).FlatMap([](const Outputs& w) {
    return Dataset::FromVariant(w[0], {{DT_INT64}, {Shape()}}).Batch(3);
  });
}

Output ThirdOf(const Outputs& e) { return e[0] % int64_t{3}; }

Dataset Groups(Graph& g) {
  return Numbers(g).GroupByWindow(
      ThirdOf, [](const Output&, const Dataset& group) { return group.Batch(2); }, 2);
}

Dataset GroupsOfSizes(Graph& g) {
  return Numbers(g).GroupByWindow(
      ThirdOf, [](const Output&, const Dataset& group) { return group.Batch(4); },
      [](const Output& key) { return key + int64_t{1}; });
}

Dataset Buckets(Graph& g) {
  return Repeated(Dataset::FromTensorSlices({Const(g, {1, 4, 2, 6, 3, 5, 1})}))
      .BucketBySequenceLength([](const Outputs& e) { return StridedSlice(ShapeTensor(e[0]), {0}); },
                              {3, 5}, {2, 1, 2});
}

Dataset Zipped(Graph& g) {
  const Dataset first = Numbers(g);
  return Dataset::Zip({first, Numbers(g, 3).Enumerate(5)});
}

Dataset Scanned(Graph& g) {
  const Dataset numbers = Numbers(g, 5);
  return numbers.Scan({Const(g, int64_t{0})}, [](const Outputs& s, const Outputs& e) {
    const Output sum = s[0] + e[0];
    return std::pair<Outputs, Outputs>({sum}, {s[0] * e[0]});
  });
}

Dataset Unique(Graph& g) {
  return Numbers(g)
      .Map([](const Outputs& e) { return Outputs{e[0] % int64_t{4}}; })
      .Unique()
      .IgnoreErrors();
}

Dataset Sampled(Graph& g) {
  const Dataset first = Numbers(g);
  return Dataset::SampleFromDatasets({first, Dataset::Range(g, 100, 106)}, {0.3f, 0.7f}, 4);
}

Dataset SampledEqually(Graph& g) {
  const Dataset first = Numbers(g, 4);
  return Dataset::SampleFromDatasets({first, Dataset::Range(g, 100, 104)}, {}, 4,
                                     /*stop_on_empty_dataset=*/true);
}

Dataset Chosen(Graph& g) {
  const Dataset first = Numbers(g, 4), second = Dataset::Range(g, 100, 104);
  return Dataset::ChooseFromDatasets({first, second}, Numbers(g, 2).Repeat(3));
}

Dataset Cached(Graph& g) { return Numbers(g, 3).Cache().Repeat(2); }

// ---- iterators, and data sets of files that do not exist

void Initialized(Graph& g) { MakeInitializableIterator(Numbers(g).Batch(4), "s").GetNext("n"); }

void Structured(Graph& g) {
  const Iterator it = Iterator::FromStructure(g, {{DT_INT64, DT_FLOAT}, {Shape(), Shape({2})}});
  it.GetNext();
  const Dataset first = Numbers(g);
  const Output pair = Const(g, {1.0f, 2.0f});
  it.MakeInitializer(Dataset::Zip({first, Dataset::FromTensors({pair}).Repeat()}));
}

void OneShot(Graph& g) {
  MakeOneShotIterator(Numbers(g).Map([](const Outputs& e) {
    return Outputs{e[0] + int64_t{1}};
  })).GetNext();
}

void TextLines(Graph& g) {
  Dataset::TextLines(g, Const<std::string>(g, {"a", "b"}), {.compression_type = "GZIP"});
}

void TfRecords(Graph& g) {
  Dataset::TfRecords(g, "a");
  Dataset::TfRecords(g, Const<std::string>(g, {"a", "b"}), {.num_parallel_reads = 2});
}

void FixedLengthRecords(Graph& g) {
  Dataset::FixedLengthRecords(g, Const<std::string>(g, {"a", "b"}), 4, 1, 2);
}

void Csv(Graph& g) {
  const Output files = Const<std::string>(g, {"a"});
  const Output required = Const(g, Tensor(DT_INT32, Shape({0})));
  Dataset::Csv(g, files, {required, Const(g, "x")}, {.header = true, .select_cols = {0, 2}});
}

void ListFiles(Graph& g) { Dataset::ListFiles(g, Const(g, "/tmp/*.txt"), true, 4); }

void Parsed(Graph& g) {
  Dataset::FromTensors({Const<std::string>(g, {"a"})})
      .ParseExample({{.key = "c", .dtype = DT_STRING, .default_value = Tensor::Scalar("x")},
                     {.key = "b", .dtype = DT_FLOAT, .shape = Shape({2})}},
                    {{.key = "a", .dtype = DT_INT64}}, 2);
}

void Saved(Graph& g) { Numbers(g).Save("/tmp/saved"); }

void Counted(Graph& g) {
  Numbers(g).Cardinality();
  Numbers(g, 1).GetSingleElement();
  const Dataset numbers = Numbers(g);
  numbers.Reduce({Const(g, int64_t{0})},
                 [](const Outputs& args) { return Outputs{args[0] + args[1]}; });
}

// The programs whose elements are compared too.
struct Program {
  const char* name;
  Dataset (*make)(Graph&);
};
template <Dataset (*Make)(Graph&)>
void Build(Graph& g) {
  Make(g);
}
const GoldenProgram kPrograms[] = {
    {"dataset_tensors", Build<FromTensors>},
    {"dataset_slices", Build<Slices>},
    {"dataset_selection", Build<Selection>},
    {"dataset_shuffled", Build<Shuffled>},
    {"dataset_shuffled_with_graph_seed", Build<ShuffledWithGraphSeed>},
    {"dataset_shuffle_and_repeat", Build<ShuffleAndRepeat>},
    {"dataset_random", Build<Random>},
    {"dataset_mapped", Build<Mapped>},
    {"dataset_mapped_in_parallel", Build<MappedInParallel>},
    {"dataset_filtered", Build<Filtered>},
    {"dataset_flat_mapped", Build<FlatMapped>},
    {"dataset_interleaved", Build<Interleaved>},
    {"dataset_interleaved_in_parallel", Build<InterleavedInParallel>},
    {"dataset_batched", Build<Batched>},
    {"dataset_batched_in_parallel", Build<BatchedInParallel>},
    {"dataset_padded", Build<Padded>},
    {"dataset_windows", Build<Windows>},
    {"dataset_groups", Build<Groups>},
    {"dataset_groups_of_sizes", Build<GroupsOfSizes>},
    {"dataset_zipped", Build<Zipped>},
    {"dataset_scanned", Build<Scanned>},
    {"dataset_unique", Build<Unique>},
    {"dataset_sampled", Build<Sampled>},
    {"dataset_sampled_equally", Build<SampledEqually>},
    {"dataset_chosen", Build<Chosen>},
    {"dataset_cached", Build<Cached>},
    {"dataset_initialized", Initialized},
    {"dataset_structured", Structured},
    {"dataset_one_shot", OneShot},
    {"dataset_text_lines", TextLines},
    {"dataset_tf_records", TfRecords},
    {"dataset_fixed_length_records", FixedLengthRecords},
    {"dataset_csv", Csv},
    {"dataset_list_files", ListFiles},
    {"dataset_parsed", Parsed},
    {"dataset_saved", Saved},
    {"dataset_counted", Counted},
};
INSTANTIATE_TEST_SUITE_P(Datasets, GoldenTest, RefGoldensOf(kPrograms), GoldenName);

const Program kDatasets[] = {
    {"tensors", FromTensors},
    {"slices", Slices},
    {"selection", Selection},
    {"shuffled", Shuffled},
    {"shuffled_with_graph_seed", ShuffledWithGraphSeed},
    {"shuffle_and_repeat", ShuffleAndRepeat},
    {"random", Random},
    {"mapped", Mapped},
    {"mapped_in_parallel", MappedInParallel},
    {"filtered", Filtered},
    {"flat_mapped", FlatMapped},
    {"interleaved", Interleaved},
    {"interleaved_in_parallel", InterleavedInParallel},
    {"batched", Batched},
    {"batched_in_parallel", BatchedInParallel},
    {"padded", Padded},
    {"windows", Windows},
    {"groups", Groups},
    {"groups_of_sizes", GroupsOfSizes},
    {"buckets", Buckets},
    {"zipped", Zipped},
    {"scanned", Scanned},
    {"unique", Unique},
    {"sampled", Sampled},
    {"sampled_equally", SampledEqually},
    {"chosen", Chosen},
    {"cached", Cached},
};

// Returns the elements that TensorFlow has read, by the name of the program.
std::map<std::string, std::vector<std::string>> ReadElements() {
  std::map<std::string, std::vector<std::string>> elements;
  std::ifstream file("tests/ops/golden/dataset_elements.txt");
  std::string line, name;
  while (std::getline(file, line)) {
    if (line.starts_with("# dataset_")) {
      name = line.substr(sizeof("# dataset_") - 1);
    } else {
      elements[name].push_back(line);
    }
  }
  return elements;
}

// Prints the numbers of a tensor from `*at` on, as Python prints a list.
template <class T>
std::string ListText(const Tensor& t, int dim, int64_t* at) {
  if (dim < t.shape().rank()) {
    std::vector<std::string> items;
    for (int64_t i = 0; i < t.shape().dim(dim); ++i) items.push_back(ListText<T>(t, dim + 1, at));
    return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
  }
  const T value = t.data<T>()[(*at)++];
  const std::string text = absl::StrCat(value);
  const bool is_whole = std::is_same_v<T, float> && text.find('.') == std::string::npos;
  return is_whole ? text + ".0" : text;
}

std::string Text(const Tensor& t) {
  int64_t at = 0;
  switch (t.dtype()) {
    case DT_INT32:
      return ListText<int32_t>(t, 0, &at);
    case DT_INT64:
      return ListText<int64_t>(t, 0, &at);
    case DT_FLOAT:
      return ListText<float>(t, 0, &at);
    case DT_STRING:
      return absl::StrCat("b'", t.scalar<std::string>(), "'");
    default:
      return "?";
  }
}

class DatasetElementsTest : public testing::TestWithParam<Program> {};

TEST_P(DatasetElementsTest, EqualTensorFlowsInTheSameOrder) {
  const std::vector<std::string> want = ReadElements()[GetParam().name];
  ASSERT_FALSE(want.empty());
  Graph g;
  const Iterator iterator = MakeInitializableIterator(GetParam().make(g));
  const Outputs next = iterator.GetNext();
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.num_threads = 2});
  ASSERT_TRUE(session.Run(iterator.initializer()).ok());
  for (const std::string& line : want) {
    const absl::StatusOr<Tensors> element = session.Run(next);
    if (line == "end") {
      EXPECT_EQ(element.status().code(), absl::StatusCode::kOutOfRange) << element.status();
      return;
    }
    ASSERT_TRUE(element.ok()) << element.status();
    std::vector<std::string> texts;
    for (size_t i = 0; i < element->size(); ++i) {
      texts.push_back(Text((*element)[i]));
      EXPECT_TRUE((*element)[i].shape().IsCompatibleWith(next[i].shape()));
    }
    EXPECT_EQ(absl::StrJoin(texts, " ; "), line);
  }
}

INSTANTIATE_TEST_SUITE_P(Datasets, DatasetElementsTest, testing::ValuesIn(kDatasets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weir
