// Random choices: permutations and samples from categorical distributions.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"
#include "weir/kernels/random/weights.h"

namespace weir {

namespace {

// Row i of the output is row order[i] of the input.
void CopyRows(const Tensor& from, const std::vector<int64_t>& order, Tensor* to) {
  const int64_t row = from.num_elements() / from.dim(0);
  if (from.dtype() == DT_STRING) {
    for (size_t i = 0; i < order.size(); ++i) {
      ThrowIfCancelled();
      std::copy_n(from.data<std::string>() + order[i] * row, row,
                  to->data<std::string>() + i * row);
    }
    return;
  }
  const size_t bytes = row * ElementSize(from.dtype());
  const char* source = static_cast<const char*>(from.raw());
  char* target = static_cast<char*>(to->raw());
  for (size_t i = 0; i < order.size(); ++i)
    std::copy_n(source + order[i] * bytes, bytes, target + i * bytes);
}

// The Fisher-Yates shuffle: element i is swapped with a random one of the remaining elements,
// itself included.
absl::StatusOr<Kernel> MakeRandomShuffle(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) -> absl::Status {
    const Tensor& value = c.input(0);
    if (!IsPlain(value.dtype()) && value.dtype() != DT_STRING) {
      return Unimplemented("shuffling elements of type ", DataTypeName(value.dtype()),
                           " is not supported");
    }
    if (value.num_elements() <= 1 || value.dim(0) <= 1) {
      c.SetOutput(0, value);
      return absl::OkStatus();
    }
    const int64_t n = value.dim(0);
    if (n > std::numeric_limits<uint32_t>::max()) {
      return InvalidArgument("cannot shuffle ", n, " rows: the generator counts in 32 bits");
    }
    PhiloxWords words(stream->Reserve(static_cast<uint64_t>((n - 1 + 3) / 4), c.step()));
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i + 1 < n; ++i) {
      ThrowIfCancelledAt(i);
      std::swap(order[i], order[i + words() % static_cast<uint32_t>(n - i)]);
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, value.shape()));
    CopyRows(value, order, out);
    return absl::OkStatus();
  });
}

// Returns the number of sums that are at most `wanted`: std::upper_bound's position in sorted sums.
// A step moves on by all or none of half the sums, through a mask: half of a binary search's
// branches for a random number are mispredicted, at the cost of several steps each, and keep the
// searches for the next numbers from running at the same time.
int64_t CountUpTo(const std::vector<double>& sums, double wanted) {
  size_t first = 0;
  for (size_t n = sums.size(); n > 1;) {
    const size_t half = n / 2;
    first += half & -static_cast<size_t>(sums[first + half - 1] <= wanted);
    n -= half;
  }
  return static_cast<int64_t>(first + (sums[first] <= wanted ? 1 : 0));
}

// The distribution of one row of logits: running sums of the weights exp(logit - max), which are 0
// for infinite and NaN logits. A sample is the first column whose sum exceeds a uniform number
// times the total.
//
// Samples are those of weights from the C library's exp, but a vector of them costs little more
// than one of those. The sums are therefore of approximate weights first. No sum is off by more
// than a bound on what rounding can do: with n classes and weights within 2^-48, (n + 32) 2^-52 of
// the total. A uniform number that is twice as far from the two sums around it selects the same
// column among either sums; for any other, the row's sums are computed with the C library, once.
template <class T>
class Categories {
 public:
  explicit Categories(int64_t classes) : sums_(static_cast<size_t>(classes)) {}

  void SetRow(const T* row) {
    row_ = row;
    exact_.clear();
    max_ = std::numeric_limits<double>::lowest();
    for (size_t j = 0; j < sums_.size(); ++j) {
      sums_[j] =
          IsFinite(row[j]) ? static_cast<double>(row[j]) : -std::numeric_limits<double>::infinity();
      max_ = std::max(max_, sums_[j]);
    }
    ExpBelow(max_, sums_.data(), static_cast<int64_t>(sums_.size()));
    double total = 0;
    for (double& sum : sums_) sum = total += sum;
    margin_ = total * (2 * static_cast<double>(sums_.size()) + 128) * 0x1p-52;
  }

  int64_t Sample(double uniform) {
    const double wanted = uniform * sums_.back();
    const int64_t i = CountUpTo(sums_, wanted);
    const bool is_sure = i < static_cast<int64_t>(sums_.size()) && sums_[i] - wanted > margin_ &&
                         (i == 0 || wanted - sums_[i - 1] > margin_);
    return is_sure ? i : SampleExactly(uniform);
  }

