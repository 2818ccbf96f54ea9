#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "weir/kernels/array/fill_shapes.h"
#include "weir/kernels/array/where.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/hash_index.h"
#include "weir/kernels/lib/integer_bits.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"

// Sets of values: Unique, ListDiff; and the ops between values and their positions: Where (its
// loops are in where_cpu.cc), OneHot.
namespace weir {

namespace {

// Types of elements that can be hashed.
using Keys = JoinLists<Numbers, List<bool, std::string>>;

// The keys of a tensor's elements, as IntegerBits. Floats compare by value: -0 equals 0, and a NaN
// equals nothing, itself included.
template <class T>
const T* KeysIn(const Tensor& t) {
  return static_cast<const T*>(t.raw());
}

template <class T>
struct KeyHash {
  size_t operator()(const T& v) const {
    if constexpr (kIsNarrowFloat<T>) {
      return absl::Hash<float>()(v);
    } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                         std::is_same_v<T, std::complex<double>>) {
      return absl::Hash<std::pair<double, double>>()({v.real(), v.imag()});
    } else {
      return absl::Hash<T>()(v);
    }
  }
};

template <class T>
struct KeyEqual {
  bool operator()(const T& a, const T& b) const {
    if constexpr (kIsNarrowFloat<T>) {
      return static_cast<float>(a) == static_cast<float>(b);
    } else {
      return a == b;
    }
  }
};

// Returns false for a NaN: it is never found, and not added to hash indexes, where all NaNs would
// collide.
template <class T>
bool IsNotNan(const T& v) {
  return KeyEqual<T>()(v, v);
}

absl::Status CheckIndexable(int64_t n, DataType index_type) {
  if (index_type == DT_INT64 || n <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return InvalidArgument("unique does not support input tensors larger than ",
                         std::numeric_limits<int32_t>::max(), " elements with out_idx int32, got ",
                         n);
}

// The number of the class of each of `n` items, and the first item of each class.
struct Classes {
  std::vector<int64_t> of, first;
};

// Classifies integers of a small range by a table of the range. Returns false for other elements.
template <class T>
bool ClassifyByTable(const T* x, int64_t n, Classes* classes) {
  if constexpr (!std::is_integral_v<T>) {
    return false;
  } else {
    if (n == 0 || n > std::numeric_limits<int32_t>::max()) return false;
    const auto [smallest, largest] = std::minmax_element(x, x + n);
    const T least = *smallest;
    const uint64_t range = uint64_t{*largest} - least;
    if (range > static_cast<uint64_t>(2 * n) + 256) return false;
    std::vector<int32_t> table(range + 1, -1);  // the class of each integer
    for (const auto [begin, end] : CancellableBlocks(n)) {
      for (int64_t i = begin; i < end; ++i) {
        int32_t& found = table[x[i] - least];
        if (found < 0) {
          found = static_cast<int32_t>(classes->first.size());
          classes->first.push_back(i);
        }
        classes->of[static_cast<size_t>(i)] = found;
      }
    }
    return true;
  }
}

template <class T>
Classes ClassifyElements(const T* x, int64_t n) {
  Classes classes;
  classes.of.resize(static_cast<size_t>(n));
  if (ClassifyByTable(x, n, &classes)) return classes;
  constexpr int64_t kUsual = 4096;
  HashIndex seen;  // of classes
  seen.Reserve(static_cast<size_t>(std::min(n, kUsual)));
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t next = static_cast<int64_t>(classes.first.size());
      const auto is_this = [&](int64_t k) {
        return KeyEqual<T>()(x[classes.first[static_cast<size_t>(k)]], x[i]);
      };
      const int64_t found =
          IsNotNan(x[i]) ? seen.FindOrAdd(KeyHash<T>()(x[i]), next, is_this) : next;
      if (found == next) classes.first.push_back(i);
      classes.of[static_cast<size_t>(i)] = found;
    }
  }
  return classes;
}

// Classifies slices along an axis of a tensor as [outer, n, inner]: slices are found by a hash of
// all their elements and compared element by element.
template <class T>
Classes ClassifySlices(const T* x, int64_t outer, int64_t n, int64_t inner) {
  Classes classes;
  classes.of.resize(static_cast<size_t>(n));
  HashIndex seen;  // of classes
  const auto each = [&](auto&& fn) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        if (!fn(o * n * inner + k)) return false;
      }
    }
    return true;
  };
  for (int64_t i = 0; i < n; ++i) {
    ThrowIfCancelled();
    size_t hash = 0;
    const bool findable = each([&](int64_t at) {
      hash = hash * 1000003 + KeyHash<T>()(x[at + i * inner]);
      return IsNotNan(x[at + i * inner]);
    });
    const int64_t next = static_cast<int64_t>(classes.first.size());
    const auto is_this = [&](int64_t k) {
      const int64_t other = classes.first[static_cast<size_t>(k)];
      return each(
          [&](int64_t at) { return KeyEqual<T>()(x[at + i * inner], x[at + other * inner]); });
    };
    const int64_t found = findable ? seen.FindOrAdd(hash, next, is_this) : next;
    if (found == next) classes.first.push_back(i);
    classes.of[static_cast<size_t>(i)] = found;
  }
  return classes;
}

