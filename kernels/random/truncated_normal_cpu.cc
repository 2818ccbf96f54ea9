#include <cmath>
#include <utility>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"

// Normal numbers of any mean and standard deviation between any bounds. Source: Robert, "Simulation
// of truncated normal variables", 1995.
//
// The bounds are converted to standard deviations from the mean, and mirrored so that a bound that
// is not finite, or the one nearer to the mean, comes first. There are three rejection methods:
//   - if the bounds enclose the mean with room on one side: normal numbers;
//   - if they are close to each other: uniform numbers between them, accepted with the probability
//   of
//     the density there, relative to its maximum;
//   - otherwise, out in a tail: exponential numbers above the lower bound.
// All samples of a call come from one stream, one after the other: if one takes more words, the
// following ones start later.
namespace weir {

namespace {

constexpr int kMaxRejections = 1000;
enum class Method { kNormal, kUniform, kExponential };

template <class T>
class TruncatedSampler {
 public:
  // Returns INVALID_ARGUMENT for bounds or a deviation that define no distribution.
  static absl::StatusOr<TruncatedSampler> Make(T mean, T stddev, T min, T max) {
    const bool bounded =
        std::isfinite(static_cast<double>(min)) || std::isfinite(static_cast<double>(max));
    if (!(stddev > T(0.0f)) || !(min < max) || !bounded)
      return InvalidArgument("Invalid parameters");
    return TruncatedSampler(mean, stddev, min, max);
  }

  // Calls put(i, sample) for i in [0, count).
  template <class Put>
  absl::Status Draw(Philox& stream, int64_t count, const Put& put) const {
    int64_t done = 0;
    int rejections = 0;
    // Returns true if the candidate ends this block.
    const auto offer = [&](T z, bool accept) {
      if (!accept) return ++rejections > kMaxRejections;
      put(done++, static_cast<T>(z * stddev_ + mean_));
      rejections = 0;
      return done >= count;
    };
    while (done < count) {
      ThrowIfCancelled();
      switch (method_) {
        case Method::kNormal:
          OfferNormals(stream, offer);
          break;
        case Method::kUniform:
          OfferUniforms(stream, offer);
          break;
        case Method::kExponential:
          OfferExponentials(stream, offer);
          break;
      }
      if (rejections > kMaxRejections)
        return Internal("TruncatedNormal rejection sampler failed to accept a sample.");
    }
    return absl::OkStatus();
  }

 private:
  TruncatedSampler(T mean, T stddev, T min, T max) : mean_(mean), stddev_(stddev) {
    if ((std::isinf(static_cast<double>(min)) && min < T(0.0f)) || max < mean) {
      std::swap(min, max);
      stddev_ = static_cast<T>(-stddev);
    }
    low_ = static_cast<T>(static_cast<T>(min - mean) / stddev_);
    high_ = static_cast<T>(static_cast<T>(max - mean) / stddev_);
    const T root = static_cast<T>(std::sqrt(low_ * low_ + T(4.0f)));
    const T cutoff = static_cast<T>(T(2.0f) * std::exp(T(0.5f) + (low_ * (low_ - root)) / T(4.0f)) /
                                    (low_ + root));
    range_ = static_cast<T>(high_ - low_);
    alpha_ = static_cast<T>((low_ + root) / T(2.0f));
    const T room = T(1.3f), zero = T(0.0f);
    const bool around = (low_ < -room && high_ >= zero) || (high_ > room && low_ <= zero);
    method_ = around ? Method::kNormal : range_ < cutoff ? Method::kUniform : Method::kExponential;
  }

  template <class Offer>
  void OfferNormals(Philox& stream, const Offer& offer) const {
    T z[NormalSamples<T>::kGroup];
    Block<NormalSamples<T>>(stream, z);
    for (const T v : z) {
      if (offer(v, v >= low_ && v <= high_)) return;
    }
  }

  template <class Offer>
  void OfferUniforms(Philox& stream, const Offer& offer) const {
    constexpr int kGroup = UniformSamples<T>::kGroup;
    T u[kGroup], accept[kGroup];
    Block<UniformSamples<T>>(stream, u);
    Block<UniformSamples<T>>(stream, accept);
    const T plus = low_ < T(0.0f) ? T(0.0f) : static_cast<T>(low_ * low_);
    for (int i = 0; i < kGroup; ++i) {
      const T z = static_cast<T>(u[i] * range_ + low_);
      const T g = static_cast<T>((plus - z * z) / T(2.0f));
      if (offer(z, accept[i] <= static_cast<T>(std::exp(g)))) return;
    }
  }

  template <class Offer>
  void OfferExponentials(Philox& stream, const Offer& offer) const {
    T u[UniformSamples<T>::kGroup];
    Block<UniformSamples<T>>(stream, u);
    for (int i = 0; i < UniformSamples<T>::kGroup; i += 2) {
      const T z = static_cast<T>(-std::log(u[i]) / alpha_ + low_);
      const T x = static_cast<T>(low_ < alpha_ ? alpha_ - z : low_ - alpha_);
      const T g = static_cast<T>(std::exp(-x * x / T(2.0f)));
      if (offer(z, u[i + 1] <= g && z < high_)) return;
    }
  }

