#include <algorithm>
#include <memory>
#include <numeric>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/linalg/dnnl_status.h"
#include "weir/kernels/linalg/matmul.h"
#include "weir/kernels/math/reduce.h"
#include "weir/ops/linalg/einsum.h"

// Einsum as one batched matrix multiplication.
//
// A label of a tensor is a dimension with an extent and a stride. A label that occurs twice in a
// tensor follows a diagonal, and its stride is the sum of both. Labels of extent 1 are dropped,
// which also handles the broadcasting of ellipses.
//
// A label of two operands is of one of four kinds:
//   summed at once   in one operand only, not in the result: reduced before anything else
//   batch            in both operands and in the result
//   free             in one operand and in the result
//   contracted       in both operands, not in the result
// so that left [batch, free, contracted] times right [batch, contracted, free] is result [batch,
// free of left, free of right]. An operand with this layout, or with the last two parts exchanged
// (a transposed matrix), is used in place; any other is first copied to that order. The result is
// computed in place if its labels have that order for the operands as given or exchanged. Otherwise
// it is copied to the position of each label, which is on a diagonal (in zeros) for a label that
// occurs twice in the result.
namespace weir {

namespace {

using Labels = std::vector<int>;

// A strided view of a tensor's elements, indexed by label.
struct Strided {
  const void* data = nullptr;
  DataType type = DT_INVALID;
  Labels labels;  // distinct
  absl::InlinedVector<int64_t, 6> strides;
  Tensor owned;  // owns the data unless it is an input's

