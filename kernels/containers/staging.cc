#include "weir/kernels/containers/staging.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Staging areas have no handle: nodes with the same shared_name use the same one.
namespace weir {

namespace {

// Returns the staging area of a node. Every node creates it if it does not exist yet.
template <class Area>
absl::StatusOr<std::shared_ptr<Area>> AreaOf(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  const StagingLimits limits{init.attr<int64_t>("capacity"), init.attr<int64_t>("memory_limit")};
  return name.SelectMap(init.resources).LookupOrCreate<Area>(name.container, name.name, [&] {
    return std::make_shared<Area>(name.name, limits);
  });
}

absl::StatusOr<Tensors> OwnInputs(KernelContext& c, int begin) {
  Tensors tuple;
  for (int i = begin; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor own, c.Own(c.input(i)));
    tuple.push_back(std::move(own));
  }
  return tuple;
}

// Writes a tuple to the outputs from `begin` on, if it has the node's types.
absl::Status WriteOutputs(KernelContext& c, int begin, Tensors tuple) {
  const size_t count = static_cast<size_t>(c.num_outputs() - begin);
  if (tuple.size() != count)
    return InvalidArgument("Mismatch stage/unstage: ", tuple.size(), " vs. ", count);
  for (size_t i = 0; i < count; ++i) {
    const int output = begin + static_cast<int>(i);
    if (tuple[i].dtype() == c.node().output_type(output)) continue;
    return InvalidArgument("Mismatch stage/unstage: element ", i, " is ",
                           DataTypeName(tuple[i].dtype()), ", not ",
                           DataTypeName(c.node().output_type(output)));
  }
  for (size_t i = 0; i < count; ++i) c.SetOutput(begin + static_cast<int>(i), std::move(tuple[i]));
  return absl::OkStatus();
}

StagingArea::TakeCallback WriteTuple(KernelContext& c, Kernel::Done done) {
  return [&c, done = std::move(done)](absl::StatusOr<Tensors> tuple) {
    done(tuple.ok() ? WriteOutputs(c, 0, *std::move(tuple)) : tuple.status());
  };
}

absl::Status WriteCount(KernelContext& c, int64_t count) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int32_t>() = static_cast<int32_t>(count);
  return absl::OkStatus();
}

// An asynchronous kernel that calls the function with the node's area.
template <class Area>
using AsyncRun = void (*)(KernelContext&, Area&, Kernel::Done);
template <class Area, AsyncRun<Area> kRun>
absl::StatusOr<Kernel> MakeAsync(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Area> area, AreaOf<Area>(init));
  return Kernel(
      [area](KernelContext& c, Kernel::Done done) -> void { kRun(c, *area, std::move(done)); });
}

void Stage(KernelContext& c, StagingArea& area, Kernel::Done done) {
  absl::StatusOr<Tensors> tuple = OwnInputs(c, 0);
  if (!tuple.ok()) return done(tuple.status());
  area.Put(*std::move(tuple), c.cancellation(), std::move(done));
}

void Unstage(KernelContext& c, StagingArea& area, Kernel::Done done) {
  area.Take(c.cancellation(), WriteTuple(c, std::move(done)));
}

void StagePeek(KernelContext& c, StagingArea& area, Kernel::Done done) {
  const Tensor& place = c.input(0);
  if (place.rank() != 0)
    return done(InvalidArgument("index must be scalar, but has shape ", place.shape().ToString()));
  const int64_t index = place.IntAt(0);
  if (index < 0) return done(InvalidArgument("index must not be negative, got ", index));
  area.Peek(index, c.cancellation(), WriteTuple(c, std::move(done)));
}

// ---- maps

StagingMap::Indices ReadIndices(const Tensor& t) {
  const Dims ints = ReadInts(t);
  return StagingMap::Indices(ints.begin(), ints.end());
}

StagingMap::TakeCallback WritePart(KernelContext& c, bool with_key, Kernel::Done done) {
  return [&c, with_key, done = std::move(done)](absl::StatusOr<StagingMap::Part> part) {
    if (!part.ok()) return done(part.status());
    if (with_key) c.SetOutput(0, Tensor::Scalar(part->first));
    done(WriteOutputs(c, with_key ? 1 : 0, std::move(part->second)));
  };
}

