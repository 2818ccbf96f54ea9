#include <algorithm>
#include <numeric>
#include <vector>

#include "weir/kernels/containers/tensor_list.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

namespace weir {

namespace {

Dims FirstIndices(int64_t count) {
  Dims indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// Stacks the elements of `list` along a new first dimension, with zeros for elements that are not
// set.
absl::Status OutputStack(KernelContext& c, const TensorList& list, const Shape& element,
                         int64_t count, const std::function<int64_t(int64_t)>& index) {
  Shape shape = element;
  shape.InsertDim(0, count);
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  if (!IsPlain(list.element_dtype) && list.element_dtype != DT_STRING) {
    for (int64_t i = 0; i < count; ++i) {
      if (list.elements.at(index(i)) == nullptr)
        return InvalidArgument("type ", DataTypeName(list.element_dtype), " has no zero value");
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  const int64_t size = element.num_elements();
  if (size == 0) return absl::OkStatus();
  ClearElements(c.pool(), *out);
  for (int64_t i = 0; i < count; ++i) {
    if (const Tensor* t = list.elements.at(index(i)))
      CopyElements(t->dtype(), t->raw(), ElementAt(*out, i * size), size);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeStack(const KernelInit& init) {
  const int64_t want = init.attr<int64_t>("num_elements");
  return Kernel([want](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
    WEIR_RETURN_IF_ERROR(CheckListType(*list, BaseType(c.node().output_type(0))));
    const int64_t size = list->elements.size();
    if (want != -1 && size != want) {
      return InvalidArgument("Operation expected a list with ", want,
                             " elements but got a list with ", size, " elements.");
    }
    WEIR_ASSIGN_OR_RETURN(Shape shape, ElementShape(c, *list, 1));
    if (size == 0 && !shape.IsFullyDefined()) {
      return InvalidArgument("Tried to stack elements of an empty list with non-fully-defined ",
                             "element_shape: ", shape.ToString());
    }
    WEIR_ASSIGN_OR_RETURN(shape, MergeElements(*list, std::move(shape)));
    if (!shape.IsFullyDefined()) {
      return InvalidArgument("Tried to stack list which only contains uninitialized tensors and ",
                             "has a non-fully-defined element_shape: ", shape.ToString());
    }
    return OutputStack(c, *list, shape, size, [](int64_t i) { return i; });
  });
}

absl::Status Gather(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_RETURN_IF_ERROR(CheckListType(*list, BaseType(c.node().output_type(0))));
  const Dims indices = ReadInts(c.input(1));
  WEIR_ASSIGN_OR_RETURN(Shape shape, ElementShape(c, *list, 2));
  if (indices.empty() && !shape.IsFullyDefined()) {
    return InvalidArgument("Tried to gather 0-elements from a list with non-fully-defined shape: ",
                           shape.ToString());
  }
  for (const int64_t i : indices) {
    if (i < 0 || i >= list->elements.size()) {
      return InvalidArgument("Trying to gather element ", i, " in a list with ",
                             list->elements.size(), " elements.");
    }
    if (const Tensor* t = list->elements.at(i)) {
      WEIR_ASSIGN_OR_RETURN(shape, MergeListShapes(shape, t->shape()));
    }
  }
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("Tried to gather uninitialized tensors from a list with ",
                           "non-fully-defined element_shape: ", shape.ToString());
  }
  return OutputStack(c, *list, shape, static_cast<int64_t>(indices.size()),
                     [&indices](int64_t i) { return indices[i]; });
}

absl::Status CheckRows(const Tensor& t) {
  if (t.rank() > 0) return absl::OkStatus();
  return InvalidArgument("Tensor must be at least a vector, but saw shape: ", t.shape().ToString());
}

// Makes a list of this element shape from the rows of `t`.
absl::StatusOr<TensorList> ListForRows(const Tensor& t, const Tensor& element_shape) {
  TensorList list;
  list.element_dtype = t.dtype();
  WEIR_ASSIGN_OR_RETURN(list.element_shape, ReadElementShape(element_shape));
  WEIR_RETURN_IF_ERROR(CheckRows(t));
  if (list.element_shape.IsCompatibleWith(t.shape().Sub(1))) return list;
  return InvalidArgument("Specified a list with shape ", list.element_shape.ToString(),
                         " from a tensor with shape ", t.shape().Sub(1).ToString());
}

absl::Status FromTensor(KernelContext& c) {
  const Tensor& t = c.input(0);
  WEIR_ASSIGN_OR_RETURN(TensorList list, ListForRows(t, c.input(1)));
  WEIR_RETURN_IF_ERROR(CheckRoomForTensors(t.dim(0)));
  list.elements = list.elements.Resized(t.dim(0));
  WEIR_RETURN_IF_ERROR(PutRows(c, &list, t, FirstIndices(t.dim(0))));
  c.SetOutput(0, VariantScalar(std::move(list)));
  return absl::OkStatus();
}

// Scatters into a list of `num_elements` elements, or of as many as needed.
absl::Status Scatter(KernelContext& c) {
  const Tensor& t = c.input(0);
  WEIR_ASSIGN_OR_RETURN(TensorList list, ListForRows(t, c.input(2)));
  int64_t size = -1;
  if (c.num_inputs() > 3) {
    WEIR_ASSIGN_OR_RETURN(size, ReadInt(c.input(3), "num_elements"));
    if (size < -1)
      return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", size);
  }
  const Dims indices = ReadInts(c.input(1));
  if (static_cast<int64_t>(indices.size()) != t.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ", indices.size(),
                           " Actual: ", t.dim(0));
  }
  int64_t needed = 0;
  for (const int64_t i : indices) {
    if (i < 0) return InvalidArgument("Indices in TensorListScatter must all be non-negative.");
    if (size != -1 && i >= size) {
      return InvalidArgument("TensorListScatter: Trying to scatter at index ", i,
                             " in list with size ", size);
    }
    needed = std::max(needed, i + 1);
  }
  list.elements = list.elements.Resized(std::max(needed, size));
  WEIR_RETURN_IF_ERROR(PutRows(c, &list, t, indices));
  c.SetOutput(0, VariantScalar(std::move(list)));
  return absl::OkStatus();
}

absl::Status ScatterIntoExisting(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  const Tensor &t = c.input(1), &at = c.input(2);
  if (t.dtype() != list->element_dtype) {
    return InvalidArgument("Invalid data types; input tensor type: ", DataTypeName(t.dtype()),
                           " list element_type: ", DataTypeName(list->element_dtype));
  }
  WEIR_RETURN_IF_ERROR(CheckRows(t));
  WEIR_RETURN_IF_ERROR(CheckRowIndices(at, t, "tensor"));
  TensorList out = *list;
  const Dims indices = ReadInts(at);
  for (const int64_t i : indices) {
    if (i < 0) return InvalidArgument("Indices in TensorListScatter must all be non-negative.");
    if (i >= out.elements.size()) out.elements = out.elements.Resized(i + 1);
  }
  WEIR_RETURN_IF_ERROR(PutRows(c, &out, t, indices));
  c.SetOutput(0, VariantScalar(std::move(out)));
  return absl::OkStatus();
}

absl::Status Split(KernelContext& c) {
  const Tensor &t = c.input(0), &lengths = c.input(2);
  TensorList list;
  list.element_dtype = t.dtype();
  WEIR_ASSIGN_OR_RETURN(list.element_shape, ReadElementShape(c.input(1)));
  if (list.element_shape.rank() == 0) {
    return InvalidArgument("TensorListSplit requires element_shape to be at least of rank 1, but ",
                           "saw: ", list.element_shape.ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckRows(t));
  if (list.element_shape.has_rank() &&
      !list.element_shape.Sub(1).IsCompatibleWith(t.shape().Sub(1))) {
    return InvalidArgument("tensor shape ", t.shape().ToString(),
                           " is not compatible with element_shape ", list.element_shape.ToString());
  }
  if (lengths.rank() != 1) {
    return InvalidArgument("Expected lengths to be a vector, received shape: ",
                           lengths.shape().ToString());
  }
  list.elements = list.elements.Resized(lengths.num_elements());
  int64_t begin = 0;
  for (int64_t i = 0; i < lengths.num_elements(); ++i) {
    const int64_t length = lengths.data<int64_t>()[i];
    if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
    if (length > t.dim(0) - begin) {
      return InvalidArgument("Attempting to slice [", begin, ", ", begin, " + ", length,
                             "] from tensor with length ", t.dim(0));
    }
    Shape shape = t.shape();
    shape.set_dim(0, length);
    WEIR_ASSIGN_OR_RETURN(const Tensor part, CopyRows(t, begin, begin + length, shape));
    WEIR_RETURN_IF_ERROR(PutElement(c, &list, i, part));
    begin += length;
  }
  if (begin != t.dim(0)) {
    return InvalidArgument("Unused values in tensor. Length of tensor: ", t.dim(0),
                           " Values used: ", begin);
  }
  c.SetOutput(0, VariantScalar(std::move(list)));
  return absl::OkStatus();
}

// ---- concatenation

// The number of rows of each element. An element that is not set has as many as the others,
// or the number in `leading_dims`.
class RowCounts {
 public:
  RowCounts(const TensorList& list, int64_t first_dim, const Dims* leading_dims)
      : list_(list), first_dim_(first_dim), leading_dims_(leading_dims) {}

  // Merges `rest` with the elements' shapes without the first dimension.
  absl::Status MergeShapes(Shape* rest) {
    bool differ = false;
    int64_t common = first_dim_;
    WEIR_RETURN_IF_ERROR(list_.elements.ForEach([&](int64_t i, const Tensor& t) -> absl::Status {
      if (t.rank() == 0) {
        return InvalidArgument("Concat saw a scalar shape at index ", i,
                               " but requires at least vectors.");
      }
      WEIR_ASSIGN_OR_RETURN(*rest, MergeListShapes(*rest, t.shape().Sub(1)));
      if (first_dim_ != -1 && first_dim_ != t.dim(0)) {
        return InvalidArgument("First entry of element_shape input does not match the first dim ",
                               "of list element at index: ", i, " Expected: ", first_dim_,
                               " Actual: ", t.dim(0));
      }
      if (common == -1) common = t.dim(0);
      differ = differ || common != t.dim(0);
      return absl::OkStatus();
    }));
    first_dim_ = differ ? -1 : common;
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Of(int64_t i) const {
    if (const Tensor* t = list_.elements.at(i)) return t->dim(0);
    const int64_t given = leading_dims_ == nullptr ? 0 : leading_dims_->size();
    if (i >= given && first_dim_ != -1) return first_dim_;
    if (leading_dims_ == nullptr) {
      return InvalidArgument("Concating lists with uninitialized tensors is not supported in this ",
                             "version of TensorListConcat. Consider updating your GraphDef to run ",
                             "the newer version.");
    }
    if (i >= given) {
      return InvalidArgument("List contains uninitialized tensor at index ", i,
                             " but leading_dims has only ", given, " elements.");
    }
    if ((*leading_dims_)[i] < 0)
      return InvalidArgument("leading_dims must not be negative: ", (*leading_dims_)[i]);
    return (*leading_dims_)[i];
  }

 private:
  const TensorList& list_;
  int64_t first_dim_;
  const Dims* leading_dims_;
};

absl::Status OutputConcat(KernelContext& c, const TensorList& list, const RowCounts& counts,
                          Shape shape) {
  const int64_t size = list.elements.size();
  WEIR_ASSIGN_OR_RETURN(Tensor * lengths, c.AllocateOutput(1, Shape({size})));
  int64_t rows = 0;
  for (int64_t i = 0; i < size; ++i) {
    WEIR_ASSIGN_OR_RETURN(const int64_t count, counts.Of(i));
    lengths->data<int64_t>()[i] = count;
    if (__builtin_add_overflow(rows, count, &rows))
      return InvalidArgument("the lengths of the elements do not fit int64");
  }
  const int64_t row = shape.num_elements();
  shape.InsertDim(0, rows);
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(c.pool(), *out);
  int64_t at = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (const Tensor* t = list.elements.at(i))
      CopyElements(t->dtype(), t->raw(), ElementAt(*out, at), t->num_elements());
    at += lengths->data<int64_t>()[i] * row;
  }
  return absl::OkStatus();
}

absl::Status Concat(KernelContext& c, const TensorList& list, const Shape& element,
                    const Dims* leading_dims) {
  WEIR_RETURN_IF_ERROR(CheckListType(list, BaseType(c.node().output_type(0))));
  if (element.rank() == 0) {
    return InvalidArgument(
        "Concat requires elements to be at least vectors, found scalars instead.");
  }
  Shape rest = element.has_rank() ? element.Sub(1) : Shape::UnknownRank();
  if (list.elements.size() == 0 && !rest.IsFullyDefined()) {
    return InvalidArgument("All except the first dimension must be fully defined when concating ",
                           "an empty tensor list. element_shape: ", rest.ToString());
  }
  // The first version does not use the first dimension.
  const bool rows_known = leading_dims != nullptr && element.has_rank();
  RowCounts counts(list, rows_known ? element.dim(0) : -1, leading_dims);
  WEIR_RETURN_IF_ERROR(counts.MergeShapes(&rest));
  if (!rest.IsFullyDefined()) {
    return InvalidArgument(
        "Trying to concat list with only uninitialized tensors but ",
        "element_shape_except_first_dim is not fully defined: ", rest.ToString());
  }
  return OutputConcat(c, list, counts, std::move(rest));
}

absl::StatusOr<Kernel> MakeConcat(const KernelInit& init) {
  const Shape element = init.attr<Shape>("element_shape");
  return Kernel([element](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
    return Concat(c, *list, element, nullptr);
  });
}

absl::Status ConcatV2(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const TensorList* list, InputList(c, 0));
  WEIR_ASSIGN_OR_RETURN(const Shape element, ElementShape(c, *list, 1));
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 1, "leading_dims"));
  const Dims leading_dims = ReadInts(c.input(2));
  return Concat(c, *list, element, &leading_dims);
}

}  // namespace

void AddTensorListConcat(KernelRegistry* r) {
  r->Add("TensorListStack", kCpu, MakeStack);
  r->Add("TensorListGather", kCpu, Gather);
  r->Add("TensorListFromTensor", kCpu, FromTensor);
  r->Add("TensorListScatter", kCpu, Scatter);
  r->Add("TensorListScatterV2", kCpu, Scatter);
  r->Add("TensorListScatterIntoExistingList", kCpu, ScatterIntoExisting);
  r->Add("TensorListSplit", kCpu, Split);
  r->Add("TensorListConcat", kCpu, MakeConcat);
  r->Add("TensorListConcatV2", kCpu, ConcatV2);
}

}  // namespace weir
