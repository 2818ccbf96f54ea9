#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

absl::Status GetValueShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  const auto shapes = c.attr<std::vector<Shape>>("output_shapes");
  if (static_cast<int>(shapes.size()) != c.num_outputs())
    return InvalidArgument("output_shapes must be the same length as output_types (", shapes.size(),
                           " vs. ", c.num_outputs(), ")");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[i]);
  return absl::OkStatus();
}

absl::Status HasValueShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return ScalarShape(c);
}

// OptionalFromValue's gradient unpacks one optional that holds the gradients of all components.
// OptionalGetValue's gradient packs them.
Grads FromValueGradient(GradContext& g) {
  std::vector<Shape> shapes;
  for (int i = 0; i < g.num_inputs(); ++i) shapes.push_back(g.x(i).shape());
  Node* node =
      AddNode("OptionalGetValue", {g.dy(0)},
              {{"output_types", g.attr<DataTypes>("Toutput_types")}, {"output_shapes", shapes}});
  if (node == nullptr) return {};
  Grads out;
  for (int i = 0; i < g.num_inputs(); ++i) out.push_back(node->output(i));
  return out;
}

Grads GetValueGradient(GradContext& g) {
  Outputs dys;
  for (int i = 0; i < g.node().num_outputs(); ++i) dys.push_back(g.dy(i));
  return {AddOp("OptionalFromValue", {dys})};
}

}  // namespace

void AddOptionalOps(OpRegistry* ops) {
  ops->Add(OpSpec("OptionalNone")
               .Out("optional: variant")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns an optional without a value."));
  ops->Add(OpSpec("OptionalFromValue")
               .In("components: Toutput_types")
               .Out("optional: variant")
               .Attr("Toutput_types: list(type) >= 1")
               .InferShape(ScalarShape)
               .Gradient(FromValueGradient)
               .Doc("Returns an optional that holds the given tensors."));
  ops->Add(OpSpec("OptionalHasValue")
               .In("optional: variant")
               .Out("has_value: bool")
               .InferShape(HasValueShape)
               .NotDifferentiable()
               .Doc("Returns true if an optional holds tensors."));
  ops->Add(OpSpec("OptionalGetValue")
               .In("optional: variant")
               .Out("components: output_types")
               .Attr("output_types: list(type) >= 1")
               .Attr("output_shapes: list(shape) >= 1")
               .InferShape(GetValueShape)
               .Gradient(GetValueGradient)
               .Doc("Returns the tensors that an optional holds."));
}

}  // namespace weir
