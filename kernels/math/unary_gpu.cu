#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/math/compare.h"
#include "weir/kernels/math/elementwise.h"

// Elementwise unary functions, from the functors that the CPU uses (kernels/math/elementwise.h,
// compare.h). 16-bit floats are computed in float.
namespace weir::gpu {

namespace {

template <class F, class T>
struct UnaryBody {
  using C = Wide<T>;
  const T* x;
  T* y;
  WEIR_HD void operator()(int64_t i) const {
    y[i] = static_cast<T>(F::template Apply<ElementMath<F, T>>(static_cast<C>(x[i])));
  }
};

template <class F, class T>
struct UnaryParamBody {
  using C = Wide<T>;
  const T* x;
  T* y;
  C p;
  WEIR_HD void operator()(int64_t i) const {
    y[i] = static_cast<T>(F::template Apply<ElementMath<F, T>>(static_cast<C>(x[i]), p));
  }
};

// Functions with a result of type bool.
template <class F, class T>
struct TestBody {
  using C = Wide<T>;
  const T* x;
  bool* y;
  WEIR_HD void operator()(int64_t i) const { y[i] = F::Apply(static_cast<C>(x[i])); }
};

template <class F, class T>
void RunUnary(void* stream, const void* x, void* y, int64_t n, double) {
  ForEach(stream, n, UnaryBody<F, T>{static_cast<const T*>(x), static_cast<T*>(y)});
}
template <class F, class T>
void RunUnaryParam(void* stream, const void* x, void* y, int64_t n, double p) {
  ForEach(stream, n,
          UnaryParamBody<F, T>{static_cast<const T*>(x), static_cast<T*>(y),
                               ElementMath<F, T>::Num(p)});
}
template <class F, class T>
void RunTest(void* stream, const void* x, void* y, int64_t n, double) {
  ForEach(stream, n, TestBody<F, T>{static_cast<const T*>(x), static_cast<bool*>(y)});
}

using Table = std::vector<Elementwise<Unary>>;

template <class F, class T>
void Add(Table* t) {
  if constexpr (kContains<T, typename F::Types>) {
    Unary run = nullptr;
    if constexpr (F::kParam == nullptr)
      run = RunUnary<F, T>;
    else
      run = RunUnaryParam<F, T>;
    t->push_back({F::kOp, DataTypeOf<T>::value, DataTypeOf<T>::value, run});
  }
}
template <class... Fs>
void AddAll(Table* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...>) { (Add<F, Ts>(t), ...); };
  (add(Fs(), typename Fs::GpuTypes()), ...);
}
template <class... Fs>
void AddTests(Table* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...>) {
    (t->push_back({F::kOp, DataTypeOf<Ts>::value, DT_BOOL, RunTest<F, Ts>}), ...);
  };
  (add(Fs(), typename Fs::GpuTypes()), ...);
}

}  // namespace

const std::vector<Elementwise<Unary>>& Unaries() {
  static const Table* const table = [] {
    auto* t = new Table;
    AddAll(t, functor::UnaryArithmetic());
    AddAll(t, functor::UnaryTranscendentals());
    AddAll(t, functor::UnaryActivations());
    AddTests(t, compare::UnaryComparisons());
    return t;
  }();
  return *table;
}

}  // namespace weir::gpu
