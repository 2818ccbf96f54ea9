#include <algorithm>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Datasets that stack several elements into one, and those that split elements into rows.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// Collects the elements of a batch. Those of a step that ends meanwhile stay for the next step.
class BatchReader {
 public:
  BatchReader(IteratorPtr in, int64_t size, BatchError error = BatchError::kTakesElement)
      : in_(std::move(in)), size_(size), error_(error) {}

  // Returns up to `size` elements; fewer at the end.
  absl::StatusOr<std::vector<Tensors>> Next(const DatasetContext& x) {
    while (taken_ < size_) {
      MaybeElement element = in_->Next(x);
      if (!element.ok()) {
        if (HasEnded(x.step)) return element.status();
        status_.Update(element.status());
        if (error_ == BatchError::kTakesElement) break;
      } else if (!*element) {
        break;
      } else {
        elements_.push_back(**std::move(element));
      }
      ++taken_;
    }
    taken_ = 0;
    std::vector<Tensors> elements = std::exchange(elements_, {});
    WEIR_RETURN_IF_ERROR(std::exchange(status_, absl::OkStatus()));
    return elements;
  }

 private:
  IteratorPtr in_;
  int64_t size_;
  BatchError error_;
  std::vector<Tensors> elements_;
  int64_t taken_ = 0;    // the elements and errors of this batch
  absl::Status status_;  // the first error
};

struct BatchSize {
  int64_t size = 0;
  bool drop_remainder = false;

  bool IsWhole(size_t count) const {
    return count > 0 && (!drop_remainder || static_cast<int64_t>(count) == size);
  }
  static absl::StatusOr<BatchSize> Read(const KernelContext& c, int drop_input) {
    BatchSize batch;
    WEIR_ASSIGN_OR_RETURN(batch.size, ReadInt(c.input(1), "batch_size"));
    if (batch.size <= 0) return InvalidArgument("Batch size must be greater than zero.");
    if (drop_input < c.num_inputs()) {
      WEIR_RETURN_IF_ERROR(CheckRank(c.input(drop_input), 0, "drop_remainder"));
      batch.drop_remainder = *c.input_data<bool>(drop_input);
    }
    return batch;
  }
};

absl::Status BatchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const BatchSize batch, BatchSize::Read(c, 2));
  const auto wrap = [batch](IteratorPtr in) {
    return Batched(std::move(in), batch.size, batch.drop_remainder);
  };
  return WrapDataset(c, wrap, BatchTraits(batch.size, batch.drop_remainder));
}

// Batches made ahead of their consumer.
absl::StatusOr<Kernel> MakeParallelBatch(const KernelInit& init) {
  const auto policy = init.attr<std::string>("deterministic");
  if (policy != "default" && policy != "true" && policy != "false")
    return InvalidArgument("Unrecognized determinism policy: ", policy);
  return Kernel([](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const BatchSize batch, BatchSize::Read(c, 3));
    WEIR_ASSIGN_OR_RETURN(const int64_t calls, ReadInt(c.input(2), "num_parallel_calls"));
    if (calls <= 0 && calls != -1)
      return InvalidArgument("num_parallel_calls must be greater than zero.");
    const auto wrap = [batch, calls](IteratorPtr in) {
      return Prefetched(Batched(std::move(in), batch.size, batch.drop_remainder), calls);
    };
    return WrapDataset(c, wrap, BatchTraits(batch.size, batch.drop_remainder));
  });
}

// How the elements of a padded batch are padded.
struct Padding {
  std::vector<Dims> shapes;  // by component; -1: pad to the longest
  Tensors values;
};

// Returns the shape to which component k of all these elements is padded.
absl::StatusOr<Shape> PaddedShape(const Padding& padding, const std::vector<Tensors>& elements,
                                  size_t k) {
  std::vector<int64_t> dims(padding.shapes[k].begin(), padding.shapes[k].end());
  for (const Tensors& element : elements) {
    const Tensor& t = element[k];
    if (t.rank() != static_cast<int>(dims.size())) {
      return InvalidArgument(
          "All elements in a batch must have the same rank as the padded shape "
          "for component",
          k, ": expected rank ", dims.size(), " but got element with rank ", t.rank());
    }
    for (int d = 0; d < t.rank(); ++d) {
      if (padding.shapes[k][d] < 0) {
        dims[d] = std::max(dims[d], t.dim(d));
      } else if (t.dim(d) > dims[d]) {
        return absl::DataLossError("Attempted to pad to a smaller size than the input element.");
      }
    }
  }
  dims.insert(dims.begin(), static_cast<int64_t>(elements.size()));
  return CheckedShape(dims);
}

absl::StatusOr<Tensor> PadComponent(const Padding& padding, const std::vector<Tensors>& elements,
                                    size_t k, ThreadPool& pool) {
  const Tensor& value = padding.values[k];
  WEIR_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(padding, elements, k));
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), value.dtype(), shape));
  FillElements(pool, value.dtype(), value.raw(), out.raw(), out.num_elements());
  const Dims strides = StridesOf(shape);
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& t = elements[i][k];
    if (t.dtype() != value.dtype()) {
      return InvalidArgument("Mismatched type between padding value ", k,
                             " and component: ", DataTypeName(value.dtype()), " and ",
                             DataTypeName(t.dtype()));
    }
    const Dims from = StridesOf(t.shape());
    StridedCopy copy;
    for (int d = 0; d < t.rank(); ++d) copy.AddDim(t.dim(d), from[d], strides[d + 1]);
    copy.Run(pool, t.dtype(), t.raw(), ElementAt(out, static_cast<int64_t>(i) * strides[0]));
  }
  return out;
}

