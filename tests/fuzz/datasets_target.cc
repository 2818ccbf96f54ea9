#include <algorithm>

#include "weir/ops/lib/array.h"
#include "weir/session/session.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"

// Datasets of files with any contents: records of all kinds, lines, CSV, saved elements, compressed
// in all ways. Each returns elements and errors until its end, and no error repeats forever.
namespace weir::fuzz {

namespace {

constexpr char kPath[] = "/f";
// What a file of so few bytes has at most, errors included: an empty line each, and the end.
constexpr int64_t kMostElements = int64_t{1} << 20;

class Model {
 public:
  Model() {
    const Output path = Const(graph_, kPath);
    const auto number = [&](int64_t n) { return Const(graph_, Tensor::Scalar(n)); };
    const DataTypes csv = {DT_INT32, DT_FLOAT, DT_STRING};
    const Outputs defaults = {Const(graph_, Tensor::Vector<int32_t>({})),
                              Const(graph_, Tensor::Vector<float>({1})), Const(graph_, "")};
    const Output none = Const(graph_, Tensor::Vector<int64_t>({}));
    for (const char* name : {"", "GZIP", "ZLIB", "SNAPPY"}) {
      const Output compression = Const(graph_, name);
      Add("TFRecordDataset", {path, compression, number(0)}, {DT_STRING});
      Add("SnapshotChunkDataset", {path}, {DT_INT64, DT_STRING}, {{"compression", name}});
      Add("TextLineDataset", {path, compression, number(0)}, {DT_STRING});
      Add("FixedLengthRecordDatasetV2",
          {path, number(3), number(5), number(2), number(0), compression}, {DT_STRING});
      for (const bool header : {false, true}) {
        Add("CSVDataset",
            {path, compression, number(1), Const(graph_, header), Const(graph_, ","),
             Const(graph_, !header), Const(graph_, "NA"), none, defaults},
            csv);
      }
    }
    Require(graph_.status().ok(), "the datasets are built");
    session_ = std::make_unique<Session>(*Session::Create(graph_, {.num_threads = 1}));
  }

  void Run(Input in) {
    const Dataset& dataset = datasets_[in.Byte() % datasets_.size()];
    testing::MemoryFileSystem files;
    const ScopedFileSystem scope(&files);
    Require((*files.Create(kPath))->Append(in.RemainingBytes()).ok(), "a file is written");
    if (!session_->Run(dataset.start).ok()) return;
    for (int64_t i = 0; i < kMostElements; ++i) {
      const auto element = session_->Run(dataset.next);
      if (element.status().code() == absl::StatusCode::kOutOfRange) return;
    }
    Require(false, "a dataset of a file ends");
  }

 private:
  struct Dataset {
    Operation start;
    Outputs next;
  };

  void Add(const char* op, const std::vector<Arg>& args, const DataTypes& types, Attrs attrs = {}) {
    const std::vector<Shape> shapes(types.size(), Shape::UnknownRank());
    const Attrs elements = {{"output_types", types}, {"output_shapes", shapes}};
    attrs.insert(attrs.end(), elements.begin(), elements.end());
    if (graph_.ops().Find(op)->FindAttr("output_types") == nullptr) attrs.clear();
    const Output handle = AddOp(op, args, attrs);
    Attrs named = elements;
    named.emplace_back("shared_name", "");
    named.emplace_back("container", "");
    const Output iterator = AddNode(graph_, "IteratorV2", {}, named)->output(0);
    Dataset dataset{Operation(AddNode("MakeIterator", {handle, iterator})), {}};
    Node* const next = AddNode("IteratorGetNext", {iterator}, elements);
    for (int i = 0; i < next->num_outputs(); ++i) dataset.next.push_back(next->output(i));
    datasets_.push_back(std::move(dataset));
  }

  Graph graph_;
  std::vector<Dataset> datasets_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void Datasets(absl::string_view bytes) {
  static Model* const model = new Model;
  model->Run(Input(bytes));
}

std::vector<Row> Rows() { return {{"datasets", Datasets, 1000}}; }

}  // namespace weir::fuzz
