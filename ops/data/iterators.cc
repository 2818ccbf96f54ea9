#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/dataset_internal.h"
#include "weir/ops/lib/ranked_internal.h"

// Iterators over datasets.
namespace weir {

namespace {

OpSpec IteratorOp(absl::string_view name, absl::string_view doc) {
  OpSpec op(name);
  op.Stateful().InferShape(ScalarShape).NotDifferentiable().Doc(doc);
  return op;
}

void AddAnonymousIterators(OpRegistry* ops) {
  constexpr char kDoc[] =
      "Returns a handle to an iterator that no other node can name, which MakeIterator "
      "initializes. "
      "It lives as long as the handle.";
  for (const char* name : {"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"}) {
    OpSpec op = IteratorOp(name, kDoc);
    op.Out("handle: resource");
    if (absl::string_view(name) == "AnonymousIteratorV2") op.Out("deleter: variant");
    ops->Add(WithElements(op));
  }
  for (const bool v3 : {false, true}) {
    OpSpec op = IteratorOp(
        v3 ? "AnonymousMultiDeviceIteratorV3" : "AnonymousMultiDeviceIterator",
        "Returns a handle to a multi-device iterator that no other node can name. It lives as long "
        "as the handle.");
    op.Out("handle: resource");
    if (!v3) op.Out("deleter: variant");
    ops->Add(WithElements(op.Attr("devices: list(string) >= 1")));
  }
  ops->Add(IteratorOp("DeleteIterator", "Ends an iteration, and frees what it holds.")
               .In("handle: resource, deleter: variant")
               .InferShape(NoOutputs));
  ops->Add(IteratorOp("DeleteMultiDeviceIterator", "Ends an iteration, and frees what it holds.")
               .In("multi_device_iterator: resource, iterators: N * resource, deleter: variant")
               .Attr("N: int >= 0")
               .InferShape(NoOutputs));
}

void AddMultiDeviceIterators(OpRegistry* ops) {
  OpSpec handle = IteratorOp("MultiDeviceIterator",
                             "Returns a handle to an iterator that deals its elements to several "
                             "devices in turn. MultiDeviceIteratorInit initializes it.");
  handle.Out("handle: resource")
      .Attr("devices: list(string) >= 1")
      .Attr("shared_name: string")
      .Attr("container: string");
  ops->Add(WithElements(handle));
  ops->Add(IteratorOp("MultiDeviceIteratorInit",
                      "Initializes a multi-device iterator to the start of a dataset. Returns the "
                      "number that requests for elements have to name.")
               .In("dataset: variant, multi_device_iterator: resource, max_buffer_size: int64")
               .Out("incarnation_id: int64"));
  OpSpec next = IteratorOp("MultiDeviceIteratorGetNextFromShard",
                           "Returns the next element of one device: each n-th element for n "
                           "devices. Fails with OUT_OF_RANGE at the end.");
  next.In("multi_device_iterator: resource, shard_num: int32, incarnation_id: int64")
      .Out("components: output_types")
      .Waits(WaitsFor::kValue)
      .InferShape(DatasetElementShapes);
  ops->Add(WithElements(next));
  ops->Add(IteratorOp("MultiDeviceIteratorToStringHandle",
                      "Returns a string handle of a multi-device iterator.")
               .In("multi_device_iterator: resource")
               .Out("string_handle: string"));
  ops->Add(IteratorOp("MultiDeviceIteratorFromStringHandle",
                      "Returns the multi-device iterator of this session for a string handle.")
               .In("string_handle: string")
               .Out("multi_device_iterator: resource")
               .Attr("output_types: list(type) >= 0 = []")
               .Attr("output_shapes: list(shape) >= 0 = []"));
}

void AddIteratorFacts(OpRegistry* ops) {
  OpSpec optional = IteratorOp("IteratorGetNextAsOptional",
                               "Returns the next element as an optional value, which is empty at "
                               "the end.");
  optional.In("iterator: resource").Out("optional: variant").Waits(WaitsFor::kValue);
  ops->Add(WithElements(optional));
  for (const char* name : {"IteratorGetDevice", "ExperimentalIteratorGetDevice"}) {
    ops->Add(IteratorOp(name, "Returns the name of the device of an iterator.")
                 .In("resource: resource")
                 .Out("device: string"));
  }
  ops->Add(IteratorOp("IteratorGetModelProto",
                      "Fails with NOT_FOUND: no iterator has a performance model.")
               .In("iterator: resource")
               .Out("model_proto: string"));
}

void AddNamedIterators(OpRegistry* ops) {
  for (const char* name : {"Iterator", "IteratorV2"}) {
    OpSpec op =
        IteratorOp(name, "Returns a handle to an iterator, which MakeIterator initializes.");
    op.Out("handle: resource").Attr("shared_name: string").Attr("container: string");
    ops->Add(WithElements(op));
  }
  OpSpec one_shot =
      IteratorOp("OneShotIterator",
                 "Returns an iterator over the dataset that a function creates, for one pass.");
  one_shot.Out("handle: resource").Attr("dataset_factory: func");
  ops->Add(WithElements(one_shot).Attr("container: string = ''").Attr("shared_name: string = ''"));
  ops->Add(IteratorOp("MakeIterator", "Initializes an iterator to the start of a dataset.")
               .In("dataset: variant, iterator: resource")
               .InferShape(NoOutputs));
  for (const char* name : {"IteratorGetNext", "IteratorGetNextSync"}) {
    OpSpec op = IteratorOp(name, "Returns the next element. Fails with OUT_OF_RANGE at the end.");
    op.In("iterator: resource").Out("components: output_types");
    op.Waits(WaitsFor::kValue).InferShape(Ranked("iterator: 0", DatasetElementShapes));
    ops->Add(WithElements(op));
  }
  ops->Add(
      IteratorOp("IteratorToStringHandle",
                 "Returns a string handle of an iterator, to be fed to IteratorFromStringHandle.")
          .In("resource_handle: resource")
          .Out("string_handle: string"));
  for (const char* name : {"IteratorFromStringHandle", "IteratorFromStringHandleV2"}) {
    ops->Add(
        IteratorOp(name,
                   "Returns the iterator of this session for a string from IteratorToStringHandle.")
            .In("string_handle: string")
            .Out("resource_handle: resource")
            .Attr("output_types: list(type) >= 0 = []")
            .Attr("output_shapes: list(shape) >= 0 = []"));
  }
}

}  // namespace

void AddDatasetIteratorOps(OpRegistry* ops) {
  AddAnonymousIterators(ops);
  AddIteratorFacts(ops);
  AddMultiDeviceIterators(ops);
  AddNamedIterators(ops);
}

}  // namespace weir
