#include <algorithm>
#include <cmath>
#include <numeric>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// The largest elements of rows, and whether a given element is among them.
namespace weir {

namespace {

// Larger values come first; equal values are in order of index. A NaN is larger than any number, as
// in TensorFlow's order.
template <class T>
struct Larger {
  const T* row;
  static bool IsNan(const T& v) {
    if constexpr (std::is_integral_v<T>)
      return false;
    else
      return std::isnan(static_cast<double>(v));
  }
  bool operator()(int32_t a, int32_t b) const {
    const T &x = row[a], &y = row[b];
    const bool x_nan = IsNan(x), y_nan = IsNan(y);
    if (x_nan != y_nan) return x_nan;
    if (!x_nan && x > y) return true;
    if (!x_nan && y > x) return false;
    return a < b;
  }
};

// Returns the first k of all indices in the order of Larger, sorted only as far as needed.
template <class T>
void TopOfRow(const T* row, int64_t n, int64_t k, std::vector<int32_t>* order) {
  order->resize(static_cast<size_t>(n));
  std::iota(order->begin(), order->end(), 0);
  SortCancellably(n, Larger<T>{row}, [&](const auto& larger) {
    const auto begin = order->begin(), end = order->end();
    if (k == 1) {
      std::iter_swap(begin, std::min_element(begin, end, larger));
    } else if (k < n / 8) {
      std::partial_sort(begin, begin + k, end, larger);
    } else {
      if (k < n) std::nth_element(begin, begin + k, end, larger);
      std::sort(begin, begin + k, larger);
    }
  });
}

template <class T>
absl::Status TopK(KernelContext& c, int64_t k) {
  const Tensor& in = c.input(0);
  const int64_t n = in.dim(-1);
  Shape shape = in.shape();
  shape.set_dim(shape.rank() - 1, k);
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(1, shape));
  if (values->num_elements() == 0) return absl::OkStatus();
  const int64_t rows = in.num_elements() / n;
  c.pool().ParallelFor(rows, 5.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> order;
    for (int64_t r = begin; r < end; ++r) {
      const T* row = in.data<T>() + r * n;
      TopOfRow(row, n, k, &order);
      for (int64_t i = 0; i < k; ++i) {
        values->data<T>()[r * k + i] = row[order[static_cast<size_t>(i)]];
        indices->SetIntAt(r * k + i, order[static_cast<size_t>(i)]);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status CheckTopK(const Tensor& in, int64_t k, DataType index_type) {
  if (k < 0) return InvalidArgument("Need k >= 0, got ", k);
  if (in.rank() < 1)
    return InvalidArgument("input must be >= 1-D, got shape ", in.shape().ToString());
  const int64_t n = in.dim(-1);
  if (n < k) return InvalidArgument("input must have at least k columns. Had ", n, ", needed ", k);
  const int64_t limit = index_type == DT_INT16 ? std::numeric_limits<int16_t>::max()
                                               : std::numeric_limits<int32_t>::max();
  if (n > limit)
    return InvalidArgument("rows of ", n, " elements are too long for indices of type ",
                           DataTypeName(index_type));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTopK(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T");
  const DataType index_type = init.node.attr_or<DataType>("index_type", DT_INT32);
  const int64_t k_attr = init.node.attr_or<int64_t>("k", 0);
  Kernel kernel;
  const bool found = DispatchType(type, RealNumbers{}, [&]<class T>() {
    kernel = Kernel([k_attr, index_type](KernelContext& c) -> absl::Status {
      int64_t k = k_attr;
      if (c.num_inputs() == 2) {
        WEIR_ASSIGN_OR_RETURN(k, ReadInt(c.input(1), "k"));
      }
      WEIR_RETURN_IF_ERROR(CheckTopK(c.input(0), k, index_type));
      return TopK<T>(c, k);
    });
  });
  if (!found) return Unimplemented("elements of type ", DataTypeName(type), " cannot be ordered");
  return kernel;
}

// An element is among the k largest if fewer than k elements are larger. A target that is out of
// range or not finite never is.
absl::Status InTopK(KernelContext& c, int64_t k) {
  const Tensor &predictions = c.input(0), &targets = c.input(1);
  if (predictions.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional, got shape ",
                           predictions.shape().ToString());
  }
  if (targets.rank() != 1)
    return InvalidArgument("targets must be 1-dimensional, got ", targets.shape().ToString());
  const int64_t rows = predictions.dim(0), classes = predictions.dim(1);
  if (targets.dim(0) != rows) {
    return InvalidArgument("First dimension of predictions ", rows,
                           " must match length of targets ", targets.dim(0));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({rows})));
  c.pool().ParallelFor(rows, 1.0 * static_cast<double>(classes), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = predictions.data<float>() + r * classes;
      const int64_t target = targets.IntAt(r);
      bool in = target >= 0 && target < classes && std::isfinite(row[target]);
      int64_t larger = 0;
      for (int64_t i = 0; in && i < classes; ++i) {
        if (!std::isfinite(row[i])) in = false;
        if (row[i] > row[target]) ++larger;
      }
      out->data<bool>()[r] = in && larger < k;
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeInTopK(const KernelInit& init) {
  const int64_t k_attr = init.node.attr_or<int64_t>("k", 0);
  return Kernel([k_attr](KernelContext& c) -> absl::Status {
    int64_t k = k_attr;
    if (c.num_inputs() == 3) {
      WEIR_ASSIGN_OR_RETURN(k, ReadInt(c.input(2), "k"));
    }
    return InTopK(c, k);
  });
}

}  // namespace

void AddTopKCpu(KernelRegistry* r) {
  r->Add("TopK", kCpu, MakeTopK);
  r->Add("TopKV2", kCpu, MakeTopK).HostArgs({"k"});
  r->Add("InTopK", kCpu, MakeInTopK);
  r->Add("InTopKV2", kCpu, MakeInTopK).HostArgs({"k"});
}

}  // namespace weir
