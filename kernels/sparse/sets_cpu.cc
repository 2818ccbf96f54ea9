#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/sparse/sparse_value.h"

// Sets in the last dimension of a tensor, dense or sparse: their intersection, union, difference
// and size.
namespace weir {

namespace {

using Elements = List<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string>;

// The non-empty sets, by their number in row-major order.
template <class T>
using Sets = std::map<int64_t, std::set<T>>;

// Returns all dimensions but the last. Returns INVALID_ARGUMENT if there are none.
absl::StatusOr<Shape> GroupsOf(const Shape& shape) {
  if (shape.rank() < 2)
    return InvalidArgument("Shape ", shape.ToString(), " has rank ", shape.rank(), " < 2");
  return shape.Sub(0, shape.rank() - 1);
}

template <class T>
Sets<T> ReadDense(const Tensor& x) {
  Sets<T> sets;
  const int64_t size = x.dim(-1);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    sets[i / size].insert(x.data<T>()[i]);
  }
  return sets;
}

// The checks that TensorFlow makes even if validate_indices is false.
absl::Status CheckUnvalidated(const SparseValue& x) {
  const absl::Status bounds = CheckIndices(x, false);
  return bounds.ok() ? bounds : Internal(bounds.message());
}

template <class T>
absl::StatusOr<Sets<T>> SetsOf(const SparseValue& x, const Shape& groups, bool in_order) {
  WEIR_RETURN_IF_ERROR(in_order ? CheckIndices(x, true) : CheckUnvalidated(x));
  Sets<T> sets;
  for (int64_t i = 0; i < x.count(); ++i) {
    ThrowIfCancelledAt(i);
    int64_t group = 0;
    for (int d = 0; d < groups.rank(); ++d) group = group * groups.dim(d) + x.row(i)[d];
    sets[group].insert(x.values.data<T>()[i]);
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

// Writes the sets as the three outputs of a sparse tensor.
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
    ThrowIfCancelled();
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

// One of the two arguments: its sets, and the dimensions of the array of sets.
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
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, first));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(x.dims));
  WEIR_ASSIGN_OR_RETURN(a.groups, GroupsOf(shape));
  WEIR_ASSIGN_OR_RETURN(a.sets, SetsOf<T>(x, a.groups, in_order));
  return a;
}

// The state that is fixed when the kernel is created.
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
  if (!found)
    return Unimplemented("SetSize of type ", DataTypeName(init.attr<DataType>("T")),
                         " is not supported");
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
