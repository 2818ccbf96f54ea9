#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"
#include "weir/ops/lib/ranked_internal.h"

// What graphs learn of datasets without an iterator; elements as variants; seed generators.
namespace weir {

namespace {

OpSpec ValueOp(absl::string_view name, absl::string_view doc) {
  OpSpec op(name);
  op.InferShape(ScalarShape).NotDifferentiable().Doc(doc);
  return op;
}

OpSpec& WithComponents(OpSpec& op) {
  op.Out("components: output_types").InferShape(Ranked("index: 0", DatasetElementShapes));
  return WithElements(op);
}

void AddFacts(OpRegistry* ops) {
  constexpr char kCardinality[] =
      "Returns the number of elements of a dataset, -1 if there is no end, or -2 if it is unknown. "
      "No element is computed.";
  ops->Add(ValueOp("DatasetCardinality", kCardinality)
               .In("input_dataset: variant")
               .Out("cardinality: int64")
               .Attr("cardinality_options: string = ''"));
  ops->Add(ValueOp("ExperimentalDatasetCardinality", kCardinality)
               .In("input_dataset: variant")
               .Out("cardinality: int64"));
  ops->Add(ValueOp("GetOptions", "Returns the options of a dataset, a serialized Options message.")
               .In("input_dataset: variant")
               .Out("serialized_options: string"));
  OpSpec single =
      ValueOp("DatasetToSingleElement", "Returns the element of a dataset that has exactly one.");
  ops->Add(WithComponents(single.In("dataset: variant")).Attr(kDatasetMetadata).Stateful());
  OpSpec at = ValueOp("GetElementAtIndex",
                      "Returns an element of a dataset by its index, without those before it.");
  ops->Add(WithComponents(at.In("dataset: variant, index: int64")));
}

void AddVariants(OpRegistry* ops) {
  ops->Add(ValueOp("WrapDatasetVariant", "Wraps a dataset, so that it is copied as a whole.")
               .In("input_handle: variant")
               .Out("output_handle: variant"));
  ops->Add(ValueOp("UnwrapDatasetVariant", "Returns the dataset of WrapDatasetVariant.")
               .In("input_handle: variant")
               .Out("output_handle: variant"));
  ops->Add(ValueOp("CompressElement", "Compresses the components of an element.")
               .In("components: input_types")
               .Out("compressed: variant")
               .Attr("input_types: list(type) >= 1"));
  OpSpec uncompress = ValueOp("UncompressElement", "Returns the components of CompressElement.");
  ops->Add(WithComponents(uncompress.In("compressed: variant")));
}

void AddSeedGenerators(OpRegistry* ops) {
  ops->Add(OpSpec("DummySeedGenerator")
               .Out("handle: resource")
               .Stateful()
               .Has(Effect::kObserves)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a placeholder seed generator for a ShuffleDatasetV3, which holds its "
                    "seeds itself."));
  for (const bool random : {false, true}) {
    OpSpec op = ValueOp(random ? "AnonymousRandomSeedGenerator" : "AnonymousSeedGenerator",
                        "Returns a seed generator, which gives each iterator of the datasets that "
                        "share it seeds of its own. It lives as long as the handle.");
    op.In("seed: int64, seed2: int64").Out("handle: resource, deleter: variant");
    if (!random) op.In("reshuffle: bool");
    ops->Add(op.Stateful()
                 .Has(Effect::kObserves)
                 .InferShape(Ranked("seed: 0, seed2: 0, reshuffle: 0", ScalarShape)));
  }
  for (const char* name : {"DeleteRandomSeedGenerator", "DeleteSeedGenerator"}) {
    ops->Add(ValueOp(name, "Checks its argument: a seed generator lives as long as its handles.")
                 .In("handle: resource, deleter: variant")
                 .Stateful()
                 .InferShape(NoOutputs));
  }
}

}  // namespace

void AddDatasetValueOps(OpRegistry* ops) {
  AddFacts(ops);
  AddVariants(ops);
  AddSeedGenerators(ops);
}

}  // namespace weir
