#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "weir/kernels/arguments.h"
#include "weir/kernels/registry.h"

// Sets in the last dimension of a tensor, dense or sparse: their intersection, union, difference
// and size.
namespace weir {

namespace {

using Elements = List<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string>;

// The sets that have elements, by their number in row-major order.
template <class T>
using Sets = std::map<int64_t, std::set<T>>;

// All dimensions but the last. INVALID_ARGUMENT if there are none.
absl::StatusOr<Shape> GroupsOf(const Shape& shape) {
  if (shape.rank() < 2)
    return InvalidArgument("Shape ", shape.ToString(), " has rank ", shape.rank(), " < 2");
  return shape.Sub(0, shape.rank() - 1);
}

template <class T>
Sets<T> ReadDense(const Tensor& x) {
  Sets<T> sets;
  const int64_t size = x.dim(-1);
  for (int64_t i = 0; i < x.num_elements(); ++i) sets[i / size].insert(x.data<T>()[i]);
  return sets;
}

// The shape that a sparse argument has, from input `first` on (indices, values, shape).
absl::StatusOr<Shape> SparseShape(const KernelContext& c, int first) {
  const Tensor &indices = c.input(first), &values = c.input(first + 1), &shape = c.input(first + 2);
  if (indices.rank() != 2)
    return InvalidArgument("indices must be a matrix, got shape ", indices.shape().ToString());
  WEIR_RETURN_IF_ERROR(CheckRank(values, 1, "values"));
  WEIR_RETURN_IF_ERROR(CheckRank(shape, 1, "shape"));
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument("indices and values rows (indexing dimension) must match. (indices = ",
                           indices.dim(0), ", values = ", values.dim(0), ")");
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("indices have ", indices.dim(1), " columns for a shape of rank ",
                           shape.dim(0));
  }
  WEIR_ASSIGN_OR_RETURN(
      Shape dense, Shape::Make(absl::MakeConstSpan(shape.data<int64_t>(), shape.num_elements())));
  if (!dense.IsFullyDefined())
    return InvalidArgument("a dimension of the shape is negative: ", dense.ToString());
  return dense;
}

std::string RowText(const int64_t* row, int64_t n) {
  std::string text = "[";
  for (int64_t i = 0; i < n; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", row[i]);
  return text + "]";
}

// Every index is in the shape, and with `in_order` after the one before it.
absl::Status CheckIndices(const Tensor& indices, const Shape& shape, bool in_order) {
  const int64_t rank = shape.rank();
  for (int64_t i = 0; i < indices.dim(0); ++i) {
    const int64_t* row = indices.data<int64_t>() + i * rank;
    for (int64_t d = 0; d < rank; ++d) {
      if (row[d] >= 0 && row[d] < shape.dim(d)) continue;
      return InvalidArgument("indices[", i, "] = ", RowText(row, rank),
                             " is out of bounds: need 0 <= index < ", shape.ToString());
    }
    if (!in_order || i == 0) continue;
    if (!std::lexicographical_compare(row - rank, row, row, row + rank)) {
      const bool same = std::equal(row - rank, row, row);
      return InvalidArgument("indices[", i, "] = ", RowText(row, rank),
                             same ? " is repeated."
                                  : " is out of order. Many sparse ops require "
                                    "sorted indices.");
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Sets<T>> ReadSparse(const KernelContext& c, int first, const Shape& shape,
                                   bool in_order) {
  const Tensor &indices = c.input(first), &values = c.input(first + 1);
  WEIR_RETURN_IF_ERROR(CheckIndices(indices, shape, in_order));
  Sets<T> sets;
  const int64_t rank = shape.rank();
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const int64_t* row = indices.data<int64_t>() + i * rank;
    int64_t group = 0;
    for (int64_t d = 0; d + 1 < rank; ++d) group = group * shape.dim(static_cast<int>(d)) + row[d];
    sets[group].insert(values.data<T>()[i]);
  }
  return sets;
}

enum class Operation { kAMinusB, kBMinusA, kIntersection, kUnion };

absl::StatusOr<Operation> ParseOperation(const std::string& name) {
  if (name == "a-b") return Operation::kAMinusB;
  if (name == "b-a") return Operation::kBMinusA;
  if (name == "intersection") return Operation::kIntersection;
  if (name == "union") return Operation::kUnion;
  return InvalidArgument("Invalid set_operation ", name, ".");
}

template <class T>
std::vector<T> Combine(Operation operation, const std::set<T>& a, const std::set<T>& b) {
  std::vector<T> out;
  const auto to = std::back_inserter(out);
  switch (operation) {
    case Operation::kAMinusB:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::kBMinusA:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case Operation::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
  }
  return out;
}

// Sets as the three outputs of a sparse tensor.
template <class T>
absl::Status WriteSparse(KernelContext& c, const Shape& groups,
                         const std::map<int64_t, std::vector<T>>& sets) {
  const int64_t rank = groups.rank() + 1;
  int64_t count = 0, widest = 0;
  for (const auto& [group, set] : sets) {
    count += static_cast<int64_t>(set.size());
    widest = std::max(widest, static_cast<int64_t>(set.size()));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape({count})));
  WEIR_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2, Shape({rank})));
  int64_t* row = indices->data<int64_t>();
  T* value = values->data<T>();
  for (const auto& [group, set] : sets) {
    for (size_t k = 0; k < set.size(); ++k, row += rank) {
      int64_t rest = group;
      for (int d = groups.rank() - 1; d >= 0; --d) {
        row[d] = rest % groups.dim(d);
        rest /= groups.dim(d);
      }
      row[rank - 1] = static_cast<int64_t>(k);
      *value++ = set[k];
    }
  }
  for (int d = 0; d < groups.rank(); ++d) shape->data<int64_t>()[d] = groups.dim(d);
  shape->data<int64_t>()[rank - 1] = widest;
  return absl::OkStatus();
}

// One of the two arguments: what it has of sets, and how many there are in which dimensions.
template <class T>
struct Argument {
  Shape groups;
  Sets<T> sets;
};

template <class T>
absl::StatusOr<Argument<T>> ReadArgument(const KernelContext& c, int first, bool sparse,
                                         bool in_order) {
  Argument<T> a;
  if (!sparse) {
    WEIR_ASSIGN_OR_RETURN(a.groups, GroupsOf(c.input(first).shape()));
    a.sets = ReadDense<T>(c.input(first));
    return a;
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, SparseShape(c, first));
  WEIR_ASSIGN_OR_RETURN(a.groups, GroupsOf(shape));
  WEIR_ASSIGN_OR_RETURN(a.sets, ReadSparse<T>(c, first, shape, in_order));
  return a;
}

// What is fixed when the kernel is made.
struct Options {
  Operation operation;
  bool first_sparse, second_sparse, in_order;
};

template <class T>
absl::Status Operate(KernelContext& c, const Options& o) {
  WEIR_ASSIGN_OR_RETURN(const Argument<T> a, ReadArgument<T>(c, 0, o.first_sparse, o.in_order));
  WEIR_ASSIGN_OR_RETURN(const Argument<T> b,
                        ReadArgument<T>(c, o.first_sparse ? 3 : 1, o.second_sparse, o.in_order));
  if (a.groups != b.groups) {
    return InvalidArgument("Mismatched shapes ", a.groups.ToString(), " vs ", b.groups.ToString());
  }
  static const std::set<T>* const none = new std::set<T>;
  std::map<int64_t, std::vector<T>> results;
  const auto in = [](const Sets<T>& sets, int64_t group) -> const std::set<T>& {
    const auto it = sets.find(group);
    return it == sets.end() ? *none : it->second;
  };
  for (const Sets<T>* sets : {&a.sets, &b.sets}) {
    for (const auto& [group, set] : *sets) {
      if (results.contains(group)) continue;
      results[group] = Combine(o.operation, in(a.sets, group), in(b.sets, group));
    }
  }
  return WriteSparse(c, a.groups, results);
}

absl::StatusOr<Kernel> MakeSetOperation(const KernelInit& init) {
  Options o;
  WEIR_ASSIGN_OR_RETURN(o.operation, ParseOperation(init.attr<std::string>("set_operation")));
  const absl::string_view op = init.node.op_name();
  o.first_sparse = op == "SparseToSparseSetOperation";
  o.second_sparse = op != "DenseToDenseSetOperation";
  o.in_order = init.attr<bool>("validate_indices");
  Kernel kernel;
  const bool found = DispatchType(init.attr<DataType>("T"), Elements{}, [&]<class T>() {
    kernel = Kernel([o](KernelContext& c) -> absl::Status { return Operate<T>(c, o); });
  });
  if (!found) return Unimplemented(op, " of ", DataTypeName(init.attr<DataType>("T")));
  return kernel;
}

template <class T>
absl::Status SetSize(KernelContext& c, bool in_order) {
  WEIR_ASSIGN_OR_RETURN(const Argument<T> a, ReadArgument<T>(c, 0, true, in_order));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, a.groups));
  std::fill_n(out->data<int32_t>(), out->num_elements(), 0);
  for (const auto& [group, set] : a.sets) {
    out->data<int32_t>()[group] = static_cast<int32_t>(set.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSetSize(const KernelInit& init) {
  const bool in_order = init.attr<bool>("validate_indices");
  Kernel kernel;
  const bool found = DispatchType(init.attr<DataType>("T"), Elements{}, [&]<class T>() {
    kernel =
        Kernel([in_order](KernelContext& c) -> absl::Status { return SetSize<T>(c, in_order); });
  });
  if (!found) return Unimplemented("SetSize of ", DataTypeName(init.attr<DataType>("T")));
  return kernel;
}

}  // namespace

void AddSetsCpu(KernelRegistry* r) {
  for (const char* op :
       {"DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation"}) {
    r->Add(op, kCpu, MakeSetOperation);
  }
  r->Add("SetSize", kCpu, MakeSetSize);
}

}  // namespace weir
