#include <bit>
#include <cmath>
#include <complex>
#include <numeric>

#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/compare.h"
#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

// Comparisons, logical and bitwise ops, and parts of complex numbers: functions whose result type
// differs, or that only integers have. Plain loops, which the compiler vectorizes.
namespace weir {

namespace {

using namespace compare;  // NOLINT(google-build-using-namespace)

struct BitwiseAnd : Comparison {
  static constexpr char kOp[] = "BitwiseAnd";
  using Types = Integers;
  template <class T>
  static T Apply(T x, T y) {
    return x & y;
  }
};
struct BitwiseOr : Comparison {
  static constexpr char kOp[] = "BitwiseOr";
  using Types = Integers;
  template <class T>
  static T Apply(T x, T y) {
    return x | y;
  }
};
struct BitwiseXor : Comparison {
  static constexpr char kOp[] = "BitwiseXor";
  using Types = Integers;
  template <class T>
  static T Apply(T x, T y) {
    return x ^ y;
  }
};
struct Invert : Comparison {
  static constexpr char kOp[] = "Invert";
  using Types = Integers;
  template <class T>
  static T Apply(T x) {
    return ~x;
  }
};
struct PopulationCount : Comparison {
  static constexpr char kOp[] = "PopulationCount";
  using Types = Integers;
  template <class T>
  static uint8_t Apply(T x) {
    return static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};
template <class T>
int ShiftWithin(T by) {
  constexpr T kMost = sizeof(T) * 8 - 1;
  return by < 0 ? 0 : static_cast<int>(std::min(by, kMost));
}
struct LeftShift : Comparison {
  static constexpr char kOp[] = "LeftShift";
  using Types = Integers;
  template <class T>
  static T Apply(T x, T y) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << ShiftWithin(y));
  }
};
struct RightShift : Comparison {
  static constexpr char kOp[] = "RightShift";
  using Types = Integers;
  template <class T>
  static T Apply(T x, T y) {
    return static_cast<T>(x >> ShiftWithin(y));
  }
};
struct Real : Comparison {
  static constexpr char kOp[] = "Real";
  using Types = Complexes;
  template <class T>
  static T Apply(std::complex<T> x) {
    return x.real();
  }
};
struct Imag : Comparison {
  static constexpr char kOp[] = "Imag";
  using Types = Complexes;
  template <class T>
  static T Apply(std::complex<T> x) {
    return x.imag();
  }
};
struct Angle : Comparison {
  static constexpr char kOp[] = "Angle";
  using Types = Complexes;
  template <class T>
  static T Apply(std::complex<T> x) {
    return std::arg(x);
  }
};
struct ComplexAbs : Comparison {
  static constexpr char kOp[] = "ComplexAbs";
  using Types = Complexes;
  template <class T>
  static T Apply(std::complex<T> x) {
    return std::abs(x);
  }
};
struct MakeComplex : Comparison {
  static constexpr char kOp[] = "Complex";
  using Types = List<float, double>;
  template <class T>
  static std::complex<T> Apply(T re, T im) {
    return {re, im};
  }
};

// A difference equal to the tolerance counts as approximately equal, as in TensorFlow 2.21, in
// contrast to its documentation.
template <class T>
void ApproximateEqualLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                          double tolerance) {
  const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
  bool* z = static_cast<bool*>(zs);
  using Difference =
      std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>,
                         double, float>;
  const Difference limit = static_cast<Difference>(tolerance);
  for (int64_t i = 0; i < n; ++i) {
    // Integers: the larger minus the smaller, in the unsigned type, which cannot overflow.
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      const U d =
          x[i] > y[i] ? static_cast<U>(U(x[i]) - U(y[i])) : static_cast<U>(U(y[i]) - U(x[i]));
      z[i] = static_cast<Difference>(d) <= limit;
    } else {
      z[i] = std::abs(x[i] - y[i]) <= limit;
    }
  }
}

template <class F, class T>
void AddUnaryPlain(LoopRegistry* t) {
  using R = decltype(F::Apply(T()));
  if constexpr (!kIsNarrowFloat<T>)
    t->AddUnary(F::kOp, DataTypeOf<T>::value, DataTypeOf<R>::value, UnaryPlainLoop<F, T>, F::kCost);
}
template <class F, class T>
void AddBinaryPlain(LoopRegistry* t) {
  using R = decltype(F::Apply(T(), T()));
  if constexpr (!kIsNarrowFloat<T>)
    t->AddBinary(F::kOp, DataTypeOf<T>::value, DataTypeOf<R>::value, BinaryPlainLoop<F, T>,
                 F::kCost);
}
template <class T>
void AddApproximateEqual(LoopRegistry* t) {
  if constexpr (!kIsNarrowFloat<T>) {
    BinaryLoop& loop =
        t->AddBinary("ApproximateEqual", DataTypeOf<T>::value, DT_BOOL, ApproximateEqualLoop<T>);
    loop.broadcasts = false;
    loop.param = "tolerance";
  }
}

