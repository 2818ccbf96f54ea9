#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/queue_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// Adds the attributes for the capacity and the types of a staging area, which are equal for all
// nodes that use it.
OpSpec& AddCapacityAttrs(OpSpec& spec, const char* dtypes) {
  return spec.Attr("capacity: int >= 0 = 0").Attr("memory_limit: int >= 0 = 0").Attr(dtypes);
}

OpSpec StagingSpec(const std::string& op, const char* inputs, const char* outputs,
                   const char* dtypes = "dtypes: list(type)") {
  OpSpec spec(op);
  if (*inputs != '\0') spec.In(inputs);
  if (*outputs != '\0') spec.Out(outputs);
  AddCapacityAttrs(spec, dtypes).Stateful().NotDifferentiable();
  return spec;
}

constexpr char kSomeTypes[] = "dtypes: list(type) >= 1";

void AddStageOps(OpRegistry* ops) {
  OpSpec stage = StagingSpec("Stage", "values: dtypes", "", kSomeTypes);
  OpSpec unstage = StagingSpec("Unstage", "", "values: dtypes", kSomeTypes);
  OpSpec peek = StagingSpec("StagePeek", "index: int32", "values: dtypes", kSomeTypes);
  OpSpec size = StagingSpec("StageSize", "", "size: int32");
  OpSpec clear = StagingSpec("StageClear", "", "");
  ops->Add(AddSharingAttrs(stage)
               .Waits(WaitsFor::kRoom)
               .InferShape(NoOutputs)
               .Doc("Stages a tuple for another step. Blocks while the staging area is full."));
  ops->Add(AddSharingAttrs(unstage)
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Removes and returns the first staged tuple."));
  ops->Add(AddSharingAttrs(peek)
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Returns a staged tuple without removing it."));
  ops->Add(
      AddSharingAttrs(size).InferShape(ScalarShape).Doc("Returns the number of staged tuples."));
  ops->Add(AddSharingAttrs(clear).InferShape(NoOutputs).Doc("Removes all staged tuples."));
}

void AddMapOps(const char* kind, OpRegistry* ops) {
  const auto name = [&](const char* op) { return absl::StrCat(kind, op); };
  OpSpec stage = StagingSpec(name("Stage"), "key: int64, indices: int32, values: fake_dtypes", "");
  OpSpec peek =
      StagingSpec(name("Peek"), "key: int64, indices: int32", "values: dtypes", kSomeTypes);
  OpSpec unstage =
      StagingSpec(name("Unstage"), "key: int64, indices: int32", "values: dtypes", kSomeTypes);
  OpSpec no_key =
      StagingSpec(name("UnstageNoKey"), "indices: int32", "key: int64, values: dtypes", kSomeTypes);
  OpSpec size = StagingSpec(name("Size"), "", "size: int32");
  OpSpec incomplete = StagingSpec(name("IncompleteSize"), "", "size: int32");
  OpSpec clear = StagingSpec(name("Clear"), "", "");
  ops->Add(AddSharingAttrs(stage.Attr("fake_dtypes: list(type) >= 1"))
               .Waits(WaitsFor::kRoom)
               .InferShape(NoOutputs)
               .Doc("Stages components of the tuple with the given key for another step."));
  ops->Add(AddSharingAttrs(peek)
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Returns components of the tuple with the given key once it is complete, "
                    "without removing it."));
  ops->Add(AddSharingAttrs(unstage)
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Removes and returns components of the tuple with the given key once it is "
                    "complete."));
  ops->Add(AddSharingAttrs(no_key)
               .Waits(WaitsFor::kValue)
               .InferShape(UnknownShape)
               .Doc("Removes and returns components of the tuple with the smallest key."));
  ops->Add(
      AddSharingAttrs(size).InferShape(ScalarShape).Doc("Returns the number of complete tuples."));
  ops->Add(AddSharingAttrs(incomplete)
               .InferShape(ScalarShape)
               .Doc("Returns the number of incomplete tuples."));
  ops->Add(AddSharingAttrs(clear).InferShape(NoOutputs).Doc("Removes all tuples."));
}

}  // namespace

void AddStagingOps(OpRegistry* ops) {
  AddStageOps(ops);
  for (const char* kind : {"Map", "OrderedMap"}) AddMapOps(kind, ops);
}

}  // namespace weir
