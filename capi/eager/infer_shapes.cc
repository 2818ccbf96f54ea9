#include "tensorflow/c/c_api_experimental.h"

#include <algorithm>

#include "weir/capi/eager/op.h"
#include "weir/core/graph/signature.h"

// Shapes of an op's outputs, inferred by building it in a graph of its own.

namespace weir::capi {

namespace {

void SetShape(TF_ShapeAndType& item, const Shape& shape) {
  delete[] std::exchange(item.dims, nullptr);
  item.num_dims = shape.rank();
  if (shape.rank() <= 0) return;
  item.dims = new int64_t[static_cast<size_t>(shape.rank())];
  std::copy(shape.dims().begin(), shape.dims().end(), item.dims);
}

TF_ShapeAndType* ItemOf(absl::string_view function, TF_ShapeAndTypeList* list, int index) {
  if (!HaveAll(function, {list})) return nullptr;
  if (index >= 0 && index < list->num_items) return &list->items[index];
  LogMisuse(function, absl::StrCat("a list of ", list->num_items, " items has none at ", index));
  return nullptr;
}

// Returns what stands for an input: its value, if it is known, or a placeholder of its shape.
absl::StatusOr<Output> InputFor(Graph& graph, const TF_ShapeAndType& item, const TF_Tensor* tensor,
                                DataType type) {
  Output input;
  if (tensor != nullptr) {
    WEIR_ASSIGN_OR_RETURN(const Tensor value, ValueOf(tensor));
    input =
        NodeBuilder(graph, "Const").Attr("value", value).Attr("dtype", value.dtype()).BuildOutput();
  } else {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(item.dims, item.num_dims));
    input =
        NodeBuilder(graph, "Placeholder").Attr("dtype", type).Attr("shape", shape).BuildOutput();
  }
  return input.valid() ? absl::StatusOr<Output>(input) : graph.TakeStatus();
}

absl::StatusOr<Node*> Build(const Signature& signature, const TF_ShapeAndTypeList& shapes,
                            TF_Tensor* const* tensors, Graph& graph) {
  const OpSpec& op = *signature.op();
  if (op.is_function())
    return InvalidArgument("No shape inference function exists for op '", op.name(), "'");
  AttrMap attrs = signature.Attrs();
  WEIR_RETURN_IF_ERROR(CompleteAttrs(op, &attrs));
  WEIR_ASSIGN_OR_RETURN(const NodeTypes types, ArgTypes(op, op.inputs(), attrs, kMaxNodeArity));
  if (static_cast<int64_t>(types.size()) != shapes.num_items || shapes.num_items < 0)
    return InvalidArgument("expected ", types.size(), " inputs, got ", shapes.num_items);
  NodeBuilder builder(graph, op.name());
  size_t next = 0;
  for (const ArgSpec& arg : op.inputs()) {
    Outputs inputs;
    for (int64_t i = 0; i < ArgLength(arg, attrs); ++i, ++next) {
      WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(),
                            InputFor(graph, shapes.items[next],
                                     tensors == nullptr ? nullptr : tensors[next], types[next]));
    }
    IsListArg(arg) ? builder.InputList(inputs) : builder.Input(inputs[0]);
  }
  for (const auto& [name, value] : attrs) builder.Attr(name, value);
  Node* const node = builder.Build();
  if (node == nullptr) return graph.TakeStatus();
  return node;
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::ItemOf;
using weir::capi::SetShape;

TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes) {
  if (num_shapes < 0 || num_shapes > weir::kMaxNodeArity) {
    weir::capi::LogMisuse("TF_NewShapeAndTypeList",
                          absl::StrCat("no op has ", num_shapes, " inputs"));
    return nullptr;
  }
  return new TF_ShapeAndTypeList{num_shapes, new TF_ShapeAndType[num_shapes]()};
}

void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list) {
  if (shape_list == nullptr) return;
  for (int i = 0; i < shape_list->num_items; ++i) delete[] shape_list->items[i].dims;
  delete[] shape_list->items;
  delete shape_list;
}

void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array, int num_items) {
  for (int i = 0; shape_list_array != nullptr && i < num_items; ++i)
    TF_DeleteShapeAndTypeList(shape_list_array[i]);
  delete[] shape_list_array;
}

void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index, const int64_t* dims,
                                 int num_dims) {
  TF_ShapeAndType* const item = ItemOf("TF_ShapeAndTypeListSetShape", shape_list, index);
  if (item == nullptr) return;
  const absl::StatusOr<weir::Shape> shape = weir::capi::ShapeOf(dims, num_dims);
  if (!shape.ok())
    return weir::capi::LogMisuse("TF_ShapeAndTypeListSetShape", shape.status().message());
  SetShape(*item, *shape);
}

void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index) {
  TF_ShapeAndType* const item = ItemOf("TF_ShapeAndTypeListSetUnknownShape", shape_list, index);
  if (item != nullptr) SetShape(*item, weir::Shape::UnknownRank());
}

void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index, TF_DataType dtype) {
  TF_ShapeAndType* const item = ItemOf("TF_ShapeAndTypeListSetDtype", shape_list, index);
  if (item != nullptr) item->dtype = dtype;
}

void TFE_InferShapes(TFE_Op* op, TF_ShapeAndTypeList* input_shapes, TF_Tensor** input_tensors,
                     TF_ShapeAndTypeList* input_tensor_as_shapes,
                     TF_ShapeAndTypeList** input_resource_shapes_and_types,
                     TF_ShapeAndTypeList** output_shapes,
                     TF_ShapeAndTypeList*** output_resource_shapes_and_types, TF_Status* status) {
  static_cast<void>(input_tensor_as_shapes);
  static_cast<void>(input_resource_shapes_and_types);
  static_cast<void>(output_resource_shapes_and_types);
  if (!HaveAll("TFE_InferShapes", {op, input_shapes, output_shapes}, status)) return;
  weir::Graph graph(op->context->ops());
  const absl::StatusOr<weir::Node*> node =
      weir::capi::Build(op->signature, *input_shapes, input_tensors, graph);
  weir::capi::SetStatus(status, node.status());
  if (!node.ok()) return;
  TF_ShapeAndTypeList* const shapes = TF_NewShapeAndTypeList((*node)->num_outputs());
  for (int i = 0; i < (*node)->num_outputs(); ++i) {
    SetShape(shapes->items[i], (*node)->output_shape(i));
    shapes->items[i].dtype = static_cast<TF_DataType>((*node)->output_type(i));
  }
  *output_shapes = shapes;
}
