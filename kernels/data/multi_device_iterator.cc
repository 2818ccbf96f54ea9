#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/iterator_handle.h"
#include "weir/kernels/lib/registry.h"

// Iterators whose elements are dealt to several devices in turn: shard i of n gets the elements i,
// i + n, i + 2n, ..., whichever shard asks first. Elements of other shards that are read on the way
// wait for them; they are limited in bytes, not in number, so that no thread has to wait for a
// shard that lags behind.
namespace weir {

namespace {

class MultiDeviceState final : public Resource {
 public:
  MultiDeviceState(std::string name, size_t shards) : name_(std::move(name)), shards_(shards) {}

  std::string Describe() const override { return "multi-device iterator '" + name_ + "'"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    Reset(nullptr, nullptr);
  }
  // Begins at the start of a dataset. Returns the number that requests have to name.
  absl::StatusOr<int64_t> Start(DatasetPtr dataset) {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator, dataset->Iterate());
    const std::lock_guard<std::mutex> lock(mutex_);
    Reset(std::move(dataset), std::move(iterator));
    return ++incarnation_;
  }
  // Returns the next element of a shard; nullopt at the end.
  MaybeElement Next(const StepInfo& step, const Node& caller, int64_t shard, int64_t incarnation) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (iterator_ == nullptr && dataset_ == nullptr) {
      return FailedPrecondition(Describe(),
                                " has not been initialized: run MultiDeviceIteratorInit first");
    }
    if (incarnation != incarnation_) {
      return InvalidArgument("Invalid incarnation id. Provided: ", incarnation,
                             "; Expected: ", incarnation_);
    }
    if (shard < 0 || shard >= static_cast<int64_t>(shards_.size()))
      return InvalidArgument("shard_num must be in [0, ", shards_.size(), "), not ", shard);
    std::deque<MaybeElement>& queue = shards_[static_cast<size_t>(shard)];
    while (queue.empty() && iterator_ != nullptr) {
      WEIR_RETURN_IF_ERROR(Deal({step, caller, ahead_}));
    }
    if (queue.empty()) return std::nullopt;
    MaybeElement element = std::move(queue.front());
    queue.pop_front();
    bytes_ -= BytesOf(element);
    return element;
  }

 private:
  static int64_t BytesOf(const MaybeElement& element) {
    constexpr int64_t kFixed = 256;
    return kFixed + (element.ok() && *element ? ElementBytes(**element) : 0);
  }

  void Reset(DatasetPtr dataset, std::unique_ptr<DatasetIterator> iterator) {
    iterator_ = std::move(iterator);
    dataset_ = std::move(dataset);
    for (auto& queue : shards_) queue.clear();
    next_ = 0;
    bytes_ = 0;
  }

  // Reads an element for the shard whose turn it is. An error takes the place of an element.
  absl::Status Deal(const DatasetContext& x) {
    if (bytes_ > kMostBytesAhead) {
      return absl::ResourceExhaustedError(
          absl::StrCat(Describe(), " holds ", bytes_,
                       " bytes of elements for other shards, which have to take them first"));
    }
    MaybeElement element = iterator_->Next(x);
    if (!element.ok() && HasEnded(x.step)) return element.status();
    if (element.ok() && !*element) {
      iterator_ = nullptr;
      return absl::OkStatus();
    }
    bytes_ += BytesOf(element);
    shards_[next_].push_back(std::move(element));
    next_ = (next_ + 1) % shards_.size();
    return absl::OkStatus();
  }

  const std::string name_;
  std::mutex mutex_;
  AheadGroup ahead_;
  DatasetPtr dataset_;                         // referenced by the iterator
  std::unique_ptr<DatasetIterator> iterator_;  // null at the end
  std::vector<std::deque<MaybeElement>> shards_;
  size_t next_ = 0;  // the shard whose turn it is
  int64_t bytes_ = 0;
  int64_t incarnation_ = 0;
};

size_t NumShards(const Node& node) { return node.attr<std::vector<std::string>>("devices").size(); }

absl::StatusOr<Kernel> MakeHandle(const KernelInit& init) {
  return MakeHandleKernel<MultiDeviceState>(init, [&](const ResourceName& name) {
    return std::make_shared<MultiDeviceState>(name.name, NumShards(init.node));
  });
}

absl::Status Anonymous(KernelContext& c) {
  const std::string name = "anonymous";
  return SetAnonymous(c, name, std::make_shared<MultiDeviceState>(name, NumShards(c.node())));
}

absl::Status Init(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(ReadOneInt(c.input(2), "max_buffer_size").status());
  WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetIn(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<MultiDeviceState>(1));
  WEIR_ASSIGN_OR_RETURN(const int64_t incarnation, state->Start(std::move(dataset)));
  c.SetOutput(0, Tensor::Scalar(incarnation));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGetNextFromShard(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const auto state, c.resource<MultiDeviceState>(0));
    WEIR_ASSIGN_OR_RETURN(const int64_t shard, ReadOneInt(c.input(1), "shard_num"));
    WEIR_ASSIGN_OR_RETURN(const int64_t incarnation, ReadOneInt(c.input(2), "incarnation_id"));
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element,
                          state->Next(c.step(), c.node(), shard, incarnation));
    if (!element) return OutOfRange("End of sequence");
    WEIR_RETURN_IF_ERROR(spec.Check(*element));
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, std::move((*element)[i]));
    return absl::OkStatus();
  });
}

constexpr absl::string_view kTextPrefix = "weir-multi-device-iterator";

absl::Status ToStringHandle(KernelContext& c) {
  return HandleToText<MultiDeviceState>(c, kTextPrefix);
}

absl::StatusOr<Kernel> MakeFromStringHandle(const KernelInit& init) {
  WEIR_RETURN_IF_ERROR(CheckTypesAndShapes(init));
  return Kernel([](KernelContext& c) { return HandleFromText<MultiDeviceState>(c, kTextPrefix); });
}

}  // namespace

void AddMultiDeviceIteratorKernels(KernelRegistry* r) {
  for (const char* op : {"AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3"})
    r->Add(op, kCpu, Anonymous);
  r->Add("DeleteMultiDeviceIterator", kCpu, DeleteResource<MultiDeviceState>);
  r->Add("MultiDeviceIterator", kCpu, MakeHandle);
  r->Add("MultiDeviceIteratorFromStringHandle", kCpu, MakeFromStringHandle);
  r->Add("MultiDeviceIteratorGetNextFromShard", kCpu, MakeGetNextFromShard);
  r->Add("MultiDeviceIteratorInit", kCpu, Init);
  r->Add("MultiDeviceIteratorToStringHandle", kCpu, ToStringHandle);
}

}  // namespace weir
