#include <algorithm>
#include <utility>
#include <vector>

#include "weir/kernels/containers/batch.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that divide the batches of a dataset in another way.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// Splits each batch into `num_replicas` parts of equal size; the last ones may be smaller or empty.
absl::Status RebatchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t parts, ReadInt(c.input(1), "num_replicas"));
  if (parts <= 0) return InvalidArgument("num_replicas must be greater than zero.");
  const auto wrap = [parts](IteratorPtr in) {
    return IteratorOf([in = std::move(in), parts, batch = Tensors(),
                       part = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      if (part == 0) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
        if (!element) return std::nullopt;
        for (size_t i = 0; i < element->size(); ++i) {
          if ((*element)[i].rank() > 0) continue;
          return InvalidArgument(
              "Cannot rebatch dataset: All components must have at least one dimension. Perhaps "
              "your input dataset is not batched? Component ",
              i, " is scalar.");
        }
        batch = *std::move(element);
      }
      Tensors slices;
      for (const Tensor& t : batch) {
        const int64_t size = t.dim(0) / parts + (t.dim(0) % parts != 0 ? 1 : 0);
        const int64_t begin = size == 0 || part > t.dim(0) / size ? t.dim(0) : part * size;
        slices.push_back(t.Slice(begin, std::min(begin + size, t.dim(0))).DeepCopy());
      }
      part = part + 1 == parts ? 0 : part + 1;
      return slices;
    });
  };
  return WrapDataset(c, wrap);
}

// ---- batches of given sizes

struct BatchSizes {
  std::vector<int64_t> sizes;  // of the batches in turn, repeated
  bool drop_remainder = false;
  ElementSpec spec;  // of the batches
};

// Appends parts of the input's batches until there is a batch of the next size.
class Rebatcher final : public DatasetIterator {
 public:
  Rebatcher(IteratorPtr in, BatchSizes sizes) : in_(std::move(in)), sizes_(std::move(sizes)) {}

  MaybeElement Next(const DatasetContext& x) override {
    const int64_t size = sizes_.sizes[at_];
    while (in_ != nullptr && taken_ < size) {
      if (begin_ == end_) {
        WEIR_RETURN_IF_ERROR(ReadBatch(x));
        continue;
      }
      const int64_t end = std::min(end_, begin_ + size - taken_);
      Tensors& part = parts_.emplace_back();
      for (const Tensor& t : batch_) part.push_back(t.Slice(begin_, end));
      taken_ += end - begin_;
      begin_ = end;
    }
    at_ = (at_ + 1) % sizes_.sizes.size();
    const int64_t taken = std::exchange(taken_, 0);
    const std::vector<Tensors> parts = std::exchange(parts_, {});
    if (in_ == nullptr && (taken == 0 || (sizes_.drop_remainder && taken < size)))
      return std::nullopt;
    return taken == 0 ? EmptyBatch() : Concatenated(parts);
  }

 private:
  absl::Status ReadBatch(const DatasetContext& x) {
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in_->Next(x));
    if (!element) {
      in_ = nullptr;
      return absl::OkStatus();
    }
    for (size_t i = 0; i < element->size(); ++i) {
      const Tensor& t = (*element)[i];
      if (t.rank() == 0) {
        return InvalidArgument(
            "Input element must have a non-scalar value in each component, but component ", i,
            " is a scalar.");
      }
      if (t.dim(0) != element->front().dim(0)) {
        return InvalidArgument(
            "Input element must have the same batch size in each component. Component 0 had size ",
            element->front().dim(0), " but component ", i, " had size, ", t.dim(0), ".");
      }
    }
    batch_ = *std::move(element);
    begin_ = 0;
    end_ = batch_.empty() ? 0 : batch_[0].dim(0);
    return absl::OkStatus();
  }

  // A batch of no elements has dimensions of 0 where the shape is unknown.
  MaybeElement EmptyBatch() const {
    Tensors empty;
    for (size_t i = 0; i < sizes_.spec.types.size(); ++i) {
      std::vector<int64_t> dims = {0};
      if (i < sizes_.spec.shapes.size() && sizes_.spec.shapes[i].has_rank()) {
        const Shape& shape = sizes_.spec.shapes[i];
        for (int d = 1; d < shape.rank(); ++d) dims.push_back(std::max<int64_t>(shape.dim(d), 0));
      }
      WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
      empty.push_back(Tensor::Zeros(sizes_.spec.types[i], shape));
    }
    return empty;
  }

  static MaybeElement Concatenated(const std::vector<Tensors>& parts) {
    Tensors batch;
    for (size_t k = 0; k < parts[0].size(); ++k) {
      std::vector<Tensor> column;
      for (const Tensors& part : parts) {
        if (part.size() != parts[0].size())
          return InvalidArgument("Input elements have ", part.size(), " and ", parts[0].size(),
                                 " components");
        column.push_back(part[k]);
      }
      WEIR_ASSIGN_OR_RETURN(batch.emplace_back(), ConcatRows(column));
    }
    return batch;
  }

  IteratorPtr in_;  // null at the end
  const BatchSizes sizes_;
  Tensors batch_;                    // of the input
  int64_t begin_ = 0, end_ = 0;      // its rows that are left
  std::vector<Tensors> parts_ = {};  // of the batch in the making
  int64_t taken_ = 0;                // its rows
  size_t at_ = 0;                    // the index of its size
};

absl::StatusOr<Kernel> MakeRebatchV2(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    if (c.input(1).rank() > 1)
      return InvalidArgument("`batch_sizes` must be a scalar or a vector.");
    BatchSizes sizes{.spec = spec};
    const Dims dims = ReadInts(c.input(1));
    sizes.sizes.assign(dims.begin(), dims.end());
    if (sizes.sizes.empty()) return InvalidArgument("`batch_sizes` must not be empty.");
    for (const int64_t size : sizes.sizes) {
      if (size < 0) return InvalidArgument("`batch_sizes` must not be negative, but has ", size);
    }
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 0, "drop_remainder"));
    sizes.drop_remainder = *c.input_data<bool>(2);
    const auto wrap = [sizes](IteratorPtr in) -> MaybeIterator {
      return std::make_unique<Rebatcher>(std::move(in), sizes);
    };
    return WrapDataset(c, wrap);
  });
}

}  // namespace

void AddDatasetRebatchKernels(KernelRegistry* r) {
  for (const char* op : {"ExperimentalRebatchDataset", "RebatchDataset"})
    r->Add(op, kCpu, RebatchDataset);
  r->Add("RebatchDatasetV2", kCpu, MakeRebatchV2);
}

}  // namespace weir
