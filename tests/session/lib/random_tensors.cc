#include <algorithm>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/data/io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/boolean_mask.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/sparse/sparse.h"
#include "weir/ops/text/string.h"
#include "weir/tests/session/lib/random_models.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {

namespace {

// A number that the type of `x` holds: 0.5, or 2 for integers.
Output Factor(const Output& x) {
  return IsInteger(x.dtype()) ? ConstLike(x, 2) : ConstLike(x, 0.5);
}

// A tensor, and a number shared by all tensors that have its shape whatever is fed.
struct Value {
  Output x;
  int shape;
};

bool IsReal(DataType t) {
  return t == DT_FLOAT || t == DT_DOUBLE || t == DT_HALF || t == DT_BFLOAT16;
}
bool IsWhole(DataType t) {
  return t == DT_INT8 || t == DT_UINT8 || t == DT_INT16 || t == DT_INT32 || t == DT_INT64;
}
int RankOf(const Output& x) { return x.shape().rank(); }
bool IsNumber(DataType t) { return IsReal(t) || IsWhole(t); }

// Floating-point values stay of the order of one, at most eight; integers may wrap around. Floats
// are not compared for equality.
class RandomTensors {
 public:
  RandomTensors(Graph& g, uint32_t seed) : g_(g), random_(seed) {
    const int64_t widths[] = {1, 4, 6, 16};
    width_ = widths[Draw(4)];
    x_ = Placeholder(g, DT_FLOAT, {-1, width_}, "x");
    Add(x_ * 1.5f);
    Add(Cast(Floor(x_ * 50.f), DT_INT32), values_[0].shape);
    Add(Const(g, UniformFloats({3, width_}, random_)));
    Add(Const(g, UniformFloats({width_}, random_)));
    Add(ConstOf(g, DT_INT64, 3));
    if (Draw(2)) {
      const DataType types[] = {DT_FLOAT, DT_INT32, DT_INT64, DT_HALF, DT_BOOL};
      for (uint32_t i = 0; i < 1 + Draw(3); ++i) AddVariable(types[Draw(5)]);
    }
  }

  int64_t width() const { return width_; }

  TestModel Make(int length) {
    for (int i = 0; i < length; ++i) AddValues();
    TestModel model;
    std::vector<Operation> updates;
    Outputs fetches = {values_.back().x};
    for (const Variable& v : variables_) {
      updates.push_back(Update(v));
      if (Draw(2)) continue;
      const ControlDependencies after(g_, updates);
      const Output read = v.read_value();
      fetches.push_back(v.dtype() == DT_BOOL ? LogicalNot(read) : read + ConstLike(read, 1));
    }
    for (uint32_t i = 0; i < 4; ++i) fetches.push_back(Any().x);
    if (!variables_.empty()) {
      model.targets = {Group(g_, updates, "train").name()};
      model.init = GlobalVariablesInitializer(g_).name();
      for (const Variable& v : variables_) model.state.push_back(v.read_value().name());
    }
    for (const Output& fetch : fetches) model.fetches.push_back(fetch.name());
    return model;
  }

 private:
  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }

  // ---- existing values