template <class... Fs>
void AddUnaries(LoopRegistry* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...> types) {
    (AddUnaryPlain<F, Ts>(t), ...);
    internal::WidenUnary(t, F::kOp, types);
  };
  (add(Fs(), typename Fs::Types()), ...);
}
template <class... Fs>
void AddBinaries(LoopRegistry* t, Functors<Fs...>) {
  const auto add = [t]<class F, class... Ts>(F, List<Ts...> types) {
    (AddBinaryPlain<F, Ts>(t), ...);
    internal::WidenBinary(t, F::kOp, types);
  };
  (add(Fs(), typename Fs::Types()), ...);
}

}  // namespace

void AddCompareLoops(LoopRegistry* t) {
  AddUnaries(t, UnaryComparisons());
  AddBinaries(t, BinaryComparisons());
  AddUnaries(t, Functors<Invert, PopulationCount, Real, Imag, Angle, ComplexAbs>());
  AddBinaries(t, Functors<BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, RightShift, MakeComplex>());
  for (const char* op : {Equal::kOp, NotEqual::kOp}) {  // see AddEqualityCpu
    for (int type = DT_FLOAT; type <= DT_UINT64; ++type) {
      if (BinaryLoop* loop = t->FindBinary(op, static_cast<DataType>(type)))
        loop->own_kernel = true;
    }
  }
  [t]<class... Ts>(List<Ts...> types) {
    (AddApproximateEqual<Ts>(t), ...);
    internal::WidenBinary(t, "ApproximateEqual", types);
  }(Numbers());
}

namespace {

// Compares strings without copying them: calls fn(i, x, y) for every element i of the broadcast
// result.
template <class Fn>
void ForEachPair(const Tensor& x, const Tensor& y, const Shape& result, Fn fn) {
  const Shape* const shapes[] = {&x.shape(), &y.shape()};
  const Broadcast layout(result, shapes);
  const int64_t n = result.num_elements();
  const Tensor* const args[] = {&x, &y};
  std::vector<int64_t> at[2];
  for (int k = 0; k < 2; ++k) {
    std::vector<int64_t> positions(args[k]->num_elements());
    std::iota(positions.begin(), positions.end(), 0);
    at[k].resize(n);
    if (n > 0) layout.Gather(k, positions.data(), sizeof(int64_t), 0, n, at[k].data());
  }
  for (int64_t i = 0; i < n; ++i)
    fn(i, x.data<std::string>()[at[0][i]], y.data<std::string>()[at[1][i]]);
}

// Equal and NotEqual. With incompatible_shape_error false, tensors whose shapes do not broadcast
// are unequal as a whole.
struct EqualityKernel {
  const BinaryLoop* loop;  // null for strings
  bool not_equal, refuses;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &y = c.input(1);
    if (refuses && loop != nullptr) return RunBinary(c, *loop, 0);
    const absl::StatusOr<Shape> shape = BroadcastShapes(x.shape(), y.shape());
    if (!shape.ok() && refuses) return shape.status();
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape.ok() ? *shape : Shape()));
    if (!shape.ok()) {
      *out->data<bool>() = not_equal;
      return absl::OkStatus();
    }
    if (loop != nullptr) return RunBinary(c.pool(), *loop, 0, x, y, out);
    bool* const z = out->data<bool>();
    ForEachPair(x, y, *shape, [&](int64_t i, const std::string& a, const std::string& b) {
      z[i] = (a == b) != not_equal;
    });
    return absl::OkStatus();
  }
};

absl::Status JoinStrings(KernelContext& c) {
  const Tensor &x = c.input(0), &y = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), y.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  std::string* const z = out->data<std::string>();
  ForEachPair(x, y, shape,
              [&](int64_t i, const std::string& a, const std::string& b) { z[i] = a + b; });
  return absl::OkStatus();
}

}  // namespace

void AddEqualityCpu(KernelRegistry* r) {
  for (const char* op : {"Equal", "NotEqual"}) {
    const bool not_equal = op[0] == 'N';
    for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
      const DataType type = static_cast<DataType>(t);
      const BinaryLoop* loop = ElementwiseLoops().FindBinary(op, type);
      if (loop == nullptr && type != DT_STRING) continue;
      r->Add(op, kCpu, type, [=](const KernelInit& init) -> absl::StatusOr<Kernel> {
        return Kernel(EqualityKernel{loop, not_equal,
                                     init.node.attr_or<bool>("incompatible_shape_error", true)});
      });
    }
  }
  r->Add("Add", kCpu, DT_STRING, JoinStrings);
}

}  // namespace weir
