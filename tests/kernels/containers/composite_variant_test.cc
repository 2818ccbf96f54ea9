#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/variant.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"

// Composite tensors in variants.
namespace weir {

namespace {

// CompositeTensorVariantMetadata of a RaggedTensorSpec (class 3), and of a SparseTensorSpec (1).
const std::string kRagged("\x0a\x04\x08\x03\x20\x02", 6);
const std::string kSparse("\x0a\x02\x08\x01", 4);

Outputs RoundTrip(const Outputs& components, const std::string& encoded_as,
                  const std::string& decoded_as, std::vector<DataType> types) {
  const Output encoded =
      AddOp("CompositeTensorVariantFromComponents", {components}, {{"metadata", encoded_as}});
  if (!encoded.valid()) return {};
  Node* const node = AddNode("CompositeTensorVariantToComponents", {encoded},
                             {{"metadata", decoded_as}, {"Tcomponents", types}});
  if (node == nullptr) return {};
  Outputs out;
  for (int i = 0; i < node->num_outputs(); ++i) out.push_back(node->output(i));
  return out;
}

// Gradients checked to order 1 by tests: CompositeTensorVariantFromComponents,
// CompositeTensorVariantToComponents.
TEST(CompositeVariant, ComponentsAndGradientsPassThrough) {
  Graph g;
  const Output values = Const(g, {1.0f, 2.0f, 3.0f});
  const Output splits = Const(g, {int64_t{0}, int64_t{1}, int64_t{3}});
  const Outputs out = RoundTrip({values, splits}, kRagged, kRagged, {DT_FLOAT, DT_INT64});
  ASSERT_EQ(out.size(), 2u) << g.status();
  const Output weights = Const(g, {4.0f, 5.0f, 6.0f});
  const Grads grads = Gradients({out[0] * weights}, {values});
  const absl::StatusOr<Tensors> got = Evaluate(g, {out[0], out[1], grads[0].dense()});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(IdenticalTensors((*got)[0], Tensor::Vector<float>({1, 2, 3})));
  EXPECT_TRUE(IdenticalTensors((*got)[1], Tensor::Vector<int64_t>({0, 1, 3})));
  EXPECT_TRUE(IdenticalTensors((*got)[2], Tensor::Vector<float>({4, 5, 6})));
}

TEST(CompositeVariant, OtherTypesAreRejected) {
  const auto error = [](const std::string& from, const std::string& to,
                        const std::vector<DataType>& types) {
    Graph g;
    const Outputs out = RoundTrip({Const(g, 1.0f)}, from, to, types);
    return out.empty() ? g.status() : Evaluate(g, out).status();
  };
  EXPECT_TRUE(error(kRagged, kRagged, {DT_FLOAT}).ok());
  for (const auto& [status, words] : std::vector<std::pair<absl::Status, const char*>>{
           {error(kRagged, kSparse, {DT_FLOAT}), "Expected a"},
           {error(kRagged, kRagged, {DT_FLOAT, DT_FLOAT}), "1 tensor components; expected 2"},
           {error(kRagged, kRagged, {DT_INT32}), "expected dtype int32"},
           {error("\x0a\x7f", kRagged, {DT_FLOAT}), "Error parsing"},
           {error(kRagged, "\x0f", {DT_FLOAT}), "Error parsing"}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << words << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), words)) << status;
  }
  Tensor other(DT_VARIANT, Shape());
  const absl::Status status =
      RunFed("CompositeTensorVariantToComponents", {other},
             {{"metadata", kRagged}, {"Tcomponents", std::vector<DataType>{DT_FLOAT}}})
          .status();
  EXPECT_TRUE(absl::StrContains(status.message(), "not a valid CompositeTensorVariant")) << status;
}

}  // namespace

}  // namespace weir