  const Value& Any() {
    const uint32_t n = static_cast<uint32_t>(values_.size());
    return values_[Draw(3) ? n - 1 - Draw(std::min(n, 4u)) : Draw(n)];
  }
  // Returns a recent value that satisfies the predicate, or the last one; the first value, a matrix
  // of floats, if there is none.
  template <class Predicate>
  Value AnyThat(Predicate predicate) {
    for (int tries = 0; tries < 8; ++tries)
      if (const Value v = Any(); predicate(v.x)) return v;
    for (size_t i = values_.size(); i-- > 0;)
      if (predicate(values_[i].x)) return values_[i];
    return values_[0];
  }
  Value AnyNumber() {
    return AnyThat([](const Output& x) { return IsNumber(x.dtype()); });
  }
  // Returns a value with the type and shape of v: another value of that shape or v itself.
  Output OfSameShape(const Value& v) {
    const uint32_t first = Draw(static_cast<uint32_t>(values_.size()));
    for (size_t i = 0; i < values_.size(); ++i) {
      const Value& w = values_[(first + i) % values_.size()];
      const bool text = v.x.dtype() == DT_STRING;
      if (w.shape == v.shape && !(w.x == v.x) && (w.x.dtype() == DT_STRING) == text)
        return As(w.x, v.x.dtype());
    }
    return v.x;
  }
  // Returns a value of the type of v, with a shape that broadcasts to that of v.
  Output BroadcastableTo(const Value& v) {
    const DataType type = v.x.dtype();
    switch (Draw(5)) {
      case 0:
        return type == DT_BOOL ? Const(g_, Draw(2) != 0) : ConstOf(g_, type, 1 + Draw(3));
      case 1:
        if (RankOf(v.x) < 1 || v.x.dim(-1) != width_) return OfSameShape(v);
        return As(values_[3].x, type);  // a row
      case 2: {
        if (RankOf(v.x) < 1 || !IsWhole(type)) return OfSameShape(v);
        return ReduceSum(v.x, {static_cast<int64_t>(Draw(RankOf(v.x)))}, true);
      }
      default:
        return OfSameShape(v);
    }
  }
  int ShapeOf(const Output& x) {
    if (!x.shape().IsFullyDefined()) return ++num_shapes_;
    const auto [at, is_new] = shapes_.emplace(x.shape().ToString(), num_shapes_ + 1);
    if (is_new) ++num_shapes_;
    return at->second;
  }
  // Attention of the rows of a matrix to each other.
  static Output SelfAttention(const Output& x) {
    const Output rows = ExpandDims(x, {0});
    const Output scores = MatMul(rows, rows, {.transpose_b = true});
    return Squeeze(MatMul(Softmax(scores * 0.25f), rows), {0});
  }
  void Add(const Output& x, int shape) {
    if (x.valid() && x.shape().has_rank()) values_.push_back({x, shape});
  }
  void Add(const Output& x) {
    if (!x.valid()) return;
    int64_t elements = 1;
    for (int i = 0; i < x.shape().rank(); ++i) elements *= std::max<int64_t>(x.dim(i), 1);
    if (x.shape().has_rank() && x.shape().rank() <= 4 && elements <= 512) Add(x, ShapeOf(x));
  }

  // Converts between types without overflow, and away from thresholds where rounding would decide.
  Output As(const Output& x, DataType type) {
    if (x.dtype() == type) return x;
    if (type == DT_STRING) return AsString(x.dtype() == DT_BOOL ? Cast(x, DT_INT32) : ToInteger(x));
    if (type == DT_BOOL) return Cast(ToInteger(x), DT_INT64) > int64_t{0};
    if (IsReal(type) && IsWhole(x.dtype()))
      return Cast(FloorMod(Cast(x, DT_INT64), int64_t{17}) - int64_t{8}, type);
    return Cast(IsReal(type) && x.dtype() != DT_STRING ? x : ToInteger(x), type);
  }
  // Returns integers unchanged, other values converted to integers.
  Output ToInteger(const Output& x) {
    if (x.dtype() == DT_STRING) return StringLength(x);
    if (x.dtype() == DT_BOOL) return Cast(x, DT_INT32);
    if (!IsReal(x.dtype())) return x;
    return Cast(Floor(Cast(x, DT_FLOAT) * 5.f + 0.37f), DT_INT32);
  }
  Output Bound(const Output& x) {
    return IsReal(x.dtype()) ? ClipByValue(x, ConstLike(x, -8), ConstLike(x, 8)) : x;
  }
  // Returns int32 values in [0, limit), with the shape of x.
  Output Ids(const Output& x, const TensorArg& limit) {
    return FloorMod(Cast(ToInteger(x), DT_INT32), limit);
  }
  Output Rows(const Output& x) { return StridedSlice(ShapeTensor(x), {0}); }

  // ---- new values

