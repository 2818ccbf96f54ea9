#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/math/compare.h"
#include "weir/kernels/math/elementwise.h"

// Elementwise functions of two broadcast arguments, from the functors that the CPU uses
// (kernels/math/elementwise.h, compare.h). 16-bit floats are computed in float.
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
        F::template Apply<ElementMath<F, T>>(static_cast<C>(x[at[0]]), static_cast<C>(y[at[1]])));
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
    z[i] = static_cast<T>(F::template Apply<ElementMath<F, T>>(static_cast<C>(x[at[0]]),
                                                               static_cast<C>(y[at[1]]), p));
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
  ForEach(stream, grid.count,
          BinaryParamBody<F, T>{grid, static_cast<const T*>(x), static_cast<const T*>(y),
                                static_cast<T*>(z), ElementMath<F, T>::Num(p)});
}
template <class F, class T>
void RunCompare(void* stream, const GridIndex<2>& grid, const void* x, const void* y, void* z,
                double) {
  ForEach(stream, grid.count,
          CompareBody<F, T>{grid, static_cast<const T*>(x), static_cast<const T*>(y),
                            static_cast<bool*>(z)});
}

using Table = std::vector<Elementwise<Binary>>;

template <class F, class T>
void Add(Table* t) {
  static_assert(!std::is_integral_v<T> || F::kSecondInput == IntegerDomain::kAll,
                "the device does not check inputs");
  if constexpr (kContains<T, typename F::Types>) {
    Binary run = nullptr;
    if constexpr (F::kParam == nullptr)
      run = RunBinary<F, T>;
    else
      run = RunBinaryParam<F, T>;
    t->push_back({F::kOp, DataTypeOf<T>::value, DataTypeOf<T>::value, run});
  }
}
template <class... Fs>
void AddAll(Table* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...>) { (Add<F, Ts>(t), ...); };
  (add(Fs(), typename Fs::GpuTypes()), ...);
}
template <class... Fs>
void AddComparisons(Table* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...>) {
    (t->push_back({F::kOp, DataTypeOf<Ts>::value, DT_BOOL, RunCompare<F, Ts>}), ...);
  };
  (add(Fs(), typename Fs::GpuTypes()), ...);
}

}  // namespace

const std::vector<Elementwise<Binary>>& Binaries() {
  static const Table* const table = [] {
    auto* t = new Table;
    AddAll(t, functor::BinaryArithmetic());
    AddAll(t, functor::BinaryTranscendentals());
    AddAll(t, functor::BinaryActivations());
    AddComparisons(t, compare::BinaryComparisons());
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
