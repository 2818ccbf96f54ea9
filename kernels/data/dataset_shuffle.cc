#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/dataset_random.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets of the same elements in random order.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// Shuffling. A ring buffer is filled with the next elements. One is drawn, the first of the
// remaining ones moves to its slot, and the buffer is refilled behind them. The random numbers are
// the words of a Philox stream, so the order equals TensorFlow's for the same two seeds. With
// reshuffling, each iterator has its own seeds, two words of a stream seeded by the dataset's
// seeds. Source: "Algorithm R" as a sliding window; the draw is `word % size`.
//
// A dataset that is also repeated fills the buffer across the ends of its epochs, but draws from
// the elements of the first epoch in the buffer alone. Each epoch has its own stream. The buffer
// holds parts of at most kMostEpochs epochs and one element of the next, so it stays small if the
// epochs are.
class Shuffler final : public DatasetIterator {
 public:
  Shuffler(DatasetPtr input, int64_t size, int64_t count, std::shared_ptr<SeedGenerator> seeds)
      : input_(std::move(input)),
        size_(size),
        count_(count),
        seeds_(std::move(seeds)),
        words_(seeds_->Next().Words()) {}

  MaybeElement Next(const DatasetContext& x) override {
    WEIR_RETURN_IF_ERROR(Fill(x));
    if (num_elements_ == 0) return std::nullopt;
    while (epochs_.front().begin == epochs_.front().end) {
      epochs_.pop_front();
      words_ = seeds_->Next().Words();
    }
    Span& epoch = epochs_.front();
    const int64_t offset = words_() % static_cast<uint64_t>(epoch.end - epoch.begin);
    Tensors drawn = std::move(At(epoch.begin + offset));
    std::swap(At(epoch.begin + offset), At(epoch.begin));
    ++epoch.begin;
    --num_elements_;
    return drawn;
  }

 private:
  static constexpr size_t kMostEpochs = 3;

  // The elements of one epoch in the buffer.
  struct Span {
    int64_t begin = 0, end = 0;
  };

  absl::Status Fill(const DatasetContext& x) {
    while (HasRoom()) {
      if (in_ == nullptr) {
        WEIR_RETURN_IF_ERROR(BeginEpoch());
      }
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in_->Next(x));
      if (element) {
        any_ = true;
        At(epochs_.back().end++, /*grow=*/true) = *std::move(element);
        ++num_elements_;
      } else {
        in_ = nullptr;
        if (!any_) count_ = num_epochs_;  // an empty dataset stays empty
      }
    }
    return absl::OkStatus();
  }

  bool HasRoom() const {
    if (in_ == nullptr && count_ >= 0 && num_epochs_ >= count_) return false;
    if (size_ == kUnlimited) return in_ != nullptr || num_elements_ == 0;
    if (epochs_.size() > kMostEpochs && num_elements_ > 0) return false;
    return num_elements_ < size_;
  }

  absl::Status BeginEpoch() {
    WEIR_ASSIGN_OR_RETURN(in_, input_->Iterate());
    int64_t end = epochs_.empty() ? 0 : epochs_.back().end;
    if (size_ == kUnlimited) {
      end = 0;
      buffer_.clear();
    }
    epochs_.push_back({end, end});
    ++num_epochs_;
    return absl::OkStatus();
  }

  // The buffer grows only with the number of elements, whatever size is requested.
  Tensors& At(int64_t i, bool grow = false) {
    const auto place = static_cast<size_t>(i % size_);
    if (grow && place >= buffer_.size()) buffer_.resize(place + 1);
    return buffer_[place];
  }

  const DatasetPtr input_;
  const int64_t size_;
  int64_t count_;  // of epochs; negative: without end
  const std::shared_ptr<SeedGenerator> seeds_;
  PhiloxWords words_;
  IteratorPtr in_;  // null between epochs
  std::vector<Tensors> buffer_;
  std::deque<Span> epochs_;
  int64_t num_epochs_ = 0, num_elements_ = 0;
  bool any_ = false;
};

// A random permutation of [0, n) from the dataset's own seeds, made when it is first used.
class Permutation {
 public:
  Permutation(int64_t n, std::shared_ptr<SeedGenerator> seeds) : n_(n), seeds_(std::move(seeds)) {}

  absl::StatusOr<int64_t> At(int64_t i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!indices_.initialized()) {
      WEIR_ASSIGN_OR_RETURN(indices_, Tensor::Allocate(HostAllocator(), DT_INT64, Shape({n_})));
      int64_t* const indices = indices_.data<int64_t>();
      for (int64_t k = 0; k < n_; ++k) indices[k] = k;
      PhiloxWords words = seeds_->seeds().Words();
      for (int64_t k = 0; k < n_; ++k)
        std::swap(indices[k + words() % static_cast<uint64_t>(n_ - k)], indices[k]);
    }
    return indices_.data<int64_t>()[i];
  }

 private:
  const int64_t n_;
  const std::shared_ptr<SeedGenerator> seeds_;
  std::mutex mutex_;
  Tensor indices_;
};

absl::StatusOr<int64_t> ReadBufferSize(const KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadInt(c.input(1), "buffer_size"));
  if (size == DatasetTraits::kUnknown) return kUnlimited;
  if (size <= 0)
    return InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  return size;
}

absl::Status SetShuffled(KernelContext& c, int64_t size, int64_t count,
                         const std::shared_ptr<SeedGenerator>& seeds) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  DatasetTraits traits{.options = input->traits().options};
  traits.cardinality =
      count < 0 ? DatasetTraits::kInfinite : RepeatedCardinality(input->cardinality(), count);
  if (input->traits().get != nullptr && count == 1) {
    const auto order = std::make_shared<Permutation>(traits.cardinality, seeds);
    traits.get = [input, order](const DatasetContext& x, int64_t i) -> absl::StatusOr<Tensors> {
      WEIR_ASSIGN_OR_RETURN(const int64_t at, order->At(i));
      return input->Get(x, at);
    };
  }
  const auto iterate = [=]() -> MaybeIterator {
    return std::make_unique<Shuffler>(input, size, count, seeds);
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

absl::Status ShuffleDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadBufferSize(c));
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 2));
  const auto generator = SeedGeneratorOf(c, c.num_inputs() > 4 ? 4 : -1, seeds,
                                         c.node().attr<bool>("reshuffle_each_iteration"));
  return SetShuffled(c, size, 1, generator);
}

// Without a generator, the order is different each time.
absl::Status ShuffleDatasetV2(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadBufferSize(c));
  return SetShuffled(c, size, 1, SeedGeneratorOf(c, 2, StreamSeeds::Unpredictable(), true));
}

absl::Status ShuffleAndRepeatDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadBufferSize(c));
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(4), "count"));
  if (count <= 0 && count != -1)
    return InvalidArgument("count must be greater than zero or equal to -1.");
  const auto generator = SeedGeneratorOf(c, c.num_inputs() > 5 ? 5 : -1, seeds,
                                         c.node().attr<bool>("reshuffle_each_iteration"));
  return SetShuffled(c, size, count, generator);
}

}  // namespace

void AddDatasetShuffleKernels(KernelRegistry* r) {
  for (const char* op : {"ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2"})
    r->Add(op, kCpu, ShuffleAndRepeatDataset);
  for (const char* op : {"ShuffleDataset", "ShuffleDatasetV3"}) r->Add(op, kCpu, ShuffleDataset);
  r->Add("ShuffleDatasetV2", kCpu, ShuffleDatasetV2);
}

}  // namespace weir