  int64_t StrideOf(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? 0 : strides[at - labels.begin()];
  }
  bool Has(int label) const {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
};

Labels ConcatLabels(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

using EinsumTypes = JoinLists<Floats, List<int32_t, int64_t>, Complexes>;

class EinsumRun {
 public:
  EinsumRun(KernelContext& c, const EinsumLabels& labels, Tensor* out)
      : c_(c), extents_(labels.extents), out_(out) {
    const Dims strides = StridesOf(out->shape());
    for (size_t i = 0; i < labels.output.size(); ++i) Add(labels.output[i], strides[i], &result_);
    result_repeats_ = result_.labels.size() < CountLong(labels.output);
  }

  absl::Status Unary(const Tensor& input, const Labels& labels) {
    WEIR_ASSIGN_OR_RETURN(const Strided x, SumUnusedLabels(View(input, labels), result_, result_));
    CopyToResult(x);
    return absl::OkStatus();
  }

  absl::Status Binary(const Tensor& a, const Labels& a_labels, const Tensor& b,
                      const Labels& b_labels) {
    Strided x = View(a, a_labels), y = View(b, b_labels);
    WEIR_ASSIGN_OR_RETURN(x, SumUnusedLabels(std::move(x), result_, y));
    WEIR_ASSIGN_OR_RETURN(y, SumUnusedLabels(std::move(y), result_, x));
    for (const int label : x.labels) {
      if (!result_.Has(label)) contracted_.push_back(label);
    }
    for (const int label : result_.labels) {
      if (x.Has(label) && y.Has(label)) batch_.push_back(label);
    }
    const Labels left = FreeOf(x), right = FreeOf(y);
    if (result_.labels == ConcatLabels(ConcatLabels(batch_, right), left))
      return Multiply(y, right, x, left);
    return Multiply(x, left, y, right);
  }

 private:
  size_t CountLong(const Labels& labels) const {
    return std::count_if(labels.begin(), labels.end(),
                         [this](int label) { return extents_.at(label) != 1; });
  }

  void Add(int label, int64_t stride, Strided* to) const {
    if (extents_.at(label) == 1) return;
    const auto at = std::find(to->labels.begin(), to->labels.end(), label);
    if (at != to->labels.end()) {
      to->strides[at - to->labels.begin()] += stride;
    } else {
      to->labels.push_back(label);
      to->strides.push_back(stride);
    }
  }

  Strided View(const Tensor& t, const Labels& labels) const {
    Strided view;
    view.data = t.raw();
    view.type = t.dtype();
    const Dims strides = StridesOf(t.shape());
    for (int d = 0; d < t.rank(); ++d) {
      if (t.dim(d) != 1) Add(labels[d], strides[d], &view);
    }
    return view;
  }

  int64_t SizeOf(const Labels& labels) const {
    int64_t n = 1;
    for (const int label : labels) n *= extents_.at(label);
    return n;
  }

  bool HasOrder(const Strided& x, const Labels& order) const {
    int64_t stride = 1;
    for (auto label = order.rbegin(); label != order.rend(); ++label) {
      if (x.StrideOf(*label) != stride) return false;
      stride *= extents_.at(*label);
    }
    return true;
  }

  // Returns the elements in contiguous memory, in this order of labels.
  absl::StatusOr<Strided> InOrder(const Strided& x, const Labels& order) {
    Strided y;
    y.type = x.type;
    y.labels = order;
    Dims dims;
    for (const int label : order) dims.push_back(extents_.at(label));
    WEIR_ASSIGN_OR_RETURN(y.owned, c_.AllocateTemp(x.type, Shape({SizeOf(order)})));
    y.data = y.owned.raw();
    StridedCopy copy;
    const Dims strides = StridesOf(dims);
    for (size_t i = 0; i < order.size(); ++i) {
      copy.AddDim(dims[i], x.StrideOf(order[i]), strides[i]);
      y.strides.push_back(strides[i]);
    }
    copy.Run(c_.pool(), x.type, x.data, y.owned.raw());
    return y;
  }

  // Sums over the labels that neither the other operand nor the result has.
  absl::StatusOr<Strided> SumUnusedLabels(Strided x, const Strided& a, const Strided& b) {
    Labels kept, summed;
    for (const int label : x.labels)
      (a.Has(label) || b.Has(label) ? kept : summed).push_back(label);
    if (summed.empty()) return x;
    const int64_t rows = SizeOf(kept), n = SizeOf(summed);
    const Labels order = ConcatLabels(kept, summed);
    if (!HasOrder(x, order)) {
      WEIR_ASSIGN_OR_RETURN(x, InOrder(x, order));
    }
    Strided y;
    y.type = x.type;
    y.labels = kept;
    WEIR_ASSIGN_OR_RETURN(y.owned, c_.AllocateTemp(x.type, Shape({rows})));
    y.data = y.owned.raw();
    int64_t stride = rows;
    for (const int label : kept) y.strides.push_back(stride /= extents_.at(label));
    WEIR_ASSIGN_OR_RETURN(
        const ReductionLayout plan,
        MakeReductionLayout(Shape({rows, n}), Tensor::Scalar<int32_t>(1), /*keep_dims=*/false));
    Reduce(c_.pool(), *FindReducer("Sum", x.type), plan, x.data, y.owned.raw());
    return y;
  }

  Labels FreeOf(const Strided& x) const {
    Labels out;
    for (const int label : result_.labels) {
      if (x.Has(label) && std::find(batch_.begin(), batch_.end(), label) == batch_.end()) {
        out.push_back(label);
      }
    }
    return out;
  }

  // Makes x a batch of matrices with rows `rows` and columns `columns`, possibly transposed.
  absl::Status AsMatrices(const Labels& rows, const Labels& columns, Strided* x, bool* transposed) {
    const Labels plain = ConcatLabels(ConcatLabels(batch_, rows), columns);
    *transposed = false;
    if (HasOrder(*x, plain)) return absl::OkStatus();
    *transposed = HasOrder(*x, ConcatLabels(ConcatLabels(batch_, columns), rows));
    if (*transposed) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(*x, InOrder(*x, plain));
    return absl::OkStatus();
  }

  absl::Status Multiply(Strided x, const Labels& left, Strided y, const Labels& right) {
    MatMulArgs args{.m = SizeOf(left), .n = SizeOf(right), .k = SizeOf(contracted_)};
    WEIR_RETURN_IF_ERROR(AsMatrices(left, contracted_, &x, &args.transpose_a));
    WEIR_RETURN_IF_ERROR(AsMatrices(contracted_, right, &y, &args.transpose_b));
    const Labels order = ConcatLabels(ConcatLabels(batch_, left), right);
    if (result_.labels == order && !result_repeats_) return RunProducts(args, x, y, out_->raw());
    Strided z;
    z.type = x.type;
    z.labels = order;
    int64_t stride = SizeOf(order);
    WEIR_ASSIGN_OR_RETURN(z.owned, c_.AllocateTemp(x.type, Shape({stride})));
    z.data = z.owned.raw();
    for (const int label : order) z.strides.push_back(stride /= extents_.at(label));
    WEIR_RETURN_IF_ERROR(RunProducts(args, x, y, z.owned.raw()));
    CopyToResult(z);
    return absl::OkStatus();
  }

  absl::Status RunProducts(const MatMulArgs& args, const Strided& x, const Strided& y, void* z) {
    const int64_t count = SizeOf(batch_), size = static_cast<int64_t>(ElementSize(x.type));
    if (args.m == 1 && args.n == 1 && args.k == 1) {
      DispatchType(x.type, EinsumTypes{}, [&]<class T>() {
        const T *a = static_cast<const T*>(x.data), *b = static_cast<const T*>(y.data);
        for (int64_t i = 0; i < count; ++i) static_cast<T*>(z)[i] = static_cast<T>(a[i] * b[i]);
      });
      return absl::OkStatus();
    }
    FirstError failure;
    const auto one = [&](int64_t i) {
      failure.Note(RunMatMul(c_.pool(), x.type, args,
                             static_cast<const char*>(x.data) + i * args.m * args.k * size,
                             static_cast<const char*>(y.data) + i * args.k * args.n * size,
                             static_cast<char*>(z) + i * args.m * args.n * size));
    };
    if (count < 2 * c_.pool().num_threads()) {
      for (int64_t i = 0; i < count; ++i) one(i);
      return failure.status();
    }
    const double cost =
        100 + 0.03 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k);
    c_.pool().ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one(i);
    });
    return failure.status();
  }

