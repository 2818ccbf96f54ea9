#include <algorithm>
#include <atomic>

#include "absl/strings/str_join.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Scattering slices into a tensor: ScatterNd and the TensorScatter ops. (Scattering into variables
// is in scatter_cpu.cc.)
namespace weir {

namespace {

enum class Combine { kUpdate, kAdd, kSub, kMin, kMax };

template <Combine kHow, class T>
void CombineRun(const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      to[i] += from[i];
    } else if constexpr (kHow == Combine::kAdd) {
      to[i] = Add(to[i], from[i]);
    }
    if constexpr (kHow == Combine::kSub) to[i] = Subtract(to[i], from[i]);
    if constexpr (kHow == Combine::kMin) to[i] = std::min(to[i], from[i]);
    if constexpr (kHow == Combine::kMax) to[i] = std::max(to[i], from[i]);
  }
}

// The destinations of slices: row r of the indices names the slice of `inner` elements at
// offsets[r].
struct Slices {
  std::vector<int64_t> offsets;
  int64_t inner = 1;
};

// Checks the shapes and every index. With `ignore_bad`, a row that is out of range has offset -1.
absl::StatusOr<Slices> ReadSlices(const Tensor& indices, const Tensor& updates, const Shape& shape,
                                  bool ignore_bad) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector");
  const int64_t depth = indices.dim(-1);
  const Shape outer = indices.shape().Sub(0, indices.rank() - 1);
  if (depth > shape.rank()) {
    return InvalidArgument("index innermost dimension length must be <= the output's rank; saw: ",
                           depth, " vs. ", shape.rank());
  }
  const Shape tail = shape.Sub(static_cast<int>(depth));
  if (updates.shape() != outer.Concatenate(tail)) {
    return InvalidArgument(
        "Must have updates.shape = indices.shape[:-1] + shape[indices.shape[-1]:], got ",
        "updates.shape: ", updates.shape().ToString(),
        ", indices.shape: ", indices.shape().ToString(), ", shape: ", shape.ToString());
  }
  Slices slices;
  if (updates.num_elements() == 0) return slices;
  if (shape.num_elements() == 0) {
    return InvalidArgument("Indices and updates specified for empty output of shape ",
                           shape.ToString());
  }
  slices.inner = tail.num_elements();
  const Dims strides = StridesOf(shape);
  const int64_t rows = outer.num_elements();
  slices.offsets.resize(static_cast<size_t>(rows));
  for (const auto [begin, end] : CancellableBlocks(rows)) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t offset = 0;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t index = indices.IntAt(r * depth + d);
        if (index < 0 || index >= shape.dim(static_cast<int>(d))) {
          if (!ignore_bad) {
            std::vector<int64_t> at;
            for (int64_t k = 0; k < depth; ++k) at.push_back(indices.IntAt(r * depth + k));
            return InvalidArgument("indices", PositionText(outer, r), " = [",
                                   absl::StrJoin(at, ", "), "] does not index into shape ",
                                   shape.ToString());
          }
          offset = -1;
          break;
        }
        offset += index * strides[d];
      }
      slices.offsets[static_cast<size_t>(r)] = offset;
    }
  }
  return slices;
}

// Equal rows must be combined in order, so rows are not split over threads. Their elements are, if
// there are many.
template <Combine kHow, class T>
void Apply(ThreadPool& pool, const Slices& slices, const Tensor& updates, Tensor* out) {
  constexpr int64_t kWide = 64;
  const T* from = updates.data<T>();
  T* to = out->data<T>();
  const int64_t* const offsets = slices.offsets.data();
  const int64_t rows = static_cast<int64_t>(slices.offsets.size()), inner = slices.inner;
  const auto apply = [=](int64_t begin, int64_t end) {
    for (const auto [first, last] : CancellableBlocks(rows)) {
      for (int64_t r = first; r < last; ++r) {
        if (offsets[r] < 0) continue;
        CombineRun<kHow>(from + r * inner + begin, end - begin, to + offsets[r] + begin);
      }
    }
  };
  if (slices.inner < kWide) {
    apply(0, slices.inner);
  } else {
    pool.ParallelFor(slices.inner, static_cast<double>(slices.offsets.size()), apply,
                     MinColumnsPerPiece(slices.inner, pool.num_threads(), kWide));
  }
}