  void AddValues() {
    switch (Draw(13)) {
      case 0: {
        const DataType types[] = {DT_FLOAT, DT_DOUBLE, DT_HALF,  DT_BFLOAT16, DT_INT8,  DT_UINT8,
                                  DT_INT16, DT_INT32,  DT_INT64, DT_BOOL,     DT_STRING};
        const Value v = Any();
        return Add(As(v.x, types[Draw(11)]), v.shape);
      }
      case 1:
      case 2:
      case 3:
        return AddElementwise(Any());
      case 4:
      case 5:
      case 6:
        return AddMoved();
      case 7:
        return AddCut();
      case 8:
        return AddReduced();
      case 9:
        return AddGathered();
      case 10:
        return AddChosen();
      case 11:
        return Draw(2) ? AddSparse() : AddText();
      default:
        return Draw(3) ? AddElementwise(Any()) : AddQueued();
    }
  }

  void AddElementwise(const Value& v) {
    const DataType type = v.x.dtype();
    if (Draw(8) == 0) {
      const Value condition = {As(v.x, DT_BOOL), v.shape};
      return Add(SelectV2(Draw(2) ? BroadcastableTo(condition) : condition.x, v.x, OfSameShape(v)),
                 v.shape);
    }
    if (type == DT_STRING)
      return Draw(2) ? Add(StringJoin({v.x, OfSameShape(v)}, Draw(2) ? "-" : ""), v.shape)
                     : Add(Equal(v.x, OfSameShape(v)), v.shape);
    if (type == DT_BOOL) {
      const Output y = OfSameShape(v);
      const Output results[] = {LogicalNot(v.x), LogicalAnd(v.x, y), LogicalOr(v.x, y),
                                NotEqual(v.x, y)};
      return Add(results[Draw(4)], v.shape);
    }
    if (Draw(6) == 0) {
      const Output y = BroadcastableTo(v);
      const Output results[] = {Less(v.x, y), LessEqual(y, v.x), Greater(v.x, y)};
      return Add(results[Draw(3)], v.shape);
    }
    if (IsReal(type))
      return Add(Draw(2) ? UnaryRealOp(v.x) : BinaryRealOp(v.x, BroadcastableTo(v)), v.shape);
    Add(Draw(3) ? BinaryIntegerOp(v.x, BroadcastableTo(v)) : UnaryIntegerOp(v.x), v.shape);
  }
  Output UnaryRealOp(const Output& x) {
    switch (Draw(16)) {
      case 0:
        return Tanh(x);
      case 1:
        return Sigmoid(x);
      case 2:
        return Abs(x);
      case 3:
        return Negative(x);
      case 4:
        return Square(x * ConstLike(x, 0.25));
      case 5:
        return Sqrt(Abs(x));
      case 6:
        return Exp(Negative(Abs(x)));
      case 7:
        return Sin(x);
      case 8:
        return Rsqrt(Abs(x) + ConstLike(x, 1));
      case 9:
        return Relu(x);
      case 10:
        return Relu6(x);
      case 11:
        return Elu(x);
      case 12:
        return LeakyRelu(x, 0.25f);
      case 13:
        return Softsign(x);
      case 14:
        return Floor(x * ConstLike(x, 2) + ConstLike(x, 0.3));
      default:
        return Log1p(Abs(x));
    }
  }
  Output BinaryRealOp(const Output& x, const Output& y) {
    switch (Draw(8)) {
      case 0:
        return Maximum(x, y);
      case 1:
        return Minimum(y, x);
      case 2:
        return Bound(x * y);
      case 3:
        return x / (Abs(y) + ConstLike(y, 1));
      case 4:
        return SquaredDifference(Tanh(x), Sigmoid(y));
      case 5:
        return Bound(AddN({x, y + ZerosLike(x), x}));
      case 6:
        return x * Factor(x) - y * Factor(y);
      default:
        return Bound(x + y);
    }
  }
  Output UnaryIntegerOp(const Output& x) {
    switch (Draw(5)) {
      case 0:
        return Square(x);
      case 1:
        return Invert(x);
      case 2:
        return FloorMod(x, ConstLike(x, 7));
      case 3:
        return LeftShift(x, ConstLike(x, 1));
      default:
        return x.dtype() == DT_UINT8 ? RightShift(x, ConstLike(x, 2)) : Negative(x);
    }
  }
  Output BinaryIntegerOp(const Output& x, const Output& y) {
    switch (Draw(9)) {
      case 0:
        return Maximum(x, y);
      case 1:
        return Minimum(y, x);
      case 2:
        return x * y;
      case 3:
        return FloorDiv(x, FloorMod(y, ConstLike(y, 5)) + ConstLike(y, 1));
      case 4:
        return FloorMod(x, FloorMod(y, ConstLike(y, 5)) + ConstLike(y, 1));
      case 5:
        return BitwiseXor(x, y + ZerosLike(x));
      case 6:
        return BitwiseAnd(x, y + ZerosLike(x));
      case 7:
        return x - y;
      default:
        return x + y;
    }
  }

