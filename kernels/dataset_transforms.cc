#include <algorithm>
#include <random>

#include "weir/kernels/arguments.h"
#include "weir/kernels/dataset.h"
#include "weir/kernels/philox.h"
#include "weir/kernels/registry.h"
#include "weir/kernels/strided_copy.h"

// Data sets made from data sets. Elements are made when they are asked for, one after another, in
// the thread that asks: a data set with "parallel" in its name, or one that prefetches, gives the
// same elements in the same order as it does elsewhere, without threads of its own.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// Output 0 is the data set whose iterators are wrap(iterator of the input 0).
template <class Wrap>
absl::Status SetOutput(KernelContext& c, Wrap wrap) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(DatasetOf([input, wrap]() -> MaybeIterator {
                WEIR_ASSIGN_OR_RETURN(IteratorPtr iterator, input->Iterate());
                return wrap(std::move(iterator));
              })));
  return absl::OkStatus();
}

// ---- of functions

// A function together with the arguments that it gets after the element.
struct CapturedFunction {
  Function* function;
  Tensors captured;

  absl::StatusOr<Tensors> Call(const DatasetContext& x, const Tensors& element) const {
    Tensors args = element, results;
    args.insert(args.end(), captured.begin(), captured.end());
    WEIR_RETURN_IF_ERROR(function->Call(x.step, x.caller, args, &results));
    return results;
  }
};

// Makes an iterator from one and a function.
using MakeWithFunction = IteratorPtr (*)(IteratorPtr, CapturedFunction);

IteratorPtr MapIterator(IteratorPtr in, CapturedFunction f) {
  return IteratorOf(
      [in = std::move(in), f = std::move(f)](const DatasetContext& x) -> MaybeElement {
        WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
        if (!element) return std::nullopt;
        return f.Call(x, *element);
      });
}

IteratorPtr FilterIterator(IteratorPtr in, CapturedFunction f) {
  return IteratorOf(
      [in = std::move(in), f = std::move(f)](const DatasetContext& x) -> MaybeElement {
        for (;;) {
          WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
          if (!element) return std::nullopt;
          WEIR_ASSIGN_OR_RETURN(const Tensors keep, f.Call(x, *element));
          if (keep.size() != 1 || keep[0].dtype() != DT_BOOL || keep[0].num_elements() != 1)
            return InvalidArgument("Filter predicate `f` must return a scalar bool.");
          if (keep[0].scalar<bool>()) return element;
        }
      });
}

IteratorPtr FlatMapIterator(IteratorPtr in, CapturedFunction f) {
  return IteratorOf([in = std::move(in), f = std::move(f), dataset = DatasetPtr(),
                     inner = IteratorPtr()](const DatasetContext& x) mutable -> MaybeElement {
    for (;;) {
      if (inner != nullptr) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, inner->Next(x));
        if (element) return element;
        inner = nullptr;
      }
      WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
      if (!element) return std::nullopt;
      WEIR_ASSIGN_OR_RETURN(const Tensors made, f.Call(x, *element));
      if (made.size() != 1) return InvalidArgument("Function must return a single dataset");
      WEIR_ASSIGN_OR_RETURN(dataset, DatasetIn(made[0]));
      WEIR_ASSIGN_OR_RETURN(inner, dataset->Iterate());
    }
  });
}

template <MakeWithFunction kMake>
absl::StatusOr<Kernel> MakeFunctional(const KernelInit& init) {
  const char* const attr = init.node.FindAttr("f") != nullptr ? "f" : "predicate";
  const auto ref = init.attr<FunctionRef>(attr);
  if (init.functions == nullptr)
    return FailedPrecondition("function '", ref.name, "' is called where there are none");
  WEIR_ASSIGN_OR_RETURN(Function * function, init.functions->Find(ref));
  const auto num_captured = init.attr<DataTypes>("Targuments").size();
  return Kernel([function, num_captured](KernelContext& c) -> absl::Status {
    CapturedFunction f{function, {}};
    for (size_t i = 0; i < num_captured; ++i) {
      WEIR_ASSIGN_OR_RETURN(f.captured.emplace_back(), c.Own(c.input(static_cast<int>(i) + 1)));
    }
    return SetOutput(c, [f](IteratorPtr in) { return kMake(std::move(in), f); });
  });
}

// ---- batches

// Up to `size` elements; fewer at the end.
absl::StatusOr<std::vector<Tensors>> TakeElements(DatasetIterator& in, const DatasetContext& x,
                                                  int64_t size) {
  std::vector<Tensors> elements;
  while (static_cast<int64_t>(elements.size()) < size) {
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in.Next(x));
    if (!element) break;
    elements.push_back(*std::move(element));
  }
  return elements;
}

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
      if (c.input(drop_input).num_elements() != 1)
        return InvalidArgument("drop_remainder must be a scalar");
      batch.drop_remainder = *c.input_data<bool>(drop_input);
    }
    return batch;
  }
};

