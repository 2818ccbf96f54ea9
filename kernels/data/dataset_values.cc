#include <zlib.h>

#include <utility>
#include <vector>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/dataset_ahead.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// What graphs learn of datasets without an iterator, and elements as variants.
namespace weir {

namespace {

absl::Status SetComponents(KernelContext& c, const ElementSpec& spec, Tensors element) {
  WEIR_RETURN_IF_ERROR(spec.Check(element));
  for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, std::move(element[i]));
  return absl::OkStatus();
}

absl::Status DatasetCardinality(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(c.input(0)));
  c.SetOutput(0, Tensor::Scalar(dataset->cardinality()));
  return absl::OkStatus();
}

absl::Status GetOptions(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(c.input(0)));
  c.SetOutput(0, Tensor::Scalar(dataset->traits().options));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToSingleElement(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(c.input(0)));
    AheadGroup ahead;
    const DatasetContext x{c.step(), c.node(), ahead};
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<DatasetIterator> in, dataset->Iterate());
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
    if (!element) return InvalidArgument("Dataset was empty.");
    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> second, in->Next(x));
    if (second) return InvalidArgument("Dataset had more than one element.");
    return SetComponents(c, spec, *std::move(element));
  });
}

absl::StatusOr<Kernel> MakeGetElement(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const DatasetPtr dataset, DatasetIn(c.input(0)));
    WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(1), "index"));
    AheadGroup ahead;
    WEIR_ASSIGN_OR_RETURN(Tensors element, dataset->Get({c.step(), c.node(), ahead}, index));
    return SetComponents(c, spec, std::move(element));
  });
}

// ---- a dataset in a variant that copies to other devices do not look into

struct WrappedDataset {
  DatasetPtr dataset;
};

absl::Status WrapVariant(KernelContext& c) {
  WrappedDataset wrapped;
  WEIR_ASSIGN_OR_RETURN(wrapped.dataset, DatasetIn(c.input(0)));
  Variant variant;
  variant.type_name = "tensorflow::WrappedDatasetVariantWrapper";
  variant.value = std::move(wrapped);
  c.SetOutput(0, Tensor::Scalar(std::move(variant)));
  return absl::OkStatus();
}

absl::Status UnwrapVariant(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "input_handle"));
  const auto* wrapped = std::any_cast<WrappedDataset>(&c.input_data<Variant>(0)->value);
  if (wrapped == nullptr) return InvalidArgument("Tensor must be a WrappedDataset variant object.");
  c.SetOutput(0, DatasetTensor(wrapped->dataset));
  return absl::OkStatus();
}

// ---- elements in few bytes: those of all components one after the other, as one zlib stream. A
// string is its size, in 8 bytes, and its bytes.

struct CompressedElement {
  struct Component {
    DataType dtype = DT_INVALID;
    Shape shape;
    size_t size = 0;  // bytes in the stream
  };
  std::vector<Component> components;
  std::string bytes;
};

absl::Status AppendBytes(const Tensor& t, std::string* to) {
  if (t.dtype() == DT_VARIANT || t.dtype() == DT_RESOURCE)
    return InvalidArgument("Cannot compress an element of type ", DataTypeName(t.dtype()));
  if (t.dtype() != DT_STRING) {
    to->append(static_cast<const char*>(t.raw()), t.num_bytes());
    return absl::OkStatus();
  }
  for (const std::string& s : t.flat<std::string>()) {
    const uint64_t size = s.size();
    to->append(reinterpret_cast<const char*>(&size), sizeof(size));
    to->append(s);
  }
  return absl::OkStatus();
}

absl::Status CompressElement(KernelContext& c) {
  CompressedElement element;
  std::string bytes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const size_t begin = bytes.size();
    WEIR_RETURN_IF_ERROR(AppendBytes(c.input(i), &bytes));
    element.components.push_back({c.input(i).dtype(), c.input(i).shape(), bytes.size() - begin});
  }
  uLongf size = compressBound(bytes.size());
  element.bytes.resize(size);
  if (compress2(reinterpret_cast<Bytef*>(element.bytes.data()), &size,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_BEST_SPEED) != Z_OK) {
    return absl::InternalError("Failed to compress an element");
  }
  element.bytes.resize(size);
  Variant variant;
  variant.type_name = "tensorflow.data.CompressedElement";
  variant.value = std::move(element);
  c.SetOutput(0, Tensor::Scalar(std::move(variant)));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorOf(const CompressedElement::Component& component, const char* bytes) {
  WEIR_ASSIGN_OR_RETURN(Tensor t,
                        Tensor::Allocate(HostAllocator(), component.dtype, component.shape));
  if (t.dtype() != DT_STRING) {
    std::copy(bytes, bytes + component.size, static_cast<char*>(t.raw()));
    return t;
  }
  for (std::string& s : t.flat<std::string>()) {
    uint64_t size = 0;
    std::copy(bytes, bytes + sizeof(size), reinterpret_cast<char*>(&size));
    bytes += sizeof(size);
    s.assign(bytes, size);
    bytes += size;
  }
  return t;
}

absl::StatusOr<Kernel> MakeUncompress(const KernelInit& init) {
  return Kernel([spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(0), 0, "compressed"));
    const auto* element = std::any_cast<CompressedElement>(&c.input_data<Variant>(0)->value);
    if (element == nullptr) return InvalidArgument("Input does not contain a compressed element.");
    size_t total = 0;
    for (const auto& component : element->components) total += component.size;
    std::string bytes(total, '\0');
    uLongf size = total;
    if (uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                   reinterpret_cast<const Bytef*>(element->bytes.data()),
                   element->bytes.size()) != Z_OK ||
        size != total) {
      return absl::InternalError("Failed to uncompress an element");
    }
    Tensors components;
    const char* at = bytes.data();
    for (const auto& component : element->components) {
      WEIR_ASSIGN_OR_RETURN(components.emplace_back(), TensorOf(component, at));
      at += component.size;
    }
    return SetComponents(c, spec, std::move(components));
  });
}

}  // namespace

void AddDatasetValueKernels(KernelRegistry* r) {
  r->Add("CompressElement", kCpu, CompressElement);
  for (const char* op : {"DatasetCardinality", "ExperimentalDatasetCardinality"})
    r->Add(op, kCpu, DatasetCardinality);
  r->Add("DatasetToSingleElement", kCpu, MakeToSingleElement);
  r->Add("GetElementAtIndex", kCpu, MakeGetElement);
  r->Add("GetOptions", kCpu, GetOptions);
  r->Add("UncompressElement", kCpu, MakeUncompress);
  r->Add("UnwrapDatasetVariant", kCpu, UnwrapVariant);
  r->Add("WrapDatasetVariant", kCpu, WrapVariant);
}

}  // namespace weir
