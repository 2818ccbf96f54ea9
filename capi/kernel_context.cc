#include "tensorflow/c/kernels.h"
#include "weir/capi/kernel_objects.h"

// The inputs and outputs of a plug-in's computation.

absl::Status TF_OpKernelContext::Finish() {
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i] == nullptr) continue;
    const std::unique_ptr<TF_Tensor> written = std::move(strings[i]);
    absl::StatusOr<weir::Tensor> value = weir::capi::ValueOf(written.get());
    auto* const elements = static_cast<TF_TString*>(written->data);
    for (int64_t k = 0; k < written->shape.num_elements(); ++k) TF_StringDealloc(&elements[k]);
    error.Update(value.status());
    if (value.ok()) context.SetOutput(static_cast<int>(i), *std::move(value));
  }
  return error;
}

namespace weir::capi {

namespace {

// Returns whether the index is that of a value; sets the status if not.
bool IsIndex(const char* what, int i, int count, TF_Status* status) {
  const bool is_index = i >= 0 && i < count;
  SetStatus(status, is_index ? absl::OkStatus() : OutOfRange(what, " index out of range"));
  return is_index;
}

DataType OutputType(const TF_OpKernelContext& ctx, int i) {
  return BaseType(ctx.context.node().output_type(i));
}

absl::StatusOr<TF_Tensor*> NewStringTensor(const Shape& shape) {
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * sizeof(TF_TString);
  TF_Tensor* const tensor = TF_AllocateTensor(TF_STRING, shape.dims().data(), shape.rank(), bytes);
  if (tensor == nullptr) return absl::ResourceExhaustedError("no memory for strings");
  return tensor;
}

// Returns the shape of a value to allocate.
absl::StatusOr<Shape> FullShapeOf(const int64_t* dims, int num_dims) {
  if (num_dims < 0) return InvalidArgument("the number of dimensions is ", num_dims);
  WEIR_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims, num_dims));
  if (shape.IsFullyDefined()) return shape;
  return InvalidArgument("a value has no shape ", shape.ToString());
}

absl::StatusOr<TF_Tensor*> AllocateOutput(TF_OpKernelContext& ctx, int i, const int64_t* dims,
                                          int num_dims) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, FullShapeOf(dims, num_dims));
  if (OutputType(ctx, i) != DT_STRING) {
    WEIR_ASSIGN_OR_RETURN(const Tensor* const output, ctx.context.AllocateOutput(i, shape));
    ctx.outputs[i] = *output;
    return NewTensor(*output);
  }
  WEIR_ASSIGN_OR_RETURN(TF_Tensor* const tensor, NewStringTensor(shape));
  ctx.strings[i] = std::make_unique<TF_Tensor>(*tensor);
  return tensor;
}

absl::StatusOr<TF_Tensor*> AllocateTemp(TF_OpKernelContext& ctx, TF_DataType dtype,
                                        const int64_t* dims, int num_dims,
                                        const TF_AllocatorAttributes* attributes) {
  if (attributes != nullptr && attributes->struct_size == 0) {
    return InvalidArgument("TF_AllocatorAttributes struct size member must be set to ",
                           "TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE");
  }
  WEIR_ASSIGN_OR_RETURN(const DataType type, TypeOf(dtype));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, FullShapeOf(dims, num_dims));
  if (type == DT_STRING) return NewStringTensor(shape);
  if (!IsPlain(type) || IsRef(type))
    return InvalidArgument("no tensor of ", DataTypeName(type), " can be made");
  WEIR_ASSIGN_OR_RETURN(Tensor temp, ctx.context.AllocateTemp(type, shape));
  return NewTensor(std::move(temp));
}

absl::Status SetOutput(TF_OpKernelContext& ctx, int i, const TF_Tensor* tensor) {
  WEIR_ASSIGN_OR_RETURN(Tensor value, ValueOf(tensor));
  if (value.dtype() != OutputType(ctx, i)) {
    return InvalidArgument("output ", i, " is ", DataTypeName(OutputType(ctx, i)), ", not ",
                           DataTypeName(value.dtype()));
  }
  ctx.strings[i] = nullptr;
  ctx.outputs[i] = value;
  ctx.context.SetOutput(i, std::move(value));
  return absl::OkStatus();
}

// Sets the status, and returns the tensor or null.
TF_Tensor* Return(const absl::StatusOr<TF_Tensor*>& tensor, TF_Status* status) {
  SetStatus(status, tensor.status());
  return tensor.ok() ? *tensor : nullptr;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::IsIndex;
using weir::capi::SetStatus;

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  if (HaveAll("TF_OpKernelContext_Failure", {ctx}, status)) ctx->error.Update(status->status);
}

int TF_NumInputs(TF_OpKernelContext* ctx) {
  return HaveAll("TF_NumInputs", {ctx}) ? ctx->context.num_inputs() : -1;
}

