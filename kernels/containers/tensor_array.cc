#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <vector>

#include "weir/kernels/containers/stored_values.h"
#include "weir/kernels/containers/tensor_array_state.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/string_handle.h"

// Arrays that a step creates, fills and reads; an array is destroyed with the last handle to it.
// The accesses to an array are ordered by its "flow": each write returns a number that later ones
// take as an input.
//
// The handle is a resource (V3), a string[2] (V2), or a reference to such strings (before V2). On a
// GPU the elements and the flow of an array are on the device, indices and lengths on the host.
namespace weir {

namespace {

using State = std::shared_ptr<TensorArrayState>;

constexpr char kContainer[] = "_tensor_arrays";

Tensor ResourceTo(const KernelContext& c, std::string name, std::shared_ptr<Resource> resource) {
  ResourceHandle handle;
  handle.device = c.device().text();
  handle.name = std::move(name);
  handle.resource = std::move(resource);
  return Tensor::Scalar(std::move(handle));
}

absl::Status OutputHandle(KernelContext& c, const State& state) {
  const DataType type = c.node().output_type(0);
  if (type == DT_RESOURCE) {
    c.SetOutput(0, ResourceTo(c, state->name(), state));
  } else {
    Tensor text = StringHandle(kContainer, state->name(), state);
    if (IsRef(type)) {
      auto referred = std::make_shared<VariableState>(state->name(), DT_STRING, text.shape());
      referred->Set(std::move(text));
      text = ResourceTo(c, state->name(), std::move(referred));
    }
    c.SetOutput(0, std::move(text));
  }
  if (c.num_outputs() < 2) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Tensor * flow, c.AllocateOutput(1, Shape()));
  ClearElements(c, *flow);
  return absl::OkStatus();
}

absl::StatusOr<State> ArrayOf(KernelContext& c) {
  const DataType type = c.node().input_type(0);
  if (type == DT_RESOURCE) return c.resource<TensorArrayState>(0);
  Tensor text;
  if (IsRef(type)) {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<VariableState> referred, c.variable(0));
    WEIR_ASSIGN_OR_RETURN(text, referred->Read());
  } else {
    text = c.input(0);
  }
  if (text.dtype() != DT_STRING || text.num_elements() != 2) {
    return InvalidArgument("Tensor array handle must be 2-element vector, but had shape: ",
                           text.shape().ToString());
  }
  State state = std::dynamic_pointer_cast<TensorArrayState>(FindByStringHandle(text));
  if (state != nullptr) return state;
  const std::string* names = text.data<std::string>();
  return NotFound(
      "Container ", names[0], " does not exist. (Could not find resource: ", names[0], "/",
      names[1],
      "): a TensorArray's handle comes from the node that created the array, in the same "
      "step");
}

absl::StatusOr<Kernel> MakeTensorArray(const KernelInit& init) {
  TensorArrayState::Options options;
  options.dtype = init.attr<DataType>("dtype");
  options.element_shape = init.attr<Shape>("element_shape");
  options.identical_element_shapes = init.node.attr_or<bool>("identical_element_shapes", false);
  options.dynamic_size = init.attr<bool>("dynamic_size");
  options.clear_after_read = init.attr<bool>("clear_after_read");
  options.name = init.attr<std::string>("tensor_array_name");
  if (options.name.empty()) options.name = init.node.name();
  const auto made = std::make_shared<std::atomic<int64_t>>(0);
  return Kernel([options, made](KernelContext& c) -> absl::Status {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("TensorArray size must be scalar, but had shape: ",
                             c.input(0).shape().ToString());
    }
    const int64_t size = c.input(0).IntAt(0);
    if (size < 0) return InvalidArgument("Size should be >= 0.");
    TensorArrayState::Options own = options;
    own.number = made->fetch_add(1, std::memory_order_relaxed);
    return OutputHandle(c, std::make_shared<TensorArrayState>(std::move(own), size));
  });
}

absl::StatusOr<Kernel> MakeGradient(const KernelInit& init) {
  const auto source = init.attr<std::string>("source");
  const bool prepends = init.node.op_name() == "TensorArrayGradWithShape";
  return Kernel([source, prepends](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
    Shape prepend;
    if (prepends) {
      WEIR_ASSIGN_OR_RETURN(prepend, ReadShape(c.input(2), "shape_to_prepend"));
    }
    WEIR_ASSIGN_OR_RETURN(const State gradient, state->Gradient(source, prepend));
    return OutputHandle(c, gradient);
  });
}

