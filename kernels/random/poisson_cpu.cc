#include <cmath>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"

namespace weir {

namespace {

template <class T>
double Highest() {
  if constexpr (std::is_same_v<T, half>) return 65504;
  return static_cast<double>(std::numeric_limits<T>::max());
}

// Samples of the Poisson distribution. For small rates, uniform numbers are multiplied until the
// product is at most e^-rate (Knuth, "Seminumerical algorithms"). For other rates, transformed
// rejection is used: Hoermann, "The transformed rejection method for generating Poisson random
// variables", 1993. A sample that T cannot represent is drawn again, a limited number of times.
template <class T>
class PoissonSampler {
 public:
  explicit PoissonSampler(double rate)
      : rate_(rate),
        exp_neg_rate_(std::exp(-rate)),
        log_rate_(std::log(rate)),
        b_(0.931 + 2.53 * std::sqrt(rate)),
        a_(-0.059 + 0.02483 * b_),
        inv_alpha_(1.1239 + 1.1328 / (b_ - 3.4)) {}
  static uint64_t blocks() { return kReservedPerSample; }

  T operator()(Philox& stream) const {
    if (rate_ < 10) return Multiply(stream);
    if (std::isnan(rate_)) return ToSample<T>(rate_);
    if (std::isinf(rate_)) {
      if constexpr (std::is_integral_v<T>) return 0;
      return static_cast<T>(rate_);
    }
    return Reject(stream);
  }

 private:
  T Multiply(Philox& stream) const {
    UniformDoubles uniform;
    double product = 1, x = 0;
    while (true) {
      product *= uniform(stream);
      if (product <= exp_neg_rate_ && x <= Highest<T>()) return static_cast<T>(x);
      x += 1;
    }
  }

  T Reject(Philox& stream) const {
    UniformDoubles uniform;
    constexpr int kAttempts = 100000;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const double u = uniform(stream) - 0.5, v = uniform(stream);
      const double edge = 0.5 - std::abs(u);
      const double k = std::floor((2 * a_ / edge + b_) * u + rate_ + 0.43);
      if (k > Highest<T>()) continue;
      if (edge >= 0.07 && v <= 0.9277 - 3.6224 / (b_ - 2)) return ToSample<T>(k);
      if (k < 0 || (edge < 0.013 && v > edge)) continue;
      const double s = std::log(v * inv_alpha_ / (a_ / (edge * edge) + b_));
      const double t = -rate_ + k * log_rate_ - std::lgamma(k + 1);
      if (s <= t) return ToSample<T>(k);
    }
    return ToSample<T>(Highest<T>());
  }

  double rate_, exp_neg_rate_, log_rate_, b_, a_, inv_alpha_;
};

template <class Start>
absl::Status WritePoisson(KernelContext& c, const Tensor& rates, const SampleShape& shape,
                          const Start& start) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Philox stream, start(out->num_elements()));
  const std::vector<double> rate = ReadReals(rates);
  DispatchType(out->dtype(), List<half, float, double, int32_t, int64_t>{}, [&]<class T>() {
    FillSamples(
        c.pool(), stream, rates.num_elements(), shape.samples, 150,
        [&](int64_t p) { return PoissonSampler<T>(rate[p]); }, out->data<T>());
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRandomPoisson(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) -> absl::Status {
    const Tensor& rate = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOfEach(c, rate.shape()));
    return WritePoisson(c, rate, shape, [&](int64_t n) {
      return absl::StatusOr<Philox>(stream->ReserveSamples(n, c.step()));
    });
  });
}

absl::Status RunStateless(KernelContext& c) {
  const Tensor& rate = c.input(2);
  // The seed is checked even if no number is drawn.
  WEIR_ASSIGN_OR_RETURN(const Philox start, SeedInput(c, 1));
  WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOf(c, rate.shape()));
  return WritePoisson(c, rate, shape, [&](int64_t) { return absl::StatusOr<Philox>(start); });
}

}  // namespace

void AddPoissonCpu(KernelRegistry* r) {
  r->Add("RandomPoisson", kCpu, MakeRandomPoisson).HostArgs({"shape"});
  r->Add("RandomPoissonV2", kCpu, MakeRandomPoisson).HostArgs({"shape"});
  r->Add("StatelessRandomPoisson", kCpu, RunStateless).HostArgs({"shape", "seed"});
}

}  // namespace weir
