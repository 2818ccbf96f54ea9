#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/bundle_reader.h"
#include "weir/core/io/file.h"
#include "weir/proto/saved_tensor_slice.pb.h"

// Checkpoints in TensorFlow's first format: an SSTable, or one per shard, whose values are protobuf
// messages. The empty key holds the list of tensors with their shapes, dtypes and stored slices.
// Each slice has its own key; its elements are in the typed fields of a TensorProto.
namespace weir::internal {
namespace {

// A tensor, with its slices from all files.
struct StoredTensor {
  DataType dtype = DT_INVALID;
  Shape shape;
  std::vector<TensorSlice> slices;
  std::vector<size_t> files;  // the file of each slice
};

class CheckpointReaderV1 : public CheckpointReader {
 public:
  explicit CheckpointReaderV1(std::string pattern) : pattern_(std::move(pattern)) {}
  absl::Status AddFile(const std::string& path);

  absl::StatusOr<std::vector<CheckpointTensor>> List() override;
  absl::StatusOr<CheckpointTensor> Find(absl::string_view name) override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const TensorSlice& slice) override;

 private:
  absl::Status AddTensor(const proto::SavedSliceMeta& meta, absl::string_view path);
  absl::StatusOr<Tensor> ReadBox(absl::string_view name, const StoredTensor& tensor,
                                 const Box& want);
  absl::StatusOr<Tensor> ReadStored(absl::string_view name, const StoredTensor& tensor,
                                    size_t part);

  const std::string pattern_;
  Mutex mutex_;  // held while a table is read, once the files have been added
  std::vector<std::unique_ptr<SSTableReader>> tables_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

absl::Status CheckpointReaderV1::AddFile(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<SSTableReader> table, SSTableReader::Open(std::move(file)));
  WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, table->Get(""));
  proto::SavedTensorSlices saved;
  if (!bytes || !saved.ParseFromString(*bytes))
    return DataLoss(path, ": the list of tensors is missing or malformed");
  // A V2 index is an SSTable as well.
  if (!saved.has_meta()) {
    if (!absl::EndsWith(path, ".index")) return DataLoss(path, ": the list of tensors is missing");
    return InvalidArgument(path, " is the index of a V2 checkpoint; use its prefix instead: ",
                           absl::StripSuffix(path, ".index"));
  }
  tables_.push_back(std::move(table));
  for (const proto::SavedSliceMeta& meta : saved.meta().tensor())
    WEIR_RETURN_IF_ERROR(AddTensor(meta, path));
  return absl::OkStatus();
}

absl::Status CheckpointReaderV1::AddTensor(const proto::SavedSliceMeta& meta,
                                           absl::string_view path) {
  const auto bad = [&](absl::string_view why) {
    return DataLoss(path, ": tensor ", meta.name(), ": ", why);
  };
  std::vector<int64_t> dims;
  for (const auto& dim : meta.shape().dim()) dims.push_back(dim.size());
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  const auto dtype = static_cast<DataType>(meta.type());
  if (!shape.ok() || !shape->IsFullyDefined()) return bad("bad shape");
  if (static_cast<int>(meta.type()) != dtype || !IsKnown(dtype) || IsRef(dtype))
    return bad("unknown dtype");
  StoredTensor& tensor = tensors_[meta.name()];
  if (tensor.dtype != DT_INVALID && (tensor.dtype != dtype || tensor.shape != *shape)) {
    return bad("its shards disagree about dtype or shape");
  }
  tensor.dtype = dtype;
  tensor.shape = *std::move(shape);
  for (const proto::TensorSliceProto& in : meta.slice()) {
    TensorSlice slice;
    for (const auto& e : in.extent()) {
      slice.extents.push_back({e.start(), e.has_length() ? e.length() : TensorSlice::Extent::kAll});
    }
    if (!slice.ShapeIn(tensor.shape).ok()) return bad("a slice does not fit the shape");
    tensor.slices.push_back(std::move(slice));
    tensor.files.push_back(tables_.size() - 1);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckpointTensor>> CheckpointReaderV1::List() {
  std::vector<CheckpointTensor> out;
  for (const auto& [name, tensor] : tensors_) out.push_back(*Find(name));
  return out;
}

absl::StatusOr<CheckpointTensor> CheckpointReaderV1::Find(absl::string_view name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return KeyNotFound(name, pattern_);
  const StoredTensor& tensor = found->second;
  const bool whole =
      tensor.slices.size() == 1 && *tensor.slices[0].ShapeIn(tensor.shape) == tensor.shape;
  return CheckpointTensor{std::string(name), tensor.dtype, tensor.shape,
                          whole ? std::vector<TensorSlice>() : tensor.slices};
}

// Copies the elements of a typed field. The field has as many as the tensor, otherwise it is
// damaged. Returns false for dtypes that the format lacks.
template <class T, class Field>
bool CopyField(const Field& field, Tensor* out) {
  if (field.size() != out->num_elements()) return false;
  std::transform(field.begin(), field.end(), out->data<T>(), [](const auto& v) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      T bits;
      bits.bits = static_cast<uint16_t>(v);
      return bits;
    } else if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      return T{static_cast<decltype(T::value)>(v)};
    } else {
      return static_cast<T>(v);
    }
  });
  return true;
}

template <class Real, class Field>
bool CopyComplex(const Field& field, Tensor* out) {
  if (field.size() / 2 != out->num_elements() || field.size() % 2 != 0) return false;
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    out->data<std::complex<Real>>()[i] = {field.Get(static_cast<int>(2 * i)),
                                          field.Get(static_cast<int>(2 * i + 1))};
  }
  return true;
}