void Replace(const Slices& slices, const Tensor& updates, Tensor* out) {
  for (size_t r = 0; r < slices.offsets.size(); ++r) {
    ThrowIfCancelled();
    if (slices.offsets[r] < 0) continue;
    CopyElements(updates.dtype(), ElementAt(updates, static_cast<int64_t>(r) * slices.inner),
                 ElementAt(*out, slices.offsets[r]), slices.inner);
  }
}

// Addition of strings is concatenation.
using Addable = JoinLists<Numbers, List<bool, std::string>>;

// A function that combines the updates into `out`, which already holds the tensor.
using Combiner = void (*)(ThreadPool&, const Slices&, const Tensor&, Tensor*);

template <Combine kHow, class Types>
absl::StatusOr<Combiner> FindCombiner(DataType type, Types types) {
  Combiner found = nullptr;
  DispatchType(type, types, [&]<class T>() { found = &Apply<kHow, T>; });
  if (found == nullptr)
    return Unimplemented("arithmetic on elements of type ", DataTypeName(type),
                         " is not supported");
  return found;
}

absl::StatusOr<Combiner> CombinerOf(Combine how, DataType type) {
  switch (how) {
    case Combine::kAdd:
      return FindCombiner<Combine::kAdd>(type, Addable{});
    case Combine::kSub:
      return FindCombiner<Combine::kSub>(type, Numbers{});
    case Combine::kMin:
      return FindCombiner<Combine::kMin>(type, RealNumbers{});
    case Combine::kMax:
      return FindCombiner<Combine::kMax>(type, RealNumbers{});
    case Combine::kUpdate:
      break;
  }
  return Combiner(+[](ThreadPool&, const Slices& s, const Tensor& updates, Tensor* out) {
    Replace(s, updates, out);
  });
}

absl::StatusOr<Kernel> MakeScatterNd(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const bool ignore_bad, IgnoresBadIndices(init.node));
  WEIR_ASSIGN_OR_RETURN(const Combiner combine,
                        CombinerOf(Combine::kAdd, init.attr<DataType>("T")));
  return Kernel([ignore_bad, combine](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 1, "shape"));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ReadInts(c.input(2))));
    WEIR_ASSIGN_OR_RETURN(const Slices slices,
                          ReadSlices(c.input(0), c.input(1), shape, ignore_bad));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(c.pool(), *out);
    combine(c.pool(), slices, c.input(1), out);
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeTensorScatter(const KernelInit& init, Combine how) {
  WEIR_ASSIGN_OR_RETURN(const bool ignore_bad, IgnoresBadIndices(init.node));
  WEIR_ASSIGN_OR_RETURN(const Combiner combine, CombinerOf(how, init.attr<DataType>("T")));
  return Kernel([ignore_bad, combine](KernelContext& c) -> absl::Status {
    const Tensor& in = c.input(0);
    WEIR_ASSIGN_OR_RETURN(const Slices slices,
                          ReadSlices(c.input(1), c.input(2), in.shape(), ignore_bad));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    if (out->raw() != in.raw())
      CopyElements(c, in.dtype(), in.raw(), out->raw(), in.num_elements());
    combine(c.pool(), slices, c.input(2), out);
    return absl::OkStatus();
  });
}

template <Combine kHow>
absl::StatusOr<Kernel> Make(const KernelInit& init) {
  return MakeTensorScatter(init, kHow);
}

}  // namespace

void AddScatterNdCpu(KernelRegistry* r) {
  r->Add("ScatterNd", kCpu, MakeScatterNd).HostArgs({"shape"});
  r->Add("ScatterNdNonAliasingAdd", kCpu, Make<Combine::kAdd>).InPlace({0});
  r->Add("TensorScatterUpdate", kCpu, Make<Combine::kUpdate>).InPlace({0});
  r->Add("TensorScatterAdd", kCpu, Make<Combine::kAdd>).InPlace({0});
  r->Add("TensorScatterSub", kCpu, Make<Combine::kSub>).InPlace({0});
  r->Add("TensorScatterMin", kCpu, Make<Combine::kMin>).InPlace({0});
  r->Add("TensorScatterMax", kCpu, Make<Combine::kMax>).InPlace({0});
}

}  // namespace weir