absl::StatusOr<Padding> ReadPadding(const KernelContext& c) {
  Padding padding;
  const auto n = c.node().attr<int64_t>("N");
  if (c.num_inputs() < 2 + 2 * n)
    return InvalidArgument("There are fewer padding values than shapes");
  for (int64_t k = 0; k < n; ++k) {
    const Tensor& shape = c.input(static_cast<int>(2 + k));
    if (shape.rank() != 1) return InvalidArgument("All padded shapes must be vectors");
    padding.shapes.push_back(ReadInts(shape));
    for (const int64_t d : padding.shapes.back()) {
      if (d < -1) return InvalidArgument("Dimension ", d, " must be >= -1");
    }
    // As in TensorFlow, the dimensions before the first unknown one must not overflow.
    const Dims& dims = padding.shapes.back();
    const auto known = std::find(dims.begin(), dims.end(), -1) - dims.begin();
    WEIR_RETURN_IF_ERROR(
        CheckedShape(absl::MakeConstSpan(dims).subspan(0, static_cast<size_t>(known))).status());
    const Tensor& value = c.input(static_cast<int>(2 + n + k));
    if (value.rank() != 0) return InvalidArgument("All padding values must be scalars");
    WEIR_ASSIGN_OR_RETURN(padding.values.emplace_back(), c.Own(value));
  }
  return padding;
}

absl::Status PaddedBatchDataset(KernelContext& c) {
  const int after = c.node().InputRange("padding_values").second;
  WEIR_ASSIGN_OR_RETURN(const BatchSize batch, BatchSize::Read(c, after));
  WEIR_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(c));
  const auto wrap = [batch, padding](IteratorPtr in) {
    return IteratorOf([reader = BatchReader(std::move(in), batch.size), batch,
                       padding](const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(const std::vector<Tensors> elements, reader.Next(x));
      if (!batch.IsWhole(elements.size())) return std::nullopt;
      Tensors padded;
      for (const Tensors& element : elements) {
        if (element.size() != padding.shapes.size())
          return InvalidArgument("Elements have ", element.size(), " components, but there are ",
                                 padding.shapes.size(), " padded shapes");
      }
      for (size_t k = 0; k < padding.shapes.size(); ++k) {
        WEIR_ASSIGN_OR_RETURN(padded.emplace_back(),
                              PadComponent(padding, elements, k, *x.step.pool));
      }
      return padded;
    });
  };
  return WrapDataset(c, wrap,
                     {.cardinality = BatchTraits(batch.size, batch.drop_remainder).cardinality});
}

// Splits each element into the rows of its components.
absl::Status UnbatchDataset(KernelContext& c) {
  const auto wrap = [](IteratorPtr in) {
    return IteratorOf([in = std::move(in), batch = Tensors(),
                       row = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      while (batch.empty() || row >= batch[0].dim(0)) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
        if (!element) return std::nullopt;
        for (const Tensor& t : *element) {
          if (t.rank() == 0)
            return InvalidArgument("Cannot unbatch an element with scalar components.");
          if (t.dim(0) != element->front().dim(0)) {
            return InvalidArgument(
                "Input element must have the same batch size in each component. Component 0 had "
                "size ",
                element->front().dim(0), " but another had size ", t.dim(0), ".");
          }
        }
        batch = *std::move(element);
        row = 0;
      }
      Tensors rows;
      for (const Tensor& t : batch) rows.push_back(t.Row(row).DeepCopy());
      ++row;
      return rows;
    });
  };
  return WrapDataset(c, wrap);
}

}  // namespace

std::unique_ptr<DatasetIterator> Batched(std::unique_ptr<DatasetIterator> input, int64_t size,
                                         bool drop_remainder, BatchError error) {
  return IteratorOf(
      [reader = BatchReader(std::move(input), size, error),
       batch = BatchSize{size, drop_remainder}](const DatasetContext& x) mutable -> MaybeElement {
        WEIR_ASSIGN_OR_RETURN(std::vector<Tensors> elements, reader.Next(x));
        if (!batch.IsWhole(elements.size())) return std::nullopt;
        return StackElements(std::move(elements));
      });
}

void AddDatasetBatchKernels(KernelRegistry* r) {
  r->Add("BatchDataset", kCpu, BatchDataset);
  r->Add("BatchDatasetV2", kCpu, BatchDataset);
  r->Add("PaddedBatchDataset", kCpu, PaddedBatchDataset);
  r->Add("PaddedBatchDatasetV2", kCpu, PaddedBatchDataset);
  r->Add("ParallelBatchDataset", kCpu, MakeParallelBatch);
  for (const char* op : {"ExperimentalUnbatchDataset", "UnbatchDataset"})
    r->Add(op, kCpu, UnbatchDataset);
}

}  // namespace weir
