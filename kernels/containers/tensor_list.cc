#include "weir/kernels/containers/tensor_list.h"

#include <algorithm>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Lists of tensors, as values: functional loops collect their results in them, and gradients read
// the elements. The element type that an op requests is that of its output, or of the value it
// inserts.
namespace weir {

absl::StatusOr<const TensorList*> InputList(const KernelContext& c, int i) {
  const Tensor& t = c.input(i);
  if (t.dtype() != DT_VARIANT || t.rank() != 0)
    return InvalidArgument("Input list must be a scalar saw: ", t.shape().ToString());
  if (const TensorList* list = VariantAs<TensorList>(*t.data<Variant>())) return list;
  return InvalidArgument("Input handle is not a list. Saw: '", t.data<Variant>()->type_name, "'");
}

absl::Status CheckListType(const TensorList& list, DataType dtype) {
  if (list.element_dtype == dtype) return absl::OkStatus();
  return InvalidArgument("Invalid data types; op elements ", DataTypeName(dtype),
                         " but list elements ", DataTypeName(list.element_dtype));
}

absl::StatusOr<Shape> ReadElementShape(const Tensor& t) {
  if (t.rank() == 0) {
    if (t.IntAt(0) == -1) return Shape::UnknownRank();
    return InvalidArgument(
        "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  }
  if (t.rank() != 1) return InvalidArgument("Shape must be at most rank 1 but is rank ", t.rank());
  return Shape::Make(ReadInts(t));
}

absl::StatusOr<Shape> MergeListShapes(const Shape& a, const Shape& b) {
  absl::StatusOr<Shape> merged = a.MergeWith(b);
  if (merged.ok()) return merged;
  return InvalidArgument("Incompatible ", a.rank() == b.rank() ? "shapes" : "ranks",
                         " during merge: ", merged.status().message());
}

absl::StatusOr<Shape> ElementShape(const KernelContext& c, const TensorList& list, int i) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ReadElementShape(c.input(i)));
  return MergeListShapes(shape, list.element_shape);
}

absl::StatusOr<Shape> MergeElements(const TensorList& list, Shape shape) {
  // All elements must have the list's shape.
  if (list.element_shape.IsFullyDefined()) return shape;
  WEIR_RETURN_IF_ERROR(list.elements.ForEach([&](int64_t, const Tensor& t) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(shape, MergeListShapes(shape, t.shape()));
    return absl::OkStatus();
  }));
  return shape;
}

absl::Status PutElement(KernelContext& c, TensorList* list, int64_t i, const Tensor& value) {
  WEIR_ASSIGN_OR_RETURN(const int depth, NestingDepth(value));
  WEIR_ASSIGN_OR_RETURN(Tensor owned, c.Own(value));
  list->depth = std::max(list->depth, depth + 1);
  list->elements = std::move(list->elements).With(i, std::move(owned));
  return absl::OkStatus();
}