absl::Status BatchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const BatchSize batch, BatchSize::Read(c, 2));
  return SetOutput(c, [batch](IteratorPtr in) {
    return IteratorOf([in = std::move(in), batch](const DatasetContext& x) -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(const std::vector<Tensors> elements, TakeElements(*in, x, batch.size));
      if (!batch.IsWhole(elements.size())) return std::nullopt;
      return StackElements(elements);
    });
  });
}

// How the elements of a padded batch are filled up.
struct Padding {
  std::vector<Dims> shapes;  // by component; -1: as long as the longest
  Tensors values;
};

// The shape that component k of all these elements is padded to.
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
        return InvalidArgument("Attempted to pad to a smaller size than the input element.");
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
    const Tensor& value = c.input(static_cast<int>(2 + n + k));
    if (value.num_elements() != 1) return InvalidArgument("All padding values must be scalars");
    WEIR_ASSIGN_OR_RETURN(padding.values.emplace_back(), c.Own(value));
  }
  return padding;
}

absl::Status PaddedBatchDataset(KernelContext& c) {
  const int after = c.node().InputRange("padding_values").second;
  WEIR_ASSIGN_OR_RETURN(const BatchSize batch, BatchSize::Read(c, after));
  WEIR_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(c));
  return SetOutput(c, [batch, padding](IteratorPtr in) {
    return IteratorOf([in = std::move(in), batch,
                       padding](const DatasetContext& x) -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(const std::vector<Tensors> elements, TakeElements(*in, x, batch.size));
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
  });
}

// ---- order and number

absl::Status TakeDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  return SetOutput(c, [count](IteratorPtr in) {
    return IteratorOf([in = std::move(in), count,
                       taken = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      if (count >= 0 && taken >= count) return std::nullopt;
      ++taken;
      return in->Next(x);
    });
  });
}

// A negative count skips everything.
absl::Status SkipDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  return SetOutput(c, [count](IteratorPtr in) {
    return IteratorOf(
        [in = std::move(in), left = count](const DatasetContext& x) mutable -> MaybeElement {
          if (left < 0) return std::nullopt;
          for (; left > 0; --left) {
            WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> skipped, in->Next(x));
            if (!skipped) return std::nullopt;
          }
          return in->Next(x);
        });
  });
}

// A negative count repeats for ever; an empty data set is empty even then.
absl::Status RepeatDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(
      0, DatasetTensor(DatasetOf([input, count] {
        return IteratorOf([input, count, round = int64_t{0}, any = true,
                           in = IteratorPtr()](const DatasetContext& x) mutable -> MaybeElement {
          while (any && (count < 0 || round < count)) {
            const bool first = in == nullptr;
            if (first) {
              WEIR_ASSIGN_OR_RETURN(in, input->Iterate());
            }
            WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
            if (element) return element;
            any = count >= 0 || !first;
            in = nullptr;
            ++round;
          }
          return std::nullopt;
        });
      })));
  return absl::OkStatus();
}

// The end of the shortest is the end.
absl::Status ZipDataset(KernelContext& c) {
  std::vector<DatasetPtr> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetIn(c.input(i)));
  }
  c.SetOutput(0, DatasetTensor(DatasetOf([inputs]() -> MaybeIterator {
                std::vector<IteratorPtr> all;
                for (const DatasetPtr& input : inputs) {
                  WEIR_ASSIGN_OR_RETURN(all.emplace_back(), input->Iterate());
                }
                return IteratorOf([all = std::move(all)](const DatasetContext& x) -> MaybeElement {
                  Tensors together;
                  for (const IteratorPtr& in : all) {
                    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
                    if (!element) return std::nullopt;
                    together.insert(together.end(), element->begin(), element->end());
                  }
                  return together;
                });
              })));
  return absl::OkStatus();
}

absl::Status ConcatenateDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr second, DatasetIn(c.input(1)));
  return SetOutput(c, [second](IteratorPtr in) {
    return IteratorOf([in = std::move(in), second,
                       on_second = false](const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
      if (element || on_second) return element;
      WEIR_ASSIGN_OR_RETURN(in, second->Iterate());
      on_second = true;
      return in->Next(x);
    });
  });
}

// Hints about threads and buffers.
absl::Status SameDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(std::move(input)));
  return absl::OkStatus();
}

