#include "weir/ops/lib/array.h"
#include "weir/ops/lib/registry.h"
#include "weir/session/session.h"
#include "weir/tests/fuzz/targets.h"

// Ops whose other arguments control what happens to the first one: shapes, axes, indices, sizes.
// Whatever is fed, a step returns values or an error, and the next step is unaffected.
namespace weir::fuzz {

namespace {

constexpr int kKinds = 4;  // number of placeholders for each argument position

DataType TypeOf(int kind) {
  constexpr DataType kTypes[kKinds] = {DT_FLOAT, DT_INT32, DT_INT64, DT_BOOL};
  return kTypes[kind];
}

class Model {
 public:
  Model() {
    for (int place = 0; place < 3; ++place) {
      for (int kind = 0; kind < kKinds; ++kind)
        inputs_[place][kind] = Placeholder(graph_, TypeOf(kind), Shape::UnknownRank());
    }
    const Output x = inputs_[0][0], y = inputs_[1][0], z = inputs_[2][0], b = inputs_[0][3];
    for (const char* mode : {"REFLECT", "SYMMETRIC"})
      Add("MirrorPad", {x, inputs_[1][1]}, {{"mode", mode}});
    for (const int kind : {1, 2}) {
      const Output i = inputs_[1][kind], j = inputs_[2][kind];
      for (const char* op : {"Reshape", "Tile", "BroadcastTo", "ExpandDims", "Pad", "ReverseV2",
                             "Transpose", "Gather", "GatherNd", "Sum", "Prod", "Max", "Mean",
                             "ArgMax", "Cumsum", "SegmentSum", "TopKV2"}) {
        Add(op, {x, i});
      }
      for (const char* op : {"Slice", "UnsortedSegmentSum", "SparseSegmentSum", "GatherV2"})
        Add(op, {x, i, j});
      Add("StridedSlice", {x, i, j, i});
      Add("ScatterNd", {i, x, j});
      Add("OneHot", {i, inputs_[2][1], x, y});
      Add("Fill", {i, x});
      Add("Range", {i, j, i});
      Add("SplitV", {x, i, inputs_[2][1]}, {{"num_split", int64_t{2}}});
      Add("Unique", {i});
      Add("ConcatV2", {Outputs{x, y}, i});
      Add("DynamicStitch", {Outputs{i, j}, Outputs{x, y}});
      Add("DynamicPartition", {x, i}, {{"num_partitions", int64_t{3}}});
    }
    for (const char* op : {"MatMul", "BatchMatMulV2", "AddV2", "FloorDiv", "Pow", "BiasAdd",
                           "SoftmaxCrossEntropyWithLogits", "Greater"}) {
      Add(op, {x, y});
    }
    Add("SelectV2", {b, x, y});
    Add("Where", {b});
    Add("ClipByValue", {x, y, z});
    const std::vector<int64_t> ones = {1, 1, 1, 1}, twos = {1, 2, 2, 1};
    for (const char* padding : {"SAME", "VALID"}) {
      Add("Conv2D", {x, y}, {{"strides", twos}, {"padding", padding}});
      Add("DepthwiseConv2dNative", {x, y}, {{"strides", ones}, {"padding", padding}});
      Add("MaxPool", {x}, {{"ksize", twos}, {"strides", twos}, {"padding", padding}});
      Add("AvgPool", {x}, {{"ksize", twos}, {"strides", ones}, {"padding", padding}});
    }
    Require(values_.size() > 60, "nearly all of these ops exist");
    absl::StatusOr<Session> session = Session::Create(graph_, {.num_threads = 1});
    Require(session.ok(), "a session is created");
    session_ = std::make_unique<Session>(*std::move(session));
  }

  void Run(Input in) {
    weir::Feeds feeds;
    const size_t which = in.Byte() % values_.size();
    for (int place = 0; place < 3; ++place) {
      for (int kind = 0; kind < kKinds; ++kind) {
        const Output& to = inputs_[place][kind];
        if (Uses(values_[which].node, to.node))
          feeds.emplace_back(to, Value(TypeOf(kind), place, &in));
      }
    }
    const auto out = session_->Run(feeds, {values_[which]});
    if (!out.ok()) {
      Require(!out.status().message().empty(), "an error has a message");
      return;
    }
    (*out)[0].ToString();
  }

 private:
  // Returns an op of that name, if one with such arguments exists.
  void Add(const char* op, const std::vector<Arg>& args, const Attrs& attrs = {}) {
    Node* node = AddNode(op, args, attrs);
    const absl::Status status = graph_.TakeStatus();
    if (node == nullptr || !status.ok()) return;
    for (int i = 0; i < node->num_outputs(); ++i) values_.push_back(node->output(i));
  }

  static bool Uses(const Node* node, const Node* input) {
    for (const Output& in : node->inputs()) {
      if (in.node == input) return true;
    }
    return false;
  }

  // The first argument may have any rank; the others usually have rank one.
  static Tensor Value(DataType type, int place, Input* in) {
    constexpr size_t kRanks[] = {0, 1, 1, 1, 0, 1, 2, 3};
    const uint8_t rank = in->Byte();
    std::vector<int64_t> dims(place == 0 ? rank % 5 : kRanks[rank % 8]);
    for (int64_t& d : dims) d = in->Byte() % 7;
    Tensor t = Tensor::Zeros(type, Shape(dims));
    const uint8_t scale = in->Byte();
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      // Mostly small values; one in four inputs has values of any size.
      int64_t v = static_cast<int8_t>(in->Byte());
      if (scale % 4 != 0) v %= 8;
      if (scale % 4 == 0 && v % 16 == 0) v = v * (int64_t{1} << (scale / 4));
      if (type == DT_FLOAT) t.data<float>()[i] = static_cast<float>(v) / 4;
      if (type == DT_INT32) t.data<int32_t>()[i] = static_cast<int32_t>(v);
      if (type == DT_INT64) t.data<int64_t>()[i] = v;
      if (type == DT_BOOL) t.data<bool>()[i] = v % 2 != 0;
    }
    return t;
  }

  Graph graph_;
  Output inputs_[3][kKinds];
  Outputs values_;
  std::unique_ptr<Session> session_;
};

}  // namespace

void Feeds(absl::string_view bytes) {
  static Model* const model = new Model;
  model->Run(Input(bytes));
}

std::vector<Row> Rows() { return {{"feeds", Feeds, 4000}}; }

}  // namespace weir::fuzz
