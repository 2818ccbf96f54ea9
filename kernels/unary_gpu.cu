#include "weir/kernels/activation.h"
#include "weir/kernels/compare.h"
#include "weir/kernels/elementwise.h"
#include "weir/kernels/gpu_loops.h"
#include "weir/kernels/launch.h"

// Element-wise unary functions, from the functors that the CPU uses (kernels/elementwise-inl.h,
// activation-inl.h). 16-bit floats are computed in float.
namespace weir::gpu {

namespace {

template <class F, class T>
struct UnaryBody {
  using C = Wide<T>;
  const T* x;
  T* y;
  WEIR_HD void operator()(int64_t i) const {
    y[i] = static_cast<T>(F::template Apply<ScalarMath<C>>(static_cast<C>(x[i])));
  }
};

template <class F, class T>
struct UnaryParamBody {
  using C = Wide<T>;
  const T* x;
  T* y;
  C p;
  WEIR_HD void operator()(int64_t i) const {
    y[i] = static_cast<T>(F::template Apply<ScalarMath<C>>(static_cast<C>(x[i]), p));
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
  using C = Wide<T>;
  ForEach(stream, n,
          UnaryParamBody<F, T>{static_cast<const T*>(x), static_cast<T*>(y), static_cast<C>(p)});
}
template <class F, class T>
void RunTest(void* stream, const void* x, void* y, int64_t n, double) {
  ForEach(stream, n, TestBody<F, T>{static_cast<const T*>(x), static_cast<bool*>(y)});
}

using Table = std::vector<Elementwise<Unary>>;

template <class F, class... Ts>
void Add(Table* t, List<Ts...>) {
  (t->push_back({F::kOp, DataTypeOf<Ts>::value, DataTypeOf<Ts>::value, RunUnary<F, Ts>}), ...);
}
template <class... Fs, class Types>
void AddEach(Table* t, Types types) {
  (Add<Fs>(t, types), ...);
}
template <class F, class... Ts>
void AddParam(Table* t, List<Ts...>) {
  (t->push_back({F::kOp, DataTypeOf<Ts>::value, DataTypeOf<Ts>::value, RunUnaryParam<F, Ts>}), ...);
}
template <class F, class... Ts>
void AddTest(Table* t, const char* op, List<Ts...>) {
  (t->push_back({op, DataTypeOf<Ts>::value, DT_BOOL, RunTest<F, Ts>}), ...);
}

// The same function under another name.
void AddAlias(Table* t, const char* op, absl::string_view other) {
  for (size_t i = 0, n = t->size(); i < n; ++i) {
    if (other == (*t)[i].op) t->push_back({op, (*t)[i].in, (*t)[i].out, (*t)[i].run});
  }
}

}  // namespace

const std::vector<Elementwise<Unary>>& Unaries() {
  static const Table* const table = [] {
    using namespace functor;  // NOLINT(google-build-using-namespace)
    auto* t = new Table;
    AddEach<Abs, Neg, Sign, Reciprocal, Square, Sqrt, Rsqrt, Floor, Ceil, Round>(t, Floats());
    AddEach<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan>(t, Floats());
    AddEach<Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Sigmoid>(t, Floats());
    AddEach<Relu, Relu6, Elu, Selu, Softplus, Softsign>(t, Floats());
    AddParam<LeakyRelu>(t, Floats());
    AddEach<Abs, Neg, Sign, Square, Relu>(t, List<int64_t>());
    Add<Rint>(t, Rint::Types());
    AddAlias(t, "Inv", "Reciprocal");
    AddTest<compare::IsNan>(t, "IsNan", Floats());
    AddTest<compare::IsInf>(t, "IsInf", Floats());
    AddTest<compare::IsFinite>(t, "IsFinite", Floats());
    AddTest<compare::LogicalNot>(t, "LogicalNot", List<bool>());
    return t;
  }();
  return *table;
}

}  // namespace weir::gpu
