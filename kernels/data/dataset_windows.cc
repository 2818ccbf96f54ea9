#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets of windows: of `size` elements each, `stride` apart, that begin `shift` elements apart.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

struct WindowSpec {
  int64_t size = 0, shift = 0, stride = 0;
  bool drop_remainder = false;

  // The number of elements between the first and the last of a window, both included.
  int64_t extent() const { return (size - 1) * stride + 1; }

  // Reads `size`, `shift` and `stride`; `stride_name` is what the error calls the last.
  static absl::StatusOr<WindowSpec> Read(const KernelContext& c, absl::string_view stride_name) {
    const std::vector<ArgSpec>& args = c.node().op().inputs();
    WindowSpec spec;
    WEIR_ASSIGN_OR_RETURN(spec.size, ReadInt(c.input(1), args[1].name));
    if (spec.size <= 0) return InvalidArgument("Window size must be greater than zero.");
    WEIR_ASSIGN_OR_RETURN(spec.shift, ReadInt(c.input(2), args[2].name));
    if (spec.shift <= 0) return InvalidArgument("Window shift must be greater than zero.");
    WEIR_ASSIGN_OR_RETURN(spec.stride, ReadInt(c.input(3), args[3].name));
    if (spec.stride <= 0) return InvalidArgument(stride_name, " must be greater than zero.");
    int64_t extent = 0;
    if (__builtin_mul_overflow(spec.size - 1, spec.stride, &extent) ||
        __builtin_add_overflow(extent, 1, &extent)) {
      return InvalidArgument("Window target buffer size overflow: (window_size=", spec.size,
                             " - 1) * window_stride=", spec.stride, " + 1 is not representable.");
    }
    return spec;
  }
};

// What becomes of an error in the input: it takes the place of an element, and is returned with
// each window that the element belongs to; or it is returned at once, in place of a window.
enum class WindowError { kIsElement, kIsReturned };

// Reads the elements of one window after the other.
class WindowReader {
 public:
  WindowReader(IteratorPtr in, const WindowSpec& spec, WindowError error)
      : in_(std::move(in)), spec_(spec), error_(error) {}

  // Returns the elements of the next window; none at the end.
  absl::StatusOr<std::vector<Tensors>> Next(const DatasetContext& x) {
    WEIR_RETURN_IF_ERROR(SkipGap(x));
    const int64_t extent = spec_.extent();
    while (in_ != nullptr && static_cast<int64_t>(buffer_.size()) < extent) {
      WEIR_RETURN_IF_ERROR(ReadOne(x, &buffer_));
    }
    std::vector<Tensors> window;
    const auto buffered = static_cast<int64_t>(buffer_.size());
    if (buffered == 0 || (spec_.drop_remainder && buffered < extent)) return window;
    absl::Status status;
    for (int64_t i = 0; i < buffered && status.ok(); i += spec_.stride) {
      status = buffer_[i].status();
      if (status.ok()) window.push_back(*buffer_[i]);
    }
    const int64_t dropped = std::min(spec_.shift, buffered);
    buffer_.erase(buffer_.begin(), buffer_.begin() + dropped);
    gap_ = spec_.shift - dropped;
    WEIR_RETURN_IF_ERROR(status);
    return window;
  }

 private:
  using Buffer = std::deque<absl::StatusOr<Tensors>>;

  // Reads and drops the elements between the last window and the next one.
  absl::Status SkipGap(const DatasetContext& x) {
    for (; gap_ > 0 && in_ != nullptr; --gap_) {
      Buffer dropped;
      WEIR_RETURN_IF_ERROR(ReadOne(x, &dropped));
    }
    return absl::OkStatus();
  }

  // Appends the next element, or ends the input.
  absl::Status ReadOne(const DatasetContext& x, Buffer* to) {
    MaybeElement element = in_->Next(x);
    if (!element.ok()) {
      if (HasEnded(x.step) || error_ == WindowError::kIsReturned) return element.status();
      to->push_back(element.status());
    } else if (*element) {
      to->push_back(**std::move(element));
    } else {
      in_ = nullptr;
    }
    return absl::OkStatus();
  }

