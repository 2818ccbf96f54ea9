#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/elementwise_loops.h"

// Selection between tensors, clipping, and sums of many tensors.
namespace weir {

namespace {

constexpr int64_t kTile = 512;

template <class U>
void SelectRow(const bool* condition, const void* t, const void* e, void* out, int64_t n) {
  const U *x = static_cast<const U*>(t), *y = static_cast<const U*>(e);
  U* z = static_cast<U*>(out);
  for (int64_t i = 0; i < n; ++i) z[i] = condition[i] ? x[i] : y[i];
}
using SelectFn = void (*)(const bool*, const void*, const void*, void*, int64_t);

// Null for types that are not plain data.
SelectFn FindSelect(DataType type) {
  SelectFn fn = nullptr;
  if (IsPlain(type)) {
    DispatchSize(ElementSize(type), [&]<class U>() { fn = SelectRow<U>; });
  }
  return fn;
}

// Selects between arguments that are broadcast to one result. The result is split into tiles, and
// broadcast operands are expanded into a tile buffer.
void SelectTiles(ThreadPool& pool, SelectFn select, size_t size, const Tensor& condition,
                 const Tensor& t, const Tensor& e, Tensor* out) {
  const int64_t n = out->num_elements();
  const bool* const c = condition.data<bool>();
  char* const z = static_cast<char*>(out->raw());
  const char *const x = static_cast<const char*>(t.raw()), *const y =
                                                               static_cast<const char*>(e.raw());
  if (condition.num_elements() == n && t.num_elements() == n && e.num_elements() == n) {
    pool.ParallelFor(
        n, 0.3,
        [&](int64_t b, int64_t end) {
          select(c + b, x + b * size, y + b * size, z + b * size, end - b);
        },
        64);
    return;
  }
  const Shape* const shapes[] = {&condition.shape(), &t.shape(), &e.shape()};
  const Broadcast layout(out->shape(), shapes);
  pool.ParallelFor(
      n, 0.5,
      [&](int64_t begin, int64_t end) {
        alignas(64) char buffers[2][kTile * 16];
        bool conditions[kTile];
        for (int64_t i = begin; i < end; i += kTile) {
          const int64_t m = std::min(kTile, end - i);
          const void* const c_tile = layout.Tile(0, c, 1, i, m, conditions);
          const void* const x_tile = layout.Tile(1, x, size, i, m, buffers[0]);
          const void* const y_tile = layout.Tile(2, y, size, i, m, buffers[1]);
          select(static_cast<const bool*>(c_tile), x_tile, y_tile, z + i * size, m);
        }
      },
      kTile);
}

// Objects cannot be copied as bytes, so this broadcasts the positions of the elements to the result
// instead.
template <class T>
void SelectObjects(const Tensor& condition, const Tensor& t, const Tensor& e, Tensor* out) {
  const Shape* const shapes[] = {&condition.shape(), &t.shape(), &e.shape()};
  const Broadcast layout(out->shape(), shapes);
  const Tensor* const args[] = {&condition, &t, &e};
  const int64_t n = out->num_elements();
  std::vector<int64_t> at[3];
  for (int k = 0; k < 3; ++k) {
    std::vector<int64_t> positions(args[k]->num_elements());
    std::iota(positions.begin(), positions.end(), 0);
    at[k].resize(n);
    if (n > 0) layout.Gather(k, positions.data(), sizeof(int64_t), 0, n, at[k].data());
  }
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      const bool c = condition.data<bool>()[at[0][i]];
      out->data<T>()[i] = c ? t.data<T>()[at[1][i]] : e.data<T>()[at[2][i]];
    }
  }
}

absl::Status RunSelectOp(KernelContext& c, SelectFn select, const Tensor& condition,
                         const Tensor& t, const Tensor& e, const Shape& shape) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (select != nullptr) {
    SelectTiles(c.pool(), select, ElementSize(out->dtype()), condition, t, e, out);
  } else {
    DispatchType(out->dtype(), List<std::string, ResourceHandle, Variant>{},
                 [&]<class T>() { SelectObjects<T>(condition, t, e, out); });
  }
  return absl::OkStatus();
}

// A vector of conditions for the rows of a matrix is broadcast as a column.
absl::Status RunSelect(KernelContext& c, SelectFn select) {
  const Tensor &condition = c.input(0), &t = c.input(1), &e = c.input(2);
  if (t.shape() != e.shape()) {
    return InvalidArgument("'then' and 'else' must have the same size, but received: ",
                           t.shape().ToString(), " vs. ", e.shape().ToString());
  }
  if (condition.rank() == 0 || condition.shape() == t.shape())
    return RunSelectOp(c, select, condition, t, e, t.shape());
  if (condition.rank() != 1 || t.rank() == 0) {
    return InvalidArgument(
        "'cond' must be a scalar, a vector, or of the size of 'then', but received: ",
        condition.shape().ToString(), " vs. ", t.shape().ToString());
  }
  if (condition.dim(0) != t.dim(0)) {
    return InvalidArgument("Number of batches of 'then' must match size of 'cond', but received: ",
                           t.dim(0), " vs. ", condition.dim(0));
  }
  Shape column(std::vector<int64_t>(t.rank(), 1));
  column.set_dim(0, condition.dim(0));
  return RunSelectOp(c, select, condition.Reshaped(column), t, e, t.shape());
}

absl::Status RunSelectV2(KernelContext& c, SelectFn select) {
  const Tensor &condition = c.input(0), &t = c.input(1), &e = c.input(2);
  WEIR_ASSIGN_OR_RETURN(const Shape values, BroadcastShapes(t.shape(), e.shape()));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(condition.shape(), values));
  return RunSelectOp(c, select, condition, t, e, shape);
}