void CopyInts(const std::vector<int64_t>& values, Tensor* out) {
  if (out->dtype() == DT_INT32) {
    std::copy(values.begin(), values.end(), out->data<int32_t>());
  } else {
    std::copy(values.begin(), values.end(), out->data<int64_t>());
  }
}

// Copies the first slice of each class of a tensor [outer, n, inner].
void CopyFirst(const Tensor& in, const Classes& classes, int64_t outer, int64_t inner, Tensor* y) {
  const int64_t count = static_cast<int64_t>(classes.first.size()),
                n = static_cast<int64_t>(classes.of.size());
  if (outer == 1 && inner == 1 && IsPlain(in.dtype())) {
    DispatchSize(ElementSize(in.dtype()), [&]<class U>() {
      const U* const from = static_cast<const U*>(in.raw());
      U* const to = static_cast<U*>(y->raw());
      for (int64_t k = 0; k < count; ++k) to[k] = from[classes.first[static_cast<size_t>(k)]];
    });
    return;
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < count; ++k) {
      ThrowIfCancelledAt(k);
      CopyElements(in.dtype(),
                   ElementAt(in, (o * n + classes.first[static_cast<size_t>(k)]) * inner),
                   ElementAt(*y, (o * count + k) * inner), inner);
    }
  }
}

absl::Status OutputClasses(KernelContext& c, const Classes& classes, int axis) {
  const Tensor& in = c.input(0);
  Shape shape = in.shape();
  const int64_t count = static_cast<int64_t>(classes.first.size());
  shape.set_dim(axis, count);
  WEIR_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, shape));
  CopyFirst(in, classes, shape.Sub(0, axis).num_elements(), shape.Sub(axis + 1).num_elements(), y);
  const Shape idx_shape({static_cast<int64_t>(classes.of.size())});
  WEIR_ASSIGN_OR_RETURN(Tensor * idx, c.AllocateOutput(1, idx_shape));
  CopyInts(classes.of, idx);
  if (c.num_outputs() < 3) return absl::OkStatus();
  std::vector<int64_t> counts(classes.first.size());
  for (const int64_t k : classes.of) ++counts[static_cast<size_t>(k)];
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(2, Shape({count})));
  CopyInts(counts, out);
  return absl::OkStatus();
}

template <class T>
absl::Status Unique(KernelContext& c, DataType index_type) {
  const Tensor& in = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckIndexable(in.num_elements(), index_type));
  int axis = 0;
  if (c.num_inputs() == 2 && c.input(1).rank() != 1) {
    return InvalidArgument("axis expects a 1D vector, got shape ", c.input(1).shape().ToString());
  }
  if (c.num_inputs() == 1 || c.input(1).num_elements() == 0) {
    if (in.rank() != 1)
      return InvalidArgument("unique expects a 1D vector, got shape ", in.shape().ToString());
  } else {
    WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadOneInt(c.input(1), "axis"));
    WEIR_ASSIGN_OR_RETURN(axis, ReadAxis(named, in.rank()));
  }
  if (in.rank() == 1)
    return OutputClasses(c, ClassifyElements(KeysIn<T>(in), in.num_elements()), 0);
  if (in.num_elements() == 0) {
    return InvalidArgument("unique along an axis of a tensor without elements, of shape ",
                           in.shape().ToString());
  }
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= in.dim(i);
  for (int i = axis + 1; i < in.rank(); ++i) inner *= in.dim(i);
  return OutputClasses(c, ClassifySlices(KeysIn<T>(in), outer, in.dim(axis), inner), axis);
}

absl::StatusOr<Kernel> MakeUnique(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T"), index_type = init.attr<DataType>("out_idx");
  Kernel kernel;
  const bool found = DispatchType(type, Keys{}, [&]<class T>() {
    kernel = Kernel([index_type](KernelContext& c) -> absl::Status {
      return Unique<IntegerBits<T>>(c, index_type);
    });
  });
  if (!found) return Unimplemented("elements of type ", DataTypeName(type), " cannot be hashed");
  return kernel;
}

