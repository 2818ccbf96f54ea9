// A use of each public header; own_project_test.sh builds it with an installed tree. The test
// compares the first column of the table with the installed headers.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "weir/core/allocator.h"
#include "weir/core/bundle.h"
#include "weir/core/cancellation.h"
#include "weir/core/device.h"
#include "weir/core/kernel.h"
#include "weir/core/name_index.h"
#include "weir/core/npy.h"
#include "weir/core/per_thread.h"
#include "weir/core/record.h"
#include "weir/core/shape_context.h"
#include "weir/core/tensor_slice.h"
#include "weir/core/text_proto.h"
#include "weir/core/thread_pool.h"
#include "weir/kernels/backend.h"
#include "weir/kernels/device_primitives.h"
#include "weir/proto.h"
#include "weir/rpc/client.h"
#include "weir/rpc/master.h"
#include "weir/rpc/server.h"
#include "weir/weir.h"

namespace weir {
namespace {

struct Use {
  const char* header;
  std::function<bool(Graph&)> call;
};

Output Floats(Graph& g) { return Const(g, {1.f, 2.f}); }
Output Square2(Graph& g) { return Const<float>(g, Shape({2, 2}), {4, 1, 1, 3}); }
Variable Var(Graph& g) { return MakeVariable(g, {1.0, 2.0}); }
SparseTensor Sparse(Graph& g) {
  return MakeSparseTensor(Const<int64_t>(g, Shape({1, 2}), {0, 1}), Const(g, {5.f}), {2, 2});
}
bool Made(const Output& x) { return x.node != nullptr; }
std::string Scratch(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

class Layer : public Module {
 public:
  explicit Layer(Graph& g) : Module(g) { Track("w", Var(g)); }
};

const Use kCore[] = {
    {"weir/core/allocator.h", [](Graph&) { return !HostAllocator().name().empty(); }},
    {"weir/core/attr.h", [](Graph&) { return AttrValue(int64_t{1}) == AttrValue(int64_t{1}); }},
    {"weir/core/bundle.h",
     [](Graph&) { return !MergeBundles({Scratch("weir_none")}, Scratch("weir_none")).ok(); }},
    {"weir/core/cancellation.h",
     [](Graph&) {
       Cancellation step;
       const ScopedCancellation works_for(&step);
       step.Cancel(absl::CancelledError("over"));
       return ScopedCancellation::Current()->cancelled();
     }},
    {"weir/core/checkpoint_state.h",
     [](Graph&) { return !ReadCheckpointState(Scratch("weir_none")).ok(); }},
    {"weir/core/collection.h",
     [](Graph&) { return std::get<int64_t>(CollectionItem(int64_t{3})) == 3; }},
    {"weir/core/device.h", [](Graph&) { return NewCpuDevice()->is_host(); }},
    {"weir/core/dtype.h", [](Graph&) { return DataTypeName(DT_FLOAT) == "float"; }},
    {"weir/core/event_writer.h",
     [](Graph&) { return !EventWriter::Create("/proc/weir_none").ok(); }},
    {"weir/core/file.h", [](Graph&) { return !Files().Open(Scratch("weir_none")).ok(); }},
    {"weir/core/function_library.h",
     [](Graph& g) {
       Graph body;
       const Output x = Placeholder(body, DT_FLOAT);
       return DefineFunction(g, "twice", body, {x}, {x + x}).ok();
     }},
    {"weir/core/gradient.h", [](Graph& g) { return !Grad(Floats(g)).none() && Grad().none(); }},
    {"weir/core/graph.h", [](Graph& g) { return g.FindNode("none") == nullptr; }},
    {"weir/core/graph_io.h",
     [](Graph& g) {
       Floats(g);
       Graph copy;
       return ImportGraph(copy, SerializeGraph(g)).ok() && copy.nodes().size() == g.nodes().size();
     }},
    {"weir/core/kernel.h", [](Graph&) { return !BuiltinKernels().KernelsOf("MatMul").empty(); }},
    {"weir/core/name_index.h", [](Graph&) { return NameIndex().Find("none") == nullptr; }},
    {"weir/core/npy.h",
     [](Graph&) {
       return SerializeNpy(Tensor::Vector<float>({1, 2})).ok();
     }},
    {"weir/core/numeric_types.h", [](Graph&) { return float(half(1.5f)) == 1.5f; }},
    {"weir/core/op.h", [](Graph&) { return OpSpec("Mine").In("x: float").inputs().size() == 1; }},
    {"weir/core/op_traits.h",
     [](Graph&) { return BuiltinOps().Find("Add")->traits().elementwise; }},
    {"weir/core/output.h",
     [](Graph& g) { return Floats(g).valid() && !Output().valid() && !Operation().valid(); }},
    {"weir/core/per_thread.h", [](Graph&) { return PerThread<int>().get() == 0; }},
    {"weir/core/record.h", [](Graph&) { return !RecordReader::Open(Scratch("weir_none")).ok(); }},
    {"weir/core/resource.h",
     [](Graph&) { return !VariableState("v", DT_FLOAT, Shape({2})).IsInitialized(); }},
    {"weir/core/resource_handle.h", [](Graph&) { return ResourceHandle().name.empty(); }},
    {"weir/core/scope.h",
     [](Graph& g) {
       const NameScope scope(g, "a");
       return Floats(g).name() == "a/Const:0";
     }},
    {"weir/core/shape.h",
     [](Graph&) {
       return BroadcastShapes({2, 1}, {3})->num_elements() == 6;
     }},
    {"weir/core/shape_context.h", [](Graph&) { return *AddDims(2, 3) == 5; }},
    {"weir/core/status.h", [](Graph&) { return !InvalidArgument("no").ok(); }},
    {"weir/core/tensor.h",
     [](Graph&) {
       return Tensor::Vector<float>({1, 2}).num_elements() == 2;
     }},
    {"weir/core/tensor_slice.h", [](Graph&) { return TensorSlice::Parse("0,2").ok(); }},
    {"weir/core/text_proto.h",
     [](Graph&) {
       proto::GraphDef def;
       return ParseTextProto("node { name: 'a' op: 'NoOp' }", "text", &def).ok() &&
              def.node(0).name() == "a";
     }},
    {"weir/core/thread_pool.h", [](Graph&) { return ThreadPool(2).num_threads() == 2; }},
    {"weir/proto.h",
     [](Graph& g) {
       proto::VariableDef def;
       return Var(g).ToProto(&def) && def.variable_name() == "Variable:0";
     }},
};

// A backend of a program, without devices.
class NoDevices : public Backend {
 public:
  NoDevices() : Backend("NPU") {}
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> CreateDevices(
      const DeviceName&) const override {
    return std::vector<std::unique_ptr<Device>>();
  }
};

const Use kKernels[] = {
    {"weir/kernels/backend.h",
     [](Graph& g) {
       auto backends = std::make_shared<BackendRegistry>(&BuiltinBackends());
       if (!backends->Add(std::make_unique<NoDevices>()).ok()) return false;
       SessionOptions options;
       options.backends = backends;
       return Session::Create(g, options).ok();
     }},
    {"weir/kernels/device_primitives.h",
     [](Graph&) { return DevicePrimitives::GatherArgs().batch == 1; }},
    {"weir/kernels/philox.h",
     [](Graph&) {
       uint32_t words[4];
       Philox(1, 2)(words);
       return words[0] != words[1];
     }},
    {"weir/kernels/training-inl.h",
     [](Graph&) {
       float v = 1;
       functor::GradientDescent<UpdateMath<float>>(UpdateScalars{{0.5}})(2, v, nullptr);
       return v == 0;
     }},
    {"weir/kernels/training.h", [](Graph&) { return UpdateMath<float>::Max(1, 2) == 2; }},
};

const Use kOps[] = {
    {"weir/ops/array.h",
     [](Graph& g) {
       return Made(Reshape(Floats(g), {2, 1}));
     }},
    {"weir/ops/boolean_mask.h",
     [](Graph& g) {
       return Made(BooleanMask(Floats(g), Const(g, {true, false})));
     }},
    {"weir/ops/broadcast_weights.h",
     [](Graph& g) { return Made(BroadcastWeights(Const(g, 1.f), Floats(g))); }},
    {"weir/ops/candidate.h",
     [](Graph& g) {
       const Output classes = Const<int64_t>(g, Shape({1, 1}), {0});
       CandidateOptions options;
       options.range_max = 5;
       return Made(UniformCandidateSampler(classes, options).sampled);
     }},
    {"weir/ops/clip.h", [](Graph& g) { return Made(ClipByNorm(Floats(g), 1)); }},
    {"weir/ops/collections.h",
     [](Graph& g) {
       return Var(g).shape() == Shape({2}) &&
              g.collection(collections::kGlobalVariables).size() == 1;
     }},
    {"weir/ops/cond.h",
     [](Graph& g) {
       return Made(Cond(
           Const(g, true), [&] { return Floats(g); }, [&] { return Floats(g); }));
     }},
    {"weir/ops/control_flow.h", [](Graph& g) { return NoOp(g).name() == "NoOp"; }},
    {"weir/ops/ctc.h",
     [](Graph& g) {
       return Made(CtcGreedyDecoder(Const<float>(g, Shape({1, 1, 2}), {1, 2}), Const(g, {1}))
                       .log_probability);
     }},
    {"weir/ops/data_flow.h",
     [](Graph& g) {
       return Made(DynamicPartition(Floats(g), Const(g, {0, 1}), 2)[1]);
     }},
    {"weir/ops/device_setter.h", [](Graph&) { return !StandardPsOps().empty(); }},
    {"weir/ops/dynamic_rnn.h", [](Graph&) { return BasicLstmCell(3) != nullptr; }},
    {"weir/ops/einsum.h", [](Graph&) { return EinsumEquation::Parse("ij,jk->ik", 2).ok(); }},
    {"weir/ops/fft.h", [](Graph& g) { return Made(Fft(Cast(Floats(g), DT_COMPLEX64))); }},
    {"weir/ops/fit.h", [](Graph& g) { return Made(IsotonicRegression(Square2(g))); }},
    {"weir/ops/function.h",
     [](Graph& g) {
       Graph body;
       const Output x = Placeholder(body, DT_FLOAT);
       return DefineFunction(g, "twice", body, {x}, {x + x}).ok() &&
              Made(Call(g, {"twice", {}}, {Floats(g)})[0]);
     }},
    {"weir/ops/functional.h",
     [](Graph& g) {
       return Made(MapFn([](const Outputs& row) { return Outputs{row[0] * 2.f}; }, {Floats(g)})[0]);
     }},
    {"weir/ops/gradient_util.h", [](Graph&) { return IsTrainable(DT_FLOAT); }},
    {"weir/ops/gradients.h",
     [](Graph& g) {
       const Output x = Floats(g);
       return Made(Gradients({x * x}, {x})[0].dense());
     }},
    {"weir/ops/image.h", [](Graph& g) { return Made(DecodePng(Const(g, "bytes"))); }},
    {"weir/ops/initializers.h",
     [](Graph& g) { return GetVariable(g, "v", {2}, Zeros()).shape() == Shape({2}); }},
    {"weir/ops/inplace.h", [](Graph& g) { return Made(ParallelStack({Const(g, {1.f})})); }},
    {"weir/ops/io.h", [](Graph& g) { return Made(ReadFile(Const(g, "none"))); }},
    {"weir/ops/layers.h", [](Graph& g) { return Made(layers::Dense(Square2(g), 3)); }},
    {"weir/ops/linalg.h", [](Graph& g) { return Made(Cholesky(Square2(g))); }},
    {"weir/ops/literal.h", [](Graph& g) { return Made(TensorArg(2.5).In(g)); }},
    {"weir/ops/losses.h",
     [](Graph& g) { return Made(losses::AbsoluteDifference(Floats(g), Floats(g))); }},
    {"weir/ops/math.h", [](Graph& g) { return Made(Add(Floats(g), Floats(g))); }},
    {"weir/ops/math_special.h", [](Graph& g) { return Made(BesselI0(Floats(g))); }},
    {"weir/ops/metrics.h", [](Graph& g) { return Made(metrics::Mean(Floats(g)).value); }},
    {"weir/ops/mirrored_variable.h",
     [](Graph& g) {
       const Variable v = MakeMirroredVariable(g, {1.0, 2.0}, {"/cpu:0"});
       return v.replicas().size() == 1;
     }},
    {"weir/ops/module.h", [](Graph& g) { return Layer(g).variables().size() == 1; }},
    {"weir/ops/moving_averages.h",
     [](Graph& g) { return Made(AssignMovingAverage(Var(g), Floats(g), 0.9)); }},
    {"weir/ops/nn.h", [](Graph& g) { return Made(Relu(Floats(g))); }},
    {"weir/ops/optimizer.h",
     [](Graph& g) {
       GradientDescent descent(0.1);
       Optimizer& base = descent;
       const Variable v = Var(g);
       return base.Minimize(ReduceSum(v * v)).node != nullptr;
     }},
    {"weir/ops/optimizers.h",
     [](Graph& g) {
       const Variable v = Var(g);
       return Adam(0.1).Minimize(ReduceSum(v * v)).node != nullptr;
     }},
    {"weir/ops/parsing.h", [](Graph& g) { return Made(DecodeRaw(Const(g, "abcd"), DT_FLOAT)); }},
    {"weir/ops/partitioner.h",
     [](Graph&) { return FixedSizePartitioner(2)(Shape({4}), DT_FLOAT)->at(0) == 2; }},
    {"weir/ops/print.h",
     [](Graph&) {
       std::ostringstream out;
       out << Shape({2, 3}) << DT_FLOAT;
       return out.str() == "[2,3]float";
     }},
    {"weir/ops/quantize.h",
     [](Graph& g) {
       return Made(QuantizeV2(Floats(g), Const(g, 0.f), Const(g, 4.f), DT_QUINT8).output);
     }},
    {"weir/ops/queue.h", [](Graph& g) { return Made(Queue::Fifo(g, 3, {DT_FLOAT}).Size()); }},
    {"weir/ops/queue_runner.h",
     [](Graph& g) {
       const Queue queue = Queue::Fifo(g, 3, {DT_FLOAT});
       return !AddQueueRunner(queue, {queue.Enqueue({Const(g, 1.f)})})->ToBytes().empty();
     }},
    {"weir/ops/ragged.h",
     [](Graph& g) {
       return Made(RaggedRange(Const(g, {0}), Const(g, {3}), Const(g, {1})).values);
     }},
    {"weir/ops/random.h", [](Graph& g) { return Made(RandomUniform(g, {2})); }},
    {"weir/ops/reader.h",
     [](Graph& g) {
       Reader::TextLine(g);
       return !g.nodes().empty();
     }},
    {"weir/ops/remap.h",
     [](Graph& g) {
       return Made(GenerateVocabRemapping(Const(g, "new"), Const(g, "old"), 0, 2).remapping);
     }},
    {"weir/ops/rnn.h",
     [](Graph& g) {
       const Output one = Const<float>(g, Shape({1, 1}), {1});
       const Output peep = Const(g, {0.f}), b = Const(g, {0.f, 0.f, 0.f, 0.f});
       const Output w = Const<float>(g, Shape({2, 4}), {1, 1, 1, 1, 1, 1, 1, 1});
       return Made(LstmBlockCell(one, one, one, {w, peep, peep, peep, b}).h);
     }},
    {"weir/ops/saver.h",
     [](Graph& g) {
       const auto def = BuildSaverGraph(g, NameVariables({Var(g)}));
       return def.ok() && *SaverDef::FromBytes(def->ToBytes()) == *def;
     }},
    {"weir/ops/schedules.h",
     [](Graph& g) { return Made(ExponentialDecay(0.1, Const(g, 1), 10, 0.9)); }},
    {"weir/ops/search.h", [](Graph& g) { return Made(SearchSorted(Floats(g), Floats(g))); }},
    {"weir/ops/sets.h",
     [](Graph& g) {
       return Made(
           SetUnion(Const<int32_t>(g, Shape({1, 2}), {1, 2}), Const<int32_t>(g, Shape({1, 1}), {1}))
               .values);
     }},
    {"weir/ops/slots.h",
     [](Graph& g) { return CreateSlot(Var(g), "slot", Zeros()).shape() == Shape({2}); }},
    {"weir/ops/sparse.h", [](Graph& g) { return Made(SparseTensorToDense(Sparse(g))); }},
    {"weir/ops/state.h",
     [](Graph& g) { return Made(VarHandleOp(g, DT_FLOAT, {2}, {.name = "bare"})); }},
    {"weir/ops/string.h", [](Graph& g) { return Made(AsString(Floats(g))); }},
    {"weir/ops/summary.h", [](Graph& g) { return Made(summary::Scalar("s", Const(g, 1.f))); }},
    {"weir/ops/table.h",
     [](Graph& g) {
       return Made(StaticHashTable(Const(g, {1, 2}), Floats(g), Const(g, 0.f)).handle());
     }},
    {"weir/ops/tensor_array.h", [](Graph&) { return sizeof(TensorArray) > 0; }},
    {"weir/ops/variable.h",
     [](Graph& g) {
       const Variable v = Var(g);
       return *Variable::FromBytes(g, *v.ToBytes()) == v;
     }},
    {"weir/ops/variable_scope.h",
     [](Graph& g) {
       const VariableScope scope(g, "a");
       return GetVariable(g, "v", {2}).name() == "a/v:0";
     }},
    {"weir/ops/variables.h",
     [](Graph& g) {
       const Variable v = Var(g);
       return GlobalVariables(g) == Variables{v};
     }},
    {"weir/ops/while_loop.h",
     [](Graph& g) {
       return Made(WhileLoop([](const Outputs& x) { return x[0] < 3.f; },
                             [](const Outputs& x) { return Outputs{x[0] + 1.f}; },
                             {Const(g, 0.f)})[0]);
     }},
    {"weir/ops/window.h", [](Graph&) { return ParseDataFormat("NHWC").ok(); }},
};

const Use kSessions[] = {
    {"weir/rpc/client.h",
     [](Graph&) {
       rpc::EnableGrpcTargets();
       return true;
     }},
    {"weir/rpc/master.h",
     [](Graph&) { return rpc::Server::Start({})->get()->master().num_sessions() == 0; }},
    {"weir/rpc/server.h", [](Graph&) { return rpc::Server::Start({})->get()->port() > 0; }},
    {"weir/session/coordinator.h",
     [](Graph&) {
       Coordinator threads;
       threads.RequestStop();
       return threads.Join().ok();
     }},
    {"weir/session/freeze.h",
     [](Graph& g) {
       const Output x = Floats(g) * 2.f;
       Session session = *Session::Create(g);
       return FreezeGraph(session, {x}).ok();
     }},
    {"weir/session/hook.h", [](Graph&) { return sizeof(SessionHook) > 0; }},
    {"weir/session/hooks.h", [](Graph&) { return StopAtStep({.last_step = 2}) != nullptr; }},
    {"weir/session/meta_graph.h",
     [](Graph& g) {
       Var(g);
       Graph copy;
       return ImportMetaGraph(copy, SerializeMetaGraph(g)).ok() &&
              GlobalVariables(copy).size() == 1;
     }},
    {"weir/session/monitored_session.h",
     [](Graph& g) {
       Var(g);
       return MonitoredSession::Create(g).ok();
     }},
    {"weir/session/queue_runner.h",
     [](Graph& g) {
       Session session = *Session::Create(g);
       Coordinator threads;
       return StartQueueRunners(session, threads).ok();
     }},
    {"weir/session/saved_model.h",
     [](Graph&) { return !LoadSavedModel(Scratch("weir_none"), {"serve"}).ok(); }},
    {"weir/session/saver.h",
     [](Graph& g) { return Var(g).op_name() == "Variable" && Saver::Create(g).ok(); }},
    {"weir/session/scaffold.h", [](Graph&) { return sizeof(Scaffold) > 0; }},
    {"weir/session/session.h",
     [](Graph& g) {
       const Output x = Floats(g);
       return Session::Create(g)->Run({x}).ok();
     }},
    {"weir/session/variable_io.h",
     [](Graph& g) {
       const Output x = Floats(g);
       Session session = *Session::Create(g);
       return Eval(x, &session)->flat<float>()[1] == 2;
     }},
    {"weir/session/weir.h", [](Graph&) { return true; }},  // includes weir/weir.h
    {"weir/weir.h", [](Graph&) { return true; }},          // includes all headers above
};

int Run() {
  int faults = 0;
  const auto run = [&faults](const Use& use) {
    Graph g;
    std::printf("%s\n", use.header);
    std::fflush(stdout);  // if this crashes, the last printed name is the cause
    const bool right = use.call(g);
    const absl::Status status = g.status();
    if (right && status.ok()) return;
    std::fprintf(stderr, "%s does not work: %s\n", use.header, status.ToString().c_str());
    ++faults;
  };
  for (const Use& use : kCore) run(use);
  for (const Use& use : kKernels) run(use);
  for (const Use& use : kOps) run(use);
  for (const Use& use : kSessions) run(use);
  return faults;
}

}  // namespace
}  // namespace weir

int main() { return weir::Run() == 0 ? 0 : 1; }
