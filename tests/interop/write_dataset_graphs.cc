// Writes graphs of data sets, and prints the elements that Weir reads from them: for
// datasets_test.py, which runs the graphs in TensorFlow.

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "weir/session/weir.h"

namespace weir {
namespace {

Output Third(const Outputs& e) { return FloorMod(e[0], int64_t{3}); }

// Vectors of 1 to 9 numbers.
Dataset Sequences(Graph& g) {
  return Dataset::Range(g, 1, 10).Shuffle(9, 2).Map(
      [](const Outputs& e) { return Outputs{Fill(ExpandDims(e[0], 0), e[0])}; });
}

Dataset Records(Graph& g, const std::string& folder) {
  return Dataset::TfRecords(g, Const<std::string>(g, {folder + "/a", folder + "/b"}),
                            {.num_parallel_reads = 2})
      .Shuffle(5, 3)
      .Repeat(2)
      .Map([](const Outputs& e) { return Outputs{StringToNumber(e[0], DT_INT64)}; },
           {.num_parallel_calls = 2, .deterministic = true})
      .Batch(4, /*drop_remainder=*/true)
      .Prefetch(kAutotune);
}

Dataset Buckets(Graph& g) {
  return Sequences(g).BucketBySequenceLength([](const Outputs& e) { return Size(e[0]); }, {4, 10},
                                             {2, 3, 1}, {.pad_to_bucket_boundary = true});
}

Dataset Groups(Graph& g) {
  return Dataset::Range(g, 20)
      .GroupByWindow(
          Third, [](const Output&, const Dataset& group) { return group.Batch(5); }, 4)
      .Unbatch()
      .Window(4, 3)
      .FlatMap([](const Outputs& w) {
        return Dataset::FromVariant(w[0], {{DT_INT64}, {Shape()}}).Batch(4);
      });
}

Dataset Mixed(Graph& g) {
  g.set_seed(11);
  const Dataset low = Dataset::Range(g, 10), high = Dataset::Range(g, 100, 110);
  const Dataset sampled = Dataset::SampleFromDatasets({low, high}, {0.25f, 0.75f});
  const Output thousand = Const(g, int64_t{1000});
  return sampled.Enumerate(1)
      .Map([](const Outputs& args) { return Outputs{args[0] * args[2] + args[1]}; },
           {.captured = {thousand}})
      .Map([](const Outputs& e) {
        Graph& body = e[0].graph();
        const Output random = RandomUniform(body, {}, {.max = 50, .dtype = DT_INT64});
        return Outputs{e[0] + random};
      })
      .Shuffle(4);
}

absl::Status Write(const std::string& name, const std::string& folder,
                   const std::function<Dataset(Graph&)>& make) {
  Graph g;
  const Iterator iterator = MakeOneShotIterator(make(g));
  const Outputs next = iterator.GetNext("next");
  WEIR_RETURN_IF_ERROR(g.status());
  WEIR_RETURN_IF_ERROR(WriteGraphFile(g, absl::StrCat(folder, "/", name, ".pb")));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g));
  while (true) {
    const absl::StatusOr<Tensors> element = session.Run(next);
    if (absl::IsOutOfRange(element.status())) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(element.status());
    const Tensor& t = (*element)[0];
    std::printf("%s", name.c_str());
    for (int64_t i = 0; i < t.num_elements(); ++i)
      std::printf(" %lld", static_cast<long long>(t.data<int64_t>()[i]));
    std::printf("\n");
  }
}

absl::Status WriteAll(const std::string& folder) {
  WEIR_RETURN_IF_ERROR(Write("records", folder, [&](Graph& g) { return Records(g, folder); }));
  WEIR_RETURN_IF_ERROR(Write("buckets", folder, Buckets));
  WEIR_RETURN_IF_ERROR(Write("groups", folder, Groups));
  return Write("mixed", folder, Mixed);
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::Status status = weir::WriteAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
