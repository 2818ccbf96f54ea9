#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/lib/ranked_internal.h"

#include <optional>

#include "absl/strings/str_split.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"

namespace weir {

TensorArray::TensorArray(Graph& graph, DataType dtype, const Ints& size,
                         const TensorArrayOptions& options)
    : dtype_(dtype), dynamic_size_(options.dynamic_size), size_(size), has_size_(true) {
  shared_->element_shape = options.element_shape;
  shared_->infer_shape = options.infer_shape;
  const NameScope scope(graph, options.name.empty() ? "TensorArray" : options.name);
  // The array is placed with the first value that is written.
  const DeviceScope anywhere(graph, "");
  const ColocateWith nothing(graph, Operation(), /*ignore_existing=*/true);
  const Output length = size.In(graph, "size");
  Node* node = AddNode("TensorArrayV3", {length},
                       {{"dtype", dtype},
                        {"element_shape", options.element_shape},
                        {"dynamic_size", options.dynamic_size},
                        {"clear_after_read", options.clear_after_read},
                        {"identical_element_shapes", options.infer_shape},
                        {"tensor_array_name", options.tensor_array_name}},
                       scope.name());
  if (node == nullptr) return;
  handle_ = node->output(0);
  flow_ = node->output(1);
}

TensorArray::TensorArray(DataType dtype, Output handle, Output flow)
    : dtype_(dtype), handle_(handle), flow_(flow) {
  shared_->colocate_with_first_write = false;
}

std::string TensorArray::Versioned(absl::string_view op) const {
  const char* version = handle_.is_ref() ? "" : handle_.dtype() == DT_STRING ? "V2" : "V3";
  return absl::StrCat("TensorArray", op, version);
}

TensorArray TensorArray::WithFlow(Output flow) const {
  TensorArray out = *this;
  out.flow_ = flow;
  return out;
}

bool TensorArray::FitsElements(const Shape& shape) const {
  absl::StatusOr<Shape> merged = shared_->element_shape.MergeWith(shape);
  if (!merged.ok()) {
    handle_.graph().Fail(InvalidArgument("Inconsistent shapes: saw ", shape.ToString(),
                                         " but expected ", shared_->element_shape.ToString()));
    return false;
  }
  if (shared_->infer_shape) shared_->element_shape = *std::move(merged);
  return true;
}

// The first value written determines the placement of writes.
void TensorArray::PlaceWrite(const Output& value, std::optional<ColocateWith>* scope) const {
  if (!shared_->colocate_with_first_write) return;
  if (shared_->first_write == nullptr) shared_->first_write = value.node;
  scope->emplace(handle_.graph(), shared_->first_write);
}

// Implements Write and Scatter. `argument` is the name of the argument that holds the indices.
TensorArray TensorArray::AddWrite(absl::string_view op, const Ints& indices, const char* argument,
                                  Output value, const Shape& element,
                                  absl::string_view name) const {
  if (!this->valid() || !value.valid() || !FitsElements(element)) return {};
  Graph& g = handle_.graph();
  const NameScope outer(g, name.empty() ? absl::StrCat("TensorArray", op) : std::string(name));
  std::optional<ColocateWith> colocation;
  PlaceWrite(value, &colocation);
  const NameScope inner(g, Versioned(op));
  return WithFlow(
      AddOp(Versioned(op), {handle_, indices.In(g, argument), value, flow_}, {}, inner.name()));
}

TensorArray TensorArray::Write(const Ints& index, Output value, absl::string_view name) const {
  return AddWrite("Write", index, "index", value, value.shape(), name);
}

TensorArray TensorArray::Scatter(const Ints& indices, Output value, absl::string_view name) const {
  const Shape& shape = value.shape();
  const Shape element = shape.rank() > 0 ? shape.Sub(1) : Shape::UnknownRank();
  return AddWrite("Scatter", indices, "indices", value, element, name);
}

TensorArray TensorArray::Unstack(Output value, absl::string_view name) const {
  if (!this->valid() || !value.valid()) return {};
  Graph& g = handle_.graph();
  const NameScope scope(g, name.empty() ? "TensorArrayUnstack" : name);
  const Output rows = StridedSlice(ShapeTensor(value), {0});
  return Scatter(RangeOp(g, 0, rows, 1), value);
}

TensorArray TensorArray::Split(Output value, const Ints& lengths, absl::string_view name) const {
  if (!this->valid() || !value.valid()) return {};
  Graph& g = handle_.graph();
  const NameScope scope(g, name.empty() ? "TensorArraySplit" : name);
  std::optional<ColocateWith> colocation;
  PlaceWrite(value, &colocation);
  Output wide = lengths.In(g, "Cast/x");
  if (!wide.valid()) return {};
  if (wide.dtype() != DT_INT64) wide = Cast(wide, DT_INT64);
  return WithFlow(AddOp(Versioned("Split"), {handle_, value, wide, flow_}));
}

Output TensorArray::Refined(Output value, const Shape& shape) const {
  if (value.valid()) value.graph().Fail(value.graph().RefineShape(value, shape));
  return value;
}

Output TensorArray::Read(const Ints& index, absl::string_view name) const {
  if (!this->valid()) return {};
  Graph& g = handle_.graph();
  const NameScope scope(g, name.empty() ? Versioned("Read") : std::string(name));
  const Output value = AddOp(Versioned("Read"), {handle_, index.In(g, "index"), flow_},
                             {{"dtype", dtype_}}, scope.name());
  return Refined(value, element_shape());
}

Output TensorArray::Gather(const Ints& indices, absl::string_view name) const {
  if (!this->valid()) return {};
  Graph& g = handle_.graph();
  const NameScope scope(g, name.empty() ? Versioned("Gather") : std::string(name));
  const Output value = AddOp(Versioned("Gather"), {handle_, indices.In(g, "indices"), flow_},
                             {{"dtype", dtype_}, {"element_shape", element_shape()}}, scope.name());
  if (!element_shape().has_rank()) return value;
  return Refined(value, Shape({-1}).Concatenate(element_shape()));
}

Output TensorArray::Stack(absl::string_view name) const {
  if (!this->valid()) return {};
  Graph& g = handle_.graph();
  const ColocateWith colocation(g, handle_.node);
  const NameScope scope(g, name.empty() ? "TensorArrayStack" : name);
  const Output size = Size();
  if (!size.valid()) return {};
  const Output value = Gather(RangeOp(g, 0, size, 1));
  if (!element_shape().has_rank() || dynamic_size_ || !has_size_ || size_.is_tensor()) return value;
  return Refined(value, Shape({size_.values()[0]}).Concatenate(element_shape()));
}

Output TensorArray::Concat(absl::string_view name) const {
  if (!this->valid()) return {};
  const Shape& element = element_shape();
  const Shape except0 = element.rank() > 0 ? element.Sub(1) : Shape::UnknownRank();
  const Output value = AddOp(Versioned("Concat"), {handle_, flow_},
                             {{"dtype", dtype_}, {"element_shape_except0", except0}}, name);
  if (element.rank() < 1) return value;
  return Refined(value, Shape({-1}).Concatenate(except0));
}

// Returns a constant if the size is constant and the array does not grow.
Output TensorArray::Size(absl::string_view name) const {
  if (!this->valid()) return {};
  if (!dynamic_size_ && has_size_) return size_.In(handle_.graph(), "Const");
  return AddOp(Versioned("Size"), {handle_, flow_}, {}, name);
}

Operation TensorArray::Close(absl::string_view name) const {
  if (!this->valid()) return {};
  return Operation(AddNode(Versioned("Close"), {handle_}, {}, name));
}

TensorArray TensorArray::Gradient(absl::string_view source, Output flow) const {
  if (!handle_.valid() || !flow.valid()) return {};
  Graph& g = handle_.graph();
  const NameScope scope(g, "TensorArrayGrad");
  const ColocateWith colocation(g, handle_.node);
  const Output handle = AddOp(Versioned("Grad"), {handle_, flow}, {{"source", source}});
  if (!handle.valid()) return {};
  const ControlDependencies after(g, {handle});
  TensorArray gradient(dtype_, handle, Identity(flow, "gradient_flow"));
  gradient.shared_->element_shape = element_shape();
  gradient.shared_->infer_shape = shared_->infer_shape;
  return gradient;
}

namespace {

// ---- shape functions

// TensorFlow's shape function declares [2] for resources too, which are scalars at run time.
absl::Status NewArrayShape(ShapeContext& c) {
  if (c.num_outputs() > 1)
    c.set_output(1, Shape());
  else
    c.set_output(0, Shape({2}));
  return absl::OkStatus();
}

absl::Status ElementAtShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }

absl::Status WriteShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return ScalarShape(c);
}

