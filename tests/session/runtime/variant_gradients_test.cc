// Gradients through tensors that are stored in variants and arrays: lists, maps, optionals,
// TensorArrays.

#include "weir/core/graph/scope.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/session/lib/gradient_check.h"

// Gradients checked to order 1 by tests: TensorArrayConcatV3, TensorArrayGatherV3,
// TensorArrayReadV3, TensorArrayScatterV3, TensorArraySplitV3, TensorArrayWriteV3,
// TensorMapErase, TensorMapInsert, TensorMapLookup.

// Gradients checked to order 2 by tests: OptionalFromValue, OptionalGetValue, TensorListConcat,
// TensorListConcatV2, TensorListFromTensor, TensorListGather, TensorListGetItem,
// TensorListPopBack, TensorListPushBack, TensorListResize, TensorListScatter,
// TensorListScatterIntoExistingList, TensorListScatterV2, TensorListSetItem, TensorListSplit,
// TensorListStack.

namespace weir {
namespace {

class VariantGradientsTest : public GradientCheckTest {
 protected:
  Output Any() { return Const(g_, -1); }
  Output Empty() {
    return AddOp("EmptyTensorList", {Any(), Any()}, {{"element_dtype", DT_DOUBLE}});
  }
  Output Rows(const Output& x) { return AddOp("TensorListFromTensor", {x, Any()}); }
  Output Push(const Output& list, const Output& x) {
    return AddOp("TensorListPushBack", {list, x});
  }
  Output Get(const Output& list, int i) {
    return AddOp("TensorListGetItem", {list, Const(g_, i), Any()}, {{"element_dtype", DT_DOUBLE}});
  }
  Output Stack(const Output& list) {
    return AddOp("TensorListStack", {list, Any()}, {{"element_dtype", DT_DOUBLE}});
  }
  Output Insert(const Output& map, const Output& key, const Output& value) {
    return AddOp("TensorMapInsert", {map, key, value});
  }
  Output Lookup(const Output& map, const Output& key) {
    return AddOp("TensorMapLookup", {map, key}, {{"value_dtype", DT_DOUBLE}});
  }
  // A product, so that second derivatives are not zero.
  static Output Product(const Output& a, const Output& b) { return Sin(a) * b * b; }
};

TEST_F(VariantGradientsTest, OfListsThatGrowAndShrink) {
  Check({{2}, {2}},
        [&](const Outputs& x) {
          const Output two = Push(Push(Empty(), Sin(x[0])), x[1] * x[0]);
          Node* pop = AddNode("TensorListPopBack", {two, Any()}, {{"element_dtype", DT_DOUBLE}});
          return Product(Output(pop, 1), Get(Output(pop, 0), 0));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfListsOfRows) {
  Check({{3, 2}, {2}},
        [&](const Outputs& x) {
          const Output list =
              AddOp("TensorListSetItem", {Rows(x[0] * x[0]), Const(g_, 1), Sin(x[1])});
          return Product(Stack(list), Get(list, 2));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfElementsThatAreReplacedBeyondTheEnd) {
  Check({{2, 2}, {2}},
        [&](const Outputs& x) {
          const Output list =
              AddOp("TensorListSetItem", {Rows(x[0] * x[0]), Const(g_, 2), Sin(x[1])},
                    {{"resize_if_index_out_of_bounds", true}});
          return Product(Get(list, 0), Get(list, 2));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfElementsThatAreGathered) {
  Check({{4, 2}},
        [&](const Outputs& x) {
          const Output values = AddOp("TensorListGather", {Rows(x[0]), Const(g_, {2, 0, 3}), Any()},
                                      {{"element_dtype", DT_DOUBLE}});
          return Product(values, Get(Rows(x[0]), 1));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfRowsThatAreScattered) {
  for (const char* op : {"TensorListScatter", "TensorListScatterV2"}) {
    Check({{3, 2}},
          [&](const Outputs& x) {
            std::vector<Arg> args = {x[0] * x[0], Const(g_, {3, 0, 1}), Const(g_, {2})};
            if (op == std::string("TensorListScatterV2")) args.push_back(Const(g_, 5));
            const Output list = AddOp(op, args);
            return Product(Get(list, 3), Get(list, 0)) * Get(list, 1);
          },
          {.order = 2});
  }
  Check({{4, 2}, {2, 2}},
        [&](const Outputs& x) {
          const Output list = AddOp("TensorListScatterIntoExistingList",
                                    {Rows(x[0] * x[0]), Sin(x[1]), Const(g_, {2, 0})});
          return Product(Stack(list), x[0]);
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfListsThatAreResized) {
  Check({{3, 2}},
        [&](const Outputs& x) {
          const Output shorter = AddOp("TensorListResize", {Rows(x[0] * x[0]), Const(g_, 2)});
          return Product(Stack(shorter), Get(shorter, 1));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfListsThatAreSplitAndJoined) {
  const auto parts = [&](const Output& x) {
    return AddOp("TensorListSplit", {x * x, Any(), Const<int64_t>(g_, {3}, {2, 0, 3})});
  };
  Check({{5, 2}},
        [&](const Outputs& x) {
          const Output list = parts(x[0]);
          const Output all = AddOp("TensorListConcat", {list}, {{"element_dtype", DT_DOUBLE}});
          return Product(all, x[0]) * ReduceSum(Get(list, 2));
        },
        {.order = 2});
  Check({{5, 2}},
        [&](const Outputs& x) {
          const Output none = Const(g_, Tensor::Zeros(DT_INT64, Shape({0})));
          const Output all = AddOp("TensorListConcatV2", {parts(x[0]), Any(), none},
                                   {{"element_dtype", DT_DOUBLE}});
          return Product(all, x[0]);
        },
        {.order = 2});
}

// A map with what was inserted for one key, then for another, and for the first one again.
TEST_F(VariantGradientsTest, OfMaps) {
  Check({{2}, {2}, {2}},
        [&](const Outputs& x) {
          const Output a = Const(g_, "a"), b = Const(g_, "b");
          const Output map = Insert(Insert(Output(AddNode(g_, "EmptyTensorMap", {})), a, Sin(x[0])),
                                    b, x[1] * x[1]);
          const Output later = Insert(map, a, x[2] * x[0]);
          return Product(Lookup(map, a), Lookup(map, b)) * Lookup(later, a);
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfMapsFromWhichAKeyIsErased) {
  Check({{2}, {2}},
        [&](const Outputs& x) {
          const Output a = Const(g_, 1), b = Const(g_, 2);
          const Output map = Insert(Insert(Output(AddNode(g_, "EmptyTensorMap", {})), a, Sin(x[0])),
                                    b, x[1] * x[1]);
          const Output rest = AddOp("TensorMapErase", {map, b}, {{"value_dtype", DT_DOUBLE}});
          return Product(Lookup(rest, a), x[1]);
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfOptionals) {
  Check({{2}, {3}},
        [&](const Outputs& x) {
          const Output some = AddOp("OptionalFromValue", {Outputs{Sin(x[0]), x[1] * x[1]}});
          Node* got = AddNode("OptionalGetValue", {some},
                              {{"output_types", DataTypes{DT_DOUBLE, DT_DOUBLE}},
                               {"output_shapes", std::vector<Shape>{{2}, {3}}}});
          return Product(Output(got, 0), ReduceSum(Output(got, 1)));
        },
        {.order = 2});
}

TEST_F(VariantGradientsTest, OfTensorArrays) {
  Check({{3, 2}, {2}}, [&](const Outputs& x) {
    const TensorArrayOptions often = {.clear_after_read = false};
    const TensorArray rows = TensorArray(g_, DT_DOUBLE, 3, often).Unstack(x[0] * x[0]);
    TensorArray out(g_, DT_DOUBLE, 3, often);
    out = out.Write(0, Sin(x[1])).Write(1, rows.Read(2)).Write(2, rows.Read(0) * x[1]);
    return Product(out.Stack(), rows.Gather({1, 0, 1})) * out.Read(1);
  });
}

TEST_F(VariantGradientsTest, OfTensorArraysThatAreScatteredSplitAndJoined) {
  Check({{3, 2}, {5, 2}}, [&](const Outputs& x) {
    const TensorArray at =
        TensorArray(g_, DT_DOUBLE, 4, {.element_shape = Shape({2})}).Scatter({3, 0, 1}, Sin(x[0]));
    const TensorArray parts =
        TensorArray(g_, DT_DOUBLE, 3, {.infer_shape = false}).Split(x[1] * x[1], {2, 0, 3});
    return ReduceSum(Exp(parts.Concat())) * Product(at.Read(3), at.Read(0));
  });
}

}  // namespace
}  // namespace weir
