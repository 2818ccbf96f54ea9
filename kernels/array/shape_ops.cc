#include <limits>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Ops that forward a tensor unchanged or in another shape, and ops that return shapes. None of them
// accesses an element.
namespace weir {

namespace {

absl::Status ForwardInput(KernelContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, c.input(i));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeConst(const KernelInit& init) {
  Tensor value = init.attr<Tensor>("value");
  if (value.dtype() != init.attr<DataType>("dtype")) {
    return InvalidArgument("the value has type ", DataTypeName(value.dtype()),
                           ", but attr dtype is ", DataTypeName(init.attr<DataType>("dtype")));
  }
  return Kernel::Constant(std::move(value));
}

absl::StatusOr<Kernel> MakePlaceholder(const KernelInit& init) {
  std::string message =
      absl::StrCat("You must feed a value for placeholder tensor '", init.node.name(),
                   "' with dtype ", DataTypeName(init.attr<DataType>("dtype")));
  const Shape shape = init.attr<Shape>("shape");
  if (shape.rank() > 0) absl::StrAppend(&message, " and shape ", shape.ToString());
  return Kernel(
      [message](KernelContext&) -> absl::Status { return absl::InvalidArgumentError(message); });
}

absl::Status DeepCopy(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  StridedCopy copy;
  copy.AddDim(in.num_elements(), 1, 1);
  if (out->raw() != in.raw()) copy.Run(c, in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeEnsureShape(const KernelInit& init) {
  const Shape expected = init.attr<Shape>("shape");
  return Kernel([expected](KernelContext& c) -> absl::Status {
    if (!expected.IsCompatibleWith(c.input(0).shape())) {
      return InvalidArgument("Shape of tensor ", c.node().input(0).name(), " ",
                             c.input(0).shape().ToString(),
                             " is not compatible with expected shape ", expected.ToString(), ".");
    }
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  });
}

absl::Status Bitcast(KernelContext& c, DataType to) {
  const Tensor& in = c.input(0);
  const int64_t from_size = ElementSize(in.dtype()), to_size = ElementSize(to);
  Shape shape = in.shape();
  if (from_size < to_size) {
    if (shape.rank() == 0 || shape.dim(-1) != to_size / from_size) {
      return InvalidArgument("Cannot bitcast from ", DataTypeName(in.dtype()), " to ",
                             DataTypeName(to), ": the last ", "dimension of ", shape.ToString(),
                             " must be ", to_size / from_size);
    }
    shape.RemoveDim(shape.rank() - 1);
  } else if (from_size > to_size) {
    shape.AddDim(from_size / to_size);
  }
  c.SetOutput(0, Tensor(to, std::move(shape), in.buffer(), const_cast<void*>(in.raw())));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeBitcast(const KernelInit& init) {
  const DataType to = init.attr<DataType>("type");
  return Kernel([to](KernelContext& c) -> absl::Status { return Bitcast(c, to); });
}

// ---- shapes as tensors

absl::Status WriteInts(absl::Span<const int64_t> values, Tensor* out) {
  if (out->dtype() == DT_INT64) {
    std::copy(values.begin(), values.end(), out->data<int64_t>());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("out_type is int32, but ", values[i],
                             " needs int64: set out_type to int64");
    }
    out->data<int32_t>()[i] = static_cast<int32_t>(values[i]);
  }
  return absl::OkStatus();
}

absl::Status ShapeKernel(KernelContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const Shape& shape = c.input(i).shape();
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, Shape({shape.rank()})));
    WEIR_RETURN_IF_ERROR(WriteInts(shape.dims(), out));
  }
  return absl::OkStatus();
}

absl::Status WriteScalar(KernelContext& c, int64_t value) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  return WriteInts(absl::MakeConstSpan(&value, 1), out);
}

absl::Status SizeKernel(KernelContext& c) { return WriteScalar(c, c.input(0).num_elements()); }
absl::Status RankKernel(KernelContext& c) { return WriteScalar(c, c.input(0).rank()); }

// ---- reshapes

}  // namespace