absl::Status GatherShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(1, 1));
  const Shape element = c.attr<Shape>("element_shape");
  if (element.has_rank()) c.set_output(0, indices.Concatenate(element));
  return absl::OkStatus();
}

absl::Status ScatterShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  return ScalarShape(c);
}

absl::Status ConcatShape(ShapeContext& c) {
  const Shape except0 = c.attr<Shape>("element_shape_except0");
  if (except0.has_rank()) c.set_output(0, Shape({-1}).Concatenate(except0));
  c.set_output(1, Shape({-1}));
  return absl::OkStatus();
}

// ---- gradients

// Returns the call of Gradients that builds these nodes; values written to the gradient array are
// summed only within one call. It is the name up to the last component that starts with
// "gradients".
absl::StatusOr<std::string> GradientSourceOf(const Output& dy) {
  const std::string& name = dy.node->name();
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].substr(0, 9) != "gradients") continue;
    return name.substr(0, static_cast<size_t>(parts[i].data() - name.data()) + parts[i].size());
  }
  return InvalidArgument(
      "Expected op/tensor name to start with gradients (excluding scope), got: ", name,
      ". Pass Gradients a name that starts with 'gradients': the gradient flows through a "
      "TensorArray.");
}

// Returns the array that receives the gradients of the elements of the node's array, ordered after
// `flow`.
TensorArray GradientArray(GradContext& g, DataType dtype, const Output& dy, const Output& flow) {
  const absl::StatusOr<std::string> source = GradientSourceOf(dy);
  if (!source.ok()) {
    g.graph().Fail(source.status());
    return {};
  }
  return TensorArray(dtype, g.x(0), flow).Gradient(*source, flow);
}

