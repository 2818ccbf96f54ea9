#include "weir/session/train/monitored_session.h"

#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/data/summary.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/registry.h"
#include "weir/proto/event.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/train/coordinator.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using ::testing::MatchesRegex;
using testing::ReadBytes;
using ::testing::SizeIs;

constexpr char kGolden[] = "tests/session/golden/";

// A weight that grows by one in every step, and a global step that counts the steps.
struct Model {
  explicit Model(const OpRegistry& ops = BuiltinOps()) : graph(ops) {
    step = CreateGlobalStep(graph);
    w = MakeVariable(graph, 0.f, {.name = "w"});
    grown = w.AssignAdd(1.f);
    const ControlDependencies after(graph, {grown});
    train = step.AssignAdd(1, {.read_value = false, .name = "train"});
    value = w.read_value();
  }
  absl::StatusOr<MonitoredSession> Start(MonitoredSessionOptions options = {}) {
    return MonitoredSession::Create(graph, std::move(options));
  }

  Graph graph;
  Variable step, w;
  Output grown, value;
  Operation train;
};

float Value(MonitoredSession& session, const Model& model) {
  const auto raw = session.session();
  if (!raw.ok()) return -1;
  const auto out = (*raw)->Run({model.w.info()->snapshot});
  return out.ok() ? (*out)[0].scalar<float>() : -1;
}

absl::Status Train(MonitoredSession& session, const Model& model, int steps) {
  for (int i = 0; i < steps; ++i)
    WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, {}, {model.train}).status());
  return absl::OkStatus();
}

// ---- Scaffold.

std::string Lines(const Graph& graph) {
  std::string lines;
  const auto or_dash = [](std::string text) { return text.empty() ? "-" : text; };
  for (const auto& node : graph.nodes()) {
    std::vector<std::string> inputs, places;
    for (const Output& in : node->inputs()) {
      inputs.push_back(in.index == 0 ? in.node->name()
                                     : absl::StrCat(in.node->name(), ":", in.index));
    }
    const auto controls = static_cast<int64_t>(inputs.size());
    for (const Node* control : node->control_inputs()) inputs.push_back("^" + control->name());
    std::sort(inputs.begin() + controls, inputs.end());  // as a GraphDef stores them
    for (const std::string& place : node->colocations()) places.push_back("loc:@" + place);
    absl::StrAppend(&lines, node->name(), " ", node->op_name(), " ",
                    or_dash(absl::StrJoin(inputs, ",")), " ", or_dash(node->device()), " ",
                    or_dash(absl::StrJoin(places, ",")), "\n");
  }
  for (const char* key :
       {"init_op", "local_init_op", "ready_op", "ready_for_local_init_op", "summary_op"}) {
    std::vector<std::string> names;
    for (const Operation& op : graph.collection_as<Operation>(key)) names.push_back(op.name());
    for (const Output& output : graph.collection_as<Output>(key)) names.push_back(output.name());
    absl::StrAppend(&lines, "collection ", key, " ", absl::StrJoin(names, ","), "\n");
  }
  return lines;
}

TEST(Scaffold, CreatesTensorFlowsNodesAndCollections) {
  for (const bool resource : {false, true}) {
    Graph g({.use_resource = resource});
    GetVariable(g, "w", {2}, Zeros());
    GetVariable(g, "count", Shape(),
                {.initializer = Zeros(), .trainable = false, .collections = {{"local_variables"}}});
    summary::Scalar("loss", Const(g, 1.f));
    Scaffold scaffold;
    ASSERT_TRUE(scaffold.Complete(g).ok()) << g.status();
    EXPECT_EQ(Lines(g),
              ReadBytes(absl::StrCat(kGolden, "scaffold_", resource ? "resource" : "ref", ".txt")));
    EXPECT_THAT(g.collection("savers"), SizeIs(1));
    EXPECT_TRUE(g.finalized());
  }
}

TEST(Scaffold, UsesGivenMembersThenCollections) {
  Model m;
  const Operation init = VariablesInitializer(m.graph, {m.w}, "mine");
  const Operation local = NoOp(m.graph, "local");
  m.graph.AddToCollection("local_init_op", local);
  Scaffold scaffold{.init_op = init};
  ASSERT_TRUE(scaffold.Complete(m.graph).ok());
  EXPECT_EQ(scaffold.init_op, init);
  EXPECT_TRUE(m.graph.collection("init_op").empty()) << "what is given is not put there";
  EXPECT_EQ(scaffold.local_init_op, local);
  EXPECT_FALSE(scaffold.summary_op.valid());
  EXPECT_TRUE(m.graph.collection("summary_op").empty());
}

