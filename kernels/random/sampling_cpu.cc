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

// The Fisher-Yates shuffle: row i is swapped with a random one of the remaining rows, itself
// included. start(blocks) returns the stream.
template <class Start>
absl::Status ShuffleRows(KernelContext& c, const Start& start) {
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
  PhiloxWords words(start(static_cast<uint64_t>((n - 1 + 3) / 4)));
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = 0; i + 1 < n; ++i) {
    ThrowIfCancelledAt(i);
    std::swap(order[i], order[i + words() % static_cast<uint32_t>(n - i)]);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, value.shape()));
  CopyRows(value, order, out);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRandomShuffle(const KernelInit& init) {
  return Kernel([stream = RandomStream::Of(init)](KernelContext& c) {
    return ShuffleRows(c, [&](uint64_t blocks) { return stream->Reserve(blocks, c.step()); });
  });
}

absl::Status StatelessShuffle(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Philox start, KeyCounterInputs(c));
  return ShuffleRows(c, [&](uint64_t) { return start; });
}

// Returns the number of n >= 1 sums that are at most `wanted`: std::upper_bound's position.
// A step moves on by all or none of half the sums, through a mask: half of a binary search's
// branches for a random number are mispredicted, at the cost of several steps each, and keep the
// searches for the next numbers from running at the same time.
int64_t CountUpTo(const double* sums, int64_t n, double wanted) {
  int64_t first = 0;
  while (n > 1) {
    const int64_t half = n / 2;
    first += half & -static_cast<int64_t>(sums[first + half - 1] <= wanted);
    n -= half;
  }
  return first + (sums[first] <= wanted ? 1 : 0);
}

// The distribution of one row of logits: running sums of the weights exp(logit - max), which are 0
// for infinite and NaN logits. A sample is the first column whose sum exceeds a uniform number
// times the total.
//
// Samples are those of weights from the C library's exp, but a vector of them costs little more
// than one of those. The sums are therefore of approximate weights first. No sum, in any order, is
// off by more than a bound on what rounding can do: with n classes and weights within 2^-48, (n +
// 32) 2^-52 of the total. A uniform number that is twice as far from the two sums around it selects
// the same column among either sums; for any other, the row's sums are computed with the C library,
// once.
//
// Running sums wait for each other. A sample needs those of one block of columns, which are
// computed when the first sample falls into it, and before those the sums of whole blocks.
template <class T>
class Categories {
 public:
  explicit Categories(int64_t classes)
      : classes_(classes),
        sums_(static_cast<size_t>(classes)),
        ends_(static_cast<size_t>((classes + kBlock - 1) / kBlock)),
        is_summed_(ends_.size()) {}

  void SetRow(const T* row) {
    row_ = row;
    exact_.clear();
    is_summed_.assign(ends_.size(), false);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      Weigh(row);
    } else {
      std::transform(row, row + classes_, sums_.begin(),
                     [](T x) { return static_cast<double>(x); });
      Weigh(sums_.data());
    }
  }

  int64_t Sample(double uniform) {
    const int64_t num_blocks = static_cast<int64_t>(ends_.size());
    const double wanted = uniform * ends_.back();
    const int64_t block = CountUpTo(ends_.data(), num_blocks, wanted);
    if (block == num_blocks) return SampleExactly(uniform);
    const int64_t first = block * kBlock, n = std::min(kBlock, classes_ - first);
    const double* const sums = SumsOf(block);
    const int64_t k = CountUpTo(sums, n, wanted);
    const double below = k > 0 ? sums[k - 1] : StartOf(block);
    const bool is_sure =
        k < n && sums[k] - wanted > margin_ && (first + k == 0 || wanted - below > margin_);
    return is_sure ? first + k : SampleExactly(uniform);
  }

 private:
  static constexpr int64_t kBlock = 256;

  static bool IsFinite(T x) { return std::isfinite(static_cast<double>(x)); }

  template <class L>
  void Weigh(const L* logits) {
    max_ = LargestFinite(logits, classes_);
    double total = 0;
    for (size_t b = 0; b < ends_.size(); ++b) {
      const int64_t first = static_cast<int64_t>(b) * kBlock;
      const int64_t n = std::min(kBlock, classes_ - first);
      ends_[b] = total += ExpBelow(max_, logits + first, n, &sums_[first]);
    }
    margin_ = total * (2 * static_cast<double>(classes_) + 128) * 0x1p-52;
  }

  double StartOf(int64_t block) const { return block == 0 ? 0 : ends_[block - 1]; }
  const double* SumsOf(int64_t block) {
    double* const sums = &sums_[block * kBlock];
    if (is_summed_[block]) return sums;
    is_summed_[block] = true;
    double total = StartOf(block);
    for (int64_t i = 0; i < std::min(kBlock, classes_ - block * kBlock); ++i)
      sums[i] = total += sums[i];
    return sums;
  }

  int64_t SampleExactly(double uniform) {
    if (exact_.empty()) {
      double total = 0;
      for (int64_t j = 0; j < classes_; ++j) {
        if (IsFinite(row_[j])) total += std::exp(static_cast<double>(row_[j]) - max_);
        exact_.push_back(total);
      }
    }
    return CountUpTo(exact_.data(), classes_, uniform * exact_.back());
  }

  const int64_t classes_;
  const T* row_ = nullptr;
  double max_ = 0, margin_ = 0;
  std::vector<double> sums_;  // weights, in blocks that are not summed
  std::vector<double> ends_;  // the sums up to the end of each block
  std::vector<bool> is_summed_;
  std::vector<double> exact_;
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
  r->Add("StatelessShuffle", kCpu, StatelessShuffle).HostArgs({"key", "counter", "alg"});
  r->Add("Multinomial", kCpu, MakeMultinomial).HostArgs({"num_samples"});
  r->Add("StatelessMultinomial", kCpu, MakeStatelessMultinomial).HostArgs({"num_samples", "seed"});
  AddBinomialCpu(r);
  AddCandidateSamplers(r);
  AddGammaCpu(r);
  AddGeneratorKernels(r);
  AddIndexShuffleCpu(r);
  AddPoissonCpu(r);
  AddSobolCpu(r);
  AddStochasticCastCpu(r);
  AddTruncatedNormalCpu(r);
}

}  // namespace weir
