#include <bit>
#include <cmath>
#include <complex>
#include <numeric>

#include "weir/kernels/broadcast.h"
#include "weir/kernels/compare.h"
#include "weir/kernels/elementwise_kernels.h"
#include "weir/kernels/elementwise_loops.h"
#include "weir/kernels/registry.h"

// Comparisons, logical and bitwise ops, and parts of complex numbers: functions whose result type
// differs, or that only integers have. Plain loops, which the compiler vectorizes.
namespace weir {

namespace {

using namespace compare;  // NOLINT(google-build-using-namespace)

struct BitwiseAnd {
  template <class T>
  static T Apply(T x, T y) {
    return x & y;
  }
};
struct BitwiseOr {
  template <class T>
  static T Apply(T x, T y) {
    return x | y;
  }
};
struct BitwiseXor {
  template <class T>
  static T Apply(T x, T y) {
    return x ^ y;
  }
};
struct Invert {
  template <class T>
  static T Apply(T x) {
    return ~x;
  }
};
struct PopulationCount {
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
struct LeftShift {
  template <class T>
  static T Apply(T x, T y) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(x) << ShiftWithin(y));
  }
};
struct RightShift {
  template <class T>
  static T Apply(T x, T y) {
    return static_cast<T>(x >> ShiftWithin(y));
  }
};
struct Real {
  template <class T>
  static T Apply(std::complex<T> x) {
    return x.real();
  }
};
struct Imag {
  template <class T>
  static T Apply(std::complex<T> x) {
    return x.imag();
  }
};
struct Angle {
  template <class T>
  static T Apply(std::complex<T> x) {
    return std::arg(x);
  }
};
struct ComplexAbs {
  template <class T>
  static T Apply(std::complex<T> x) {
    return std::abs(x);
  }
};
struct MakeComplex {
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

template <class F, class... Ts>
void AddBinaryPlain(LoopRegistry* t, const char* op, List<Ts...>) {
  (t->AddBinary(op, DataTypeOf<Ts>::value, DataTypeOf<decltype(F::Apply(Ts(), Ts()))>::value,
                BinaryPlainLoop<F, Ts>, 0.3),
   ...);
}
template <class F, class... Ts>
void AddUnaryPlain(LoopRegistry* t, const char* op, List<Ts...>) {
  (t->AddUnary(op, DataTypeOf<Ts>::value, DataTypeOf<decltype(F::Apply(Ts()))>::value,
               UnaryPlainLoop<F, Ts>, 0.3),
   ...);
}

using Native =
    List<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;

template <class F>
void AddOrder(LoopRegistry* t, const char* op) {
  AddBinaryPlain<F>(t, op, Native{});
  t->WidenBinary(op, DT_HALF);
  t->WidenBinary(op, DT_BFLOAT16);
}
template <class F>
void AddEquality(LoopRegistry* t, const char* op) {
  AddOrder<F>(t, op);
  AddBinaryPlain<F>(t, op, List<bool, std::complex<float>, std::complex<double>>{});
  // Quantized values are equal if their bits are.
  t->AddBinary(op, DT_QINT8, DT_BOOL, BinaryPlainLoop<F, int8_t>);
  t->AddBinary(op, DT_QUINT8, DT_BOOL, BinaryPlainLoop<F, uint8_t>);
  t->AddBinary(op, DT_QINT16, DT_BOOL, BinaryPlainLoop<F, int16_t>);
  t->AddBinary(op, DT_QUINT16, DT_BOOL, BinaryPlainLoop<F, uint16_t>);
  t->AddBinary(op, DT_QINT32, DT_BOOL, BinaryPlainLoop<F, int32_t>);
  for (int type = DT_FLOAT; type <= DT_UINT64; ++type) {
    if (BinaryLoop* loop = t->FindBinary(op, static_cast<DataType>(type))) loop->own_kernel = true;
  }
}
template <class F>
void AddTest(LoopRegistry* t, const char* op) {
  AddUnaryPlain<F>(t, op, List<float, double>{});
  t->WidenUnary(op, DT_HALF);
  t->WidenUnary(op, DT_BFLOAT16);
}

}  // namespace

void AddCompareLoops(LoopRegistry* t) {
  AddOrder<Less>(t, "Less");
  AddOrder<LessEqual>(t, "LessEqual");
  AddOrder<Greater>(t, "Greater");
  AddOrder<GreaterEqual>(t, "GreaterEqual");
  AddEquality<Equal>(t, "Equal");
  AddEquality<NotEqual>(t, "NotEqual");
  AddBinaryPlain<LogicalAnd>(t, "LogicalAnd", List<bool>{});
  AddBinaryPlain<LogicalOr>(t, "LogicalOr", List<bool>{});
  AddUnaryPlain<LogicalNot>(t, "LogicalNot", List<bool>{});
  AddTest<IsNan>(t, "IsNan");
  AddTest<IsInf>(t, "IsInf");
  AddTest<IsFinite>(t, "IsFinite");
  AddBinaryPlain<BitwiseAnd>(t, "BitwiseAnd", Integers{});
  AddBinaryPlain<BitwiseOr>(t, "BitwiseOr", Integers{});
  AddBinaryPlain<BitwiseXor>(t, "BitwiseXor", Integers{});
  AddBinaryPlain<LeftShift>(t, "LeftShift", Integers{});
  AddBinaryPlain<RightShift>(t, "RightShift", Integers{});
  AddUnaryPlain<Invert>(t, "Invert", Integers{});
  AddUnaryPlain<PopulationCount>(t, "PopulationCount", Integers{});
  AddUnaryPlain<Real>(t, "Real", Complexes{});
  AddUnaryPlain<Imag>(t, "Imag", Complexes{});
  AddUnaryPlain<Angle>(t, "Angle", Complexes{});
  AddUnaryPlain<ComplexAbs>(t, "ComplexAbs", Complexes{});
  AddBinaryPlain<MakeComplex>(t, "Complex", List<float, double>{});
  const auto add_approximate = [t]<class... Ts>(List<Ts...>) {
    for (BinaryLoop* loop : {&t->AddBinary("ApproximateEqual", DataTypeOf<Ts>::value, DT_BOOL,
                                           ApproximateEqualLoop<Ts>)...}) {
      loop->broadcasts = false;
      loop->param = "tolerance";
    }
  };
  add_approximate(Native{});
  add_approximate(Complexes{});
  t->WidenBinary("ApproximateEqual", DT_HALF);
  t->WidenBinary("ApproximateEqual", DT_BFLOAT16);
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