TEST(Scaffold, SeveralPiecesToChooseFromAreAnError) {
  Model m;
  for (int i = 0; i < 2; ++i) m.graph.AddToCollection("init_op", NoOp(m.graph));
  Scaffold scaffold;
  const absl::Status s = scaffold.Complete(m.graph);
  EXPECT_TRUE(absl::IsFailedPrecondition(s));
  EXPECT_THAT(s.message(), HasSubstr("More than one item in the collection \"init_op\""));
}

TEST(Scaffold, AGraphWithoutVariablesHasNoSaver) {
  Graph g;
  Const(g, 1.f);
  const auto session = MonitoredSession::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->scaffold().saver, nullptr);
}

// ---- Starting.

TEST(MonitoredSession, InitializesWithoutACheckpoint) {
  const std::string dir = MakeTempDirectory("monitored");
  Model m;
  int calls = 0;
  auto session = m.Start({.scaffold = {.init_fn =
                                           [&](Session&) {
                                             ++calls;
                                             return absl::OkStatus();
                                           }},
                          .checkpoint_dir = dir});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(Value(*session, m), 0);
  EXPECT_EQ(calls, 1);
}

TEST(MonitoredSession, InitFeedsReachTheInitializers) {
  Graph g;
  const Output start = Placeholder(g, DT_FLOAT, Shape());
  const Variable v = MakeVariable(g, start, {.name = "v"});
  auto session =
      MonitoredSession::Create(g, {.scaffold = {.init_feeds = {{start, Tensor::Scalar(4.f)}}}});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto out = session->Run(Feeds{}, {v.info()->snapshot});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 4);
}