absl::StatusOr<int64_t> ReadIndex(const Tensor& index) {
  if (index.rank() == 0) return index.IntAt(0);
  return InvalidArgument("TensorArray index must be scalar, but had shape: ",
                         index.shape().ToString());
}

// Returns the value without its handle: an array that holds its own handle, directly or through
// another array, would never be destroyed. The copied text of the handle refers to no array.
Tensor WithoutHandle(const Tensor& value) {
  return SharesStringHandle(value) ? value.DeepCopy() : value;
}

absl::Status Write(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadIndex(c.input(1)));
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  WEIR_RETURN_IF_ERROR(state->CheckType(c.input(2).dtype(), true));
  WEIR_RETURN_IF_ERROR(NestingDepth(c.input(2)).status());
  WEIR_ASSIGN_OR_RETURN(Tensor value, c.Own(WithoutHandle(c.input(2))));
  WEIR_RETURN_IF_ERROR(state->Write(c, {index}, {std::move(value)}));
  c.SetOutput(0, c.input(3));
  return absl::OkStatus();
}

absl::Status Read(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadIndex(c.input(1)));
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  WEIR_RETURN_IF_ERROR(state->CheckType(BaseType(c.node().output_type(0)), false));
  WEIR_ASSIGN_OR_RETURN(std::vector<Tensor> values, state->Read(c, {index}));
  c.SetOutput(0, std::move(values[0]));
  return absl::OkStatus();
}

Dims FirstIndices(int64_t count) {
  Dims indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Concatenates the values; their sizes add up to the output's.
absl::Status OutputConcat(KernelContext& c, const Shape& shape, const std::vector<Tensor>& values) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  int64_t at = 0;
  for (const Tensor& value : values) {
    CopyElements(c, out->dtype(), value.raw(), ElementAt(*out, at), value.num_elements());
    at += value.num_elements();
  }
  return absl::OkStatus();
}

// Outputs the result of packing or concatenating an array without elements.
absl::Status OutputEmpty(KernelContext& c, Shape shape, absl::string_view attribute,
                         absl::string_view verb) {
  if (!shape.IsFullyDefined()) {
    return Unimplemented("TensorArray has size zero, but ", attribute, " ", shape.ToString(),
                         " is not fully defined. Currently only static shapes are supported when ",
                         verb, " zero-size TensorArrays.");
  }
  shape.InsertDim(0, 0);
  return c.AllocateOutput(0, shape).status();
}

// Reads all elements, in order. The graph may specify any size, and elements that were never
// written are allocated only now, so this checks the free memory from time to time.
absl::StatusOr<std::vector<Tensor>> ReadAll(KernelContext& c, TensorArrayState& state) {
  constexpr int64_t kBytesPerElement = 640, kCheckInterval = int64_t{256} << 20;  // bytes
  WEIR_ASSIGN_OR_RETURN(const int64_t size, state.ConcatSize());
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(absl::StrCat("TensorArray ", state.name(), " has ", size,
                                                     " elements, which do not fit in memory"));
  };
  if (size > HostAllocator().bytes_free() / kBytesPerElement) return too_large();
  std::vector<Tensor> values;
  int64_t taken = 0;
  for (int64_t i = 0; i < size; ++i) {
    WEIR_ASSIGN_OR_RETURN(std::vector<Tensor> value, state.Read(c, {i}));
    taken += kBytesPerElement + static_cast<int64_t>(value[0].num_bytes());
    values.push_back(std::move(value[0]));
    if (taken > kCheckInterval) {
      if (HostAllocator().bytes_free() < kCheckInterval) return too_large();
      taken = 0;
    }
    if (c.cancellation() != nullptr && c.cancellation()->cancelled())
      return c.cancellation()->status();
  }
  return values;
}

absl::Status Pack(KernelContext& c, const std::vector<Tensor>& values, const Shape& element_shape) {
  if (values.empty()) return OutputEmpty(c, element_shape, "element shape", "packing");
  Shape shape = values[0].shape();
  if (!element_shape.IsCompatibleWith(shape)) {
    return InvalidArgument("TensorArray was passed element_shape ", element_shape.ToString(),
                           " which does not match the Tensor at index 0: ", shape.ToString());
  }
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i].shape() == shape) continue;
    return InvalidArgument(
        "TensorArray has inconsistent shapes.  Index 0 has shape: ", shape.ToString(),
        " but index ", i, " has shape: ", values[i].shape().ToString());
  }
  shape.InsertDim(0, static_cast<int64_t>(values.size()));
  return OutputConcat(c, shape, values);
}