// The size of a growing array is known only once the source of the read has been written.
TensorArray ReadGradientArray(GradContext& g, int flow) {
  return GradientArray(g, g.attr<DataType>("dtype"), g.dy(0), g.x(flow));
}

Grads ReadGradient(GradContext& g) {
  const TensorArray array = ReadGradientArray(g, 2);
  if (!array.valid()) return {};
  return {Grad(), Grad(), array.Write(g.x(1), g.dy(0)).flow()};
}

Grads GatherGradient(GradContext& g) {
  const TensorArray array = ReadGradientArray(g, 2);
  if (!array.valid()) return {};
  return {Grad(), Grad(), array.Scatter(g.x(1), g.dy(0)).flow()};
}

Grads ConcatGradient(GradContext& g) {
  const TensorArray array = ReadGradientArray(g, 1);
  if (!array.valid()) return {};
  return {Grad(), array.Split(g.dy(0), g.y(1)).flow()};
}

// For the gradient of a write, whose value is in the gradient array only afterward: the gradient
// array may only be created then.
struct WriteBarrier {
  TensorArray array;
  Output flow;
};
WriteBarrier WriteGradientArray(GradContext& g) {
  const Output written = Identity(g.y(0), "flow_out");
  if (!written.valid()) return {};
  const absl::StatusOr<std::string> source = GradientSourceOf(g.dy(0));
  Output flow;
  {
    const ControlDependencies after(g.graph(), {written});
    flow = Identity(g.dy(0), "write_barrier");
  }
  if (!source.ok()) {
    g.graph().Fail(source.status());
    return {};
  }
  return {TensorArray(g.attr<DataType>("T"), g.x(0), flow).Gradient(*source, flow), flow};
}

Grads WriteGradient(GradContext& g) {
  const WriteBarrier b = WriteGradientArray(g);
  return {Grad(), Grad(), b.array.Read(g.x(1)), b.flow};
}