using SelectKernel = absl::Status (*)(KernelContext&, SelectFn);

KernelFactory SelectFactory(SelectKernel run) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const SelectFn select = FindSelect(init.attr<DataType>("T"));
    return Kernel([run, select](KernelContext& c) { return run(c, select); });
  };
}

// Returns a bound of ClipByValue in which `none`, an infinity, replaces NaN: a NaN bounds nothing,
// as in TensorFlow. Tensors without a NaN are returned as they are.
absl::StatusOr<Tensor> ReplaceNaN(KernelContext& c, const Tensor& bound, float none) {
  Tensor result = bound;
  absl::Status status;
  DispatchType(bound.dtype(), Floats{}, [&]<class T>() {
    const auto is_nan = [](T x) { return std::isnan(static_cast<double>(x)); };
    const absl::Span<const T> numbers(bound.data<T>(), static_cast<size_t>(bound.num_elements()));
    if (std::none_of(numbers.begin(), numbers.end(), is_nan)) return;
    absl::StatusOr<Tensor> replaced = c.AllocateTemp(bound.dtype(), bound.shape());
    status = replaced.status();
    if (!status.ok()) return;
    result = *std::move(replaced);
    std::replace_copy_if(numbers.begin(), numbers.end(), result.data<T>(), is_nan,
                         static_cast<T>(none));
  });
  if (!status.ok()) return status;
  return result;
}

// min, then max, as in TensorFlow: if the bounds cross, the lower bound wins.
struct ClipKernel {
  const BinaryLoop *minimum, *maximum;
  absl::Status operator()(KernelContext& c) const {
    const Tensor &t = c.input(0), &low = c.input(1), &high = c.input(2);
    for (const Tensor* bound : {&low, &high}) {
      if (bound->rank() != 0 && bound->shape() != t.shape()) {
        return InvalidArgument(
            "clip_value_min and clip_value_max must be either of the same shape as input, or a "
            "scalar. ",
            "input shape: ", t.shape().ToString(),
            " clip_value_min shape: ", low.shape().ToString(),
            " clip_value_max shape: ", high.shape().ToString());
      }
    }
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    WEIR_ASSIGN_OR_RETURN(Tensor high_bound, ReplaceNaN(c, high, kInfinity));
    WEIR_ASSIGN_OR_RETURN(Tensor low_bound, ReplaceNaN(c, low, -kInfinity));
    for (Tensor* bound : {&high_bound, &low_bound})
      if (bound->num_elements() == 1) *bound = bound->Reshaped(Shape());
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, t.shape()));
    WEIR_RETURN_IF_ERROR(RunBinary(c.pool(), *minimum, 0, t, high_bound, out));
    return RunBinary(c.pool(), *maximum, 0, *out, low_bound, out);
  }
};

// The sum of all inputs, computed tile by tile, so that each is read once and the sum stays in the
// cache.
struct AddNKernel {
  const BinaryLoop* add;
  absl::Status operator()(KernelContext& c) const {
    const Tensor& first = c.input(0);
    const int count = c.num_inputs();
    for (int i = 1; i < count; ++i) {
      if (c.input(i).shape() != first.shape()) {
        return InvalidArgument(
            "Inputs to operation ", c.node().name(), " of type ", c.node().op_name(),
            " must have the same size and shape. Input 0: ", first.shape().ToString(), " != input ",
            i, ": ", c.input(i).shape().ToString());
      }
    }
    if (count == 1) {
      c.SetOutput(0, first);
      return absl::OkStatus();
    }
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, first.shape()));
    const size_t size = add->in_size;
    char* const z = static_cast<char*>(out->raw());
    const auto at = [&c, size](int i, int64_t k) {
      return static_cast<const char*>(c.input(i).raw()) + k * size;
    };
    constexpr int64_t kSumTile = 2048;
    c.pool().ParallelFor(
        out->num_elements(), add->cost * (count - 1),
        [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; k += kSumTile) {
            const int64_t m = std::min(kSumTile, end - k);
            add->run(*add, at(0, k), at(1, k), z + k * size, m, 0);
            for (int i = 2; i < count; ++i)
              add->run(*add, z + k * size, at(i, k), z + k * size, m, 0);
          }
        },
        kSumTile);
    return absl::OkStatus();
  }
};

}  // namespace

void AddSelectCpu(KernelRegistry* r) {
  r->Add("Select", kCpu, SelectFactory(RunSelect)).InPlace({1, 2});
  r->Add("SelectV2", kCpu, SelectFactory(RunSelectV2)).InPlace({1, 2});
  for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
    const DataType type = static_cast<DataType>(t);
    const BinaryLoop *minimum = ElementwiseLoops().FindBinary("Minimum", type),
                     *maximum = ElementwiseLoops().FindBinary("Maximum", type);
    if (minimum != nullptr && maximum != nullptr) {
      r->Add("ClipByValue", kCpu, type, [=](const KernelInit&) -> absl::StatusOr<Kernel> {
         return Kernel(ClipKernel{minimum, maximum});
       }).InPlace({0});
    }
    if (const BinaryLoop* add = ElementwiseLoops().FindBinary("AddV2", type)) {
      for (const char* op : {"AddN", "AccumulateNV2"}) {
        r->Add(op, kCpu, type, [=](const KernelInit&) -> absl::StatusOr<Kernel> {
           return Kernel(AddNKernel{add});
         }).InPlace({0, 1});
      }
    }
  }
}

}  // namespace weir