absl::Status CheckRead(KernelContext& c, TensorArrayState& state, const Shape& element_shape) {
  WEIR_RETURN_IF_ERROR(state.CheckType(BaseType(c.node().output_type(0)), false));
  return state.MergeElementShape(element_shape);
}

absl::StatusOr<Kernel> MakeGather(const KernelInit& init) {
  const Shape element_shape = init.attr<Shape>("element_shape");
  return Kernel([element_shape](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
    if (c.input(1).rank() != 1) {
      return InvalidArgument("Expected indices to be a vector, but received shape: ",
                             c.input(1).shape().ToString());
    }
    WEIR_RETURN_IF_ERROR(CheckRead(c, *state, element_shape));
    WEIR_ASSIGN_OR_RETURN(const std::vector<Tensor> values, state->Read(c, ReadInts(c.input(1))));
    return Pack(c, values, element_shape);
  });
}

absl::StatusOr<Kernel> MakePack(const KernelInit& init) {
  const Shape element_shape = init.attr<Shape>("element_shape");
  return Kernel([element_shape](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
    WEIR_RETURN_IF_ERROR(CheckRead(c, *state, element_shape));
    WEIR_ASSIGN_OR_RETURN(const std::vector<Tensor> values, ReadAll(c, *state));
    return Pack(c, values, element_shape);
  });
}

absl::Status CheckParts(const std::vector<Tensor>& values, const Shape& except0) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i].shape();
    if (shape.rank() == 0) {
      return InvalidArgument("Concat saw a scalar shape at index ", i,
                             " but requires at least vectors.  Did you mean to call pack?");
    }
    if (!except0.IsCompatibleWith(values[0].shape().Sub(1))) {
      return InvalidArgument("TensorArray was passed element_shape_except0 ", except0.ToString(),
                             " but index 0 has (excepting dimension 0) shape: ",
                             values[0].shape().Sub(1).ToString(), " which does not match.");
    }
    if (shape.Sub(1) != values[0].shape().Sub(1)) {
      return InvalidArgument(
          "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: ",
          values[0].shape().Sub(1).ToString(), " but index ", i,
          " has (excepting dimension 0) shape: ", shape.Sub(1).ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeConcat(const KernelInit& init) {
  const Shape except0 = init.attr<Shape>("element_shape_except0");
  return Kernel([except0](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
    WEIR_RETURN_IF_ERROR(state->CheckType(BaseType(c.node().output_type(0)), false));
    WEIR_ASSIGN_OR_RETURN(const std::vector<Tensor> values, ReadAll(c, *state));
    const int64_t size = static_cast<int64_t>(values.size());
    WEIR_RETURN_IF_ERROR(CheckParts(values, except0));
    WEIR_ASSIGN_OR_RETURN(Tensor * lengths, c.AllocateOutput(1, Shape({size})));
    if (size == 0) return OutputEmpty(c, except0, "element_shape_except0", "concatenating");
    Shape shape = values[0].shape();
    int64_t rows = 0;
    for (int64_t i = 0; i < size; ++i) {
      lengths->data<int64_t>()[i] = values[i].dim(0);
      rows += values[i].dim(0);
    }
    shape.set_dim(0, rows);
    return OutputConcat(c, shape, values);
  });
}

absl::Status WriteRows(KernelContext& c, TensorArrayState& state, const Dims& indices) {
  const Tensor value = WithoutHandle(c.input(c.num_inputs() - 2));
  const Shape element = value.shape().Sub(1);
  std::vector<Tensor> rows;
  for (size_t i = 0; i < indices.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor row, CopyRows(c, value, i, i + 1, element));
    rows.push_back(std::move(row));
  }
  WEIR_RETURN_IF_ERROR(state.Write(c, indices, std::move(rows)));
  c.SetOutput(0, c.input(c.num_inputs() - 1));
  return absl::OkStatus();
}

absl::Status CheckRows(const Tensor& value, const TensorArrayState& state) {
  WEIR_RETURN_IF_ERROR(state.CheckType(value.dtype(), true));
  WEIR_RETURN_IF_ERROR(NestingDepth(value).status());
  if (value.rank() > 0) return absl::OkStatus();
  return InvalidArgument("Input value for unpack must be at least a vector but received shape: ",
                         value.shape().ToString());
}

absl::Status Scatter(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  const Tensor &at = c.input(1), &value = c.input(2);
  WEIR_RETURN_IF_ERROR(CheckRows(value, *state));
  WEIR_RETURN_IF_ERROR(CheckRowIndices(at, value, "values"));
  const Dims indices = ReadInts(at);
  WEIR_ASSIGN_OR_RETURN(const int64_t size, state->Size());
  const int64_t highest = indices.empty() ? -1 : *std::max_element(indices.begin(), indices.end());
  if (highest >= size && !state->dynamic_size()) {
    return InvalidArgument("Max scatter index must be < array size (", highest, " vs. ", size, ")");
  }
  return WriteRows(c, *state, indices);
}

absl::Status Unpack(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  const Tensor& value = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRows(value, *state));
  WEIR_ASSIGN_OR_RETURN(int64_t size, state->Size());
  if (state->dynamic_size()) size = std::max(size, value.dim(0));
  if (size != value.dim(0)) {
    return InvalidArgument("Input value must have first dimension equal to the array size (",
                           value.dim(0), " vs. ", size, ")");
  }
  WEIR_RETURN_IF_ERROR(CheckRoomForTensors(size));
  state->SetNumParts(size);
  return WriteRows(c, *state, FirstIndices(size));
}