  void CopyToResult(const Strided& x) {
    if (result_repeats_) ClearElements(c_.pool(), *out_);
    StridedCopy copy;
    for (size_t i = 0; i < result_.labels.size(); ++i) {
      const int label = result_.labels[i];
      copy.AddDim(extents_.at(label), x.StrideOf(label), result_.strides[i]);
    }
    copy.Run(c_.pool(), x.type, x.data, out_->raw());
  }

  KernelContext& c_;
  const absl::flat_hash_map<int, int64_t>& extents_;
  Tensor* const out_;
  Strided result_;  // of the output, without data
  bool result_repeats_ = false;
  Labels batch_, contracted_;
};

absl::StatusOr<Kernel> MakeEinsum(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(
      EinsumEquation parsed,
      EinsumEquation::Parse(init.attr<std::string>("equation"), init.node.num_inputs()));
  auto equation = std::make_shared<const EinsumEquation>(std::move(parsed));
  return Kernel([equation](KernelContext& c) -> absl::Status {
    std::vector<Shape> shapes;
    for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i).shape());
    WEIR_ASSIGN_OR_RETURN(const EinsumLabels labels, EinsumLabels::Match(*equation, shapes));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(labels.OutputShape().dims()));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    for (const auto& [label, extent] : labels.extents) {
      if (extent == 0) {  // empty sums
        ClearElements(c.pool(), *out);
        return absl::OkStatus();
      }
    }
    EinsumRun run(c, labels, out);
    if (shapes.size() == 1) return run.Unary(c.input(0), labels.inputs[0]);
    return run.Binary(c.input(0), labels.inputs[0], c.input(1), labels.inputs[1]);
  });
}

template <class... Ts>
void AddTypes(KernelRegistry* r, List<Ts...>) {
  (r->Add("Einsum", kCpu, DataTypeOf<Ts>::value, MakeEinsum), ...);
}

}  // namespace

void AddEinsumCpu(KernelRegistry* r) { AddTypes(r, EinsumTypes{}); }

}  // namespace weir
