#include "weir/kernels/activation.h"
#include "weir/kernels/compare.h"
#include "weir/kernels/elementwise.h"
#include "weir/kernels/gpu_loops.h"
#include "weir/kernels/launch.h"

// Elementwise functions of two broadcast arguments, from the functors that the CPU uses. Integers:
// int64 only, and no division, which would require a check for zeros.
namespace weir::gpu {

namespace {

template <class F, class T>
struct BinaryBody {
  using C = Wide<T>;
  GridIndex<2> grid;
  const T* x;
  const T* y;
  T* z;
  WEIR_HD void operator()(int64_t i) const {
    int64_t at[2];
    grid.Locate(i, at);
    z[i] = static_cast<T>(
        F::template Apply<ScalarMath<C>>(static_cast<C>(x[at[0]]), static_cast<C>(y[at[1]])));
  }
};

template <class F, class T>
struct BinaryParamBody {
  using C = Wide<T>;
  GridIndex<2> grid;
  const T* x;
  const T* y;
  T* z;
  C p;
  WEIR_HD void operator()(int64_t i) const {
    int64_t at[2];
    grid.Locate(i, at);
    z[i] = static_cast<T>(
        F::template Apply<ScalarMath<C>>(static_cast<C>(x[at[0]]), static_cast<C>(y[at[1]]), p));
  }
};

template <class F, class T>
struct CompareBody {
  using C = Wide<T>;
  GridIndex<2> grid;
  const T* x;
  const T* y;
  bool* z;
  WEIR_HD void operator()(int64_t i) const {
    int64_t at[2];
    grid.Locate(i, at);
    z[i] = F::Apply(static_cast<C>(x[at[0]]), static_cast<C>(y[at[1]]));
  }
};

template <class F, class T>
void RunBinary(void* stream, const GridIndex<2>& grid, const void* x, const void* y, void* z,
               double) {
  ForEach(stream, grid.count,
          BinaryBody<F, T>{grid, static_cast<const T*>(x), static_cast<const T*>(y),
                           static_cast<T*>(z)});
}
template <class F, class T>
void RunBinaryParam(void* stream, const GridIndex<2>& grid, const void* x, const void* y, void* z,
                    double p) {
  using C = Wide<T>;
  ForEach(stream, grid.count,
          BinaryParamBody<F, T>{grid, static_cast<const T*>(x), static_cast<const T*>(y),
                                static_cast<T*>(z), static_cast<C>(p)});
}
template <class F, class T>
void RunCompare(void* stream, const GridIndex<2>& grid, const void* x, const void* y, void* z,
                double) {
  ForEach(stream, grid.count,
          CompareBody<F, T>{grid, static_cast<const T*>(x), static_cast<const T*>(y),
                            static_cast<bool*>(z)});
}

using Table = std::vector<Elementwise<Binary>>;

template <class F, class... Ts>
void Add(Table* t, List<Ts...>) {
  (t->push_back({F::kOp, DataTypeOf<Ts>::value, DataTypeOf<Ts>::value, RunBinary<F, Ts>}), ...);
}
template <class... Fs, class Types>
void AddEach(Table* t, Types types) {
  (Add<Fs>(t, types), ...);
}
template <class F, class... Ts>
void AddParam(Table* t, List<Ts...>) {
  (t->push_back({F::kOp, DataTypeOf<Ts>::value, DataTypeOf<Ts>::value, RunBinaryParam<F, Ts>}),
   ...);
}
template <class F, class... Ts>
void AddCompare(Table* t, const char* op, List<Ts...>) {
  (t->push_back({op, DataTypeOf<Ts>::value, DT_BOOL, RunCompare<F, Ts>}), ...);
}
void AddAlias(Table* t, const char* op, absl::string_view other, bool floats_only) {
  for (size_t i = 0, n = t->size(); i < n; ++i) {
    const Elementwise<Binary>& e = (*t)[i];
    if (other == e.op && (!floats_only || IsFloating(e.in))) t->push_back({op, e.in, e.out, e.run});
  }
}

using Ordered = List<half, bfloat16, float, double, int64_t>;
using Comparable = List<half, bfloat16, float, double, int64_t, bool>;

}  // namespace

const std::vector<Elementwise<Binary>>& Binaries() {
  static const Table* const table = [] {
    using namespace functor;  // NOLINT(google-build-using-namespace)
    auto* t = new Table;
    AddEach<AddV2, Sub, Mul, Maximum, Minimum, SquaredDifference>(t, Ordered());
    // Variables of this type are incremented on the device.
    AddEach<AddV2, Sub>(t, List<int32_t>());
    AddEach<RealDiv, DivNoNan, Xdivy, MulNoNan, Xlogy, Xlog1py>(t, Floats());
    AddEach<FloorDiv, TruncateDiv, TruncateMod, FloorMod, Pow>(t, Floats());
    AddEach<SigmoidGrad, TanhGrad, SqrtGrad, RsqrtGrad, ReciprocalGrad>(t, Floats());
    AddEach<ReluGrad, Relu6Grad, EluGrad, SeluGrad, SoftplusGrad, SoftsignGrad>(t, Floats());
    AddParam<LeakyReluGrad>(t, Floats());
    AddAlias(t, "Add", "AddV2", false);
    AddAlias(t, "Div", "RealDiv", true);
    AddAlias(t, "Mod", "TruncateMod", true);
    AddAlias(t, "InvGrad", "ReciprocalGrad", true);
    AddCompare<compare::Less>(t, "Less", Ordered());
    AddCompare<compare::LessEqual>(t, "LessEqual", Ordered());
    AddCompare<compare::Greater>(t, "Greater", Ordered());
    AddCompare<compare::GreaterEqual>(t, "GreaterEqual", Ordered());
    AddCompare<compare::Equal>(t, "Equal", Comparable());
    AddCompare<compare::NotEqual>(t, "NotEqual", Comparable());
    AddCompare<compare::LogicalAnd>(t, "LogicalAnd", List<bool>());
    AddCompare<compare::LogicalOr>(t, "LogicalOr", List<bool>());
    return t;
  }();
  return *table;
}

Binary FindBinary(absl::string_view op, DataType type) {
  for (const Elementwise<Binary>& e : Binaries()) {
    if (e.in == type && op == e.op) return e.run;
  }
  return nullptr;
}

}  // namespace weir::gpu
