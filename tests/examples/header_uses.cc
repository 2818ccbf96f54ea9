// A use of each public header; own_project_test.sh builds it with an installed tree. The test
// compares the first column of the table with the installed headers.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "weir/core/graph/name_index.h"
#include "weir/core/graph/per_thread.h"
#include "weir/weir.h"

// The shared library has no servers, and no messages for other programs.
#ifndef WEIR_SHARED
#include "weir/core/io/text_proto.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/proto.h"
#include "weir/rpc/client.h"
#include "weir/rpc/cluster/cluster_spec.h"
#include "weir/rpc/cluster_server.h"
#include "weir/rpc/lib/call.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/lib/graph_policy.h"
#include "weir/rpc/lib/master_options.h"
#include "weir/rpc/lib/memory_reservation.h"
#include "weir/rpc/lib/request_numbers.h"
#include "weir/rpc/lib/response_limit.h"
#include "weir/rpc/lib/server_device.h"
#include "weir/rpc/lib/tls_files.h"
#include "weir/rpc/master.h"
#include "weir/rpc/server.h"
#endif

namespace WEIR_API exported {
inline int Answer() { return 42; }
}  // namespace exported

namespace {

struct Use {
  const char* header;
  std::function<bool(weir::Graph&)> call;
};

weir::Output Floats(weir::Graph& g) { return weir::Const(g, {1.f, 2.f}); }
weir::Output Square2(weir::Graph& g) {
  return weir::Const<float>(g, weir::Shape({2, 2}), {4, 1, 1, 3});
}
weir::Variable Var(weir::Graph& g) { return weir::MakeVariable(g, {1.0, 2.0}); }
weir::SparseTensor Sparse(weir::Graph& g) {
  return weir::MakeSparseTensor(weir::Const<int64_t>(g, weir::Shape({1, 2}), {0, 1}),
                                weir::Const(g, {5.f}), {2, 2});
}
bool Made(const weir::Output& x) { return x.node != nullptr; }
std::string Scratch(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

class Layer : public weir::Module {
 public:
  explicit Layer(weir::Graph& g) : weir::Module(g) { Track("w", Var(g)); }
};

const Use kCore[] = {
    {"weir/core/tensor/api.h", [](weir::Graph&) { return exported::Answer() == 42; }},
    {"weir/core/tensor/allocator.h",
     [](weir::Graph&) { return !weir::HostAllocator().name().empty(); }},
    {"weir/core/graph/attr.h",
     [](weir::Graph&) { return weir::AttrValue(int64_t{1}) == weir::AttrValue(int64_t{1}); }},
    {"weir/core/tensor/buffer.h",
     [](weir::Graph&) {
       const weir::BufferPtr buffer(weir::Buffer::New(weir::HostAllocator(), weir::DT_FLOAT, 3));
       return buffer && buffer->size() == 3 * sizeof(float);
     }},
    {"weir/core/io/bundle.h",
     [](weir::Graph&) {
       return !weir::MergeBundles({Scratch("weir_none")}, Scratch("weir_none")).ok();
     }},
    {"weir/core/tensor/cancellation.h",
     [](weir::Graph&) {
       weir::Cancellation step;
       const weir::ScopedCancellation works_for(&step);
       step.Cancel(absl::CancelledError("over"));
       return weir::ScopedCancellation::Current()->cancelled();
     }},
    {"weir/core/io/checkpoint_state.h",
     [](weir::Graph&) { return !weir::ReadCheckpointState(Scratch("weir_none")).ok(); }},
    {"weir/core/graph/collection.h",
     [](weir::Graph&) { return std::get<int64_t>(weir::CollectionItem(int64_t{3})) == 3; }},
    {"weir/core/runtime/device.h", [](weir::Graph&) { return weir::NewCpuDevice()->is_host(); }},
    {"weir/core/tensor/dtype.h",
     [](weir::Graph&) { return weir::DataTypeName(weir::DT_FLOAT) == "float"; }},
    {"weir/core/io/event_writer.h",
     [](weir::Graph&) { return !weir::EventWriter::Create("/proc/weir_none").ok(); }},
    {"weir/core/io/file.h",
     [](weir::Graph&) { return !weir::Files().Open(Scratch("weir_none")).ok(); }},
    {"weir/core/io/function_library.h",
     [](weir::Graph& g) {
       weir::Graph body;
       const weir::Output x = weir::Placeholder(body, weir::DT_FLOAT);
       return weir::DefineFunction(g, "twice", body, {x}, {x + x}).ok();
     }},
    {"weir/core/graph/gradient.h",
     [](weir::Graph& g) { return !weir::Grad(Floats(g)).none() && weir::Grad().none(); }},
    {"weir/core/graph/graph.h", [](weir::Graph& g) { return g.FindNode("none") == nullptr; }},
    {"weir/core/io/graph_io.h",
     [](weir::Graph& g) {
       Floats(g);
       weir::Graph copy;
       return weir::ImportGraph(copy, weir::SerializeGraph(g)).ok() &&
              copy.nodes().size() == g.nodes().size();
     }},
    {"weir/core/runtime/kernel.h",
     [](weir::Graph&) { return !weir::BuiltinKernels().KernelsOf("MatMul").empty(); }},
    {"weir/core/tensor/mutex.h",
     [](weir::Graph&) {
       weir::Mutex mutex;
       const weir::MutexLock lock(mutex);
       return true;
     }},
    {"weir/core/graph/name_index.h",
     [](weir::Graph&) { return weir::NameIndex().Find("none") == nullptr; }},
    {"weir/core/io/memory_folder.h",
     [](weir::Graph&) {
       const std::map<std::string, absl::string_view> files = {{"a", "bytes"}};
       const weir::MemoryFolder folder(files);
       return weir::Files().Exists(folder.Path("a"));
     }},
    {"weir/core/io/npy.h",
     [](weir::Graph&) {
       return weir::SerializeNpy(weir::Tensor::Vector<float>({1, 2})).ok();
     }},
    {"weir/core/tensor/convert.h",
     [](weir::Graph&) {
       return weir::ConvertTensor(weir::Tensor::Scalar(1.0), weir::DT_FLOAT).ok();
     }},
    {"weir/core/tensor/numeric_types.h",
     [](weir::Graph&) { return float(weir::half(1.5f)) == 1.5f; }},
    {"weir/core/graph/op.h",
     [](weir::Graph&) { return weir::OpSpec("Mine").In("x: float").inputs().size() == 1; }},
    {"weir/core/graph/op_traits.h",
     [](weir::Graph&) { return weir::BuiltinOps().Find("Add")->traits().elementwise; }},
    {"weir/core/graph/output.h",
     [](weir::Graph& g) {
       return Floats(g).valid() && !weir::Output().valid() && !weir::Operation().valid();
     }},
    {"weir/core/graph/per_thread.h",
     [](weir::Graph&) { return weir::PerThread<int>().get() == 0; }},
    {"weir/core/io/record.h",
     [](weir::Graph&) { return !weir::RecordReader::Open(Scratch("weir_none")).ok(); }},
    {"weir/core/runtime/rendezvous.h",
     [](weir::Graph&) { return !weir::RendezvousKey::Parse("none").ok(); }},
    {"weir/core/runtime/resource.h",
     [](weir::Graph&) {
       return !weir::VariableState("v", weir::DT_FLOAT, weir::Shape({2})).IsInitialized();
     }},
    {"weir/core/tensor/resource_handle.h",
     [](weir::Graph&) { return weir::ResourceHandle().name.empty(); }},
    {"weir/core/graph/scope.h",
     [](weir::Graph& g) {
       const weir::NameScope scope(g, "a");
       return Floats(g).name() == "a/Const:0";
     }},
    {"weir/core/tensor/shape.h",
     [](weir::Graph&) {
       return weir::BroadcastShapes({2, 1}, {3})->num_elements() == 6;
     }},
    {"weir/core/graph/shape_context.h", [](weir::Graph&) { return *weir::AddDims(2, 3) == 5; }},
    {"weir/core/tensor/status.h", [](weir::Graph&) { return !weir::InvalidArgument("no").ok(); }},
    {"weir/core/tensor/tensor.h",
     [](weir::Graph&) {
       return weir::Tensor::Vector<float>({1, 2}).num_elements() == 2;
     }},
    {"weir/core/io/retention.h",
     [](weir::Graph&) { return !weir::ReadMetric(Scratch("weir_none")).has_value(); }},
    {"weir/core/io/tensor_slice.h",
     [](weir::Graph&) { return weir::TensorSlice::Parse("0,2").ok(); }},
    {"weir/core/runtime/thread_pool.h",
     [](weir::Graph&) { return weir::ThreadPool(2).num_threads() == 2; }},
    {"weir/core/tensor/version.h",
     [](weir::Graph&) {
       return WEIR_VERSION == std::to_string(WEIR_VERSION_MAJOR) + "." +
                                  std::to_string(WEIR_VERSION_MINOR) + "." +
                                  std::to_string(WEIR_VERSION_PATCH);
     }},
};

// A backend of a program, without devices.
class NoDevices : public weir::Backend {
 public:
  NoDevices() : weir::Backend("NPU") {}
  absl::StatusOr<std::vector<std::unique_ptr<weir::Device>>> CreateDevices(
      const weir::DeviceName&) const override {
    return std::vector<std::unique_ptr<weir::Device>>();
  }
};

const Use kKernels[] = {
    {"weir/kernels/lib/backend.h",
     [](weir::Graph& g) {
       auto backends = std::make_shared<weir::BackendRegistry>(&weir::BuiltinBackends());
       if (!backends->Add(std::make_unique<NoDevices>()).ok()) return false;
       weir::SessionOptions options;
       options.backends = backends;
       return weir::Session::Create(g, options).ok();
     }},
    {"weir/kernels/lib/device_primitives.h",
     [](weir::Graph&) { return weir::DevicePrimitives::GatherArgs().batch == 1; }},
    {"weir/kernels/lib/philox.h",
     [](weir::Graph&) {
       uint32_t words[4];
       weir::Philox(1, 2)(words);
       return words[0] != words[1];
     }},
    {"weir/kernels/lib/training-inl.h",
     [](weir::Graph&) {
       float v = 1;
       weir::functor::GradientDescent<weir::UpdateMath<float>>(weir::UpdateScalars{{0.5}})(2, v,
                                                                                           nullptr);
       return v == 0;
     }},
    {"weir/kernels/lib/training.h",
     [](weir::Graph&) { return weir::UpdateMath<float>::Max(1, 2) == 2; }},
};

const Use kOps[] = {
    {"weir/ops/lib/array.h",
     [](weir::Graph& g) {
       return Made(weir::Reshape(Floats(g), {2, 1}));
     }},
    {"weir/ops/lib/boolean_mask.h",
     [](weir::Graph& g) {
       return Made(weir::BooleanMask(Floats(g), weir::Const(g, {true, false})));
     }},
    {"weir/ops/layers/broadcast_weights.h",
     [](weir::Graph& g) { return Made(weir::BroadcastWeights(weir::Const(g, 1.f), Floats(g))); }},
    {"weir/ops/nn/candidate.h",
     [](weir::Graph& g) {
       const weir::Output classes = weir::Const<int64_t>(g, weir::Shape({1, 1}), {0});
       weir::CandidateOptions options;
       options.range_max = 5;
       return Made(weir::UniformCandidateSampler(classes, options).sampled);
     }},
    {"weir/ops/math/clip.h", [](weir::Graph& g) { return Made(weir::ClipByNorm(Floats(g), 1)); }},
    {"weir/ops/lib/collections.h",
     [](weir::Graph& g) {
       return Var(g).shape() == weir::Shape({2}) &&
              g.collection(weir::collections::kGlobalVariables).size() == 1;
     }},
    {"weir/ops/framework/cond.h",
     [](weir::Graph& g) {
       return Made(weir::Cond(
           weir::Const(g, true), [&] { return Floats(g); }, [&] { return Floats(g); }));
     }},
    {"weir/ops/framework/control_flow.h", [](weir::Graph& g) { return weir::NoOp(g).name() == "NoOp"; }},
    {"weir/ops/nn/ctc.h",
     [](weir::Graph& g) {
       const weir::Output x = weir::Const<float>(g, weir::Shape({1, 1, 2}), {1, 2});
       return Made(weir::CtcGreedyDecoder(x, weir::Const(g, {1})).log_probability);
     }},
    {"weir/ops/containers/data_flow.h",
     [](weir::Graph& g) {
       return Made(weir::DynamicPartition(Floats(g), weir::Const(g, {0, 1}), 2)[1]);
     }},
    {"weir/ops/framework/device_setter.h", [](weir::Graph&) { return !weir::StandardPsOps().empty(); }},
    {"weir/ops/nn/dynamic_rnn.h", [](weir::Graph&) { return weir::BasicLstmCell(3) != nullptr; }},
    {"weir/ops/linalg/einsum.h",
     [](weir::Graph&) { return weir::EinsumEquation::Parse("ij,jk->ik", 2).ok(); }},
    {"weir/ops/linalg/fft.h",
     [](weir::Graph& g) { return Made(weir::Fft(weir::Cast(Floats(g), weir::DT_COMPLEX64))); }},
    {"weir/ops/linalg/fit.h", [](weir::Graph& g) { return Made(weir::IsotonicRegression(Square2(g))); }},
    {"weir/ops/framework/function.h",
     [](weir::Graph& g) {
       weir::Graph body;
       const weir::Output x = weir::Placeholder(body, weir::DT_FLOAT);
       return weir::DefineFunction(g, "twice", body, {x}, {x + x}).ok() &&
              Made(weir::Call(g, {"twice", {}}, {Floats(g)})[0]);
     }},
    {"weir/ops/containers/functional.h",
     [](weir::Graph& g) {
       const auto twice = [](const weir::Outputs& row) { return weir::Outputs{row[0] * 2.f}; };
       return Made(weir::MapFn(twice, {Floats(g)})[0]);
     }},
    {"weir/ops/framework/gradient_util.h", [](weir::Graph&) { return weir::IsTrainable(weir::DT_FLOAT); }},
    {"weir/ops/framework/gradients.h",
     [](weir::Graph& g) {
       const weir::Output x = Floats(g);
       return Made(weir::Gradients({x * x}, {x})[0].dense());
     }},
    {"weir/ops/image/image.h",
     [](weir::Graph& g) { return Made(weir::DecodePng(weir::Const(g, "bytes"))); }},
    {"weir/ops/framework/initializers.h",
     [](weir::Graph& g) {
       return weir::GetVariable(g, "v", {2}, weir::Zeros()).shape() == weir::Shape({2});
     }},
    {"weir/ops/array/inplace.h",
     [](weir::Graph& g) { return Made(weir::ParallelStack({weir::Const(g, {1.f})})); }},
    {"weir/ops/data/dataset.h",
     [](weir::Graph& g) { return Made(weir::Dataset::Range(g, 3).Cardinality()); }},
    {"weir/ops/data/iterator.h",
     [](weir::Graph& g) {
       return Made(weir::MakeOneShotIterator(weir::Dataset::Range(g, 3)).GetNext()[0]);
     }},
    {"weir/ops/data/io.h", [](weir::Graph& g) { return Made(weir::ReadFile(weir::Const(g, "none"))); }},
    {"weir/ops/layers/layers.h", [](weir::Graph& g) { return Made(weir::layers::Dense(Square2(g), 3)); }},
    {"weir/ops/linalg/linalg.h", [](weir::Graph& g) { return Made(weir::Cholesky(Square2(g))); }},
    {"weir/ops/lib/literal.h", [](weir::Graph& g) { return Made(weir::TensorArg(2.5).In(g)); }},
    {"weir/ops/layers/losses.h",
     [](weir::Graph& g) { return Made(weir::losses::AbsoluteDifference(Floats(g), Floats(g))); }},
    {"weir/ops/lib/math.h", [](weir::Graph& g) { return Made(weir::Add(Floats(g), Floats(g))); }},
    {"weir/ops/math/math_special.h", [](weir::Graph& g) { return Made(weir::BesselI0(Floats(g))); }},
    {"weir/ops/layers/metrics.h",
     [](weir::Graph& g) { return Made(weir::metrics::Mean(Floats(g)).value); }},
    {"weir/ops/framework/mirrored_variable.h",
     [](weir::Graph& g) {
       const weir::Variable v = weir::MakeMirroredVariable(g, {1.0, 2.0}, {"/cpu:0"});
       return v.replicas().size() == 1;
     }},
    {"weir/ops/layers/module.h", [](weir::Graph& g) { return Layer(g).variables().size() == 1; }},
    {"weir/ops/train/moving_averages.h",
     [](weir::Graph& g) { return Made(weir::AssignMovingAverage(Var(g), Floats(g), 0.9)); }},
    {"weir/ops/nn/nn.h", [](weir::Graph& g) { return Made(weir::Relu(Floats(g))); }},
    {"weir/ops/train/optimizer.h",
     [](weir::Graph& g) {
       weir::GradientDescent descent(0.1);
       weir::Optimizer& base = descent;
       const weir::Variable v = Var(g);
       return base.Minimize(weir::ReduceSum(v * v)).node != nullptr;
     }},
    {"weir/ops/train/optimizers.h",
     [](weir::Graph& g) {
       const weir::Variable v = Var(g);
       return weir::Adam(0.1).Minimize(weir::ReduceSum(v * v)).node != nullptr;
     }},
    {"weir/ops/data/parsing.h",
     [](weir::Graph& g) { return Made(weir::DecodeRaw(weir::Const(g, "abcd"), weir::DT_FLOAT)); }},
    {"weir/ops/framework/partitioner.h",
     [](weir::Graph&) {
       return weir::FixedSizePartitioner(2)(weir::Shape({4}), weir::DT_FLOAT)->at(0) == 2;
     }},
    {"weir/ops/framework/print.h",
     [](weir::Graph&) {
       std::ostringstream out;
       out << weir::Shape({2, 3}) << weir::DT_FLOAT;
       return out.str() == "[2,3]float";
     }},
    {"weir/ops/quantize/quantize.h",
     [](weir::Graph& g) {
       const weir::Output low = weir::Const(g, 0.f), high = weir::Const(g, 4.f);
       return Made(weir::QuantizeV2(Floats(g), low, high, weir::DT_QUINT8).output);
     }},
    {"weir/ops/containers/queue.h",
     [](weir::Graph& g) { return Made(weir::Queue::Fifo(g, 3, {weir::DT_FLOAT}).Size()); }},
    {"weir/ops/train/queue_runner.h",
     [](weir::Graph& g) {
       const weir::Queue queue = weir::Queue::Fifo(g, 3, {weir::DT_FLOAT});
       const weir::Operation enqueue = queue.Enqueue({weir::Const(g, 1.f)});
       return !weir::AddQueueRunner(queue, {enqueue})->ToBytes().empty();
     }},
    {"weir/ops/sparse/ragged.h",
     [](weir::Graph& g) {
       const weir::Output starts = weir::Const(g, {0}), limits = weir::Const(g, {3});
       return Made(weir::RaggedRange(starts, limits, weir::Const(g, {1})).values);
     }},
    {"weir/ops/random/random.h", [](weir::Graph& g) { return Made(weir::RandomUniform(g, {2})); }},
    {"weir/ops/data/reader.h",
     [](weir::Graph& g) {
       weir::Reader::TextLine(g);
       return !g.nodes().empty();
     }},
    {"weir/ops/data/remap.h",
     [](weir::Graph& g) {
       const weir::Output now = weir::Const(g, "new"), before = weir::Const(g, "old");
       return Made(weir::GenerateVocabRemapping(now, before, 0, 2).remapping);
     }},
    {"weir/ops/nn/rnn.h",
     [](weir::Graph& g) {
       const weir::Output one = weir::Const<float>(g, weir::Shape({1, 1}), {1});
       const weir::Output peep = weir::Const(g, {0.f}), b = weir::Const(g, {0.f, 0.f, 0.f, 0.f});
       const weir::Output w = weir::Const<float>(g, weir::Shape({2, 4}), {1, 1, 1, 1, 1, 1, 1, 1});
       return Made(weir::LstmBlockCell(one, one, one, {w, peep, peep, peep, b}).h);
     }},
    {"weir/ops/train/saver.h",
     [](weir::Graph& g) {
       const auto def = weir::BuildSaverGraph(g, weir::NameVariables({Var(g)}));
       return def.ok() && *weir::SaverDef::FromBytes(def->ToBytes()) == *def;
     }},
    {"weir/ops/train/schedules.h",
     [](weir::Graph& g) { return Made(weir::ExponentialDecay(0.1, weir::Const(g, 1), 10, 0.9)); }},
    {"weir/ops/math/search.h",
     [](weir::Graph& g) { return Made(weir::SearchSorted(Floats(g), Floats(g))); }},
    {"weir/ops/sparse/sets.h",
     [](weir::Graph& g) {
       const weir::Output a = weir::Const<int32_t>(g, weir::Shape({1, 2}), {1, 2});
       const weir::Output b = weir::Const<int32_t>(g, weir::Shape({1, 1}), {1});
       return Made(weir::SetUnion(a, b).values);
     }},
    {"weir/ops/train/slots.h",
     [](weir::Graph& g) {
       return weir::CreateSlot(Var(g), "slot", weir::Zeros()).shape() == weir::Shape({2});
     }},
    {"weir/ops/sparse/sparse.h",
     [](weir::Graph& g) { return Made(weir::SparseTensorToDense(Sparse(g))); }},
    {"weir/ops/framework/state.h",
     [](weir::Graph& g) {
       return Made(weir::VarHandleOp(g, weir::DT_FLOAT, {2}, {.name = "bare"}));
     }},
    {"weir/ops/text/proto_fields.h",
     [](weir::Graph& g) {
       const weir::Output bytes = weir::Const(g, "");
       return weir::DecodeProto(bytes, "tensorflow.Example", {"features"}, {weir::DT_STRING})
           .sizes.valid();
     }},
    {"weir/ops/text/string.h", [](weir::Graph& g) { return Made(weir::AsString(Floats(g))); }},
    {"weir/ops/data/summary.h",
     [](weir::Graph& g) { return Made(weir::summary::Scalar("s", weir::Const(g, 1.f))); }},
    {"weir/ops/containers/table.h",
     [](weir::Graph& g) {
       const weir::Output keys = weir::Const(g, {1, 2}), missing = weir::Const(g, 0.f);
       return Made(weir::StaticHashTable(keys, Floats(g), missing).handle());
     }},
    {"weir/ops/containers/tensor_array.h", [](weir::Graph&) { return sizeof(weir::TensorArray) > 0; }},
    {"weir/ops/framework/variable.h",
     [](weir::Graph& g) {
       const weir::Variable v = Var(g);
       return *weir::Variable::FromBytes(g, *v.ToBytes()) == v;
     }},
    {"weir/ops/framework/variable_scope.h",
     [](weir::Graph& g) {
       const weir::VariableScope scope(g, "a");
       return weir::GetVariable(g, "v", {2}).name() == "a/v:0";
     }},
    {"weir/ops/framework/variables.h",
     [](weir::Graph& g) {
       const weir::Variable v = Var(g);
       return weir::GlobalVariables(g) == weir::Variables{v};
     }},
    {"weir/ops/framework/while_loop.h",
     [](weir::Graph& g) {
       return Made(weir::WhileLoop([](const weir::Outputs& x) { return x[0] < 3.f; },
                             [](const weir::Outputs& x) { return weir::Outputs{x[0] + 1.f}; },
                             {weir::Const(g, 0.f)})[0]);
     }},
    {"weir/ops/lib/window.h", [](weir::Graph&) { return weir::ParseDataFormat("NHWC").ok(); }},
};

#ifndef WEIR_SHARED
const Use kMessagesAndServers[] = {
    {"weir/core/tensor/memory_quota.h",
     [](weir::Graph&) { return weir::MemoryQuota::New(nullptr, "none", 0)->held() == 0; }},
    {"weir/core/io/text_proto.h",
     [](weir::Graph&) {
       weir::proto::GraphDef def;
       return weir::ParseTextProto("node { name: 'a' op: 'NoOp' }", "text", &def).ok() &&
              def.node(0).name() == "a";
     }},
    {"weir/proto.h",
     [](weir::Graph& g) {
       weir::proto::VariableDef def;
       return Var(g).ToProto(&def) && def.variable_name() == "Variable:0";
     }},
    {"weir/rpc/lib/memory_reservation.h",
     [](weir::Graph&) { return sizeof(weir::rpc::MemoryReservation) > 0; }},
    {"weir/rpc/client.h",
     [](weir::Graph&) {
       weir::rpc::EnableGrpcTargets();
       return true;
     }},
    {"weir/rpc/cluster_server.h",
     [](weir::Graph&) {
       return !weir::rpc::StartTask({}, {"ps", 0}).ok();
     }},
    {"weir/rpc/lib/graph_policy.h",
     [](weir::Graph&) { return weir::rpc::GraphLimits().allow_external_access; }},
    {"weir/rpc/lib/call.h", [](weir::Graph&) { return weir::rpc::Call().request_id.empty(); }},
    {"weir/rpc/lib/clients.h",
     [](weir::Graph&) {
       return weir::rpc::Clients::Parse("clients", "alice certificate=alice.example.com").ok();
     }},
    {"weir/rpc/lib/tls_files.h",
     [](weir::Graph&) { return weir::rpc::TlsFiles().certificate.empty(); }},
    {"weir/rpc/master.h",
     [](weir::Graph&) {
       return weir::rpc::Server::Start({})->get()->master().num_sessions() == 0;
     }},
    {"weir/rpc/cluster/cluster_spec.h",
     [](weir::Graph&) { return weir::rpc::ClusterSpec::Parse("ps|h:1").ok(); }},
    {"weir/rpc/lib/master_options.h",
     [](weir::Graph&) { return weir::rpc::MasterOptions().max_sessions > 0; }},
    {"weir/rpc/lib/request_numbers.h",
     [](weir::Graph&) { return weir::rpc::RequestNumbers().IsNew(nullptr, 1); }},
    {"weir/rpc/lib/response_limit.h",
     [](weir::Graph&) { return weir::rpc::ResponseLimit(1).bytes() == 1; }},
    {"weir/rpc/lib/server_device.h",
     [](weir::Graph&) { return weir::rpc::ServerDevice().name.empty(); }},
    {"weir/rpc/server.h",
     [](weir::Graph&) { return weir::rpc::Server::Start({})->get()->port() > 0; }},
};
#endif

const Use kSessions[] = {
    {"weir/ops/audio/audio.h",
     [](weir::Graph& g) { return weir::DecodeWav(weir::Const(g, "x")).audio.valid(); }},
    {"weir/ops/nn/nn_pad_conv.h",
     [](weir::Graph& g) {
       const weir::Output image = weir::Placeholder(g, weir::DT_FLOAT, {1, 4, 4, 1});
       const weir::Output paddings = weir::Placeholder(g, weir::DT_INT32, {4, 2});
       const weir::Output filter = weir::Placeholder(g, weir::DT_FLOAT, {1, 1, 1, 1});
       return weir::FusedPadConv2D(image, paddings, filter, "REFLECT", weir::ConvOptions()).valid();
     }},
    {"weir/ops/quantize/uniform.h",
     [](weir::Graph& g) {
       weir::UniformQuantization q;
       q.scales = weir::Const(g, 0.5f);
       q.zero_points = weir::Const(g, 0);
       q.min_val = -128;
       q.max_val = 127;
       return weir::UniformQuantize(Floats(g), q, weir::DT_QINT8).valid();
     }},
    {"weir/ops/sparse/csr.h",
     [](weir::Graph& g) {
       const weir::Output dense = weir::Placeholder(g, weir::DT_FLOAT, {2, 2});
       const weir::Output indices = weir::Placeholder(g, weir::DT_INT64, {1, 2});
       return weir::SparseMatrixNNZ(weir::DenseToCSRSparseMatrix(dense, indices)).valid();
     }},
    {"weir/ops/sparse/sparse_count.h",
     [](weir::Graph& g) {
       const weir::Output values = weir::Placeholder(g, weir::DT_INT32, {3});
       const weir::Output weights = weir::Placeholder(g, weir::DT_FLOAT, {0});
       return weir::DenseCountSparseOutput(values, weights).values.valid();
     }},
    {"weir/session/train/coordinator.h",
     [](weir::Graph&) {
       weir::Coordinator threads;
       threads.RequestStop();
       return threads.Join().ok();
     }},
    {"weir/session/model/freeze.h",
     [](weir::Graph& g) {
       const weir::Output x = Floats(g) * 2.f;
       weir::Session session = *weir::Session::Create(g);
       return weir::FreezeGraph(session, {x}).ok();
     }},
    {"weir/session/model/unfreeze.h",
     [](weir::Graph& g) {
       return weir::UnfreezeGraph(g).status().code() == absl::StatusCode::kNotFound;
     }},
    {"weir/session/train/hook.h", [](weir::Graph&) { return sizeof(weir::SessionHook) > 0; }},
    {"weir/session/train/hooks.h",
     [](weir::Graph&) { return weir::StopAtStep({.last_step = 2}) != nullptr; }},
    {"weir/session/model/meta_graph.h",
     [](weir::Graph& g) {
       Var(g);
       weir::Graph copy;
       return weir::ImportMetaGraph(copy, weir::SerializeMetaGraph(g)).ok() &&
              weir::GlobalVariables(copy).size() == 1;
     }},
    {"weir/session/train/monitored_session.h",
     [](weir::Graph& g) {
       Var(g);
       return weir::MonitoredSession::Create(g).ok();
     }},
    {"weir/session/train/sync_replicas.h",
     [](weir::Graph& g) {
       weir::SyncReplicasOptimizer sync(std::make_unique<weir::GradientDescent>(0.1));
       const weir::Output loss = weir::ReduceSum(Var(g));
       return sync.Minimize(loss, {.global_step = weir::CreateGlobalStep(g)}).valid();
     }},
    {"weir/session/plan/pass_report.h",
     [](weir::Graph& g) {
       const weir::Output x = Floats(g) * 2.f;
       int passes = 0, nodes = 0;
       const auto on_pass = [&](const weir::PassReport& report) {
         passes += !report.name.empty() && !report.doc.empty() && report.ns >= 0;
         nodes = report.num_nodes;
       };
       weir::Session session = *weir::Session::Create(g, {.on_pass = on_pass});
       return session.Run({x}).ok() && passes > 5 && nodes > 0;
     }},
    {"weir/session/train/queue_runner.h",
     [](weir::Graph& g) {
       weir::Session session = *weir::Session::Create(g);
       weir::Coordinator threads;
       return weir::StartQueueRunners(session, threads).ok();
     }},
    {"weir/session/model/restore.h",
     [](weir::Graph& g) {
       Var(g);
       const weir::SaverDef def = weir::Saver::Create(g)->def();
       absl::StatusOr<weir::Session> session = weir::Session::Create(g);
       weir::RestoreReport report;
       return !weir::RestoreVariables(*session, def, Scratch("weir_none"),
                                      {.mode = weir::RestoreMode::kAvailable}, &report)
                   .ok();
     }},
    {"weir/session/model/saved_function.h",
     [](weir::Graph&) { return weir::SavedFunction().inputs.empty(); }},
    {"weir/session/model/saved_model.h",
     [](weir::Graph&) { return !weir::LoadSavedModel(Scratch("weir_none"), {"serve"}).ok(); }},
    {"weir/session/model/resume_state.h",
     [](weir::Graph&) {
       return absl::IsNotFound(weir::ResumeState::Read("/nowhere/model").status());
     }},
    {"weir/session/model/saver.h",
     [](weir::Graph& g) { return Var(g).op_name() == "Variable" && weir::Saver::Create(g).ok(); }},
    {"weir/session/train/scaffold.h", [](weir::Graph&) { return sizeof(weir::Scaffold) > 0; }},
    {"weir/session/plan/session_options.h",
     [](weir::Graph&) { return weir::SessionOptions().disable.empty(); }},
    {"weir/session/session.h",
     [](weir::Graph& g) {
       const weir::Output x = Floats(g);
       return weir::Session::Create(g)->Run({x}).ok();
     }},
    {"weir/session/model/variable_io.h",
     [](weir::Graph& g) {
       const weir::Output x = Floats(g);
       weir::Session session = *weir::Session::Create(g);
       return weir::Eval(x, &session)->flat<float>()[1] == 2;
     }},
    {"weir/session/weir.h", [](weir::Graph&) { return true; }},  // includes weir/weir.h
    {"weir/weir.h", [](weir::Graph&) { return true; }},          // includes all headers above
};

int Run() {
  int faults = 0;
  const auto run = [&faults](const Use& use) {
    weir::Graph g;
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
#ifndef WEIR_SHARED
  for (const Use& use : kMessagesAndServers) run(use);
#endif
  return faults;
}

}  // namespace

int main() { return Run() == 0 ? 0 : 1; }