// Shuffling. A buffer is filled with the next elements; one is drawn from it, its place is taken by
// the first of those left, and the buffer is filled up again behind them, as a ring. The numbers
// are a Philox stream's, word by word, so the order is TensorFlow's for the same two seeds. With
// reshuffling each iterator has seeds of its own, two words of a stream that the data set's seeds
// begin. Source: "Algorithm R" turned into a sliding window; the draw is `word % size`.
class Shuffler final : public DatasetIterator {
 public:
  Shuffler(IteratorPtr input, int64_t size, uint64_t seed, uint64_t seed2)
      : input_(std::move(input)), size_(size), words_(Philox(seed, seed2)) {}

  MaybeElement Next(const DatasetContext& x) override {
    while (input_ != nullptr && last_ - first_ < size_) {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, input_->Next(x));
      if (!element) {
        input_ = nullptr;
        break;
      }
      At(last_++, /*grow=*/true) = *std::move(element);
    }
    if (first_ == last_) return std::nullopt;
    const int64_t offset = words_() % static_cast<uint64_t>(last_ - first_);
    Tensors drawn = std::move(At(first_ + offset));
    std::swap(At(first_ + offset), At(first_));
    ++first_;
    return drawn;
  }

 private:
  // The buffer grows only as far as there are elements, whatever size is asked for.
  Tensors& At(int64_t i, bool grow = false) {
    const auto place = static_cast<size_t>(i % size_);
    if (grow && place >= buffer_.size()) buffer_.resize(place + 1);
    return buffer_[place];
  }

  IteratorPtr input_;
  const int64_t size_;
  PhiloxWords words_;
  std::vector<Tensors> buffer_;
  int64_t first_ = 0, last_ = 0;
};

// The seeds of one iterator after another.
class Seeds {
 public:
  Seeds(uint64_t seed, uint64_t seed2, bool fresh)
      : seed_(seed), seed2_(seed2), fresh_(fresh), words_(Philox(seed, seed2)) {}
  std::pair<uint64_t, uint64_t> Next() {
    if (!fresh_) return {seed_, seed2_};
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t first = words_();
    return {first, words_()};
  }

 private:
  const uint64_t seed_, seed2_;
  const bool fresh_;
  std::mutex mutex_;
  PhiloxWords words_;
};

absl::Status ShuffleDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadInt(c.input(1), "buffer_size"));
  WEIR_ASSIGN_OR_RETURN(int64_t seed, ReadInt(c.input(2), "seed"));
  WEIR_ASSIGN_OR_RETURN(int64_t seed2, ReadInt(c.input(3), "seed2"));
  if (size <= 0) return InvalidArgument("buffer_size must be greater than zero.");
  if (seed == 0 && seed2 == 0) {
    std::random_device random;
    seed = random();
    seed2 = random();
  }
  const auto seeds =
      std::make_shared<Seeds>(seed, seed2, c.node().attr<bool>("reshuffle_each_iteration"));
  return SetOutput(c, [size, seeds](IteratorPtr in) -> IteratorPtr {
    const auto [first, second] = seeds->Next();
    return std::make_unique<Shuffler>(std::move(in), size, first, second);
  });
}

// A handle to nothing: the seeds are kept by the data set.
absl::Status DummySeedGenerator(KernelContext& c) {
  c.SetOutput(0, Tensor::Scalar(ResourceHandle()));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetTransformKernels(KernelRegistry* r) {
  r->Add("BatchDataset", kCpu, BatchDataset);
  r->Add("BatchDatasetV2", kCpu, BatchDataset);
  r->Add("ConcatenateDataset", kCpu, ConcatenateDataset);
  r->Add("DummySeedGenerator", kCpu, DummySeedGenerator);
  r->Add("FilterDataset", kCpu, MakeFunctional<FilterIterator>);
  r->Add("FlatMapDataset", kCpu, MakeFunctional<FlatMapIterator>);
  r->Add("MapDataset", kCpu, MakeFunctional<MapIterator>);
  r->Add("ModelDataset", kCpu, SameDataset);
  r->Add("OptionsDataset", kCpu, SameDataset);
  r->Add("PaddedBatchDataset", kCpu, PaddedBatchDataset);
  r->Add("PaddedBatchDatasetV2", kCpu, PaddedBatchDataset);
  r->Add("ParallelMapDataset", kCpu, MakeFunctional<MapIterator>);
  r->Add("ParallelMapDatasetV2", kCpu, MakeFunctional<MapIterator>);
  r->Add("PrefetchDataset", kCpu, SameDataset);
  r->Add("RepeatDataset", kCpu, RepeatDataset);
  r->Add("ShuffleDataset", kCpu, ShuffleDataset);
  r->Add("ShuffleDatasetV3", kCpu, ShuffleDataset);
  r->Add("SkipDataset", kCpu, SkipDataset);
  r->Add("TakeDataset", kCpu, TakeDataset);
  r->Add("ZipDataset", kCpu, ZipDataset);
}

}  // namespace weir
