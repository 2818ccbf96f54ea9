#include <algorithm>
#include <limits>
#include <map>

#include "weir/core/io/bundle.h"
#include "weir/core/io/bundle_commit.h"
#include "weir/core/io/bundle_format.h"
#include "weir/core/io/file.h"
#include "weir/core/io/sstable_writer.h"
#include "weir/proto/saved_tensor_slice.pb.h"

// Writes the same bytes as TensorFlow: the list has the tensors in name order, the elements are
// stored in key order.
namespace weir {
namespace {

// The dtypes that TensorFlow writes; it reads a few more.
using SupportedTypes =
    List<float, double, int32_t, uint8_t, int16_t, int8_t, int64_t, uint16_t, bool, half, qint8,
         quint8, qint32, std::complex<float>, std::complex<double>, std::string>;

template <class T>
auto* FieldOf(proto::TensorProto* p) {
  if constexpr (std::is_same_v<T, float>) {
    return p->mutable_float_val();
  } else if constexpr (std::is_same_v<T, double>) {
    return p->mutable_double_val();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return p->mutable_int64_val();
  } else if constexpr (std::is_same_v<T, bool>) {
    return p->mutable_bool_val();
  } else if constexpr (std::is_same_v<T, half>) {
    return p->mutable_half_val();
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return p->mutable_scomplex_val();
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return p->mutable_dcomplex_val();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return p->mutable_string_val();
  } else {
    return p->mutable_int_val();
  }
}

template <class T>
void FillField(const Tensor& tensor, proto::TensorProto* p) {
  auto* const field = FieldOf<T>(p);
  for (const T& v : tensor.flat<T>()) {
    if constexpr (std::is_same_v<T, std::string>) {
      *field->Add() = v;
    } else if constexpr (std::is_same_v<T, half>) {
      field->Add(v.bits);
    } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                         std::is_same_v<T, std::complex<double>>) {
      field->Add(v.real());
      field->Add(v.imag());
    } else if constexpr (std::is_class_v<T>) {
      field->Add(v.value);
    } else {
      field->Add(v);
    }
  }
}

void SliceToProto(const TensorSlice& slice, proto::TensorSliceProto* p) {
  for (const TensorSlice::Extent& extent : slice.extents) {
    auto* const out = p->add_extent();
    if (extent.length == TensorSlice::Extent::kAll) continue;
    out->set_start(extent.start);
    out->set_length(extent.length);
  }
}

// A slice as the list of tensors describes it.
struct ListedSlice {
  std::string name;
  DataType dtype;
  Shape shape;  // of the whole tensor
  TensorSlice slice;
};

absl::Status CheckTensor(const ListedSlice& s, const Tensor& tensor) {
  if (!tensor.host_accessible()) return Internal("the tensor ", s.name, " is not in host memory");
  WEIR_ASSIGN_OR_RETURN(const Shape shape, s.slice.ShapeIn(s.shape));
  if (shape == tensor.shape() && s.dtype == tensor.dtype()) return absl::OkStatus();
  return InvalidArgument("tensor ", s.name, " of shape ", tensor.shape().ToString(), ": slice ",
                         s.slice.ToString(), " of ", s.shape.ToString(), " has shape ",
                         shape.ToString());
}

absl::Status CheckSameTensor(const ListedSlice& first, const ListedSlice& s) {
  if (first.shape != s.shape) {
    return InvalidArgument("Mismatching shapes: existing tensor = ", first.shape.ToString(),
                           ", trying to add name ", s.name, ", shape = ", s.shape.ToString());
  }
  if (first.dtype == s.dtype) return absl::OkStatus();
  return InvalidArgument("Mismatching types: existing type = ", DataTypeName(first.dtype),
                         ", trying to add name ", s.name, ", type = ", DataTypeName(s.dtype));
}

// The list of tensors, stored under the empty key.
absl::StatusOr<std::string> ListTensors(const std::vector<ListedSlice>& slices) {
  std::map<absl::string_view, std::vector<const ListedSlice*>> tensors;
  for (const ListedSlice& s : slices) {
    if (!DispatchType(s.dtype, SupportedTypes{}, []<class T>() {}))
      return Unimplemented("Saving data type ", DataTypeName(s.dtype), " not yet supported");
    tensors[s.name].push_back(&s);
  }
  proto::SavedTensorSlices saved;
  for (const auto& [name, parts] : tensors) {
    const ListedSlice& first = *parts[0];
    proto::SavedSliceMeta* const meta = saved.mutable_meta()->add_tensor();
    meta->set_name(first.name);
    proto::TensorShapeProto* const shape = meta->mutable_shape();
    for (const int64_t dim : first.shape.dims()) shape->add_dim()->set_size(dim);
    meta->set_type(static_cast<proto::DataType>(first.dtype));
    for (const ListedSlice* part : parts) {
      WEIR_RETURN_IF_ERROR(CheckSameTensor(first, *part));
      SliceToProto(part->slice, meta->add_slice());
    }
  }
  saved.mutable_meta()->mutable_versions()->set_producer(1);
  return saved.SerializeAsString();
}

absl::StatusOr<std::string> SerializeElements(const ListedSlice& s, const Tensor& tensor) {
  // Protobuf's limit, for a message and for a field.
  constexpr size_t kLimit = std::numeric_limits<int32_t>::max();
  proto::SavedTensorSlices saved;
  saved.mutable_data()->set_name(s.name);
  SliceToProto(s.slice, saved.mutable_data()->mutable_slice());
  proto::TensorProto* const data = saved.mutable_data()->mutable_data();
  const auto elements =
      static_cast<size_t>(tensor.num_elements()) * (IsComplex(tensor.dtype()) ? 2 : 1);
  if (elements < kLimit)
    DispatchType(tensor.dtype(), SupportedTypes{}, [&]<class T>() { FillField<T>(tensor, data); });
  const size_t size = elements < kLimit ? saved.ByteSizeLong() : elements;
  if (size < kLimit) return saved.SerializeAsString();
  return InvalidArgument("Tensor slice is too large to serialize (", size, " bytes): ", s.name);
}

// `read` is called for each slice, in key order.
absl::Status WriteSlices(const std::string& path, const std::vector<ListedSlice>& slices,
                         absl::FunctionRef<absl::StatusOr<Tensor>(size_t i)> read,
                         Durability durability) {
  if (path.empty()) return InvalidArgument("the path of a checkpoint is empty");
  WEIR_ASSIGN_OR_RETURN(const std::string list, ListTensors(slices));
  std::map<std::string, size_t> keys;
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::string key = EncodeSliceKey(slices[i].name, slices[i].slice);
    if (!keys.emplace(key, i).second)
      return InvalidArgument("Adding duplicate key: ", internal::DescribeBundleKey(key));
  }
  const auto write = [&](BufferedFile* file) -> absl::Status {
    SSTableWriter table(file);
    WEIR_RETURN_IF_ERROR(table.Add("", list));
    for (const auto& [key, i] : keys) {
      WEIR_ASSIGN_OR_RETURN(const Tensor tensor, read(i));
      WEIR_RETURN_IF_ERROR(CheckTensor(slices[i], tensor));
      WEIR_ASSIGN_OR_RETURN(const std::string elements, SerializeElements(slices[i], tensor));
      WEIR_RETURN_IF_ERROR(table.Add(key, elements));
    }
    return table.Finish();
  };
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(path));
  internal::SweepCheckpoints(DirectoryOf(path));
  return WriteFileAtomically(path, write, durability);
}

}  // namespace

absl::Status WriteCheckpointV1(const std::string& path, const std::vector<SavedSlice>& slices,
                               Durability durability) {
  std::vector<ListedSlice> listed;
  for (const SavedSlice& s : slices) {
    listed.push_back({s.name, s.tensor.dtype(), s.shape, s.slice});
    WEIR_RETURN_IF_ERROR(CheckTensor(listed.back(), s.tensor));
  }
  return WriteSlices(
      path, listed, [&](size_t i) { return slices[i].tensor; }, durability);
}

absl::Status WriteCheckpointV1(const std::string& path,
                               const std::vector<CheckpointTensor>& tensors,
                               absl::FunctionRef<absl::StatusOr<Tensor>(size_t i)> read,
                               Durability durability) {
  std::vector<ListedSlice> listed;
  for (const CheckpointTensor& t : tensors)
    listed.push_back({t.name, t.dtype, t.shape, TensorSlice::Full(t.shape.rank())});
  return WriteSlices(path, listed, read, durability);
}

}  // namespace weir