absl::Status CheckLengths(const Tensor& lengths, const Tensor& value) {
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape().ToString());
  }
  if (value.rank() == 0) {
    return InvalidArgument("Expected value to be at least a vector, but received shape: ",
                           value.shape().ToString());
  }
  int64_t total = 0;
  for (const int64_t length : lengths.flat<int64_t>()) {
    if (length < 0 || length > value.dim(0))
      return InvalidArgument("Expected lengths between 0 and ", value.dim(0), ", but saw ", length);
    total += length;
    if (total > value.dim(0)) break;
  }
  if (total == value.dim(0)) return absl::OkStatus();
  return InvalidArgument(
      "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is ", total,
      " and value's shape is: ", value.shape().ToString());
}

absl::Status Split(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  const Tensor value = WithoutHandle(c.input(1));
  const Tensor& lengths = c.input(2);
  WEIR_RETURN_IF_ERROR(CheckLengths(lengths, value));
  const int64_t count = lengths.num_elements();
  WEIR_ASSIGN_OR_RETURN(int64_t size, state->Size());
  if (state->dynamic_size()) size = std::max(size, count);
  if (size != count) {
    return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                           " vs. ", count, "), and the TensorArray is not marked as dynamically ",
                           "resizeable");
  }
  WEIR_RETURN_IF_ERROR(state->CheckType(value.dtype(), true));
  WEIR_RETURN_IF_ERROR(NestingDepth(value).status());
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t length : lengths.flat<int64_t>()) {
    Shape shape = value.shape();
    shape.set_dim(0, length);
    WEIR_ASSIGN_OR_RETURN(Tensor part, CopyRows(c, value, begin, begin + length, shape));
    parts.push_back(std::move(part));
    begin += length;
  }
  state->SetNumParts(count);
  WEIR_RETURN_IF_ERROR(state->Write(c, FirstIndices(count), std::move(parts)));
  c.SetOutput(0, c.input(3));
  return absl::OkStatus();
}

absl::Status Size(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, state->Size());
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(size);
  return absl::OkStatus();
}

absl::Status Close(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const State state, ArrayOf(c));
  state->Clear();
  return absl::OkStatus();
}

}  // namespace

void AddTensorArrayKernels(KernelRegistry* r) {
  r->Add("TensorArrayGradWithShape", kCpu, MakeGradient);
  for (const std::string version : {"", "V2", "V3"}) {
    r->Add("TensorArray" + version, kCpu, MakeTensorArray);
    r->Add("TensorArrayGrad" + version, kCpu, MakeGradient);
    r->Add("TensorArrayWrite" + version, kCpu, Write).Aliases({3});
    r->Add("TensorArrayRead" + version, kCpu, Read);
    r->Add("TensorArrayGather" + version, kCpu, MakeGather);
    r->Add("TensorArrayScatter" + version, kCpu, Scatter).Aliases({3});
    r->Add("TensorArrayConcat" + version, kCpu, MakeConcat);
    r->Add("TensorArraySplit" + version, kCpu, Split).Aliases({3});
    r->Add("TensorArraySize" + version, kCpu, Size);
    r->Add("TensorArrayClose" + version, kCpu, Close);
  }
  r->Add("TensorArrayPack", kCpu, MakePack);
  r->Add("TensorArrayUnpack", kCpu, Unpack).Aliases({2});
}

}  // namespace weir