  IteratorPtr in_;
  const WindowSpec spec_;
  const WindowError error_;
  Buffer buffer_;
  int64_t gap_ = 0;
};

// Returns a dataset for each component of the elements.
Tensors DatasetsOfComponents(const std::vector<Tensors>& elements) {
  Tensors datasets;
  for (size_t k = 0; k < elements[0].size(); ++k) {
    std::vector<Tensors> components;
    components.reserve(elements.size());
    for (const Tensors& element : elements) components.push_back({element[k]});
    datasets.push_back(DatasetTensor(DatasetOfElements(std::move(components))));
  }
  return datasets;
}

absl::Status CheckComponents(const std::vector<Tensors>& elements) {
  for (const Tensors& element : elements) {
    if (element.size() != elements[0].size())
      return InvalidArgument("An element of a window has ", element.size(),
                             " components, the first one has ", elements[0].size());
  }
  return absl::OkStatus();
}

absl::Status WindowDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(WindowSpec spec, WindowSpec::Read(c, "Window stride"));
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(4), 0, "drop_remainder"));
  spec.drop_remainder = *c.input_data<bool>(4);
  WrapTraits traits;
  traits.cardinality = [spec](int64_t n) {
    if (!spec.drop_remainder) return n / spec.shift + (n % spec.shift == 0 ? 0 : 1);
    return n < spec.extent() ? 0 : (n - spec.extent()) / spec.shift + 1;
  };
  const auto wrap = [spec](IteratorPtr in) {
    return IteratorOf([reader = WindowReader(std::move(in), spec, WindowError::kIsElement)](
                          const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(const std::vector<Tensors> elements, reader.Next(x));
      if (elements.empty()) return std::nullopt;
      WEIR_RETURN_IF_ERROR(CheckComponents(elements));
      return DatasetsOfComponents(elements);
    });
  };
  return WrapDataset(c, wrap, std::move(traits));
}

// Windows as batches.
absl::Status SlidingWindowDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(WindowSpec spec, WindowSpec::Read(c, "window_stride"));
  spec.drop_remainder = c.node().attr_or("drop_remainder", true);
  WrapTraits traits;
  traits.cardinality = [spec](int64_t n) {
    return n / spec.shift + (spec.drop_remainder || n % spec.shift == 0 ? 0 : 1);
  };
  const auto wrap = [spec](IteratorPtr in) {
    return IteratorOf([reader = WindowReader(std::move(in), spec, WindowError::kIsReturned)](
                          const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(std::vector<Tensors> elements, reader.Next(x));
      if (elements.empty()) return std::nullopt;
      return StackElements(std::move(elements));
    });
  };
  return WrapDataset(c, wrap, std::move(traits));
}

// The elements of a list, as a window yields them: component k of element i is input
// i * num_components + k.
absl::Status Window(KernelContext& c) {
  const size_t components = c.node().attr<DataTypes>("output_types").size();
  const auto inputs = static_cast<size_t>(c.num_inputs());
  if (inputs % components != 0) {
    return InvalidArgument("The number of inputs, ", inputs,
                           ", is not a multiple of the number of components, ", components);
  }
  std::vector<Tensors> elements(inputs / components);
  for (size_t i = 0; i < inputs; ++i) {
    Tensors& element = elements[i / components];
    WEIR_ASSIGN_OR_RETURN(element.emplace_back(), c.Own(c.input(static_cast<int>(i))));
  }
  c.SetOutput(0, DatasetTensor(DatasetOfElements(std::move(elements))));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetWindowKernels(KernelRegistry* r) {
  for (const char* op : {"ExperimentalSlidingWindowDataset", "SlidingWindowDataset"})
    r->Add(op, kCpu, SlidingWindowDataset);
  r->Add("WindowDataset", kCpu, WindowDataset);
  r->Add("WindowOp", kCpu, Window);
}

}  // namespace weir