  // The same elements, in other positions.
  void AddMoved() {
    const Value v = AnyThat([](const Output& x) { return RankOf(x) > 0; });
    const Output& x = v.x;
    const int rank = RankOf(x);
    const int64_t axis = Draw(rank);
    switch (Draw(9)) {
      case 0:
        return Add(Reshape(x, {-1}));
      case 1: {
        int unknown = 0;
        std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
        for (const int64_t d : dims) unknown += d < 0;
        if (unknown > 1 || rank > 3 || dims.back() % 2 != 0 || dims.back() < 0)
          return Add(Reshape(x, ShapeTensor(x)), v.shape);
        dims.back() /= 2;
        dims.insert(dims.end() - static_cast<int64_t>(Draw(2)), 2);
        return Add(Reshape(x, dims));
      }
      case 2:
        return Add(ExpandDims(x, static_cast<int64_t>(Draw(rank + 1))));
      case 3:
        if (x.dim(axis) == 1) return Add(Squeeze(x, {axis}));
        return Add(Identity(x), v.shape);
      case 4:
        return Add(Reverse(x, {axis}), v.shape);
      case 5:
        return Add(Roll(x, {static_cast<int64_t>(Draw(3))}, {axis}), v.shape);
      case 6:
        if (x.dim(axis) > 4 || !IsNumber(x.dtype())) return Add(x, v.shape);
        return Add(
            Cumsum(Bound(x) * ConstLike(x, IsReal(x.dtype()) ? Literal(0.125) : Literal(1)), axis),
            v.shape);
      default: {
        std::vector<int64_t> perm(rank);
        for (int i = 0; i < rank; ++i) perm[i] = i;
        std::shuffle(perm.begin(), perm.end(), random_);
        return Add(Transpose(x, perm));
      }
    }
  }