TEST(MonitoredSession, RestoresTheNewestOrTheRequestedCheckpoint) {
  const std::string dir = MakeTempDirectory("monitored");
  for (const float found : {0.f, 3.f}) {
    Model m;
    auto session =
        m.Start({.checkpoint_dir = dir,
                 .hooks = {CheckpointSaver({.directory = dir, .period = {.steps = 1}})}});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(Value(*session, m), found);
    ASSERT_TRUE(Train(*session, m, 3).ok());
    ASSERT_TRUE(session->Close().ok());
  }
  Model m;
  auto session = m.Start({.checkpoint_path = dir + "/model.ckpt-4"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(Value(*session, m), 4);
  Model both;
  EXPECT_THAT(both.Start({.checkpoint_dir = dir, .checkpoint_path = dir + "/model.ckpt-4"})
                  .status()
                  .message(),
              HasSubstr("Can not provide both checkpoint_dir and"));
  Model gone;
  EXPECT_TRUE(absl::IsNotFound(gone.Start({.checkpoint_path = dir + "/model.ckpt-9"}).status()));
}

TEST(MonitoredSession, ReportsUninitializedVariables) {
  Model m;
  const absl::Status s =
      m.Start({.scaffold = {.init_op = VariablesInitializer(m.graph, {m.w}, "only_w")}}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s));
  EXPECT_THAT(s.message(),
              AllOf(HasSubstr("Init operations did not make model ready"), HasSubstr("only_w"),
                    HasSubstr("Variables not initialized: global_step")));
}

TEST(MonitoredSession, ReportsVariablesMissingInTheCheckpoint) {
  const std::string path = MakeTempDirectory("monitored") + "/m";
  Model m;
  auto saver = std::make_shared<Saver>(*Saver::Create(m.graph, {.variables = Variables{m.w}}));
  {
    Session session = *Session::Create(m.graph);
    ASSERT_TRUE(session.Run(m.w.initializer()).ok());
    ASSERT_TRUE(saver->Save(session, path).ok());
  }
  const absl::Status s = m.Start({.scaffold = {.saver = saver}, .checkpoint_path = path}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(s));
  EXPECT_THAT(s.message(), AllOf(HasSubstr("Restoring " + path),
                                 HasSubstr("Variables not initialized: global_step")));
}

TEST(MonitoredSession, AnImportedGraphBringsItsOwnPieces) {
  Graph g;
  ASSERT_TRUE(ImportMetaGraphFile(g, absl::StrCat(kGolden, "trained.meta")).ok());
  const int nodes = g.num_nodes();
  auto session = MonitoredSession::Create(g, {.checkpoint_path = absl::StrCat(kGolden, "trained"),
                                              .hooks = {StopAtStep({.num_steps = 2})}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(g.num_nodes(), nodes);
  EXPECT_EQ(session->scaffold().init_op.name(), "group_deps");
}

// ---- Steps and hooks.

// A hook that records its calls.
class Recorder : public SessionHook {
 public:
  explicit Recorder(std::vector<std::string>* calls) : calls_(calls) {}
  absl::Status Begin(Graph&) override { return Record("begin"); }
  absl::Status AfterCreateSession(HookContext& context) override {
    return Record("created", context);
  }
  absl::Status BeforeRun(HookContext& context, HookRequest*) override {
    return Record("before", context);
  }
  absl::Status AfterRun(HookContext& context, absl::Span<const Tensor>) override {
    return Record("after", context);
  }
  absl::Status End(HookContext& context) override { return Record("end", context); }

 private:
  absl::Status Record(const std::string& what) {
    calls_->push_back(what);
    return absl::OkStatus();
  }
  absl::Status Record(const std::string& what, HookContext& context) {
    WEIR_ASSIGN_OR_RETURN(const int64_t step, context.GlobalStep());
    return Record(absl::StrCat(what, " ", step));
  }
  std::vector<std::string>* calls_;
};

TEST(MonitoredSession, CallsHooksAroundItsSteps) {
  Model m;
  std::vector<std::string> calls;
  auto session = m.Start({.hooks = {std::make_shared<Recorder>(&calls)}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 1).ok());
  ASSERT_TRUE(session->Close().ok());
  EXPECT_THAT(calls, ElementsAre("begin", "created 0", "before 0", "after 1", "end 1"));
  EXPECT_TRUE(session->ShouldStop());
  EXPECT_THAT(session->Close().message(), HasSubstr("Session is already closed."));
  EXPECT_TRUE(absl::IsFailedPrecondition(Train(*session, m, 1)));
}

TEST(MonitoredSession, WithoutCloseHooksEndIsNotCalled) {
  Model m;
  std::vector<std::string> calls;
  {
    auto session = m.Start({.hooks = {std::make_shared<Recorder>(&calls)}});
    ASSERT_TRUE(session.ok()) << session.status();
  }
  EXPECT_THAT(calls, ElementsAre("begin", "created 0"));
}

// A hook with its own feeds and fetches.
class Doubler : public SessionHook {
 public:
  Doubler(Output in, Output out) : in_(in), out_(out) {}
  absl::Status BeforeRun(HookContext&, HookRequest* request) override {
    if (calls++ % 2 == 1) return absl::OkStatus();
    request->feeds = {{in_, Tensor::Scalar(static_cast<float>(calls))}};
    request->fetches = {out_};
    return absl::OkStatus();
  }
  absl::Status AfterRun(HookContext&, absl::Span<const Tensor> values) override {
    for (const Tensor& v : values) seen.push_back(v.scalar<float>());
    return absl::OkStatus();
  }
  int calls = 0;
  std::vector<float> seen;

 private:
  Output in_, out_;
};

TEST(MonitoredSession, HooksFeedAndFetchForThemselves) {
  Graph g;
  const Output x = PlaceholderWithDefault(Const(g, 100.f), {}, "x"),
               y = PlaceholderWithDefault(Const(g, 0.f), {}, "y");
  const Output twice = x * 2.f, sum = x + y;
  const auto hook = std::make_shared<Doubler>(x, twice);
  auto session = MonitoredSession::Create(g, {.hooks = {hook}});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto step = session->Prepare({y}, {sum});
  ASSERT_TRUE(step.ok()) << step.status();
  std::vector<float> sums;
  Tensors out;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(step->Run({Tensor::Scalar(1.f)}, &out).ok());
    ASSERT_THAT(out, SizeIs(1));
    sums.push_back(out[0].scalar<float>());
  }
  EXPECT_THAT(sums, ElementsAre(2, 101, 4, 101));
  EXPECT_THAT(hook->seen, ElementsAre(2, 6));

  hook->calls = 0;
  const absl::Status s = session->Run({{x, Tensor::Scalar(1.f)}}, {sum}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  EXPECT_THAT(s.message(),
              AllOf(HasSubstr("Same tensor is fed by a SessionHook and user"), HasSubstr("x:0")));
}

TEST(MonitoredSession, TwoHooksMayNotFeedOneTensor) {
  Graph g;
  const Output x = PlaceholderWithDefault(Const(g, 1.f), {}, "x");
  const Output twice = x * 2.f;
  auto session = MonitoredSession::Create(
      g, {.hooks = {std::make_shared<Doubler>(x, twice), std::make_shared<Doubler>(x, twice)}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->Run(Feeds{}, {twice}).status().message(),
              HasSubstr("Same tensor is fed by two hooks"));
}

// Stops the threads of the first session with an error.
class RunnerLoss : public SessionHook {
 public:
  explicit RunnerLoss(absl::Status why) : why_(std::move(why)) {}
  absl::Status AfterCreateSession(HookContext& context) override {
    if (sessions++ == 0) context.coordinator().RequestStop(why_);
    return absl::OkStatus();
  }
  int sessions = 0;

 private:
  const absl::Status why_;
};

TEST(MonitoredSession, ALossInAThreadIsNotTheEndOfTheTraining) {
  for (const absl::Status& why :
       {absl::UnavailableError("gone"), absl::AbortedError("restarted"), Internal("wrong")}) {
    Graph g;
    const Output one = Const(g, 1.f) + 0.f;
    const auto hook = std::make_shared<RunnerLoss>(why);
    auto session = MonitoredSession::Create(g, {.hooks = {hook}});
    ASSERT_TRUE(session.ok()) << session.status();
    const bool is_loss = !absl::IsInternal(why);
    EXPECT_EQ(session->ShouldStop(), !is_loss) << why;
    EXPECT_EQ(session->Run(Feeds{}, {one}).ok(), is_loss) << why;
    EXPECT_EQ(hook->sessions, is_loss ? 2 : 1) << why;
  }
}

// Custom ops: Count counts the creations of its kernel, Lose fails while a flag is set.
class MonitoredOps : public ::testing::Test {
 protected:
  MonitoredOps() : ops_(&BuiltinOps()), kernels_(&BuiltinKernels()) {
    for (const char* op : {"Count", "Lose"}) {
      ops_.Add(OpSpec(op)
                   .In("x: float")
                   .Out("y: float")
                   .Stateful()
                   .InferShape(SameShape)
                   .Doc("Passes x through."));
    }
    kernels_.Add("Count", kCpu, [this](const KernelInit&) -> absl::StatusOr<Kernel> {
      ++made_;
      return Kernel(Pass);
    });
    kernels_.Add("Lose", kCpu, [this](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([this](KernelContext& c) -> absl::Status {
        if (losses_ > 0) {
          --losses_;
          return absl::UnavailableError("the device is gone");
        }
        return Pass(c);
      });
    });
  }
  static absl::Status Pass(KernelContext& c) {
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }
  SessionOptions Options() { return {.kernels = &kernels_}; }

  OpRegistry ops_;
  KernelRegistry kernels_;
  int made_ = 0, losses_ = 0;
};

TEST_F(MonitoredOps, AStepIsPreparedOnceForEachSetOfAdditions) {
  Model m(ops_);
  const Output counted = AddOp("Count", {m.value});
  summary::Scalar("w", m.value);
  auto session = m.Start({.hooks = {SummarySaver({.directory = MakeTempDirectory("monitored"),
                                                  .period = {.steps = 10}})},
                          .session = Options()});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto step = session->Prepare({}, {counted}, {m.train});
  ASSERT_TRUE(step.ok()) << step.status();
  Tensors out;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(step->Run({}, &out).ok());
  EXPECT_EQ(out[0].scalar<float>(), 100);
  EXPECT_EQ(made_, 2) << "with the summary and without";
}

TEST_F(MonitoredOps, ALostSessionIsRestoredAndTheStepRunAgain) {
  const std::string dir = MakeTempDirectory("monitored");
  Model m(ops_);
  const Output lossy = AddOp("Lose", {m.value});
  std::vector<std::string> calls;
  auto session = m.Start({.checkpoint_dir = dir,
                          .hooks = {CheckpointSaver({.directory = dir, .period = {.steps = 2}}),
                                    std::make_shared<Recorder>(&calls)},
                          .session = Options(),
                          .recovery_pause = std::chrono::milliseconds(1)});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto step = session->Prepare({}, {lossy}, {m.train});
  ASSERT_TRUE(step.ok()) << step.status();
  Tensors out;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(step->Run({}, &out).ok());
  EXPECT_EQ(out[0].scalar<float>(), 3);
  calls.clear();
  losses_ = 2;
  const absl::Status s = step->Run({}, &out);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(out[0].scalar<float>(), 3) << "one step after the checkpoint of step 2";
  EXPECT_THAT(calls,
              ElementsAre("before 3", "created 2", "before 2", "created 2", "before 2", "after 3"));
  ASSERT_TRUE(session->Close().ok());
}

TEST_F(MonitoredOps, WithoutACheckpointALostSessionStartsOver) {
  Model m(ops_);
  const Output lossy = AddOp("Lose", {m.value});
  auto session = m.Start({.session = Options(), .recovery_pause = std::chrono::milliseconds(1)});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 5).ok());
  losses_ = 1;
  const auto out = session->Run(Feeds{}, {lossy}, {m.train});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 1);
}

TEST_F(MonitoredOps, RepeatedLossIsAnError) {
  Model m(ops_);
  const Output lossy = AddOp("Lose", {m.value});
  auto session = m.Start(
      {.session = Options(), .max_recoveries = 3, .recovery_pause = std::chrono::milliseconds(1)});
  ASSERT_TRUE(session.ok()) << session.status();
  losses_ = 1000;
  const absl::Status s = session->Run(Feeds{}, {lossy}).status();
  EXPECT_TRUE(absl::IsUnavailable(s)) << s;
  EXPECT_EQ(losses_, 1000 - 4);
  EXPECT_TRUE(absl::IsFailedPrecondition(session->session().status()));
  losses_ = 0;
}

// ---- The built-in hooks.

TEST(Hooks, NeedAGlobalStepAndOnePeriod) {
  Graph g;
  Const(g, 1.f);
  for (const auto& hook : {CheckpointSaver({.directory = "x"}), SummarySaver({.directory = "x"}),
                           StepCounter(), ProgressLogger({}), StopAtStep({.last_step = 1})}) {
    const absl::Status s = MonitoredSession::Create(g, {.hooks = {hook}}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(s)) << s;
    EXPECT_THAT(s.message(), HasSubstr("Global step should be created to use"));
  }
  Model m;
  EXPECT_THAT(m.Start({.hooks = {StepCounter({.period = {}})}}).status().message(),
              HasSubstr("Either seconds or steps should be provided"));
  EXPECT_THAT(m.Start({.hooks = {StepCounter({.period = {1, 1.0}})}}).status().message(),
              HasSubstr("Can not provide both"));
  EXPECT_THAT(m.Start({.hooks = {StopAtStep({})}}).status().message(),
              HasSubstr("One of num_steps or last_step must be specified"));
  EXPECT_THAT(m.Start({.hooks = {StopAtStep({.num_steps = 1, .last_step = 2})}}).status().message(),
              HasSubstr("Only one of num_steps or last_step can be specified"));
}

TEST(Hooks, CheckpointsComeEachPeriodAndAtTheEnd) {
  const std::string dir = MakeTempDirectory("monitored") + "/new/run";
  Model m;
  auto session = m.Start({.hooks = {CheckpointSaver({.directory = dir, .period = {.steps = 4}})}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 6).ok());
  ASSERT_TRUE(session->Close().ok());
  const auto state = ReadCheckpointState(dir);
  ASSERT_TRUE(state.ok()) << state.status();
  std::vector<std::string> names;
  for (const std::string& path : state->all_model_checkpoint_paths)
    names.emplace_back(BaseName(path));
  EXPECT_THAT(names, ElementsAre("model.ckpt-0", "model.ckpt-4", "model.ckpt-6"));
  EXPECT_TRUE(Files().Exists(dir + "/graph.pbtxt"));
  EXPECT_TRUE(Files().Exists(dir + "/model.ckpt-6.meta"));
}

TEST(Hooks, CheckpointsComeAfterSeconds) {
  for (const bool often : {false, true}) {
    const std::string dir = MakeTempDirectory("monitored");
    Model m;
    auto session = m.Start({.hooks = {CheckpointSaver(
                                {.directory = dir, .period = {.seconds = often ? 1e-6 : 3600}})}});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(Train(*session, m, 2).ok());
    EXPECT_EQ(LatestCheckpoint(dir).value_or(""),
              dir + (often ? "/model.ckpt-2" : "/model.ckpt-0"));
  }
}

TEST(Hooks, CheckpointsAreWrittenBesideTheSteps) {
  for (const SaveMode mode : {SaveMode::kAsync, SaveMode::kAsyncOrSkip}) {
    const std::string dir = MakeTempDirectory("monitored");
    Model m;
    auto session = m.Start(
        {.checkpoint_dir = dir,
         .hooks = {CheckpointSaver({.directory = dir, .period = {.steps = 2}, .mode = mode})}});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(Train(*session, m, 6).ok());
    ASSERT_TRUE(session->Close().ok());
    EXPECT_EQ(LatestCheckpoint(dir).value_or(""), dir + "/model.ckpt-6");
    Model again;
    auto next = again.Start({.checkpoint_dir = dir});
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(Value(*next, again), 6);
  }
}

TEST(Hooks, TheBestCheckpointsByAMetricStay) {
  const std::string dir = MakeTempDirectory("monitored");
  Model m;
  auto saver = Saver::Create(m.graph, {.max_to_keep = 1, .keep_best = 1, .better = Better::kLower});
  ASSERT_TRUE(saver.ok()) << saver.status();
  const auto distance_to_3 = [&](Session& session) -> absl::StatusOr<double> {
    WEIR_ASSIGN_OR_RETURN(const Tensors w, session.Run({m.w}));
    return std::abs(w[0].scalar<float>() - 3);
  };
  auto session =
      m.Start({.hooks = {CheckpointSaver({.directory = dir,
                                          .period = {.steps = 1},
                                          .saver = std::make_shared<Saver>(*std::move(saver)),
                                          .metric = distance_to_3})}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 5).ok());
  EXPECT_THAT(ReadCheckpointState(dir)->all_model_checkpoint_paths,
              ElementsAre(dir + "/model.ckpt-3", dir + "/model.ckpt-5"));
}

TEST(MonitoredSession, SkipsADamagedCheckpointIfAsked) {
  const std::string dir = MakeTempDirectory("monitored");
  {
    Model m;
    auto session = MonitoredTrainingSession(
        m.graph, {.checkpoint_dir = dir, .save_checkpoints = {.steps = 2}});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE(Train(*session, m, 4).ok());
  }
  ASSERT_TRUE(Files().Remove(dir + "/model.ckpt-4.data-00000-of-00001").ok());
  for (const bool skip : {false, true}) {
    Model m;
    auto session = MonitoredTrainingSession(
        m.graph, {.checkpoint_dir = dir, .save_checkpoints = {}, .skip_damaged_checkpoints = skip});
    ASSERT_EQ(session.ok(), skip) << session.status();
    if (skip) {
      EXPECT_EQ(Value(*session, m), 2);
    }
  }
}

std::vector<proto::Event> ReadEvents(const std::string& directory) {
  std::vector<proto::Event> events;
  const auto files = MatchFiles(directory + "/events.*");
  EXPECT_THAT(*files, SizeIs(1)) << "one file for all hooks";
  const auto reader = RecordReader::Open(files->at(0));
  for (;;) {
    const auto record = (*reader)->Next();
    if (!record.ok() || !record->has_value()) return events;
    EXPECT_TRUE(events.emplace_back().ParseFromString(**record));
  }
}

TEST(Hooks, ATrainingSessionSavesSummariesSpeedGraphAndCheckpoints) {
  const std::string dir = MakeTempDirectory("monitored");
  Model m;
  summary::Scalar("weight", m.value);
  auto session = MonitoredTrainingSession(m.graph, {.checkpoint_dir = dir,
                                                    .hooks = {StopAtStep({.last_step = 25})},
                                                    .save_summaries = {.steps = 10},
                                                    .log_step_count_steps = 10});
  ASSERT_TRUE(session.ok()) << session.status();
  while (!session->ShouldStop()) ASSERT_TRUE(Train(*session, m, 1).ok());
  ASSERT_TRUE(session->Close().ok());
  std::vector<int64_t> weights, speeds;
  int graphs = 0;
  for (const proto::Event& event : ReadEvents(dir)) {
    graphs += event.has_graph_def() || event.has_meta_graph_def();
    for (const auto& value : event.summary().value()) {
      if (value.tag() == "weight") weights.push_back(event.step());
      if (value.tag() == "global_step/sec") speeds.push_back(event.step());
    }
  }
  EXPECT_THAT(weights, ElementsAre(1, 11, 21));
  EXPECT_THAT(speeds, ElementsAre(11, 21));
  EXPECT_EQ(graphs, 2);
  EXPECT_EQ(LatestCheckpoint(dir).value_or(""), dir + "/model.ckpt-25");
}

TEST(Hooks, ProgressIsLoggedInPlainLines) {
  Model m;
  std::vector<std::string> lines;
  auto session = m.Start(
      {.hooks = {ProgressLogger(
           {.values = {{"weight", m.value},
                       {"share", m.value * 0.1f,
                        [](double x) { return absl::StrCat(static_cast<int>(100 * x), "%"); }}},
            .period = Period{.steps = 4},
            .last_step = 6,
            .print = [&](const std::string& line) { lines.push_back(line); }})}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 6).ok());
  ASSERT_TRUE(session->Close().ok());
  EXPECT_THAT(
      lines,
      ElementsAre(MatchesRegex("step 1/6  weight 1.0000  share 10%  [0-9]+ steps/s  ETA [0-9]+ s"),
                  MatchesRegex("step 5/6  weight 5.0000  share 50%  [0-9]+ steps/s  ETA [0-9]+ s"),
                  MatchesRegex("step 6/6  weight 6.0000  share 60%  [0-9]+ steps/s  ETA 0 s")));
}

TEST(Hooks, ValuesThatCannotBeShownAreAnError) {
  Model m;
  const Output words = Const(m.graph, "words");
  auto session = m.Start({.hooks = {ProgressLogger({.values = {{"words", words}}})}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(Train(*session, m, 1).message(), HasSubstr("'words'"));
}

TEST(Hooks, StepsAreCountedAndTheSpeedIsPrinted) {
  Model m;
  std::vector<std::string> lines;
  auto session = m.Start(
      {.hooks = {StepCounter({.period = {.steps = 2},
                              .print = [&](const std::string& line) { lines.push_back(line); }})}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 4).ok());
  EXPECT_THAT(lines, ElementsAre(MatchesRegex("global_step/sec: [0-9.e+]+")));
}

TEST(Hooks, StopAtStepCountsFromWhereTheSessionStarts) {
  const std::string dir = MakeTempDirectory("monitored");
  for (int i = 0; i < 3; ++i) {
    const bool by_number = i == 2;
    Model again;
    auto session = again.Start(
        {.checkpoint_dir = dir,
         .hooks = {CheckpointSaver({.directory = dir}),
                   by_number ? StopAtStep({.last_step = 6}) : StopAtStep({.num_steps = 3})}});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->ShouldStop(), by_number) << "already there";
    while (!session->ShouldStop()) ASSERT_TRUE(Train(*session, again, 1).ok());
    EXPECT_EQ(Value(*session, again), by_number ? 6 : 3 * (i + 1));
    EXPECT_THAT(Train(*session, again, 1).message(), HasSubstr("after should_stop requested"));
    ASSERT_TRUE(session->Close().ok());
  }
}

TEST(Hooks, ANanFailsOrStops) {
  for (const bool fail : {true, false}) {
    Model m;
    const Output x = Placeholder(m.graph, DT_FLOAT, Shape());
    const Output loss = x * 2.f;
    auto session = m.Start({.hooks = {NanGuard(loss, fail)}});
    ASSERT_TRUE(session.ok()) << session.status();
    const auto run = [&](float value) {
      return session->Run({{x, Tensor::Scalar(value)}}, {}, {m.train}).status();
    };
    EXPECT_TRUE(run(1).ok());
    EXPECT_FALSE(session->ShouldStop());
    const absl::Status s = run(std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(session->ShouldStop(), !fail);
    EXPECT_EQ(s.ok(), !fail) << s;
    if (fail) {
      EXPECT_THAT(s.message(), HasSubstr("Model diverged with loss = NaN."));
    }
  }
}

TEST(Hooks, FinalOpsAreFetchedAtTheEnd) {
  Model m;
  const auto final = std::make_shared<FinalOps>(Outputs{m.value});
  auto session = m.Start({.hooks = {final}});
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(Train(*session, m, 2).ok());
  EXPECT_TRUE(final->values().empty());
  ASSERT_TRUE(session->Close().ok());
  ASSERT_THAT(final->values(), SizeIs(1));
  EXPECT_EQ(final->values()[0].scalar<float>(), 3)
      << "the value is read after another step's write";
}

TEST(MonitoredSession, TheEndOfTheInputStopsIt) {
  Model m;
  const Variable count = MakeVariable(m.graph, 0, {.name = "count", .trainable = false});
  const Output next = count.CountUpTo(2);
  auto session = m.Start();
  ASSERT_TRUE(session.ok()) << session.status();
  int steps = 0;
  while (!session->ShouldStop()) {
    const absl::Status s = session->Run(Feeds{}, {next}).status();
    if (absl::IsOutOfRange(s)) continue;
    ASSERT_TRUE(s.ok()) << s;
    ++steps;
  }
  EXPECT_EQ(steps, 2);
  EXPECT_TRUE(session->Close().ok());
}

TEST(MonitoredSession, StepsOutliveIt) {
  Model m;
  MonitoredStep step;
  EXPECT_TRUE(absl::IsFailedPrecondition(step.Run({}, nullptr)));
  {
    auto session = m.Start();
    ASSERT_TRUE(session.ok()) << session.status();
    step = *session->Prepare({}, {m.value});
    EXPECT_TRUE(step.Run({}, nullptr).ok());
    EXPECT_FALSE(session->Prepare({m.value}, {m.value}).ok());
  }
  EXPECT_THAT(step.Run({}, nullptr).message(), HasSubstr("Session is already closed."));
}

// ---- Several sessions on shared state.

using std::chrono::milliseconds;

// Options for a session that shares its state with others, as on a server.
MonitoredSessionOptions SharedStateOptions(const std::shared_ptr<ResourceMap>& state,
                                           bool is_chief) {
  MonitoredSessionOptions options;
  options.session.resources = state;
  options.is_chief = is_chief;
  options.max_wait = milliseconds(10'000);
  options.recheck_interval = milliseconds(5);
  return options;
}

TEST(Chief, NonChiefContinuesWithTheChiefsVariables) {
  const auto state = std::make_shared<ResourceMap>();
  Model first, second;
  auto chief = first.Start(SharedStateOptions(state, true));
  ASSERT_TRUE(chief.ok()) << chief.status();
  ASSERT_TRUE(Train(*chief, first, 5).ok());
  auto worker = second.Start(SharedStateOptions(state, false));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(Value(*worker, second), 5);
  ASSERT_TRUE(Train(*worker, second, 2).ok());
  EXPECT_EQ(Value(*chief, first), 7);
}

TEST(Chief, NonChiefWaitsAndRunsLocalInit) {
  const auto state = std::make_shared<ResourceMap>();
  Model first, second;
  const Variable local = GetVariable(
      second.graph, "mine", Shape(),
      {.initializer = Ones(), .trainable = false, .collections = {{"local_variables"}}});
  absl::StatusOr<MonitoredSession> worker = absl::InternalError("not started");
  MonitoredSessionOptions patient = SharedStateOptions(state, false);
  patient.max_wait = milliseconds::max();  // beyond the range of the clock
  std::thread waits([&] { worker = second.Start(patient); });
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(worker.status().message(), "not started");
  auto chief = first.Start(SharedStateOptions(state, true));
  waits.join();
  ASSERT_TRUE(chief.ok()) << chief.status();
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ((*(*worker->session())->Run({local}))[0].scalar<float>(), 1);
}

TEST(Chief, WithoutAChiefTheWaitTimesOut) {
  Model model;
  MonitoredSessionOptions options = SharedStateOptions(std::make_shared<ResourceMap>(), false);
  options.max_wait = milliseconds(60);
  const absl::Status late = model.Start(options).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(late.ToString(), AllOf(HasSubstr("not ready after waiting 0.06 secs"),
                                     HasSubstr("Variables not initialized: global_step, w")));
}

TEST(Chief, ASecondChiefReinitializesAndWarns) {
  const auto state = std::make_shared<ResourceMap>();
  Model first, second;
  ::testing::internal::CaptureStderr();
  auto chief = first.Start(SharedStateOptions(state, true));
  ASSERT_TRUE(chief.ok()) << chief.status();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ASSERT_TRUE(Train(*chief, first, 3).ok());
  ::testing::internal::CaptureStderr();
  auto another = second.Start(SharedStateOptions(state, true));
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("weir: warning: the chief initializes variables"),
                    HasSubstr("global_step, w.")));
  EXPECT_EQ(Value(*chief, first), 0);
}

TEST(Chief, NonChiefSavesNothing) {
  const auto state = std::make_shared<ResourceMap>();
  const std::string dir = MakeTempDirectory("not_chief");
  Model first, second;
  auto chief = first.Start(SharedStateOptions(state, true));
  ASSERT_TRUE(chief.ok()) << chief.status();
  TrainingSessionOptions options{.checkpoint_dir = dir, .is_chief = false};
  options.session.resources = state;
  auto worker = MonitoredTrainingSession(second.graph, options);
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(Train(*worker, second, 2).ok());
  ASSERT_TRUE(worker->Close().ok());
  EXPECT_TRUE(Files().List(dir)->empty());
}

}  // namespace
}  // namespace weir
