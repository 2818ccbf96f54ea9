#include "weir/examples/cluster/training.h"

#include <cstdio>
#include <memory>
#include <vector>

#include "weir/examples/digits/dataset.h"
#include "weir/rpc/client.h"
#include "weir/weir.h"

namespace cluster {

namespace {

using digits::Examples;
using weir::Output;

constexpr int64_t kHidden = 64;

struct Model {
  Output image, label;          // float [batch, 8, 8, 1], int64 [batch]
  Output loss, accuracy, step;  // scalars
  weir::Operation train;
  std::shared_ptr<weir::SessionHook> sync_hook;  // null if workers do not wait for each other
};

Output Dense(const Output& x, int64_t units, absl::string_view name) {
  weir::Graph& g = x.graph();
  const weir::VariableScope scope(g, name);
  const weir::Variable w =
      weir::GetVariable(g, "weights", {x.dim(1), units}, weir::GlorotUniform());
  const weir::Variable b = weir::GetVariable(g, "biases", {units}, weir::Zeros());
  return weir::BiasAdd(weir::MatMul(x, w), b);
}

// The same graph on each worker, except for the device of the computation.
Model BuildModel(weir::Graph& g, const weir::rpc::ClusterSpec& cluster, int task,
                 const TrainingOptions& options) {
  const weir::DeviceScope setter(
      g, weir::ReplicaDeviceSetter({.ps_tasks = cluster.NumTasks("ps"),
                                    .worker_device = absl::StrCat("/job:worker/task:", task)}));
  Model m;
  m.image = weir::Placeholder(g, weir::DT_FLOAT, {-1, digits::kSide, digits::kSide, 1}, "image");
  m.label = weir::Placeholder(g, weir::DT_INT64, {-1}, "label");
  const Output flat = weir::Reshape(m.image, {-1, digits::kPixels});
  const Output hidden = weir::Relu(Dense(flat, kHidden, "hidden"));
  const Output logits = Dense(hidden, digits::kClasses, "logits");
  m.loss = weir::ReduceMean(weir::SparseSoftmaxCrossEntropy(logits, m.label));
  m.accuracy =
      weir::ReduceMean(weir::Cast(weir::Equal(weir::ArgMax(logits, 1), m.label), weir::DT_FLOAT));
  const weir::Variable step = weir::CreateGlobalStep(g);
  m.step = step.value();
  auto optimizer = std::make_unique<weir::Adam>(options.learning_rate);
  if (options.sync) {
    weir::SyncReplicasOptimizer sync(std::move(optimizer),
                                     {.replicas_to_aggregate = cluster.NumTasks("worker")});
    m.train = sync.Minimize(m.loss, {.global_step = step});
    m.sync_hook = sync.MakeSessionHook(/*is_chief=*/task == 0);
  } else {
    m.train = optimizer->Minimize(m.loss, {.global_step = step});
  }
  return m;
}

weir::Feeds Feed(const Model& m, const Examples& examples) {
  return {{m.image, examples.images}, {m.label, examples.labels}};
}

// Trains on batches that are the worker's own: each epoch of each worker has another order.
absl::Status Train(weir::MonitoredSession& session, const Model& m, const Examples& train, int task,
                   int num_workers, const TrainingOptions& options) {
  const int64_t per_epoch = train.size() / options.batch;
  std::vector<int64_t> order;
  for (int64_t i = 0; !session.ShouldStop(); ++i) {
    const int64_t batch = i % per_epoch;
    if (batch == 0) order = digits::EpochOrder(train.size(), i / per_epoch * num_workers + task);
    const Examples examples = train.Pick(
        {order.begin() + batch * options.batch, order.begin() + (batch + 1) * options.batch});
    const absl::StatusOr<weir::Tensors> out =
        session.Run(Feed(m, examples), {m.loss, m.accuracy, m.step}, {m.train});
    if (absl::IsOutOfRange(out.status())) break;  // the chief has ended the training
    WEIR_RETURN_IF_ERROR(out.status());
    if (i % options.report_every != 0) continue;
    std::printf("worker %d: step %lld of %lld, loss %.4f, accuracy %.1f%%\n", task,
                static_cast<long long>((*out)[2].scalar<int64_t>()),
                static_cast<long long>(options.steps), (*out)[0].scalar<float>(),
                100 * (*out)[1].scalar<float>());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status PrintAccuracy(weir::MonitoredSession& session, const Model& m, const Examples& test) {
  WEIR_ASSIGN_OR_RETURN(weir::Session* const raw, session.session());
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out, raw->Run(Feed(m, test), {m.accuracy, m.step}));
  std::printf("Accuracy on %lld held-out images after %lld steps: %.4f%%\n",
              static_cast<long long>(test.size()), static_cast<long long>(out[1].scalar<int64_t>()),
              100 * out[0].scalar<float>());
  return absl::OkStatus();
}

}  // namespace

absl::Status RunParameterServer(const weir::rpc::ClusterSpec& cluster, int task) {
  WEIR_ASSIGN_OR_RETURN(const auto server, weir::rpc::StartTask(cluster, {"ps", task}));
  server->Join();
  return absl::OkStatus();
}

absl::Status RunWorker(const weir::rpc::ClusterSpec& cluster, int task,
                       const TrainingOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const digits::Dataset data, digits::LoadDigits(options.data));
  if (options.batch > data.train.size())
    return weir::InvalidArgument("--batch must be at most ", data.train.size());
  WEIR_ASSIGN_OR_RETURN(const auto server, weir::rpc::StartTask(cluster, {"worker", task}));
  weir::rpc::EnableGrpcTargets(
      {.device_filters = {"/job:ps", absl::StrCat("/job:worker/task:", task)}});
  weir::Graph graph;
  graph.set_seed(1);
  const Model m = BuildModel(graph, cluster, task, options);
  weir::SessionHooks hooks = {weir::StopAtStep({.last_step = options.steps})};
  if (m.sync_hook != nullptr) hooks.push_back(m.sync_hook);
  const weir::Period saves = options.save_every > 0 ? weir::Period{.steps = options.save_every}
                                                    : weir::Period{.seconds = 600};
  WEIR_ASSIGN_OR_RETURN(
      weir::MonitoredSession session,
      weir::MonitoredTrainingSession(graph, {.checkpoint_dir = options.directory,
                                             .hooks = std::move(hooks),
                                             .save_checkpoints = saves,
                                             .log_step_count_steps = 0,
                                             .session = {.target = server->target()},
                                             .is_chief = task == 0,
                                             .recheck_interval = std::chrono::milliseconds(200)}));
  WEIR_RETURN_IF_ERROR(Train(session, m, data.train, task, cluster.NumTasks("worker"), options));
  if (task == 0) WEIR_RETURN_IF_ERROR(PrintAccuracy(session, m, data.test));
  return session.Close();
}

}  // namespace cluster