int TF_NumOutputs(TF_OpKernelContext* ctx) {
  return HaveAll("TF_NumOutputs", {ctx}) ? ctx->context.num_outputs() : -1;
}

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status) {
  if (tensor != nullptr) *tensor = nullptr;
  if (!HaveAll("TF_GetInput", {ctx, tensor}, status) ||
      !IsIndex("input", i, ctx->context.num_inputs(), status))
    return;
  *tensor = weir::capi::Return(weir::capi::NewTensor(ctx->context.input(i)), status);
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  if (!HaveAll("TF_InputDatatype", {ctx})) return TF_DataType{};
  if (index >= 0 && index < ctx->context.num_inputs())
    return static_cast<TF_DataType>(ctx->context.node().input_type(index));
  weir::capi::LogMisuse("TF_InputDatatype", absl::StrCat("there is no input ", index));
  return TF_DataType{};
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  if (!HaveAll("TF_ExpectedOutputDataType", {ctx})) return TF_DataType{};
  if (i >= 0 && i < ctx->context.num_outputs())
    return static_cast<TF_DataType>(ctx->context.node().output_type(i));
  weir::capi::LogMisuse("TF_ExpectedOutputDataType", absl::StrCat("there is no output ", i));
  return TF_DataType{};
}

// Kernels of plug-ins run on the CPU.
bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return HaveAll("TF_IsHostMemoryInput", {ctx}, status) &&
         IsIndex("input", i, ctx->context.num_inputs(), status);
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  return HaveAll("TF_IsHostMemoryOutput", {ctx}, status) &&
         IsIndex("output", i, ctx->context.num_outputs(), status);
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args) {
  if (!HaveAll("TF_InputRange", {args})) return;
  args->start = args->stop = -1;
  if (!HaveAll("TF_InputRange", {ctx, name}, args->status)) return;
  const weir::Node& node = ctx->context.node();
  for (const weir::ArgSpec& arg : node.op().inputs()) {
    if (arg.name != name) continue;
    std::tie(args->start, args->stop) = node.InputRange(name);
    return SetStatus(args->status, absl::OkStatus());
  }
  SetStatus(args->status, weir::InvalidArgument("Unknown input name: ", name));
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status) {
  if (!HaveAll("TF_SetOutput", {ctx, tensor}, status) ||
      !IsIndex("output", i, ctx->context.num_outputs(), status))
    return;
  SetStatus(status, weir::capi::SetOutput(*ctx, i, tensor));
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype,
                             const int64_t* dims, int num_dims, size_t len, TF_Status* status) {
  static_cast<void>(len);
  if (!HaveAll("TF_AllocateOutput", {context}, status) ||
      !IsIndex("output", index, context->context.num_outputs(), status))
    return nullptr;
  const weir::DataType own = weir::capi::OutputType(*context, index);
  if (static_cast<TF_DataType>(own) != dtype) {
    SetStatus(status, weir::InvalidArgument("output ", index, " is ", weir::DataTypeName(own),
                                            ", not of type ", static_cast<int64_t>(dtype)));
    return nullptr;
  }
  return weir::capi::Return(weir::capi::AllocateOutput(*context, index, dims, num_dims), status);
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context,
                                           const int* candidate_input_indices,
                                           int num_candidate_input_indices, int output_index,
                                           const int64_t* output_dims, int output_num_dims,
                                           int* forwarded_input, TF_Status* status) {
  static_cast<void>(candidate_input_indices);
  static_cast<void>(num_candidate_input_indices);
  if (forwarded_input != nullptr) *forwarded_input = -1;
  if (!HaveAll("TF_ForwardInputOrAllocateOutput", {context}, status) ||
      !IsIndex("output", output_index, context->context.num_outputs(), status))
    return nullptr;
  return weir::capi::Return(
      weir::capi::AllocateOutput(*context, output_index, output_dims, output_num_dims), status);
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  if (!HaveAll("TF_GetMutableOutput", {ctx}, status) ||
      !IsIndex("output", i, ctx->context.num_outputs(), status))
    return nullptr;
  if (ctx->strings[i] != nullptr) return new TF_Tensor(*ctx->strings[i]);
  if (!ctx->outputs[i].initialized()) {
    SetStatus(status, weir::FailedPrecondition("output ", i, " has not been set"));
    return nullptr;
  }
  return weir::capi::Return(weir::capi::NewTensor(ctx->outputs[i]), status);
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
                           int num_dims, TF_AllocatorAttributes* alloc_attrs, TF_Status* status) {
  if (!HaveAll("TF_AllocateTemp", {context}, status)) return nullptr;
  return weir::capi::Return(weir::capi::AllocateTemp(*context, dtype, dims, num_dims, alloc_attrs),
                            status);
}