absl::Status PutRows(KernelContext& c, TensorList* list, const Tensor& value,
                     absl::Span<const int64_t> at) {
  const Shape element = value.shape().Sub(1);
  for (size_t i = 0; i < at.size(); ++i) {
    if (i % 1024 == 0 && c.cancellation() != nullptr && c.cancellation()->cancelled())
      return c.cancellation()->status();
    WEIR_ASSIGN_OR_RETURN(const Tensor row, CopyRows(value, i, i + 1, element));
    WEIR_RETURN_IF_ERROR(PutElement(c, list, at[i], row));
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<int64_t> ReadScalar(const Tensor& t, absl::string_view name) {
  if (t.rank() == 0) return t.IntAt(0);
  return InvalidArgument(name, " must be a scalar, but got shape ", t.shape().ToString());
}

// Returns the type in an attribute, for lists that are created empty.
DataType ElementType(const KernelContext& c) { return c.node().attr<DataType>("element_dtype"); }
DataType OutputType(const KernelContext& c, int i) { return BaseType(c.node().output_type(i)); }

absl::Status Empty(KernelContext& c) {
  TensorList list;
  list.element_dtype = ElementType(c);
  WEIR_ASSIGN_OR_RETURN(list.element_shape, ReadElementShape(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(list.max_num_elements, ReadScalar(c.input(1), "max_num_elements"));
  c.SetOutput(0, VariantScalar(std::move(list)));
  return absl::OkStatus();
}

absl::Status Reserve(KernelContext& c) {
  TensorList list;
  list.element_dtype = ElementType(c);
  WEIR_ASSIGN_OR_RETURN(list.element_shape, ReadElementShape(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadScalar(c.input(1), "num_elements to reserve"));
  if (size < 0) {
    return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                           size);
  }
  list.elements = list.elements.Resized(size);
  c.SetOutput(0, VariantScalar(std::move(list)));
  return absl::OkStatus();
}

absl::Status Length(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(list->elements.size());
  return absl::OkStatus();
}

absl::Status OutputElementShape(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  const Shape& shape = list->element_shape;
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(0, shape.has_rank() ? Shape({shape.rank()}) : Shape()));
  if (!shape.has_rank()) out->SetIntAt(0, -1);
  for (int i = 0; i < shape.rank(); ++i) out->SetIntAt(i, shape.dim(i));
  return absl::OkStatus();
}

absl::Status Resize(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadScalar(c.input(1), "size"));
  if (size < 0)
    return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size);
  TensorList out = *list;
  out.elements = out.elements.Resized(size);
  c.SetOutput(0, VariantScalar(std::move(out)));
  return absl::OkStatus();
}

// Returns "at index 3" for lists in a batch.
absl::Status CheckAppend(const TensorList& list, const Shape& shape, DataType dtype) {
  if (!list.element_shape.IsCompatibleWith(shape)) {
    return InvalidArgument(
        "Tried to append a tensor with incompatible shape to a list. Op element shape: ",
        shape.ToString(), " list shape: ", list.element_shape.ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckListType(list, dtype));
  if (list.max_num_elements < 0 || list.elements.size() < list.max_num_elements)
    return absl::OkStatus();
  return InvalidArgument("Tried to push item into a full list list size: ", list.elements.size(),
                         " max_num_elements: ", list.max_num_elements);
}

absl::Status Append(KernelContext& c, TensorList* list, const Tensor& value) {
  WEIR_RETURN_IF_ERROR(CheckAppend(*list, value.shape(), value.dtype()));
  const int64_t size = list->elements.size();
  list->elements = list->elements.Resized(size + 1);
  return PutElement(c, list, size, value);
}

absl::Status PushBack(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  TensorList out = *list;
  WEIR_RETURN_IF_ERROR(Append(c, &out, c.input(1)));
  c.SetOutput(0, VariantScalar(std::move(out)));
  return absl::OkStatus();
}

absl::Status PushBackBatch(KernelContext& c) {
  const Tensor &lists = c.input(0), &values = c.input(1);
  if (values.rank() == 0) {
    return InvalidArgument("Expected tensor to be at least a vector, but saw shape: ",
                           values.shape().ToString());
  }
  if (lists.rank() != 1) {
    return InvalidArgument("Expected input_handles to be a vector, but saw shape: ",
                           lists.shape().ToString());
  }
  if (values.dim(0) != lists.num_elements()) {
    return InvalidArgument("Expected tensor.shape[0] == input_handles.size, but saw ",
                           values.dim(0), " vs. ", lists.num_elements());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor out, NewTensor(DT_VARIANT, lists.shape()));
  const Shape element = values.shape().Sub(1);
  for (int64_t i = 0; i < lists.num_elements(); ++i) {
    const TensorList* list = VariantAs<TensorList>(lists.data<Variant>()[i]);
    if (list == nullptr) {
      return InvalidArgument("Input handle at index ", i, " is not a list. Saw: '",
                             lists.data<Variant>()[i].type_name, "'");
    }
    TensorList longer = *list;
    WEIR_ASSIGN_OR_RETURN(const Tensor row, CopyRows(values, i, i + 1, element));
    if (absl::Status s = Append(c, &longer, row); !s.ok())
      return Annotate(s, absl::StrCat("at index ", i, ": "));
    out.data<Variant>()[i] = *VariantScalar(std::move(longer)).data<Variant>();
  }
  c.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

// Returns element i, or zeros if it was never set; `shape` is the known part of all elements'
// shape.
absl::Status OutputElement(KernelContext& c, int output, const TensorList& list, int64_t i,
                           const Shape& shape) {
  if (const Tensor* element = list.elements.at(i)) {
    c.SetOutput(output, *element);
    return absl::OkStatus();
  }
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("Trying to read an uninitialized tensor but element_shape is not fully ",
                           "defined: ", shape.ToString(), " and no list element is set.");
  }
  WEIR_ASSIGN_OR_RETURN(Tensor zero, ZeroTensor(c.pool(), list.element_dtype, shape));
  c.SetOutput(output, std::move(zero));
  return absl::OkStatus();
}

absl::Status PopBack(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_RETURN_IF_ERROR(CheckListType(*list, OutputType(c, 1)));
  const int64_t size = list->elements.size();
  if (size == 0) return InvalidArgument("Trying to pop from an empty list.");
  TensorList shorter = *list;
  shorter.elements = shorter.elements.Resized(size - 1);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ElementShape(c, *list, 1));
  WEIR_RETURN_IF_ERROR(OutputElement(c, 1, *list, size - 1, shape));
  c.SetOutput(0, VariantScalar(std::move(shorter)));
  return absl::OkStatus();
}

absl::Status GetItem(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_RETURN_IF_ERROR(CheckListType(*list, OutputType(c, 0)));
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadOneInt(c.input(1), "index"));
  if (index < 0 || index >= list->elements.size()) {
    return InvalidArgument("Trying to access element ", index, " in a list with ",
                           list->elements.size(), " elements.");
  }
  if (list->elements.at(index) != nullptr) return OutputElement(c, 0, *list, index, Shape());
  WEIR_ASSIGN_OR_RETURN(Shape shape, ElementShape(c, *list, 2));
  if (!shape.IsFullyDefined()) {
    WEIR_ASSIGN_OR_RETURN(shape, MergeElements(*list, std::move(shape)));
  }
  return OutputElement(c, 0, *list, index, shape);
}