absl::StatusOr<int64_t> ReadKey(const KernelContext& c) {
  const Tensor& key = c.input(0);
  if (key.rank() == 0) return key.IntAt(0);
  return InvalidArgument("key must be an int64 scalar, got tensor with shape: ",
                         key.shape().ToString());
}

// As in TensorFlow, the key may be a vector of one element here, but not where tuples are taken.
void MapStage(KernelContext& c, StagingMap& map, Kernel::Done done) {
  const Tensor& keys = c.input(0);
  const absl::StatusOr<int64_t> key = keys.num_elements() == 1 ? keys.IntAt(0) : ReadKey(c);
  if (!key.ok()) return done(key.status());
  absl::StatusOr<Tensors> parts = OwnInputs(c, 2);
  if (!parts.ok()) return done(parts.status());
  const size_t arity = c.node().attr<DataTypes>("dtypes").size();
  map.Put(*key, ReadIndices(c.input(1)), *std::move(parts), arity, c.cancellation(),
          std::move(done));
}

void MapUnstage(KernelContext& c, StagingMap& map, Kernel::Done done) {
  const absl::StatusOr<int64_t> key = ReadKey(c);
  if (!key.ok()) return done(key.status());
  map.Take(*key, ReadIndices(c.input(1)), c.cancellation(), WritePart(c, false, std::move(done)));
}

void MapPeek(KernelContext& c, StagingMap& map, Kernel::Done done) {
  const absl::StatusOr<int64_t> key = ReadKey(c);
  if (!key.ok()) return done(key.status());
  map.Peek(*key, ReadIndices(c.input(1)), c.cancellation(), WritePart(c, false, std::move(done)));
}

void MapUnstageNoKey(KernelContext& c, StagingMap& map, Kernel::Done done) {
  map.Take(std::nullopt, ReadIndices(c.input(0)), c.cancellation(),
           WritePart(c, true, std::move(done)));
}

template <class Area, int64_t (Area::*kCount)()>
absl::StatusOr<Kernel> MakeCount(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Area> area, AreaOf<Area>(init));
  return Kernel(
      [area](KernelContext& c) -> absl::Status { return WriteCount(c, (*area.*kCount)()); });
}

template <class Area>
absl::StatusOr<Kernel> MakeClear(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Area> area, AreaOf<Area>(init));
  return Kernel([area](KernelContext&) -> absl::Status {
    area->Empty();
    return absl::OkStatus();
  });
}

}  // namespace

void AddStagingKernels(KernelRegistry* r) {
  r->Add("Stage", kCpu, MakeAsync<StagingArea, Stage>);
  r->Add("Unstage", kCpu, MakeAsync<StagingArea, Unstage>);
  r->Add("StagePeek", kCpu, MakeAsync<StagingArea, StagePeek>);
  r->Add("StageSize", kCpu, MakeCount<StagingArea, &StagingArea::size>);
  r->Add("StageClear", kCpu, MakeClear<StagingArea>);
  // The smallest key is first in either kind.
  for (const char* kind : {"Map", "OrderedMap"}) {
    const auto name = [&](const char* op) { return absl::StrCat(kind, op); };
    r->Add(name("Stage"), kCpu, MakeAsync<StagingMap, MapStage>);
    r->Add(name("Unstage"), kCpu, MakeAsync<StagingMap, MapUnstage>);
    r->Add(name("Peek"), kCpu, MakeAsync<StagingMap, MapPeek>);
    r->Add(name("UnstageNoKey"), kCpu, MakeAsync<StagingMap, MapUnstageNoKey>);
    r->Add(name("Size"), kCpu, MakeCount<StagingMap, &StagingMap::size>);
    r->Add(name("IncompleteSize"), kCpu, MakeCount<StagingMap, &StagingMap::incomplete_size>);
    r->Add(name("Clear"), kCpu, MakeClear<StagingMap>);
  }
}

}  // namespace weir
