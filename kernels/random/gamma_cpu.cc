#include <cmath>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/math/special_functions.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"

namespace weir {

namespace {

// Samples of the gamma distribution. Source: Marsaglia and Tsang, "A simple method for generating
// gamma variables", 2000: for a normal x, v = (1 + c x)^3 is accepted if a uniform number is below
// a bound; a polynomial decides this in nearly all cases. For alpha < 1, a sample of alpha + 1 is
// multiplied by the alpha-th root of a uniform number; for alpha = 1 it is an exponential sample.
class GammaSampler {
 public:
  explicit GammaSampler(double alpha)
      : alpha_(alpha), d_(alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3)), c_(1.0 / 3 / std::sqrt(d_)) {}
  static uint64_t blocks() { return kReservedPerSample; }

  double operator()(Philox& stream) const {
    UniformDoubles uniform;
    if (alpha_ == 1) return -std::log1p(-uniform(stream));
    if (!(alpha_ > -2.0 / 3)) return std::numeric_limits<double>::quiet_NaN();
    NormalDoubles normal;
    while (true) {
      const double x = normal(stream);
      double v = 1 + c_ * x;
      if (v <= 0) continue;
      v = v * v * v;
      const double u = uniform(stream);
      const bool quickly = u < 1 - 0.0331 * (x * x) * (x * x);
      if (!quickly && !(std::log(u) < 0.5 * x * x + d_ * (1 - v + std::log(v)))) continue;
      double result = d_ * v;
      if (alpha_ < 1) result *= std::pow(uniform(stream), 1 / alpha_);
      return result;
    }
  }

 private:
  double alpha_, d_, c_;
};

// Sets output 0 to samples of the distributions of `alphas`. start() returns the stream.
template <class Start>
absl::Status WriteGamma(KernelContext& c, const Tensor& alphas, const SampleShape& shape,
                        const Start& start) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Philox stream, start(out->num_elements()));
  const std::vector<double> alpha = ReadReals(alphas);
  DispatchType(out->dtype(), List<half, float, double>{}, [&]<class T>() {
    struct Sampler : GammaSampler {
      using GammaSampler::GammaSampler;
      T operator()(Philox& s) const { return static_cast<T>(GammaSampler::operator()(s)); }
    };
    FillSamples(
        c.pool(), stream, alphas.num_elements(), shape.samples, 100,
        [&](int64_t p) { return Sampler(alpha[p]); }, out->data<T>());
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRandomGamma(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) -> absl::Status {
    const Tensor& alpha = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOfEach(c, alpha.shape()));
    return WriteGamma(c, alpha, shape, [&](int64_t n) {
      return absl::StatusOr<Philox>(stream->ReserveSamples(n, c.step()));
    });
  });
}

// `alpha` is the index of the parameter's input; start(c) returns the stream.
template <class Start>
absl::Status RunStateless(KernelContext& c, int alpha, const Start& start) {
  const Tensor& alphas = c.input(alpha);
  WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOf(c, alphas.shape()));
  return WriteGamma(c, alphas, shape, [&](int64_t) { return start(c); });
}

absl::Status RunFromSeed(KernelContext& c) {
  return RunStateless(c, 2, [](KernelContext& k) { return SeedInput(k, 1); });
}
absl::Status RunFromKey(KernelContext& c) { return RunStateless(c, 4, KeyCounterInputs); }

// Returns the derivative of a sample x with respect to alpha, at a fixed quantile: minus the
// derivative of the distribution function with respect to alpha, divided by the density. Source:
// Figurnov et al., "Implicit reparameterization gradients", 2018.
//
// Where x <= alpha (or small), P = x^a e^-x / Gamma(a + 1) * S with the series
//   S = 1 + x/(a+1) + x^2/((a+1)(a+2)) + ...,
// elsewhere 1 - P = x^a e^-x / Gamma(a) * F with Legendre's continued fraction F. The series and
// the fraction are differentiated term by term; the leading factor, divided by the density, is x /
// a or x.
double SeriesDerivative(double a, double x) {
  double term = 1, d_term = 0, sum = 1, d_sum = 0;
  for (double n = a + 1; n < a + 2001; ++n) {
    d_term = d_term * x / n - term * x / (n * n);
    term *= x / n;
    sum += term;
    d_sum += d_term;
    if (std::abs(d_term) <= 1e-17 * std::abs(d_sum)) break;
  }
  return -(d_sum + sum * (std::log(x) - Digamma(a + 1))) * x / a;
}

double FractionDerivative(double a, double x) {
  // Numerators p and denominators q of two successive convergents, and their derivatives.
  double p0 = 1, q0 = x, p1 = x + 1, q1 = (x + 2 - a) * x;
  double dp0 = 0, dq0 = 0, dp1 = 0, dq1 = -x;
  double value = p1 / q1, derivative = (dp1 - value * dq1) / q1;
  for (int n = 1; n < 2000; ++n) {
    const double z = x + 2 - a + 2 * n, w = (n + 1 - a) * n;
    const double p = p1 * z - p0 * w, q = q1 * z - q0 * w;
    const double dp = dp1 * z - p1 - dp0 * w + p0 * n, dq = dq1 * z - q1 - dq0 * w + q0 * n;
    double change = 1;
    if (q != 0) {
      value = p / q;
      const double next = (dp - value * dq) / q;
      change = std::abs(next - derivative);
      derivative = next;
    }
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    dp0 = dp1, dq0 = dq1, dp1 = dp, dq1 = dq;
    if (change <= 1e-16) break;
    if (std::abs(p) > 1e100) {
      for (double* v : {&p0, &q0, &p1, &q1, &dp0, &dq0, &dp1, &dq1}) *v *= 1e-100;
    }
  }
  return (derivative + value * (std::log(x) - Digamma(a))) * x;
}

double SampleDerivative(double a, double x) {
  if (x == 0) return 0;
  if (!(x > 0) || !(a > 0)) return std::numeric_limits<double>::quiet_NaN();
  return x > 1 && x > a ? FractionDerivative(a, x) : SeriesDerivative(a, x);
}

template <class T>
absl::Status RunGammaGrad(KernelContext& c) {
  const Tensor &alpha = c.input(0), &sample = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(alpha.shape(), sample.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  const Broadcast broadcast(shape, {&alpha.shape(), &sample.shape()});
  constexpr double kCost = 300;
  c.pool().ParallelFor(out->num_elements(), kCost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T a, x;
      broadcast.Gather(0, alpha.raw(), sizeof(T), i, 1, &a);
      broadcast.Gather(1, sample.raw(), sizeof(T), i, 1, &x);
      out->data<T>()[i] = static_cast<T>(SampleDerivative(a, x));
    }
  });
  return absl::OkStatus();
}

}  // namespace

void AddGammaCpu(KernelRegistry* r) {
  r->Add("RandomGamma", kCpu, MakeRandomGamma).HostArgs({"shape"});
  r->Add("StatelessRandomGammaV2", kCpu, RunFromSeed).HostArgs({"shape", "seed"});
  r->Add("StatelessRandomGammaV3", kCpu, RunFromKey).HostArgs({"shape", "key", "counter", "alg"});
  r->Add("RandomGammaGrad", kCpu, DT_FLOAT, RunGammaGrad<float>);
  r->Add("RandomGammaGrad", kCpu, DT_DOUBLE, RunGammaGrad<double>);
}

}  // namespace weir
