#include <cmath>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"

namespace weir {

namespace {

// Samples the binomial distribution. If few successes are expected, draws the number of trials
// between two successes from the geometric distribution until the trials are used up (Devroye,
// "Non-uniform random variate generation", 1986, X.4.3). Otherwise uses transformed rejection:
// Hoermann, "The generation of binomial random variates", 1993 (BTRS). If successes are more likely
// than failures, counts failures.
struct Binomial {
  double count = 0, prob = 0;  // probability of the counted outcome
  bool flip = false;           // failures are counted
  bool many = false;           // at least 10 counted outcomes are expected
  double fixed = 0;            // the sample, if it is not random
  bool is_fixed = false;
};

// The comparisons use the parameters' type T.
template <class T>
Binomial Describe(T count, T prob) {
  const double n = count;
  if (n <= 0 || prob <= T(0.0f)) return {.fixed = 0, .is_fixed = true};
  if (prob >= T(1.0f)) return {.fixed = n, .is_fixed = true};
  if (std::isnan(n) || std::isnan(static_cast<double>(prob)))
    return {.fixed = std::numeric_limits<double>::quiet_NaN(), .is_fixed = true};
  const bool flip = prob > T(0.5f);
  const T counted = flip ? T(T(1.0f) - prob) : prob;
  return {.count = n, .prob = counted, .flip = flip, .many = T(count * counted) >= T(10.0f)};
}

double CountGeometric(const Binomial& b, Philox& stream) {
  UniformDoubles uniform;
  double trials = 0;
  for (int64_t successes = 0;; ++successes) {
    trials += std::ceil(std::log(uniform(stream)) / std::log1p(-b.prob));
    if (trials > b.count) return static_cast<double>(successes);
  }
}

// Returns the error term of Stirling's formula for log(k!).
double StirlingTail(double k) {
  constexpr double kTable[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                               0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                               0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kTable[std::max(0, static_cast<int>(k))];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

double TransformAndReject(const Binomial& d, Philox& stream) {
  const double n = d.count, p = d.prob;
  const double stddev = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * stddev, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5;
  const double v_r = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * stddev, m = std::floor((n + 1) * p);
  UniformDoubles uniform;
  while (true) {
    const double u = uniform(stream) - 0.5, v = uniform(stream);
    const double edge = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / edge + b) * u + c);
    if (edge >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > n) continue;
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (n - m + 1))) +
                         (n + 1) * std::log((n - m + 1) / (n - k + 1)) +
                         (k + 0.5) * std::log(r * (n - k + 1) / (k + 1)) + StirlingTail(m) +
                         StirlingTail(n - m) - StirlingTail(k) - StirlingTail(n - k);
    if (std::log(v * alpha / (a / (edge * edge) + b)) <= bound) return k;
  }
}

template <class T>
struct BinomialSampler {
  Binomial b;
  uint64_t blocks() const { return b.many ? kReservedPerSample : 42; }
  T operator()(Philox& stream) const {
    if (b.is_fixed) return ToSample<T>(b.fixed);
    const double k = b.many ? TransformAndReject(b, stream) : CountGeometric(b, stream);
    return ToSample<T>(b.flip ? b.count - k : k);
  }
};

// The parameters, broadcast to one shape.
absl::StatusOr<std::vector<Binomial>> Parameters(const Tensor& counts, const Tensor& probs,
                                                 const Shape& shape) {
  const std::vector<int64_t> n = BroadcastOffsets(counts.shape(), shape),
                             p = BroadcastOffsets(probs.shape(), shape);
  std::vector<Binomial> out(n.size());
  const bool found = DispatchType(counts.dtype(), List<half, float, double>{}, [&]<class T>() {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = Describe(counts.data<T>()[n[i]], probs.data<T>()[p[i]]);
  });
  if (!found)
    return Unimplemented("binomial sampling is not supported for type ",
                         DataTypeName(counts.dtype()));
  return out;
}

// `first` is the index of the counts input. start(batches, samples) returns the random stream for
// `samples` samples of each of `batches` parameter sets.
template <class Start>
absl::Status RunBinomial(KernelContext& c, int shape_input, int first, const Start& start) {
  const Tensor &counts = c.input(first), &probs = c.input(first + 1);
  const absl::StatusOr<Shape> both = BroadcastShapes(counts.shape(), probs.shape());
  if (!both.ok()) {
    return InvalidArgument("counts and probs must have compatible batch dimensions: ",
                           counts.shape().ToString(), " vs. ", probs.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOf(c, *both, shape_input));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::vector<Binomial> parameters, Parameters(counts, probs, *both));
  const int64_t batches = static_cast<int64_t>(parameters.size());
  WEIR_ASSIGN_OR_RETURN(const Philox stream, start(batches, shape.samples));
  DispatchType(out->dtype(), List<half, float, double, int32_t, int64_t>{}, [&]<class T>() {
    FillSamples(
        c.pool(), stream, batches, shape.samples, 200,
        [&](int64_t p) { return BinomialSampler<T>{parameters[p]}; }, out->data<T>());
  });
  return absl::OkStatus();
}

absl::Status RunStateless(KernelContext& c) {
  return RunBinomial(c, 0, 2, [&](int64_t, int64_t) { return SeedInput(c, 1); });
}

absl::Status RunStateful(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckAlgorithmShape(c, 1));  // also where nothing is drawn
  return RunBinomial(c, 2, 3, [&](int64_t batches, int64_t samples) {
    // The same count as in TensorFlow.
    return GeneratorInput(c, batches * 2 * 100 * (samples + 3) / 4);
  });
}

}  // namespace

void AddBinomialCpu(KernelRegistry* r) {
  r->Add("StatelessRandomBinomial", kCpu, RunStateless).HostArgs({"shape", "seed"});
  r->Add("StatefulRandomBinomial", kCpu, RunStateful).HostArgs({"algorithm", "shape"}).Writes({0});
}

}  // namespace weir