absl::StatusOr<Kernel> MakeSetItem(const KernelInit& init) {
  const bool resize = init.attr<bool>("resize_if_index_out_of_bounds");
  return Kernel([resize](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
    const Tensor& item = c.input(2);
    WEIR_RETURN_IF_ERROR(CheckListType(*list, item.dtype()));
    WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadScalar(c.input(1), "index"));
    TensorList out = *list;
    if (resize && index >= out.elements.size()) out.elements = out.elements.Resized(index + 1);
    if (index < 0 || index >= out.elements.size()) {
      return InvalidArgument("Trying to modify element ", index, " in a list with ",
                             out.elements.size(), " elements.");
    }
    if (!list->element_shape.IsCompatibleWith(item.shape())) {
      return InvalidArgument(
          "Tried to set a tensor with incompatible shape at a list index. Item element shape: ",
          item.shape().ToString(), " list shape: ", list->element_shape.ToString());
    }
    WEIR_RETURN_IF_ERROR(PutElement(c, &out, index, item));
    c.SetOutput(0, VariantScalar(std::move(out)));
    return absl::OkStatus();
  });
}

absl::Status ConcatLists(KernelContext& c) {
  const Tensor &a = c.input(0), &b = c.input(1);
  if (a.shape() != b.shape()) {
    return InvalidArgument("TensorListConcatLists with different shapes: ", a.shape().ToString(),
                           " vs. ", b.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor out, NewTensor(DT_VARIANT, a.shape()));
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const TensorList *x = VariantAs<TensorList>(a.data<Variant>()[i]),
                     *y = VariantAs<TensorList>(b.data<Variant>()[i]);
    if (x == nullptr || y == nullptr)
      return InvalidArgument("input_", x == nullptr ? "a" : "b", " is not a list at index ", i);
    if (x->element_dtype != ElementType(c) || y->element_dtype != ElementType(c))
      return InvalidArgument("input_a and input_b must hold ", DataTypeName(ElementType(c)));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, MergeListShapes(x->element_shape, y->element_shape));
    TensorList joined = *x;
    const int64_t first = x->elements.size();
    joined.element_shape = shape;
    joined.depth = std::max(x->depth, y->depth);
    joined.elements = joined.elements.Resized(first + y->elements.size());
    WEIR_RETURN_IF_ERROR(y->elements.ForEach([&](int64_t k, const Tensor& t) {
      joined.elements = std::move(joined.elements).With(first + k, t);
      return absl::OkStatus();
    }));
    out.data<Variant>()[i] = *VariantScalar(std::move(joined)).data<Variant>();
  }
  c.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status AddLists(KernelContext& c) {
  Tensor sum = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(sum, SumOf(c.pool(), sum, c.input(i)));
  }
  c.SetOutput(0, std::move(sum));
  return absl::OkStatus();
}

}  // namespace

void AddTensorListKernels(KernelRegistry* r) {
  r->Add("EmptyTensorList", kCpu, Empty);
  r->Add("TensorListReserve", kCpu, Reserve);
  r->Add("TensorListLength", kCpu, Length);
  r->Add("TensorListElementShape", kCpu, OutputElementShape);
  r->Add("TensorListResize", kCpu, Resize);
  r->Add("TensorListPushBack", kCpu, PushBack);
  r->Add("TensorListPushBackBatch", kCpu, PushBackBatch);
  r->Add("TensorListPopBack", kCpu, PopBack);
  r->Add("TensorListGetItem", kCpu, GetItem);
  r->Add("TensorListSetItem", kCpu, MakeSetItem);
  r->Add("TensorListConcatLists", kCpu, ConcatLists);
  AddTensorListConcat(r);
  // For any value that a variant may hold.
  r->Add("AddN", kCpu, DT_VARIANT, AddLists);
}

}  // namespace weir
