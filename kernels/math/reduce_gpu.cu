#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/math/functor.h"
#include "weir/kernels/math/reducers.h"

// Reductions, with the reducers that the CPU uses (kernels/math/reducers.h). reduce_gpu.cc
// describes the passes of a reduction.
namespace weir::gpu {

namespace {

// Half the sum of squares.
template <class T>
struct L2LossReduction : NormReduction<T> {
  using Acc = typename NormReduction<T>::Acc;
  WEIR_HD static T Result(Acc a, int64_t) { return static_cast<T>(a / 2); }
};

// The first position of the largest (or smallest) element. Any number replaces a NaN.
template <class T, class I, bool kMax>
struct ArgReduction {
  struct Acc {
    T value;
    int64_t position;  // -1: no element yet
  };
  WEIR_HD static Acc Neutral() { return {T(), -1}; }
  WEIR_HD static Acc ValueAt(T x, int64_t position) { return {x, position}; }
  WEIR_HD static bool Beats(const Acc& a, const Acc& b) {
    if (a.position < 0) return false;
    if (b.position < 0) return true;
    const Wide<T> x = static_cast<Wide<T>>(a.value);
    const Wide<T> y = static_cast<Wide<T>>(b.value);
    const bool x_nan = x != x, y_nan = y != y;
    if (x_nan != y_nan) return y_nan;
    if (!x_nan && x != y) return kMax ? x > y : x < y;
    return a.position < b.position;
  }
  WEIR_HD static Acc Merge(const Acc& a, const Acc& b) { return Beats(b, a) ? b : a; }
  WEIR_HD static I Result(const Acc& a, int64_t) { return static_cast<I>(a.position); }
};

template <class F, class T>
WEIR_HD typename F::Acc ValueOf(T x, int64_t position) {
  if constexpr (requires { F::ValueAt(x, position); }) {
    return F::ValueAt(x, position);
  } else {
    return F::Value(x);
  }
}

// Thread i computes accumulator i: that of result k and split s of `splits`.
template <class F, class T, class Out>
struct PassBody {
  using Acc = typename F::Acc;
  ReducePass p;
  WEIR_HD void operator()(int64_t i) const {
    const int64_t k = p.reduced_inside ? i / p.splits : i % p.kept.count;
    const int64_t s = p.reduced_inside ? i % p.splits : i / p.kept.count;
    int64_t base;
    p.kept.Locate(k, &base);
    Acc acc = F::Neutral();
    for (int64_t r = s; r < p.reduced.count; r += p.splits) {
      int64_t at;
      p.reduced.Locate(r, &at);
      acc =
          F::Merge(acc, p.from_partials ? static_cast<const Acc*>(p.in)[base + at]
                                        : ValueOf<F, T>(static_cast<const T*>(p.in)[base + at], r));
    }
    if (p.to_results) {
      static_cast<Out*>(p.out)[i] = F::Result(acc, p.count);
    } else {
      static_cast<Acc*>(p.out)[i] = acc;
    }
  }
};

template <class F, class T, class Out>
void RunPass(void* stream, const ReducePass& pass) {
  ForEach(stream, pass.kept.count * pass.splits, PassBody<F, T, Out>{pass});
}

struct Entry {
  const char* op;
  DataType type, out;
  Reducer reducer;
};
using Entries = std::vector<Entry>;

template <template <class> class F, class... Ts>
void Add(Entries* t, const char* op, List<Ts...>) {
  (t->push_back({op,
                 DataTypeOf<Ts>::value,
                 DataTypeOf<Ts>::value,
                 {sizeof(typename F<Ts>::Acc), RunPass<F<Ts>, Ts, Ts>}}),
   ...);
}

template <class I, bool kMax, class... Ts>
void AddArg(Entries* t, const char* op, List<Ts...>) {
  (t->push_back({op,
                 DataTypeOf<Ts>::value,
                 DataTypeOf<I>::value,
                 {sizeof(typename ArgReduction<Ts, I, kMax>::Acc),
                  RunPass<ArgReduction<Ts, I, kMax>, Ts, I>}}),
   ...);
}

const Entries& Reducers() {
  static const Entries* const table = [] {
    using Types = FloatsAndInt64;
    auto* t = new Entries;
    Add<SumReduction>(t, "Sum", Types());
    Add<MeanReduction>(t, "Mean", Types());
    Add<ProdReduction>(t, "Prod", Types());
    Add<MaxReduction>(t, "Max", Types());
    Add<MinReduction>(t, "Min", Types());
    Add<NormReduction>(t, "EuclideanNorm", Floats());
    Add<L2LossReduction>(t, "L2Loss", Floats());
    t->push_back({"All", DT_BOOL, DT_BOOL, {1, RunPass<AllReduction, uint8_t, uint8_t>}});
    t->push_back({"Any", DT_BOOL, DT_BOOL, {1, RunPass<AnyReduction, uint8_t, uint8_t>}});
    AddArg<int32_t, true>(t, "ArgMax", Types());
    AddArg<int64_t, true>(t, "ArgMax", Types());
    AddArg<int32_t, false>(t, "ArgMin", Types());
    AddArg<int64_t, false>(t, "ArgMin", Types());
    return t;
  }();
  return *table;
}

const Reducer* Find(absl::string_view op, DataType type, DataType out) {
  for (const Entry& e : Reducers()) {
    if (e.type == type && e.out == out && op == e.op) return &e.reducer;
  }
  return nullptr;
}

}  // namespace

const Reducer* FindReducer(absl::string_view op, DataType type) { return Find(op, type, type); }

const Reducer* FindArgReducer(bool max, DataType type, DataType out) {
  return Find(max ? "ArgMax" : "ArgMin", type, out);
}

}  // namespace weir::gpu