absl::Status RunReshape(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (c.input(1).rank() > 1) {  // a scalar is one size, as in legacy graphs
    return InvalidArgument("sizes input must be 1-D, not shape ", c.input(1).shape().ToString());
  }
  Dims dims = ReadInts(c.input(1));
  if (dims.size() > Shape::kMaxRank) return InvalidArgument("too many dimensions: ", dims.size());
  int64_t product = 1;  // of the nonzero sizes
  int unknown = -1;
  bool has_zero = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (unknown >= 0)
        return InvalidArgument("Only one input size may be -1, not both ", unknown, " and ", i);
      unknown = static_cast<int>(i);
    } else if (dims[i] < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ", dims[i]);
    } else if (dims[i] == 0) {
      has_zero = true;
    } else if (__builtin_mul_overflow(product, dims[i], &product)) {
      return InvalidArgument("the requested shape has too many elements");
    }
  }
  if (unknown >= 0) {
    // Zeros match each other: [0,6] reshaped to [0,-1,3] is [0,2,3].
    int64_t elements = 1;
    bool left_out = false;
    for (const int64_t dim : in.shape().dims()) {
      if (dim == 0 && has_zero) {
        left_out = true;
      } else if (__builtin_mul_overflow(elements, dim, &elements)) {
        return InvalidArgument("the requested shape has too many elements");
      }
    }
    if (!left_out && elements % product != 0) {
      return InvalidArgument("Input to reshape is a tensor with ", elements,
                             " values, but the requested shape requires a multiple of ", product);
    }
    dims[unknown] = elements / product;
    if (dims[unknown] == 0) has_zero = true;
  }
  const int64_t requested = has_zero ? 0 : unknown < 0 ? product : product * dims[unknown];
  if (requested != in.num_elements()) {
    return InvalidArgument("Input to reshape is a tensor with ", in.num_elements(),
                           " values, but the requested shape has ", requested);
  }
  c.SetOutput(0, in.Reshaped(Shape(absl::MakeConstSpan(dims))));
  return absl::OkStatus();
}

namespace {

absl::Status ExpandDims(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int64_t dim, ReadOneInt(c.input(1), "'dim'"));
  if (dim < -in.rank() - 1 || dim > in.rank()) {
    return InvalidArgument("Tried to expand dim index ", dim, " for tensor with ", in.rank(),
                           " dimensions.");
  }
  Shape shape = in.shape();
  shape.InsertDim(static_cast<int>(dim < 0 ? dim + in.rank() + 1 : dim), 1);
  c.SetOutput(0, in.Reshaped(std::move(shape)));
  return absl::OkStatus();
}

absl::Status Squeeze(KernelContext& c, absl::Span<const int64_t> axes) {
  const Tensor& in = c.input(0);
  absl::InlinedVector<bool, 8> drop(in.rank(), false);
  for (const int64_t axis : axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      return InvalidArgument("Tried to squeeze dim index ", axis, " for tensor with ", in.rank(),
                             " dimensions.");
    }
    const int i = static_cast<int>(axis < 0 ? axis + in.rank() : axis);
    if (in.dim(i) != 1) {
      return InvalidArgument("Can not squeeze dim[", i, "], expected a dimension of 1, got ",
                             in.dim(i));
    }
    drop[i] = true;
  }
  Shape shape;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty() ? in.dim(i) != 1 : !drop[i]) shape.AddDim(in.dim(i));
  }
  c.SetOutput(0, in.Reshaped(std::move(shape)));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSqueeze(const KernelInit& init) {
  const auto axes = init.attr<std::vector<int64_t>>("squeeze_dims");
  return Kernel([axes](KernelContext& c) -> absl::Status { return Squeeze(c, axes); });
}

// ---- shapes of broadcasts

absl::StatusOr<Dims> ReadShapeVector(const Tensor& t, int i) {
  if (t.rank() != 1)
    return InvalidArgument("In[", i, "] must be a vector, but has shape ", t.shape().ToString());
  Dims dims = ReadInts(t);
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument("In[", i, "] must be a shape, but has the element ", d);
  }
  return dims;
}

// Returns extent `i` counted from the last, 1 for missing dimensions.
int64_t ExtentFromLast(const Dims& dims, size_t i) {
  return i < dims.size() ? dims[dims.size() - 1 - i] : 1;
}

absl::Status BroadcastArgs(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Dims a, ReadShapeVector(c.input(0), 0));
  WEIR_ASSIGN_OR_RETURN(const Dims b, ReadShapeVector(c.input(1), 1));
  const size_t n = std::max(a.size(), b.size());
  Dims out(n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = ExtentFromLast(a, i), y = ExtentFromLast(b, i);
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("Incompatible shapes: ", Shape(absl::MakeConstSpan(a)).ToString(),
                             " vs. ", Shape(absl::MakeConstSpan(b)).ToString());
    }
    out[n - 1 - i] = x == 1 ? y : x;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * r, c.AllocateOutput(0, Shape({static_cast<int64_t>(n)})));
  return WriteInts(out, r);
}

