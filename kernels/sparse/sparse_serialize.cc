#include <algorithm>

#include "weir/core/io/coding.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/sparse_kernels.h"
#include "weir/proto/tensor.pb.h"

// Sparse tensors packed into the elements of dense ones: three strings (TensorProtos) or variants
// for the indices, the values and the shape.
namespace weir {

namespace {

// ---- packing

constexpr char kTensorTypeName[] = "tensorflow::Tensor";  // of a variant that holds a tensor

// As TensorFlow's C++ writes tensors: the elements as raw bytes, strings preceded by their lengths.
std::string Serialized(const Tensor& t) {
  proto::TensorProto proto;
  if (t.dtype() != DT_STRING) {
    TensorToProtoContent(t, &proto);
    return proto.SerializeAsString();
  }
  proto.set_dtype(proto::DT_STRING);
  ShapeToProto(t.shape(), proto.mutable_tensor_shape());
  std::string* const content = proto.mutable_tensor_content();
  for (const std::string& s : t.flat<std::string>()) PutVarint64(content, s.size());
  for (const std::string& s : t.flat<std::string>()) content->append(s);
  return proto.SerializeAsString();
}

void Pack(const Tensor& part, std::string* to) { *to = Serialized(part); }
void Pack(const Tensor& part, Variant* to) {
  *to = Variant{.type_name = kTensorTypeName, .metadata = "", .value = Tensors{part}};
}

// Writes the three parts of x to `to` and the elements after it. Variants outlive the step, so they
// own their tensors.
template <class U>
absl::Status PackSparse(const KernelContext& c, const SparseValue& x, U* to) {
  if constexpr (std::is_same_v<U, Variant>) {
    WEIR_ASSIGN_OR_RETURN(const Tensor indices, c.Own(x.indices));
    WEIR_ASSIGN_OR_RETURN(const Tensor values, c.Own(x.values));
    Pack(indices, to);
    Pack(values, to + 1);
  } else {
    Pack(x.indices, to);
    Pack(x.values, to + 1);
  }
  Pack(Tensor::Vector<int64_t>(x.dims), to + 2);
  return absl::OkStatus();
}

// ---- SerializeSparse, SerializeManySparse

template <class U>
absl::Status Serialize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({3})));
  return PackSparse(c, x, out->data<U>());
}

template <class U>
absl::Status SerializeMany(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  if (x.rank() < 2) {
    return InvalidArgument("Rank of input SparseTensor should be > 1, but saw rank: ", x.rank());
  }
  WEIR_RETURN_IF_ERROR(CheckIndices(x, true));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({x.dims[0], 3})));
  for (int64_t r = 0, begin = 0, end; r < x.dims[0]; ++r, begin = end) {
    ThrowIfCancelled();
    for (end = begin; end < x.count() && x.row(end)[0] == r;) ++end;
    WEIR_RETURN_IF_ERROR(PackSparse(c, SparseRow(x, begin, end), out->data<U>() + 3 * r));
  }
  return absl::OkStatus();
}

template <absl::Status (*kAsText)(KernelContext&), absl::Status (*kAsVariant)(KernelContext&)>
absl::StatusOr<Kernel> MakeSerialize(const KernelInit& init) {
  return Kernel(init.attr<DataType>("out_type") == DT_STRING ? kAsText : kAsVariant);
}

// ---- unpacking

absl::StatusOr<Tensor> Unpack(const std::string& packed) {
  proto::TensorProto proto;
  if (!proto.ParseFromString(packed)) return InvalidArgument("Could not parse serialized proto");
  absl::StatusOr<Tensor> t = TensorFromProto(proto);
  if (!t.ok()) {
    return InvalidArgument("Could not construct tensor from serialized proto: ",
                           t.status().message());
  }
  return t;
}
absl::StatusOr<Tensor> Unpack(const Variant& packed) {
  const Tensors* const tensors = std::any_cast<Tensors>(&packed.value);
  if (tensors == nullptr || tensors->size() != 1) {
    return InvalidArgument("Could not get a tensor from variant of type '", packed.type_name, "'");
  }
  return (*tensors)[0];
}

template <class U>
absl::StatusOr<SparseValue> UnpackSparse(const U* from, int64_t number, DataType type) {
  Tensor parts[3];
  for (int k = 0; k < 3; ++k) {
    WEIR_ASSIGN_OR_RETURN(parts[k], Unpack(from[k]));
    const DataType want = k == 1 ? type : DT_INT64;
    if (parts[k].dtype() == want) continue;
    return InvalidArgument("Requested SparseTensor of type ", DataTypeName(want),
                           " but SparseTensor[", number,
                           k == 0   ? "].indices"
                           : k == 1 ? "].values"
                                    : "].shape",
                           ".dtype() == ", DataTypeName(parts[k].dtype()));
  }
  return MakeSparse(parts[0], parts[1], parts[2]);
}

