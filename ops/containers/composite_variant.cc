#include <string>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/composite_variant_internal.h"
#include "weir/ops/lib/array_internal.h"

// Composite tensors of Python (ragged and sparse tensors, extension types) as variants.
namespace weir {

namespace {

Attrs TypeAttrs(const GradContext& g) {
  return {{"metadata", g.attr<std::string>("metadata")},
          {"Tcomponents", g.attr<std::vector<DataType>>("Tcomponents")}};
}

Grads FromComponentsGradient(GradContext& g) {
  const Outputs components =
      AllOutputs(AddNode("CompositeTensorVariantToComponents", {g.dy()}, TypeAttrs(g)),
                 static_cast<size_t>(g.num_inputs()));
  return Grads(components.begin(), components.end());
}

// The gradient has all components. Those of which there is no gradient, such as row splits, are the
// components themselves.
Grads ToComponentsGradient(GradContext& g) {
  Outputs components;
  for (int i = 0; i < g.node().num_outputs(); ++i)
    components.push_back(g.dy_grad(i).none() ? g.y(i) : g.dy(i));
  return {AddOp("CompositeTensorVariantFromComponents", {components},
                {{"metadata", g.attr<std::string>("metadata")}})};
}

}  // namespace

void AddCompositeVariantOps(OpRegistry* ops) {
  ops->Add(OpSpec("CompositeTensorVariantFromComponents")
               .In("components: Tcomponents")
               .Out("encoded: variant")
               .Attr("metadata: string")
               .Attr("Tcomponents: list(type) >= 0")
               .InferShape(ScalarShape)
               .Gradient(FromComponentsGradient)
               .Doc("Encodes the components of a composite tensor as a variant."));
  ops->Add(OpSpec("CompositeTensorVariantToComponents")
               .In("encoded: variant")
               .Out("components: Tcomponents")
               .Attr("metadata: string")
               .Attr("Tcomponents: list(type) >= 0")
               .InferShape(UnknownShape)
               .Gradient(ToComponentsGradient)
               .Doc("Returns the components of a composite tensor that is encoded as a variant."));
}

}  // namespace weir