Grads ScatterGradient(GradContext& g) {
  const WriteBarrier b = WriteGradientArray(g);
  return {Grad(), Grad(), b.array.Gather(g.x(1)), b.flow};
}

Grads SplitGradient(GradContext& g) {
  const WriteBarrier b = WriteGradientArray(g);
  return {Grad(), b.array.Concat(), Grad(), b.flow};
}

}  // namespace

namespace {

// Handles were references to strings first, then strings, then resources. Only ops on resources
// declare themselves stateful.
struct Version {
  std::string suffix, handle;
  int deprecated_at;  // 0: not deprecated
  bool is_stateful;
};

void AddVersion(const Version& v, OpRegistry* ops) {
  const auto spec = [&](absl::string_view op, absl::string_view arguments) {
    OpSpec out(absl::StrCat("TensorArray", op, v.suffix));
    out.In(absl::StrCat("handle: ", v.handle, arguments));
    if (v.is_stateful || op == "Grad") out.Stateful();
    out.Has(Effect::kMutates);
    int deprecated_at = v.deprecated_at;
    if (op == "Concat" && v.suffix == "V2") deprecated_at = 0;
    if (op == "Scatter" && v.suffix.empty()) deprecated_at = 19;
    if (deprecated_at > 0) out.Deprecated(deprecated_at, "The op that ends in V3 replaces it");
    return out;
  };
  const auto use = [](ContainerUse::Kind kind, int value = 0) {
    return ContainerUse{.kind = kind, .type = ContainerUse::Type::kArray, .value = value};
  };
  const bool has_flow = v.suffix == "V3";
  ops->Add(spec("Grad", ", flow_in: float")
               .Out(absl::StrCat("grad_handle: ", v.handle, has_flow ? ", flow_out: float" : ""))
               .Attr("source: string")
               .Uses(use(ContainerUse::Kind::kObserves))
               .InferShape(NewArrayShape)
               .NotDifferentiable()
               .Doc("Creates the array of the gradients of an array's elements, one array per "
                    "`source`."));
  ops->Add(spec("Write", ", index: int32, value: T, flow_in: float")
               .Out("flow_out: float")
               .Attr("T: type")
               .Uses(use(ContainerUse::Kind::kPuts, 2))
               .InferShape(Ranked("flow_in: 0", WriteShape))
               .Gradient(WriteGradient)
               .Doc("Writes an element of an array. Each element may be written once."));
  ops->Add(spec("Read", ", index: int32, flow_in: float")
               .Out("value: dtype")
               .Attr("dtype: type")
               .Uses(use(ContainerUse::Kind::kTakes))
               .InferShape(Ranked("flow_in: 0", ElementAtShape))
               .Gradient(ReadGradient)
               .Doc("Reads an element of an array."));
  ops->Add(spec("Gather", ", indices: int32, flow_in: float")
               .Out("value: dtype")
               .Attr("dtype: type")
               .Attr("element_shape: shape = { unknown_rank: true }")
               .Moves(Movement::kRearrange)
               .Uses(use(ContainerUse::Kind::kObserves))
               .InferShape(Ranked("flow_in: 0", GatherShape))
               .Gradient(GatherGradient)
               .Doc("Gathers elements of an array and stacks them along a new first dimension."));
  ops->Add(spec("Scatter", ", indices: int32, value: T, flow_in: float")
               .Out("flow_out: float")
               .Attr("T: type")
               .Uses(use(ContainerUse::Kind::kPutsRows, 2))
               .InferShape(Ranked("value: >=1, flow_in: 0", ScatterShape))
               .Gradient(ScatterGradient)
               .Doc("Writes the rows of a tensor to the given indices of an array."));
  ops->Add(spec("Concat", ", flow_in: float")
               .Out("value: dtype, lengths: int64")
               .Attr("dtype: type")
               .Attr("element_shape_except0: shape = { unknown_rank: true }")
               .Moves(Movement::kRearrange)
               .Uses(use(ContainerUse::Kind::kObserves))
               .InferShape(Ranked("flow_in: 0", ConcatShape))
               .Gradient(ConcatGradient)
               .Doc("Concatenates all elements of an array along their first dimension. Also "
                    "returns the extents of that dimension."));
  ops->Add(spec("Split", ", value: T, lengths: int64, flow_in: float")
               .Out("flow_out: float")
               .Attr("T: type")
               .InferShape(Ranked("lengths: 1, flow_in: 0", ScalarShape))
               .Gradient(SplitGradient)
               .Doc("Splits a tensor by `lengths` along its first dimension and writes the parts "
                    "to the elements of an array."));
  ops->Add(spec("Size", ", flow_in: float")
               .Out("size: int32")
               .Uses(use(ContainerUse::Kind::kObserves))
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns the number of elements of an array."));
  ops->Add(spec("Close", "")
               .Uses(use(ContainerUse::Kind::kObserves))
               .InferShape(NoOutputs)
               .NotDifferentiable()
               .Doc("Frees the elements of an array."));
}

}  // namespace

void AddTensorArrayOps(OpRegistry* ops) {
  const auto array = [](absl::string_view name) {
    OpSpec out(name);
    out.In("size: int32").Attr("dtype: type").Stateful();
    return out.InferShape(Ranked("size: 0", NewArrayShape))
        .NotDifferentiable()
        .Doc(
            "Creates an array of `size` tensors that is private to the step. It can grow if "
            "dynamic_size.");
  };
  constexpr char kShape[] = "element_shape: shape = { unknown_rank: true }";
  constexpr char kGrows[] = "dynamic_size: bool = false";
  constexpr char kClears[] = "clear_after_read: bool = true";
  constexpr char kName[] = "tensor_array_name: string = ''";
  ops->Add(array("TensorArray")
               .Out("handle: Ref(string)")
               .Attr(kGrows)
               .Attr(kClears)
               .Attr(kName)
               .Attr(kShape)
               .Deprecated(16, "TensorArrayV3 replaces it"));
  ops->Add(array("TensorArrayV2")
               .Out("handle: string")
               .Attr(kShape)
               .Attr(kGrows)
               .Attr(kClears)
               .Attr(kName)
               .Deprecated(26, "TensorArrayV3 replaces it"));
  ops->Add(array("TensorArrayV3")
               .Uses({.kind = ContainerUse::Kind::kMakes, .type = ContainerUse::Type::kArray})
               .Out("handle: resource, flow: float")
               .Attr(kShape)
               .Attr(kGrows)
               .Attr(kClears)
               .Attr("identical_element_shapes: bool = false")
               .Attr(kName));
  for (const Version& version :
       {Version{"", "Ref(string)", 16, false}, Version{"V2", "string", 26, false},
        Version{"V3", "resource", 0, true}}) {
    AddVersion(version, ops);
  }
  ops->Add(
      OpSpec("TensorArrayGradWithShape")
          .In("handle: resource, flow_in: float, shape_to_prepend: int32")
          .Out("grad_handle: resource, flow_out: float")
          .Attr("source: string")
          .Stateful()
          .InferShape(NewArrayShape)
          .NotDifferentiable()
          .Doc("Computes TensorArrayGradV3 with additional leading dimensions of the elements."));
  ops->Add(OpSpec("TensorArrayPack")
               .In("handle: Ref(string), flow_in: float")
               .Out("value: dtype")
               .Attr("dtype: type")
               .Attr("element_shape: shape = { unknown_rank: true }")
               .Has(Effect::kMutates)
               .InferShape(UnknownShape)
               .Deprecated(16, "TensorArrayGatherV3 with RangeOp replaces it")
               .Doc("Stacks all elements of an array along a new first dimension."));
  ops->Add(OpSpec("TensorArrayUnpack")
               .In("handle: Ref(string), value: T, flow_in: float")
               .Out("flow_out: float")
               .Attr("T: type")
               .Has(Effect::kMutates)
               .InferShape(ScalarShape)
               .Deprecated(20, "TensorArrayScatterV3 with RangeOp replaces it")
               .Doc("Writes the rows of a tensor to an array."));
}

}  // namespace weir