template <class T>
absl::Status ListDiff(KernelContext& c, DataType index_type) {
  const Tensor &x = c.input(0), &y = c.input(1);
  if (x.rank() != 1)
    return InvalidArgument("x should be a 1D vector, got shape ", x.shape().ToString());
  if (y.rank() != 1)
    return InvalidArgument("y should be a 1D vector, got shape ", y.shape().ToString());
  WEIR_RETURN_IF_ERROR(CheckIndexable(x.num_elements(), index_type));
  HashIndex excluded;
  const auto is = [&y](const T& v) {
    return [&y, &v](int64_t i) { return KeyEqual<T>()(KeysIn<T>(y)[i], v); };
  };
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    const T& v = KeysIn<T>(y)[i];
    if (IsNotNan(v)) excluded.FindOrAdd(KeyHash<T>()(v), i, is(v));
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    const T& v = KeysIn<T>(x)[i];
    if (excluded.Find(KeyHash<T>()(v), is(v)) < 0) kept.push_back(i);
  }
  const Shape shape({static_cast<int64_t>(kept.size())});
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * idx, c.AllocateOutput(1, shape));
  for (size_t k = 0; k < kept.size(); ++k) {
    CopyElements(x.dtype(), ElementAt(x, kept[k]), ElementAt(*out, static_cast<int64_t>(k)), 1);
    idx->SetIntAt(static_cast<int64_t>(k), kept[k]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeListDiff(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T"), index_type = init.attr<DataType>("out_idx");
  Kernel kernel;
  const bool found = DispatchType(type, Keys{}, [&]<class T>() {
    kernel = Kernel([index_type](KernelContext& c) -> absl::Status {
      return ListDiff<IntegerBits<T>>(c, index_type);
    });
  });
  if (!found) return Unimplemented("elements of type ", DataTypeName(type), " cannot be hashed");
  return kernel;
}

// ---- OneHot

absl::Status OneHot(KernelContext& c, int64_t axis) {
  WEIR_ASSIGN_OR_RETURN(const OneHotLayout layout, MakeOneHotLayout(c, axis));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, layout.out));
  if (out->num_elements() == 0) return absl::OkStatus();
  const Tensor &indices = c.input(0), &on = c.input(2), &off = c.input(3);
  const int64_t depth = layout.depth, inner = layout.inner;
  FillElements(c.pool(), out->dtype(), off.raw(), out->raw(), out->num_elements());
  c.pool().ParallelFor(indices.num_elements(), 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = indices.IntAt(i);
      if (index < 0 || index >= depth) continue;
      CopyElements(out->dtype(), on.raw(),
                   ElementAt(*out, (i / inner * depth + index) * inner + i % inner), 1);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeOneHot(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) -> absl::Status { return OneHot(c, axis); });
}

}  // namespace

absl::StatusOr<OneHotLayout> MakeOneHotLayout(const KernelContext& c, int64_t axis) {
  const Shape& indices = c.input(0).shape();
  const Tensor &on = c.input(2), &off = c.input(3);
  WEIR_ASSIGN_OR_RETURN(const int64_t depth, ReadInt(c.input(1), "depth"));
  if (on.rank() != 0 || off.rank() != 0) {
    return InvalidArgument("on_value and off_value must be scalars, but have shapes ",
                           on.shape().ToString(), " and ", off.shape().ToString());
  }
  if (depth < 0) return InvalidArgument("depth must be non-negative, got: ", depth);
  if (axis < -1 || axis > indices.rank()) {
    return InvalidArgument("Expected axis to be -1 or between [0, ", indices.rank() + 1,
                           ").  But received: ", axis);
  }
  const int at = axis < 0 ? indices.rank() : static_cast<int>(axis);
  Dims dims(indices.dims().begin(), indices.dims().end());
  dims.insert(dims.begin() + at, depth);
  WEIR_ASSIGN_OR_RETURN(Shape out, CheckedShape(dims));
  return OneHotLayout{std::move(out), indices.Sub(0, at).num_elements(), depth,
                      indices.Sub(at).num_elements()};
}

void AddUniqueCpu(KernelRegistry* r) {
  for (const char* op : {"Unique", "UniqueWithCounts"}) r->Add(op, kCpu, MakeUnique);
  for (const char* op : {"UniqueV2", "UniqueWithCountsV2"})
    r->Add(op, kCpu, MakeUnique).HostArgs({"axis"});
  r->Add("ListDiff", kCpu, MakeListDiff);
  r->Add("Where", kCpu, MakeWhere);
  r->Add("OneHot", kCpu, MakeOneHot).HostArgs({"depth"});
}

}  // namespace weir