  // Slices and concatenations.
  void AddCut() {
    const Value v = AnyThat([](const Output& x) { return RankOf(x) > 0; });
    const Output& x = v.x;
    const int rank = RankOf(x);
    const int64_t axis = Draw(rank), extent = x.dim(axis);
    switch (Draw(9)) {
      case 0: {
        std::vector<int64_t> begin(rank, 0), size(rank, -1);
        if (extent > 1) {
          begin[axis] = Draw(static_cast<uint32_t>(extent));
          if (Draw(2)) size[axis] = 1 + Draw(static_cast<uint32_t>(extent - begin[axis]));
        }
        return Add(Slice(x, begin, size));
      }
      case 1:
      case 2: {
        std::vector<Index> indices;
        for (int i = 0; i < rank; ++i) indices.push_back(AnyIndex(x.dim(i)));
        if (Draw(4) == 0 && rank > 1) indices.back() = Index::Ellipsis();
        if (Draw(4) == 0) indices.insert(indices.begin() + Draw(rank), Index::NewAxis());
        return Add(StridedSlice(x, indices));
      }
      case 3:
        return Add(Concat({x, OfSameShape(v), x}, axis));
      case 4: {
        if (extent < 2 || extent % 2 != 0) return Add(Concat({OfSameShape(v), x}, axis));
        const Outputs halves = Split(x, 2, axis);
        Add(halves[0]);
        return Add(Draw(2) ? Concat({halves[1], halves[0]}, axis) : halves[1]);
      }
      case 5:
        return Add(Stack({x, OfSameShape(v)}, Draw(rank + 1)));
      case 6: {
        if (extent < 1 || extent > 6) return Add(Identity(x), v.shape);
        const Outputs rows = Unstack(x, axis);
        Add(rows.front());
        return Add(rows.back());
      }
      case 7: {
        std::vector<int64_t> multiples(rank, 1);
        multiples[axis] = 2;
        return Add(Tile(x, multiples));
      }
      default: {
        if (!IsNumber(x.dtype())) return Add(Identity(x), v.shape);
        std::vector<std::pair<int64_t, int64_t>> rows(rank);
        std::vector<int64_t> flat(2 * rank, 0);
        flat[2 * axis + Draw(2)] = 1 + Draw(2);
        const Output paddings = Const(g_, Tensor::Of<int64_t>({rank, 2}, flat));
        return Add(Draw(2) ? Pad(x, paddings) : PadV2(x, paddings, 2));
      }
    }
  }
  Index AnyIndex(int64_t extent) {
    switch (Draw(6)) {
      case 0:
        return extent > 0 ? Index(static_cast<int64_t>(Draw(static_cast<uint32_t>(extent))))
                          : Index::All();
      case 1:
        return Index::Range(1, std::nullopt);
      case 2:
        return Index::Range(std::nullopt, -1);
      case 3:
        return Index::Range(std::nullopt, std::nullopt, -1);
      case 4:
        return Index::Range(0, 3, 2);
      default:
        return Index::All();
    }
  }

  void AddReduced() {
    const Value v =
        AnyThat([](const Output& x) { return x.dtype() != DT_STRING && RankOf(x) > 0; });
    const Output& x = v.x;
    const int64_t axis = Draw(RankOf(x));
    const bool keep = Draw(2) != 0, known = x.dim(axis) > 0;
    std::vector<int64_t> axes = {axis};
    if (Draw(4) == 0 && RankOf(x) > 1) axes = {0, int64_t{RankOf(x)} - 1};
    if (x.dtype() == DT_BOOL)
      return Add(Draw(2) ? ReduceAny(x, axes, keep) : ReduceAll(x, axes, keep));
    if (!IsNumber(x.dtype())) return;
    switch (Draw(6)) {
      case 0:
        if (known) return Add(ReduceMax(x, {axis}, keep));
        break;
      case 1:
        if (known) return Add(ReduceMin(x, {axis}, keep));
        break;
      case 2:
        if (known && IsReal(x.dtype())) return Add(ReduceMean(x, {axis}, keep));
        break;
      case 3:
        if (known && IsWhole(x.dtype())) return Add(ArgMax(x, axis, DT_INT32));
        break;
      case 4:
        if (RankOf(x) == 2 && x.dtype() == DT_FLOAT && x.dim(1) == width_)
          return Add(Draw(2) ? Softmax(x) : SelfAttention(x));
        break;
      default:
        break;
    }
    if (IsWhole(x.dtype())) return Add(ReduceSum(x, axes, keep));
    Add(Bound(ReduceSum(x * ConstLike(x, 0.0625), axes, keep)));
  }

