#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/random/distributions.h"

// Rounds to integers at random.
namespace weir {

namespace {

// TensorFlow rounds float and double to int32 eight at a time, in AVX vectors of this many, each of
// which takes one block of random numbers, whose samples repeat. All other numbers take a block
// each if they are rounded at all.
template <class From, class To>
constexpr int kVector = !std::is_same_v<To, int32_t>   ? 0
                        : std::is_same_v<From, float>  ? 8
                        : std::is_same_v<From, double> ? 4
                                                       : 0;

// Rounds away from zero with the probability of the fraction. Each sum is rounded to From.
template <class From, class To>
class StochasticRounding {
 public:
  using W = Wide<From>;
  using Samples = UniformSamples<From>;

  explicit StochasticRounding(const Philox& stream) : stream_(stream) {}

  To Single(From from) {
    const W x = static_cast<W>(from);
    if (!Rounds(x)) return Saturated(x);
    Draw();
    const W draw = static_cast<W>(samples_[0]);
    return Saturated(std::floor(x < 0 ? Sum(x, draw) : Sum(Sum(x, 1), -draw)));
  }
  void Vector(const From* from, int n, To* to) {
    Draw();
    for (int i = 0; i < n; ++i) {
      const W x = static_cast<W>(from[i]), draw = static_cast<W>(samples_[i % Samples::kGroup]);
      to[i] = Saturated(Rounds(x) ? std::floor(Sum(x, x < 0 ? draw : Sum(1, -draw))) : x);
    }
  }

 private:
  void Draw() {
    uint32_t block[4];
    stream_(block);
    Samples()(block, samples_);
  }
  static W Sum(W a, W b) { return static_cast<W>(static_cast<From>(a + b)); }
  static bool Rounds(W x) {
    return x > static_cast<W>(std::numeric_limits<To>::min()) &&
           x < static_cast<W>(std::numeric_limits<To>::max()) && std::floor(x) != x;
  }
  static To Saturated(W x) { return ToSample<To>(static_cast<double>(x)); }

  Philox stream_;
  From samples_[Samples::kGroup];
};

template <class From, class To>
absl::Status StochasticCast(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const Philox given, KeyCounterInputs(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
  // As in TensorFlow, the words of the counter and of the key are seeds.
  StochasticRounding<From, To> rounding(Philox(given.counter_low(), given.key()));
  const From* const from = input.data<From>();
  To* const to = out->data<To>();
  const int64_t n = input.num_elements();
  int64_t i = 0;
  if constexpr (kVector<From, To> != 0) {
    constexpr int kStep = 8;
    for (; i < n - n % kStep; i += kVector<From, To>) {
      ThrowIfCancelledAt(i);
      rounding.Vector(from + i, kVector<From, To>, to + i);
    }
  }
  for (; i < n; ++i) {
    ThrowIfCancelledAt(i);
    to[i] = rounding.Single(from[i]);
  }
  return absl::OkStatus();
}

template <class From, class... Tos>
void AddCasts(KernelRegistry* r, List<Tos...>) {
  (r->Add("StochasticCastToInt", kCpu,
          TypeConstraints{{"Tin", DataTypeOf<From>::value}, {"Tout", DataTypeOf<Tos>::value}},
          StochasticCast<From, Tos>)
       .HostArgs({"key", "counter", "alg"}),
   ...);
}

template <class... Froms>
void AddAllCasts(KernelRegistry* r, List<Froms...>) {
  (AddCasts<Froms>(r, List<int8_t, int16_t, int32_t>()), ...);
}

}  // namespace

void AddStochasticCastCpu(KernelRegistry* r) {
  AddAllCasts(r, List<half, bfloat16, float, double>());
}

}  // namespace weir