// Replaces the leading dimension that StackSparse made by the dimensions of the input.
absl::StatusOr<SparseValue> RestoreLeadingDims(SparseValue x, const Shape& lead) {
  const int64_t rank = x.rank() + lead.rank() - 1;
  WEIR_ASSIGN_OR_RETURN(Tensor indices,
                        Tensor::Allocate(HostAllocator(), DT_INT64, Shape({x.count(), rank})));
  int64_t* to = indices.data<int64_t>();
  for (int64_t i = 0; i < x.count(); ++i, to += rank) {
    ThrowIfCancelledAt(i);
    int64_t rest = x.row(i)[0];
    for (int d = lead.rank() - 1; d >= 0; --d) {
      to[d] = rest % lead.dim(d);
      rest /= lead.dim(d);
    }
    std::copy_n(x.row(i) + 1, x.rank() - 1, to + lead.rank());
  }
  x.indices = std::move(indices);
  x.dims.erase(x.dims.begin());
  x.dims.insert(x.dims.begin(), lead.dims().begin(), lead.dims().end());
  return x;
}

template <class U>
absl::Status Deserialize(KernelContext& c, DataType type) {
  const Tensor& packed = c.input(0);
  if (packed.rank() < 1 || packed.dim(-1) != 3) {
    return InvalidArgument("Serialized sparse should have 3 as the last dimension ",
                           packed.shape().ToString());
  }
  const Shape lead = packed.shape().Sub(0, packed.rank() - 1);
  const int64_t count = lead.num_elements();
  if (count == 0) {
    return InvalidArgument(
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension ",
        packed.shape().ToString());
  }
  std::vector<SparseValue> parts;
  for (int64_t i = 0; i < count; ++i) {
    ThrowIfCancelledAt(i);
    WEIR_ASSIGN_OR_RETURN(parts.emplace_back(), UnpackSparse(packed.data<U>() + 3 * i, i, type));
  }
  if (lead.rank() == 0) return OutputSparse(c, parts[0]);
  WEIR_ASSIGN_OR_RETURN(SparseValue x, StackSparse(parts, type));
  if (lead.rank() == 1) return OutputSparse(c, x);
  WEIR_ASSIGN_OR_RETURN(x, RestoreLeadingDims(std::move(x), lead));
  return OutputSparse(c, x);
}

absl::StatusOr<Kernel> MakeDeserialize(const KernelInit& init) {
  const DataType type = init.attr<DataType>("dtype");
  return Kernel([type](KernelContext& c) -> absl::Status {
    return c.input(0).dtype() == DT_STRING ? Deserialize<std::string>(c, type)
                                           : Deserialize<Variant>(c, type);
  });
}

}  // namespace

absl::StatusOr<SparseValue> StackSparse(const std::vector<SparseValue>& parts, DataType type) {
  const int64_t inner = parts[0].rank(), rank = inner + 1;
  int64_t count = 0;
  SparseValue out{.dims = parts[0].dims};
  for (size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].rank() != inner) {
      return InvalidArgument("Inconsistent shape across SparseTensors: rank prior to SparseTensor[",
                             k, "] was: ", inner, " but rank of SparseTensor[", k,
                             "] is: ", parts[k].rank());
    }
    for (int64_t d = 0; d < inner; ++d) out.dims[d] = std::max(out.dims[d], parts[k].dims[d]);
    count += parts[k].count();
  }
  out.dims.insert(out.dims.begin(), static_cast<int64_t>(parts.size()));
  WEIR_ASSIGN_OR_RETURN(out.indices,
                        Tensor::Allocate(HostAllocator(), DT_INT64, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(out.values, Tensor::Allocate(HostAllocator(), type, Shape({count})));
  int64_t* to = out.indices.data<int64_t>();
  int64_t at = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    for (int64_t i = 0; i < parts[k].count(); ++i, to += rank) {
      to[0] = static_cast<int64_t>(k);
      std::copy_n(parts[k].row(i), inner, to + 1);
    }
    CopyElements(type, parts[k].values.raw(), ElementAt(out.values, at), parts[k].count());
    at += parts[k].count();
  }
  return out;
}

SparseValue SparseRow(const SparseValue& x, int64_t begin, int64_t end) {
  const int64_t inner = x.rank() - 1;
  SparseValue row{.indices = Tensor(DT_INT64, Shape({end - begin, inner})),
                  .values = Tensor(x.values.dtype(), Shape({end - begin})),
                  .dims = Dims(x.dims.begin() + 1, x.dims.end())};
  int64_t* to = row.indices.data<int64_t>();
  for (int64_t i = begin; i < end; ++i) to = std::copy_n(x.row(i) + 1, inner, to);
  CopyElements(x.values.dtype(), ElementAt(x.values, begin), row.values.raw(), end - begin);
  return row;
}

absl::Status OutputSparse(KernelContext& c, const SparseValue& x) {
  c.SetOutput(0, x.indices);
  c.SetOutput(1, x.values);
  return OutputInts(c, 2, x.dims);
}

void AddSparseSerializeKernels(KernelRegistry* r) {
  r->Add("SerializeSparse", kCpu, MakeSerialize<Serialize<std::string>, Serialize<Variant>>);
  r->Add("SerializeManySparse", kCpu,
         MakeSerialize<SerializeMany<std::string>, SerializeMany<Variant>>);
  r->Add("DeserializeSparse", kCpu, MakeDeserialize);
  r->Add("DeserializeManySparse", kCpu, MakeDeserialize);
}

}  // namespace weir
