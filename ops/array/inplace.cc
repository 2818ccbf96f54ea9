#include "weir/ops/array/inplace.h"

#include "weir/core/graph/op.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

absl::Status ParallelConcatShape(ShapeContext& c) {
  const Shape shape = c.attr<Shape>("shape");
  if (!shape.IsFullyDefined()) return InvalidArgument("shape attr must be fully defined.");
  if (shape.rank() < 1) return InvalidArgument("shape attr must have at least rank 1");
  Shape part = shape;
  part.set_dim(0, 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).MergeWith(part).ok()) continue;
    return InvalidArgument("All values must have shape ", part.ToString(), ", value ", i, " has ",
                           c.input(i).ToString());
  }
  c.set_output(0, shape);
  return absl::OkStatus();
}

}  // namespace

Output InplaceUpdate(Output x, Output i, Output v, absl::string_view name) {
  return AddOp("InplaceUpdate", {x, i, v}, {}, name);
}
Output InplaceAdd(Output x, Output i, Output v, absl::string_view name) {
  return AddOp("InplaceAdd", {x, i, v}, {}, name);
}
Output InplaceSub(Output x, Output i, Output v, absl::string_view name) {
  return AddOp("InplaceSub", {x, i, v}, {}, name);
}

Output ParallelStack(const Outputs& values, absl::string_view name) {
  if (values.empty() || !values[0].valid()) return {};
  const NameScope scope(values[0].graph(), name.empty() ? "parallel_stack" : name);
  const Shape shape = Shape({static_cast<int64_t>(values.size())}).Concatenate(values[0].shape());
  Outputs rows;
  for (const Output& value : values) rows.push_back(ExpandDims(value, 0));
  return AddOp("ParallelConcat", {rows}, {{"shape", shape}});
}

void AddInplaceOps(OpRegistry* ops) {
  const std::pair<const char*, const char*> updates[] = {
      {"InplaceUpdate", "Returns x with rows i replaced by v."},
      {"InplaceAdd", "Returns x with v added to rows i. Repeated indices accumulate."},
      {"InplaceSub", "Returns x with v subtracted from rows i. Repeated indices accumulate."}};
  for (const auto& [name, doc] : updates) {
    ops->Add(OpSpec(name)
                 .In("x: T, i: int32, v: T")
                 .Out("y: T")
                 .Attr("T: type")
                 .InferShape(SameShape)
                 .Doc(doc));
  }
  ops->Add(OpSpec("ParallelConcat")
               .In("values: N * T")
               .Out("output: T")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Attr("shape: shape")
               .Moves(Movement::kRearrange)
               .InferShape(ParallelConcatShape)
               .Doc("Stacks values of one row each along the first dimension."));
}

}  // namespace weir