// Returns the number of values in the field for this dtype.
int64_t FieldSize(const proto::TensorProto& p, DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return p.float_val_size();
    case DT_DOUBLE:
      return p.double_val_size();
    case DT_INT64:
      return p.int64_val_size();
    case DT_UINT32:
      return p.uint32_val_size();
    case DT_UINT64:
      return p.uint64_val_size();
    case DT_BOOL:
      return p.bool_val_size();
    case DT_STRING:
      return p.string_val_size();
    case DT_HALF:
    case DT_BFLOAT16:
      return p.half_val_size();
    case DT_COMPLEX64:
      return p.scomplex_val_size() / 2;
    case DT_COMPLEX128:
      return p.dcomplex_val_size() / 2;
    default:
      return p.int_val_size();
  }
}

bool CopyElements(const proto::TensorProto& p, Tensor* out) {
  switch (out->dtype()) {
    case DT_FLOAT:
      return CopyField<float>(p.float_val(), out);
    case DT_DOUBLE:
      return CopyField<double>(p.double_val(), out);
    case DT_INT32:
      return CopyField<int32_t>(p.int_val(), out);
    case DT_UINT8:
      return CopyField<uint8_t>(p.int_val(), out);
    case DT_INT16:
      return CopyField<int16_t>(p.int_val(), out);
    case DT_INT8:
      return CopyField<int8_t>(p.int_val(), out);
    case DT_UINT16:
      return CopyField<uint16_t>(p.int_val(), out);
    case DT_STRING:
      return CopyField<std::string>(p.string_val(), out);
    case DT_INT64:
      return CopyField<int64_t>(p.int64_val(), out);
    case DT_BOOL:
      return CopyField<bool>(p.bool_val(), out);
    case DT_QINT8:
      return CopyField<qint8>(p.int_val(), out);
    case DT_QUINT8:
      return CopyField<quint8>(p.int_val(), out);
    case DT_QINT32:
      return CopyField<qint32>(p.int_val(), out);
    case DT_QINT16:
      return CopyField<qint16>(p.int_val(), out);
    case DT_QUINT16:
      return CopyField<quint16>(p.int_val(), out);
    case DT_HALF:
      return CopyField<half>(p.half_val(), out);
    case DT_BFLOAT16:
      return CopyField<bfloat16>(p.half_val(), out);
    case DT_UINT32:
      return CopyField<uint32_t>(p.uint32_val(), out);
    case DT_UINT64:
      return CopyField<uint64_t>(p.uint64_val(), out);
    case DT_COMPLEX64:
      return CopyComplex<float>(p.scomplex_val(), out);
    case DT_COMPLEX128:
      return CopyComplex<double>(p.dcomplex_val(), out);
    default:
      return false;
  }
}

absl::StatusOr<Tensor> CheckpointReaderV1::ReadStored(absl::string_view name,
                                                      const StoredTensor& tensor, size_t part) {
  const TensorSlice& slice = tensor.slices[part];
  SSTableReader& table = *tables_[tensor.files[part]];
  std::optional<std::string> bytes;
  {
    const MutexLock lock(mutex_);
    WEIR_ASSIGN_OR_RETURN(bytes, table.Get(EncodeSliceKey(name, slice)));
  }
  proto::SavedTensorSlices saved;
  const Shape shape = *slice.ShapeIn(tensor.shape);
  if (!bytes || !saved.ParseFromString(*bytes) ||
      FieldSize(saved.data().data(), tensor.dtype) != shape.num_elements()) {
    return DataLoss(table.path(), ": the data of tensor ", name, ", slice ", slice.ToString(),
                    bytes ? " is malformed" : " is missing");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), tensor.dtype, shape));
  if (!CopyElements(saved.data().data(), &out)) {
    return DataLoss(table.path(), ": tensor ", name,
                    " has a dtype that V1 checkpoints cannot hold: ", DataTypeName(tensor.dtype));
  }
  return out;
}

absl::StatusOr<Tensor> CheckpointReaderV1::ReadBox(absl::string_view name,
                                                   const StoredTensor& tensor, const Box& want) {
  const auto read = [&](const TensorSlice& slice) {
    const size_t part = static_cast<size_t>(&slice - tensor.slices.data());
    return ReadStored(name, tensor, part);
  };
  return AssembleSlices(tensor.dtype, tensor.shape, want, tensor.slices, read,
                        absl::StrCat(pattern_, ": tensor ", name));
}

absl::StatusOr<Tensor> CheckpointReaderV1::Read(absl::string_view name) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return KeyNotFound(name, pattern_);
  return ReadSlice(name, TensorSlice::Full(found->second.shape.rank()));
}

absl::StatusOr<Tensor> CheckpointReaderV1::ReadSlice(absl::string_view name,
                                                     const TensorSlice& slice) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return KeyNotFound(name, pattern_);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, slice.ShapeIn(found->second.shape));
  return ReadBox(name, found->second, ResolveSlice(slice, found->second.shape));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpointV1(const std::string& pattern) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchFiles(pattern));
  if (paths.empty()) {
    return NotFound(
        "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for ",
        pattern);
  }
  auto reader = std::make_unique<CheckpointReaderV1>(pattern);
  for (const std::string& path : paths) WEIR_RETURN_IF_ERROR(reader->AddFile(path));
  return reader;
}

}  // namespace weir::internal