  template <class Samples>
  static void Block(Philox& stream, T* out) {
    uint32_t words[4];
    stream(words);
    Samples()(words, out);
  }

  T mean_, stddev_, low_, high_, range_, alpha_;
  Method method_;
};

// ---- parameters that vary with the first dimension: the samples of one set are contiguous

template <class T>
absl::Status RunStateful(KernelContext& c, RandomStream& streams) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeInput(c, 0));
  if (shape.rank() == 0) return InvalidArgument("Shape tensor must not be empty, got []");
  const char* const names[] = {"means", "stddevs", "minvals", "maxvals"};
  int64_t batches = shape.dim(0);
  bool all_alike = true;
  for (int k = 0; k < 4; ++k) {
    const Tensor& t = c.input(1 + k);
    if (t.rank() > 1) {
      return InvalidArgument("Input ", names[k],
                             " should be a scalar or vector, got shape: ", t.shape().ToString());
    }
    all_alike = all_alike && (t.rank() == 0 || (k < 2 && t.dim(0) == 1));
  }
  const int64_t total = shape.num_elements();
  constexpr int64_t kBatch = 100;
  const int64_t each = all_alike ? kBatch : batches == 0 ? 0 : total / batches;
  if (all_alike) {
    batches = (total + kBatch - 1) / kBatch;
  } else {
    for (int k = 0; k < 4; ++k) {
      const int64_t n = c.input(1 + k).num_elements();
      if (n == 1 || n == batches) continue;
      return InvalidArgument("Input ", names[k], " should have length 1 or shape[0], got shape: ",
                             c.input(1 + k).shape().ToString());
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (total == 0) return absl::OkStatus();
  Philox stream = streams.Reserve(
      static_cast<uint64_t>(batches) * 2 * kMaxRejections * static_cast<uint64_t>(each + 3) / 4,
      c.step());
  const auto value = [&](int k, int64_t b) {
    const Tensor& t = c.input(1 + k);
    return t.data<T>()[t.num_elements() == 1 ? 0 : b];
  };
  for (int64_t b = 0; b < batches; ++b) {
    WEIR_ASSIGN_OR_RETURN(
        const TruncatedSampler<T> sampler,
        TruncatedSampler<T>::Make(value(0, b), value(1, b), value(2, b), value(3, b)));
    T* const to = out->template data<T>() + b * each;
    WEIR_RETURN_IF_ERROR(sampler.Draw(stream, std::min(each, total - b * each),
                                      [&](int64_t i, T sample) { to[i] = sample; }));
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeStateful(const KernelInit& init) {
  return Kernel(
      [stream = RandomStream::Of(init)](KernelContext& c) { return RunStateful<T>(c, *stream); });
}

// ---- parameters that broadcast to the last dimensions of the result

template <class T>
absl::Status RunStateless(KernelContext& c) {
  Shape batch;
  for (int k = 2; k < 6; ++k) {
    const absl::StatusOr<Shape> merged = BroadcastShapes(batch, c.input(k).shape());
    if (!merged.ok()) {
      return InvalidArgument(
          "means, stddevs, minvals, maxvals must have compatible batch dimensions: ",
          batch.ToString(), " vs. ", c.input(k).shape().ToString());
    }
    batch = *merged;
  }
  WEIR_ASSIGN_OR_RETURN(const SampleShape shape, SamplesOf(c, batch));
  WEIR_ASSIGN_OR_RETURN(Philox stream, SeedInput(c, 1));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape.shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::vector<int64_t> offsets[4];
  for (int k = 0; k < 4; ++k) offsets[k] = BroadcastOffsets(c.input(2 + k).shape(), batch);
  const int64_t batches = batch.num_elements();
  for (int64_t b = 0; b < batches; ++b) {
    const auto value = [&](int k) { return c.input_data<T>(2 + k)[offsets[k][b]]; };
    WEIR_ASSIGN_OR_RETURN(const TruncatedSampler<T> sampler,
                          TruncatedSampler<T>::Make(value(0), value(1), value(2), value(3)));
    T* const to = out->template data<T>() + b;
    WEIR_RETURN_IF_ERROR(sampler.Draw(stream, shape.samples,
                                      [&](int64_t i, T sample) { to[i * batches] = sample; }));
  }
  return absl::OkStatus();
}

template <class T>
void AddTruncated(KernelRegistry* r) {
  const TypeConstraints types = {{"dtype", DataTypeOf<T>::value}};
  r->Add("ParameterizedTruncatedNormal", kCpu, types, MakeStateful<T>).HostArgs({"shape"});
  r->Add("StatelessParameterizedTruncatedNormal", kCpu, types, RunStateless<T>)
      .HostArgs({"shape", "seed"});
}

}  // namespace

void AddTruncatedNormalCpu(KernelRegistry* r) {
  AddTruncated<half>(r);
  AddTruncated<float>(r);
  AddTruncated<double>(r);
}

}  // namespace weir
