#include <utility>
#include <vector>

#include "weir/core/runtime/function.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// A function applied to each row of its arguments, whose results are stacked.
namespace weir {

namespace {

// Returns the number of rows that all arguments have.
absl::StatusOr<int64_t> CountRows(const KernelContext& c, int num_arguments) {
  for (int i = 0; i < num_arguments; ++i) {
    const Tensor& t = c.input(i);
    if (t.rank() == 0) {
      return InvalidArgument("All inputs must have rank at least 1. Input ", i,
                             " has a rank of 0.");
    }
    if (t.dim(0) != c.input(0).dim(0)) {
      return InvalidArgument(
          "All inputs must have the same dimension 0. Input ", i, " has leading dimension ",
          t.dim(0), ", while all previous inputs have leading dimension ", c.input(0).dim(0));
    }
  }
  return c.input(0).dim(0);
}

class RowMapper {
 public:
  RowMapper(KernelContext& c, Function& f, int num_arguments, std::vector<Shape> shapes)
      : c_(c), f_(f), num_arguments_(num_arguments), shapes_(std::move(shapes)) {}

  absl::Status Run() {
    WEIR_ASSIGN_OR_RETURN(rows_, CountRows(c_, num_arguments_));
    stacks_.assign(shapes_.size(), nullptr);
    for (size_t i = 0; i < shapes_.size(); ++i) {
      if (shapes_[i].IsFullyDefined()) {
        WEIR_RETURN_IF_ERROR(Allocate(i, shapes_[i]));
      } else if (rows_ == 0) {
        return InvalidArgument("There are no rows, so the shape of output ", i,
                               " is not known: ", shapes_[i].ToString());
      }
    }
    for (int64_t row = 0; row < rows_; ++row) {
      ThrowIfCancelled();
      WEIR_RETURN_IF_ERROR(MapRow(row));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Allocate(size_t i, const Shape& shape) {
    std::vector<int64_t> dims = {rows_};
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
    WEIR_ASSIGN_OR_RETURN(const Shape stacked, CheckedShape(dims));
    WEIR_ASSIGN_OR_RETURN(stacks_[i], c_.AllocateOutput(static_cast<int>(i), stacked));
    return absl::OkStatus();
  }

  absl::Status MapRow(int64_t row) {
    Tensors args, results;
    for (int i = 0; i < c_.num_inputs(); ++i)
      args.push_back(i < num_arguments_ ? c_.input(i).Row(row).DeepCopy() : c_.input(i));
    WEIR_RETURN_IF_ERROR(f_.Call(c_.step(), c_.node(), args, &results));
    if (results.size() != shapes_.size())
      return InvalidArgument("Mismatch in number of function outputs.");
    const auto types = c_.node().attr<DataTypes>("output_types");
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& result = results[i];
      if (result.dtype() != types[i]) {
        return InvalidArgument(
            "Mismatch in function return type and expected output type for output: ", i);
      }
      if (!shapes_[i].IsCompatibleWith(result.shape())) {
        return InvalidArgument("Mismatch in function retval shape, ", result.shape().ToString(),
                               ", and expected output shape, ", shapes_[i].ToString(), ".");
      }
      if (stacks_[i] == nullptr) {
        shapes_[i] = result.shape();
        WEIR_RETURN_IF_ERROR(Allocate(i, result.shape()));
      }
      CopyElements(result.dtype(), result.raw(),
                   ElementAt(*stacks_[i], row * result.num_elements()), result.num_elements());
    }
    return absl::OkStatus();
  }

  KernelContext& c_;
  Function& f_;
  const int num_arguments_;
  std::vector<Shape> shapes_;  // of the results for a row
  int64_t rows_ = 0;
  std::vector<Tensor*> stacks_;  // null until the shape is known
};

absl::StatusOr<Kernel> MakeMapDefun(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(Function* const f, FindFunction(init, init.attr<FunctionRef>("f")));
  const auto shapes = init.attr<std::vector<Shape>>("output_shapes");
  if (shapes.size() != init.attr<DataTypes>("output_types").size())
    return InvalidArgument("Length of output_shapes and output_types must match.");
  const auto arguments = static_cast<int>(init.attr<DataTypes>("Targuments").size());
  return Kernel([=](KernelContext& c) { return RowMapper(c, *f, arguments, shapes).Run(); });
}

}  // namespace

void AddMapDefunKernels(KernelRegistry* r) {
  r->Add("MapDefun", kCpu, MakeMapDefun).HostArgs({kAllArgs});
}

}  // namespace weir