 private:
  static bool IsFinite(T x) { return std::isfinite(static_cast<double>(x)); }

  int64_t SampleExactly(double uniform) {
    if (exact_.empty()) {
      double total = 0;
      for (size_t j = 0; j < sums_.size(); ++j) {
        if (IsFinite(row_[j])) total += std::exp(static_cast<double>(row_[j]) - max_);
        exact_.push_back(total);
      }
    }
    return CountUpTo(exact_, uniform * exact_.back());
  }

  const T* row_ = nullptr;
  double max_ = 0, margin_ = 0;
  std::vector<double> sums_, exact_;
};

// One stream serves all rows in turn, two words per sample, so that each row's part of it is known.
template <class T, class Index>
void SampleCategories(ThreadPool& pool, const Tensor& logits, int64_t samples, const Philox& stream,
                      Tensor* out) {
  const int64_t classes = logits.dim(1);
  const double cost = 4.0 * static_cast<double>(classes) + 40.0 * static_cast<double>(samples);
  pool.ParallelFor(logits.dim(0), cost, [&](int64_t begin, int64_t end) {
    // Samples come in pairs: a block of the stream has four words.
    Philox part = stream;
    part.Skip(static_cast<uint64_t>(begin * samples / 2));
    PhiloxWords words(part);
    if (begin * samples % 2 != 0) words(), words();
    Categories<T> categories(classes);
    for (int64_t r = begin; r < end; ++r) {
      ThrowIfCancelled();
      categories.SetRow(logits.data<T>() + r * classes);
      Index* const row = out->data<Index>() + r * samples;
      for (int64_t s = 0; s < samples; ++s) {
        ThrowIfCancelledAt(s);
        const uint32_t high = words(), low = words();
        row[s] = static_cast<Index>(categories.Sample(UnitDouble(high, low)));
      }
    }
  });
}

// `start(rows, samples)` returns the stream.
template <class Start>
absl::Status RunMultinomial(KernelContext& c, const Start& start) {
  const Tensor &logits = c.input(0), &count = c.input(1);
  if (logits.rank() != 2)
    return InvalidArgument("logits should be a matrix, got shape ", logits.shape().ToString());
  if (count.rank() != 0)
    return InvalidArgument("num_samples should be a scalar, got shape ", count.shape().ToString());
  const int64_t rows = logits.dim(0), samples = count.scalar<int32_t>();
  if (samples < 0) return InvalidArgument("num_samples should be nonnegative, got ", samples);
  if (logits.dim(1) <= 0)
    return InvalidArgument("num_classes should be positive, got ", logits.dim(1));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({rows, samples})));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Philox stream, start(rows, samples));
  DispatchType(logits.dtype(), RealNumbers{}, [&]<class T>() {
    if (out->dtype() == DT_INT32) {
      SampleCategories<T, int32_t>(c.pool(), logits, samples, stream, out);
    } else {
      SampleCategories<T, int64_t>(c.pool(), logits, samples, stream, out);
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMultinomial(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) {
    return RunMultinomial(c, [&](int64_t rows, int64_t samples) {
      // TensorFlow's count: samples rounded up to blocks, doubled because the numbers are doubles.
      return absl::StatusOr<Philox>(
          stream->ReserveSamples(rows * ((samples + 3) / 4 * 4) * 2, c.step()));
    });
  });
}

absl::StatusOr<Kernel> MakeStatelessMultinomial(const KernelInit&) {
  return Kernel([](KernelContext& c) {
    return RunMultinomial(c, [&](int64_t, int64_t) { return SeedInput(c, 2); });
  });
}

}  // namespace

void AddSamplingCpu(KernelRegistry* r) {
  r->Add("RandomShuffle", kCpu, MakeRandomShuffle);
  r->Add("Multinomial", kCpu, MakeMultinomial).HostArgs({"num_samples"});
  r->Add("StatelessMultinomial", kCpu, MakeStatelessMultinomial).HostArgs({"num_samples", "seed"});
  AddBinomialCpu(r);
  AddCandidateSamplers(r);
  AddGammaCpu(r);
  AddGeneratorKernels(r);
  AddIndexShuffleCpu(r);
  AddPoissonCpu(r);
  AddTruncatedNormalCpu(r);
}

}  // namespace weir