  // Indexing with constant or computed indices.
  void AddGathered() {
    const Value v = AnyThat([](const Output& x) { return RankOf(x) > 0; });
    const Output& x = v.x;
    const int64_t axis = Draw(RankOf(x)), extent = x.dim(axis);
    const Value i = AnyThat([](const Output& y) { return RankOf(y) < 2; });
    const int32_t last = static_cast<int32_t>(extent - 1);
    switch (Draw(7)) {
      case 0:
        if (extent < 1) break;
        return Add(Gather(x, Ids(i.x, static_cast<int32_t>(extent)), {.axis = axis}));
      case 1:
        if (extent < 1) break;
        return Add(Gather(x, Const<int32_t>(g_, {last, 0, last}), {.axis = axis}));
      case 2: {
        if (x.dtype() == DT_STRING || x.dim(0) < 1) break;
        const Output at =
            Const(g_, Tensor::Of<int32_t>({2, 1}, {0, static_cast<int32_t>(x.dim(0) - 1)}));
        const Output rows = GatherNd(Roll(x, {1}, {0}), at);
        if (x.dtype() == DT_BOOL || x.dim(0) == 1) break;
        return Add(Draw(2) ? TensorScatterUpdate(x, at, rows)
                           : TensorScatterAdd(x, at, Bound(rows) * Factor(rows)),
                   v.shape);
      }
      case 3: {
        if (!IsNumber(x.dtype())) break;
        const Output ids = Ids(Range(Const(g_, 0), Rows(x), Const(g_, 1)) * 7, 3);
        return Add(
            Bound(UnsortedSegmentSum(IsReal(x.dtype()) ? x * ConstLike(x, 0.125) : x, ids, 3)));
      }
      case 4: {
        const Value w = AnyThat([](const Output& y) { return RankOf(y) < 3; });
        return Add(OneHot(Ids(w.x, 5), 4));
      }
      case 5: {
        const Output parts = Ids(Range(Const(g_, 0), Rows(x), Const(g_, 1)) * 5, 2);
        const Outputs pieces = DynamicPartition(x, parts, 2);
        const Outputs places =
            DynamicPartition(Range(Const(g_, 0), Rows(x), Const(g_, 1)), parts, 2);
        Add(pieces[0]);
        return Add(DynamicStitch(places, {pieces[0], Identity(pieces[1])}));
      }
      default:
        break;
    }
    Add(BroadcastTo(ExpandDims(x, 0), Concat({Const<int32_t>(g_, {2}), ShapeTensor(x)}, 0)));
  }

  // Shapes that depend on values.
  void AddChosen() {
    const Value v = AnyThat([](const Output& x) { return RankOf(x) > 0; });
    const Output& x = v.x;
    switch (Draw(6)) {
      case 0:
        return Add(Where(As(x, DT_BOOL)));
      case 1:
        return Add(BooleanMask(x, As(x, DT_BOOL)));
      case 2: {
        const Output rows = Ids(Range(Const(g_, 0), Rows(x), Const(g_, 1)) * 3, 2) > 0;
        return Add(BooleanMask(x, rows));
      }
      case 3: {
        if (IsReal(x.dtype()) || x.dtype() == DT_BOOL)
          return Add(Unique(Reshape(ToInteger(x), {-1})).y);
        const UniqueResult unique = Unique(Reshape(x, {-1}));
        Add(unique.y);
        return Add(unique.idx);
      }
      case 4:
        if (!IsWhole(x.dtype()) || x.dim(-1) < 2) return Add(Size(x, DT_INT32, "", false));
        return Add(TopK(x, 2).values);
      default:
        return Add(ShapeTensor(x, DT_INT64, "", false));
    }
  }

  void AddSparse() {
    const Value v = AnyThat([](const Output& x) { return RankOf(x) == 2; });
    const DataType type = Draw(2) ? DT_FLOAT : DT_INT32;
    const Output x = As(v.x, type), at = Where(As(v.x, DT_BOOL));
    const SparseTensor s = MakeSparseTensor(at, GatherNd(x, at), ShapeTensor(x, DT_INT64));
    switch (Draw(7)) {
      case 0:
        return Add(SparseTensorToDense(SparseAdd(s, s)));
      case 1:
        return Add(Bound(SparseReduceSum(s, Ints({1}))));
      case 2:
        return Add(SparseTensorToDense(SparseDenseCwiseMul(s, ConstOf(g_, type, 2))));
      case 3:
        return Add(SparseTensorToDense(SparseConcat(0, {s, s})));
      case 4:
        return Add(SparseFillEmptyRows(s, ConstOf(g_, type, 1)).filled.values);
      case 5: {
        const SparseTensor reversed =
            MakeSparseTensor(Reverse(s.indices, {0}), Reverse(s.values, {0}), s.dense_shape);
        return Add(SparseReorder(reversed).values);
      }
      default:
        if (x.dim(1) < 0) return;  // the product might have any size
        return Add(SparseTensorDenseMatMul(s, SparseTensorToDense(s), {.adjoint_a = true}));
    }
  }