// If one argument has extent 1 (or lacks the dimension) and the other more, the gradient is summed.
// If both have extent 1 it makes no difference; TensorFlow lists the dimension for both then,
// unless the two shapes are equal.
absl::Status BroadcastGradientArgs(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Dims a, ReadShapeVector(c.input(0), 0));
  WEIR_ASSIGN_OR_RETURN(const Dims b, ReadShapeVector(c.input(1), 1));
  const size_t n = a == b ? 0 : std::max(a.size(), b.size());
  Dims reduce_a, reduce_b;
  for (size_t i = n; i-- > 0;) {
    const int64_t x = ExtentFromLast(a, i), y = ExtentFromLast(b, i),
                  dim = static_cast<int64_t>(n - 1 - i);
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("Incompatible shapes: ", Shape(absl::MakeConstSpan(a)).ToString(),
                             " vs. ", Shape(absl::MakeConstSpan(b)).ToString());
    }
    if (x == 1) reduce_a.push_back(dim);
    if (y == 1) reduce_b.push_back(dim);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * r0,
                        c.AllocateOutput(0, Shape({static_cast<int64_t>(reduce_a.size())})));
  WEIR_RETURN_IF_ERROR(WriteInts(reduce_a, r0));
  WEIR_ASSIGN_OR_RETURN(Tensor * r1,
                        c.AllocateOutput(1, Shape({static_cast<int64_t>(reduce_b.size())})));
  return WriteInts(reduce_b, r1);
}

// The object behind a handle may change while the handle does not.
absl::StatusOr<Kernel> MakeGuaranteeConst(const KernelInit& init) {
  if (BaseType(init.node.input_type(0)) != DT_RESOURCE) return Kernel(ForwardInput);
  return InvalidArgument("Input tensor cannot be a resource variable handle.");
}

double SmallCost(const KernelInit&) { return 20; }

}  // namespace

void AddShapeOps(KernelRegistry* r) {
  for (const char* op : {"Const", "HostConst"}) r->Add(op, kCpu, MakeConst);
  for (const char* op : {"Placeholder", "PlaceholderV2"}) r->Add(op, kCpu, MakePlaceholder);
  for (const char* op : {"Identity", "StopGradient", "PreventGradient", "PlaceholderWithDefault",
                         "Copy", "CopyHost", "DebugGradientIdentity"}) {
    r->Add(op, kCpu, ForwardInput).Aliases({0}).Cost(SmallCost);
  }
  r->Add("GuaranteeConst", kCpu, MakeGuaranteeConst).Aliases({0}).Cost(SmallCost);
  r->Add("IdentityN", kCpu, ForwardInput).AliasesEach().Cost(SmallCost);
  r->Add("Snapshot", kCpu, DeepCopy).InPlace({0});
  r->Add("DeepCopy", kCpu, DeepCopy);
  r->Add("EnsureShape", kCpu, MakeEnsureShape).Aliases({0}).Cost(SmallCost);
  r->Add("Bitcast", kCpu, MakeBitcast).Aliases({0}).Cost(SmallCost);
  r->Add("Shape", kCpu, ShapeKernel).HostArgs({"output"}).Cost(SmallCost);
  r->Add("ShapeN", kCpu, ShapeKernel).HostArgs({"output"}).Cost(SmallCost);
  r->Add("Size", kCpu, SizeKernel).HostArgs({"output"}).Cost(SmallCost);
  r->Add("Rank", kCpu, RankKernel).HostArgs({"output"}).Cost(SmallCost);
  r->Add("Reshape", kCpu, RunReshape).Aliases({0}).HostArgs({"shape"}).Cost(SmallCost);
  r->Add("ExpandDims", kCpu, ExpandDims).Aliases({0}).HostArgs({"dim"}).Cost(SmallCost);
  r->Add("Squeeze", kCpu, MakeSqueeze).Aliases({0}).Cost(SmallCost);
  r->Add("BroadcastArgs", kCpu, BroadcastArgs).HostArgs({"s0", "s1", "r0"}).Cost(SmallCost);
  r->Add("BroadcastGradientArgs", kCpu, BroadcastGradientArgs)
      .HostArgs({"s0", "s1", "r0", "r1"})
      .Cost(SmallCost);
}

}  // namespace weir
