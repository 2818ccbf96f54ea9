// Fits a line to points in a TFRecord file of Examples: reads, shuffles, parses and batches them in
// the graph, so that a training step needs no feeds. Without an argument it makes the file first.
//
//   train_on_records [POINTS.tfrecord]

#include <cstdio>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "weir/weir.h"

namespace {

constexpr int kPoints = 1000;
constexpr int64_t kBatch = 50;

// Writes points around y = 3 x - 1, one Example with the features "x" and "y" for each. An op makes
// the Examples of JSON; a program that has Protobuf would fill them in.
absl::Status WritePoints(const std::string& path) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::string> points;
  for (int i = 0; i < kPoints; ++i) {
    const float x = normal(random), y = 3 * x - 1 + 0.1f * normal(random);
    points.push_back(absl::StrCat(R"({"features": {"feature": {"x": {"floatList": {"value": [)", x,
                                  R"(]}}, "y": {"floatList": {"value": [)", y, "]}}}}}"));
  }
  weir::Graph g;
  const weir::Output examples = weir::DecodeJsonExample(weir::Const(g, points));
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors bytes, session.Run({examples}));
  WEIR_ASSIGN_OR_RETURN(const auto writer, weir::RecordWriter::Create(path));
  for (int i = 0; i < kPoints; ++i)
    WEIR_RETURN_IF_ERROR(writer->Append(bytes[0].data<std::string>()[i]));
  return writer->Close();
}

absl::Status Fit(const std::string& path) {
  weir::Graph g;
  g.set_seed(1);
  const weir::Dataset points =
      weir::Dataset::TfRecords(g, path)
          .Shuffle(kPoints)
          .Repeat(20)
          .Batch(kBatch, /*drop_remainder=*/true)
          .Map(
              [](const weir::Outputs& records) {
                return weir::ParseExample(
                           records[0],
                           {{.key = "x", .dtype = weir::DT_FLOAT, .shape = {}, .default_value = {}},
                            {.key = "y",
                             .dtype = weir::DT_FLOAT,
                             .shape = {},
                             .default_value = {}}},
                           {})
                    .dense;
              },
              {.num_parallel_calls = weir::kAutotune})
          .Prefetch(weir::kAutotune);
  const weir::Outputs batch = weir::MakeOneShotIterator(points).GetNext();

  const weir::Variable slope = weir::GetVariable(g, "slope", {}, weir::Zeros());
  const weir::Variable intercept = weir::GetVariable(g, "intercept", {}, weir::Zeros());
  WEIR_RETURN_IF_ERROR(g.status());
  const weir::Output loss =
      weir::ReduceMean(weir::SquaredDifference(slope * batch[0] + intercept, batch[1]));
  const weir::Operation train = weir::GradientDescent(0.1).Minimize(loss);
  const weir::Operation init = weir::GlobalVariablesInitializer(g);

  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(g));
  WEIR_RETURN_IF_ERROR(session.Run(init));
  for (int step = 0;; ++step) {
    const absl::StatusOr<weir::Tensors> out = session.Run({}, {loss}, {train});
    if (absl::IsOutOfRange(out.status())) break;  // the end of the data set
    WEIR_RETURN_IF_ERROR(out.status());
    if (step % 100 == 0) std::printf("step %3d  loss %.5f\n", step, (*out)[0].scalar<float>());
  }
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors line, session.Run({slope.value(), intercept.value()}));
  std::printf("y = %.3f x + %.3f   (the points are sampled around y = 3 x - 1)\n",
              line[0].scalar<float>(), line[1].scalar<float>());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "points.tfrecord";
  absl::Status status = argc > 1 ? absl::OkStatus() : WritePoints(path);
  if (status.ok()) status = Fit(path);
  if (!status.ok()) std::fprintf(stderr, "train_on_records: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