  void AddText() {
    const Value v = Any();
    const Output text = As(v.x, DT_STRING);
    switch (Draw(7)) {
      case 0:
        return Add(Substr(text, 0, 2), v.shape);
      case 1:
        return Add(StringToHashBucketFast(text, 20), v.shape);
      case 2:
        return Add(RegexReplace(text, "[13]", "x"), v.shape);
      case 3:
        if (RankOf(v.x) < 1) return Add(StringLength(text), v.shape);
        return Add(ReduceJoin(text, {static_cast<int64_t>(Draw(RankOf(v.x)))}, Draw(2) != 0, ","));
      case 4:
        return Add(StringToNumber(AsString(ToInteger(v.x)), DT_INT64), v.shape);
      case 5:
        return Add(StringSplitV2(Reshape(text, {-1}), "-").values);
      default:
        return Add(StringLength(text), v.shape);
    }
  }

  // Passes a value through a queue, in models with variables: three callers run the other models,
  // and would dequeue each other's elements.
  void AddQueued() {
    const Value v = Any();
    if (variables_.empty()) return Add(Identity(v.x), v.shape);
    const Queue queue = Queue::Fifo(g_, 10, {v.x.dtype()});
    const ControlDependencies after(g_, {queue.Enqueue({v.x})});
    Output y = queue.Dequeue()[0];
    y = Reshape(y, ShapeTensor(v.x));
    Add(y, v.shape);
  }

  // ---- state

  void AddVariable(DataType type) {
    const std::string name = absl::StrCat("v", variables_.size());
    const Output initial = Draw(2) ? As(values_[2].x, type) : Zeros(g_, {3, width_}, type);
    const Variable v = GetVariable(
        g_, name, {3, width_},
        {.initializer = [initial](const InitializerArgs&) { return initial; }, .dtype = type});
    variables_.push_back(v);
    Add(v.value());
  }
  Operation Update(const Variable& v) {
    const DataType type = v.dtype();
    const Value like = AnyThat([&](const Output& x) { return x.shape() == v.shape(); });
    const Output value = like.x.shape() == v.shape() ? As(like.x, type) : As(values_[2].x, type);
    const Output rows = Const<int32_t>(g_, {2, 0});
    switch (Draw(type == DT_BOOL ? 2 : 5)) {
      case 0:
        return v.Assign(value);
      case 1:
        return v.ScatterUpdate({.values = Gather(value, rows), .indices = rows});
      case 2:
        return v.ScatterAdd({.values = Gather(value, rows), .indices = rows});
      case 3:
        return v.AssignSub(value);
      default:
        return v.AssignAdd(Cast(Rows(x_), type) * ConstLike(value, 1) + ZerosLike(value));
    }
  }

  Graph& g_;
  std::mt19937 random_;
  int64_t width_;
  Output x_;
  std::vector<Value> values_;
  Variables variables_;
  std::map<std::string, int> shapes_;
  int num_shapes_ = 0;
};

}  // namespace

TestModel AddRandomTensors(Graph& g, uint32_t seed, int length, uint32_t noise) {
  RandomTensors tensors(g, seed);
  TestModel model = tensors.Make(length);
  model.feeds = [width = tensors.width(), noise](int step, int64_t batch) {
    std::mt19937 random(noise * 1000003u + static_cast<uint32_t>(step));
    return NamedTensors{{"x", UniformFloats({batch, width}, random)}};
  };
  return model;
}

}  // namespace weir
