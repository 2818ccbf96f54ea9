// Steps in parts, between which Send and Recv carry values: two sessions act as two tasks.

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/runtime/rendezvous.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using testing::HasSubstr;

constexpr char kA[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kB[] = "/job:b/replica:0/task:0/device:CPU:0";
constexpr int64_t kIncarnation = 0x123456789;

NodeBuilder& Edge(NodeBuilder& node, const std::string& name, const char* from, const char* to) {
  return node.Attr("tensor_name", name)
      .Attr("send_device", from)
      .Attr("send_device_incarnation", kIncarnation)
      .Attr("recv_device", to);
}

// Sends from one task to the other.
Operation SendTo(const char* from, const char* to, const std::string& name, const Output& value,
                 const char* op = "_Send") {
  NodeBuilder node(value.graph(), op);
  node.Input(value);
  return Operation(Edge(node, name, from, to).Build());
}

Output ReceiveFrom(Graph& g, const char* from, const char* to, const std::string& name,
                   DataType type, Node* after = nullptr, const char* op = "_Recv") {
  NodeBuilder node(g, op);
  node.Attr("tensor_type", type);
  if (after != nullptr) node.Control(after);
  Node* const built = Edge(node, name, from, to).Build();
  return built == nullptr ? Output() : built->output(0);
}

// The key of a value of an edge from A to B.
RendezvousKey KeyFromA(const std::string& name, const std::string& frame = "0:0") {
  return *RendezvousKey::Parse(absl::StrCat(kA, ";0000000123456789;", kB, ";", name, ";", frame));
}

TEST(SendReceive, TwoPartsOfAStep) {
  Graph a, b;
  const Output x = Placeholder(a, DT_FLOAT, Shape());
  const Operation sent = SendTo(kA, kB, "x", x * 2.f);
  const Output back = ReceiveFrom(a, kB, kA, "y", DT_FLOAT);
  const Output y = ReceiveFrom(b, kA, kB, "x", DT_FLOAT) + 1.f;
  const Operation answered = SendTo(kB, kA, "y", y);
  Session on_a = *Session::Create(a), on_b = *Session::Create(b);
  for (const float value : {1.f, 5.f}) {
    LocalRendezvous rendezvous;
    std::thread other([&] {
      const auto out = on_b.Run({}, Outputs{}, {answered}, {.rendezvous = &rendezvous});
      EXPECT_TRUE(out.ok()) << out.status();
    });
    const auto out =
        on_a.Run({{x, Tensor::Scalar(value)}}, {back - x}, {sent}, {.rendezvous = &rendezvous});
    other.join();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), value + 1.f);
  }
}

// On the CPU, values in the host's memory are sent as all are.
TEST(SendReceive, OpsOfThisKind) {
  for (const auto& [send, receive] :
       {std::pair("_Send", "_Recv"), {"_HostSend", "_HostRecv"}, {"Send", "Recv"}}) {
    Graph a, b;
    const Operation sent = SendTo(kA, kB, "x", Const(a, "text"), send);
    const Output x = ReceiveFrom(b, kA, kB, "x", DT_STRING, nullptr, receive);
    LocalRendezvous rendezvous;
    const RunOptions options = {.rendezvous = &rendezvous};
    ASSERT_TRUE(Session::Create(a)->Run({}, Outputs{}, {sent}, options).ok()) << send;
    const auto out = Session::Create(b)->Run({}, {x}, {}, options);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<std::string>(), "text");
  }
}

TEST(SendReceive, NeedsARendezvous) {
  Graph g;
  const Output x = ReceiveFrom(g, kA, kB, "x", DT_FLOAT);
  const Operation sent = SendTo(kB, kA, "y", Const(g, 1.f));
  Session session = *Session::Create(g);
  for (const auto& status : {session.Run({}, {x}).status(), session.Run(sent)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(status.message(), HasSubstr("no parts on other tasks"));
  }
}

TEST(SendReceive, TheTypeMustBeTheEdges) {
  Graph g;
  const Output x = ReceiveFrom(g, kA, kB, "x", DT_FLOAT);
  Session session = *Session::Create(g);
  LocalRendezvous rendezvous;
  ASSERT_TRUE(rendezvous.Send(KeyFromA("x"), {Tensor::Scalar<int32_t>(1), false}).ok());
  const auto out = session.Run({}, {x}, {}, {.rendezvous = &rendezvous});
  EXPECT_TRUE(absl::IsInvalidArgument(out.status())) << out.status();
  EXPECT_THAT(out.status().message(), HasSubstr("the edge is of type float"));
}

// A value that is dead there is dead here, whatever the type of the edge.
TEST(SendReceive, DeadValuesCross) {
  Graph a, b;
  const Output take = Placeholder(a, DT_BOOL, Shape());
  const SwitchResult sides = Switch(Const(a, std::vector<int32_t>{7}), take);
  const Operation sent = SendTo(kA, kB, "x", sides.on_true);
  const Output x = ReceiveFrom(b, kA, kB, "x", DT_INT32);
  const Output other = ReceiveFrom(b, kA, kB, "other", DT_INT32);
  const Output merged = Merge({x * 2, other}).output;
  Session on_a = *Session::Create(a), on_b = *Session::Create(b);
  for (const bool alive : {true, false}) {
    LocalRendezvous rendezvous;
    ASSERT_TRUE(
        on_a.Run({{take, Tensor::Scalar(alive)}}, Outputs{}, {sent}, {.rendezvous = &rendezvous})
            .ok());
    const SentValue instead = {Tensor::Vector<int32_t>({3}), alive};
    ASSERT_TRUE(rendezvous.Send(KeyFromA("other"), instead).ok());
    const auto out = on_b.Run({}, {merged}, {}, {.rendezvous = &rendezvous});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].data<int32_t>()[0], alive ? 14 : 3);
  }
}

// The order of a part must not decide which of two values it waits for first.
TEST(SendReceive, NoWaitHoldsUpWhatDoesNotNeedIt) {
  for (const bool reversed : {false, true}) {
    Graph a, b;
    // A sends "1" at once, and "2" once "back" has come, which B makes of "1".
    const Operation first = SendTo(kA, kB, "1", Const(a, 1.f));
    const Operation second = SendTo(kA, kB, "2", ReceiveFrom(a, kB, kA, "back", DT_FLOAT) + 1.f);
    const auto answer = [&] {
      return SendTo(kB, kA, "back", ReceiveFrom(b, kA, kB, "1", DT_FLOAT) * 10.f);
    };
    Operation answered;
    if (!reversed) answered = answer();
    const Output last = Exp(ReceiveFrom(b, kA, kB, "2", DT_FLOAT)) * 0.f + 4.f;
    if (reversed) answered = answer();
    Session on_a = *Session::Create(a), on_b = *Session::Create(b);
    LocalRendezvous rendezvous;
    std::thread other([&] {
      const RunOptions options = {.rendezvous = &rendezvous};
      EXPECT_TRUE(on_a.Run({}, Outputs{}, {first, second}, options).ok());
    });
    const auto out = on_b.Run({}, {last}, {answered}, {.rendezvous = &rendezvous});
    other.join();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<float>(), 4.f);
  }
}

// However many values it receives, a part waits for each alone.
TEST(SendReceive, NoNumberOfWaitsMakesAnOrder) {
  constexpr int kMany = 4200;
  const auto name = [](int i) { return absl::StrCat("more", i); };
  Graph a, b;
  std::vector<Operation> sent = {SendTo(kA, kB, "1", Const(a, 1.f))};
  sent.push_back(SendTo(kA, kB, "2", ReceiveFrom(a, kB, kA, "back", DT_FLOAT)));
  Outputs received = {ReceiveFrom(b, kA, kB, "2", DT_FLOAT)};
  for (int i = 0; i < kMany; ++i) {
    sent.push_back(SendTo(kA, kB, name(i), Const(a, 1.f)));
    received.push_back(Sqrt(ReceiveFrom(b, kA, kB, name(i), DT_FLOAT)));
  }
  const Operation answered = SendTo(kB, kA, "back", ReceiveFrom(b, kA, kB, "1", DT_FLOAT) * 10.f);
  const Output sum = AddN(received);
  Session on_a = *Session::Create(a), on_b = *Session::Create(b);
  LocalRendezvous rendezvous;
  const RunOptions options = {.timeout = std::chrono::seconds(60), .rendezvous = &rendezvous};
  std::thread other([&] { EXPECT_TRUE(on_a.Run({}, Outputs{}, sent, options).ok()); });
  const auto out = on_b.Run({}, {sum}, {answered}, options);
  other.join();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].scalar<float>(), 10.f + kMany);
}

// A loop sends its counter each time; the key has the frame's number, which TensorFlow computes of
// the name, and the iteration.
TEST(SendReceive, LoopsNumberTheirValues) {
  Graph g;
  const std::string frame = "while/while_context";
  const Output zero = Const(g, int32_t{0});
  const Output enter = Enter(zero, frame),
               limit = Enter(Const(g, int32_t{3}), frame, {.is_constant = true});
  const Output merge = Merge({enter, enter}).output;
  const Output condition = LoopCond(Less(merge, limit));
  const SwitchResult sides = Switch(merge, condition);
  const Operation sent = SendTo(kA, kB, "i", sides.on_true);
  const Output one = Enter(Const(g, int32_t{1}), frame, {.is_constant = true});
  const Output next = NextIteration(sides.on_true + one);
  ASSERT_TRUE(g.SetInput(merge.node, 1, next).ok());
  const Output out = Exit(sides.on_false);
  Session session = *Session::Create(g);
  LocalRendezvous rendezvous;
  const auto values = session.Run({}, {out}, {sent}, {.rendezvous = &rendezvous});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].scalar<int32_t>(), 3);
  for (int32_t i = 0; i <= 3; ++i) {
    const RendezvousKey key = KeyFromA("i", absl::StrCat("18186195969791715286:", i));
    int received = 0;
    rendezvous.Receive(key, nullptr, [&](absl::StatusOr<SentValue> value) {
      ++received;
      EXPECT_EQ(value->is_dead, i == 3);
      EXPECT_TRUE(i == 3 || value->value.scalar<int32_t>() == i);
    });
    EXPECT_EQ(received, 1) << key.text;
  }
}

TEST(SendReceive, ALoopReceivesAValueInEachIteration) {
  Graph g;
  const Output zero = Const(g, 0.f);
  const Output enter = Enter(zero, "loop");
  const Output merge = Merge({enter, enter}).output;
  const Output more = ReceiveFrom(g, kA, kB, "more", DT_BOOL, merge.node);
  const SwitchResult sides = Switch(merge, LoopCond(more));
  const Output x = ReceiveFrom(g, kA, kB, "x", DT_FLOAT, merge.node);
  const Output next = NextIteration(sides.on_true + sides.on_true + x);
  ASSERT_TRUE(g.SetInput(merge.node, 1, next).ok());
  const Output out = Exit(sides.on_false);
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g);
  LocalRendezvous rendezvous;
  std::string frame;
  {
    // The number of the frame, from a part that is its other side.
    Graph a;
    const Output in = Enter(Const(a, 0.f), "loop");
    const Operation sent = SendTo(kA, kB, "frame", in);
    Session on_a = *Session::Create(a);
    struct Recorder : Rendezvous {
      absl::Status Send(const RendezvousKey& key, SentValue) override {
        text = key.text;
        return absl::OkStatus();
      }
      void Receive(const RendezvousKey&, Cancellation*, Done) override {}
      std::string text;
    } recorder;
    ASSERT_TRUE(on_a.Run({}, Outputs{}, {sent}, {.rendezvous = &recorder}).ok());
    frame = recorder.text.substr(recorder.text.rfind(';') + 1);
    frame = frame.substr(0, frame.find(':'));
  }
  std::thread sender([&] {
    for (int i = 0; i <= 3; ++i) {
      const std::string at = absl::StrCat(frame, ":", i);
      EXPECT_TRUE(rendezvous.Send(KeyFromA("more", at), {Tensor::Scalar(i < 3), false}).ok());
      EXPECT_TRUE(rendezvous.Send(KeyFromA("x", at), {Tensor::Scalar(1.f + i), i == 3}).ok());
    }
  });
  const auto values = session.Run({}, {out}, {}, {.rendezvous = &rendezvous});
  sender.join();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].scalar<float>(), (1.f * 2 + 2.f) * 2 + 3.f);
}

// What is sent outlives the step that computed it, and later steps do not change it.
TEST(SendReceive, SentValuesKeepTheirElements) {
  Graph g;
  const Variable v = GetVariable(g, "v", Shape({1000}), {.initializer = Ones()});
  const Operation sent = SendTo(kA, kB, "v", v.value()), computed = SendTo(kA, kB, "w", v + 1.f);
  const Output changed = v.AssignAdd(OnesLike(v.value()));
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  LocalRendezvous first, second;
  ASSERT_TRUE(session.Run({}, Outputs{}, {sent, computed}, {.rendezvous = &first}).ok());
  ASSERT_TRUE(session.Run({changed}).ok());
  ASSERT_TRUE(session.Run({}, Outputs{}, {sent, computed}, {.rendezvous = &second}).ok());
  const auto check = [](LocalRendezvous& rendezvous, const char* edge, float right) {
    rendezvous.Receive(KeyFromA(edge), nullptr, [&](absl::StatusOr<SentValue> value) {
      EXPECT_EQ(value->value.data<float>()[999], right) << edge;
    });
  };
  check(first, "v", 1.f);
  check(first, "w", 2.f);
  check(second, "v", 2.f);
  check(second, "w", 3.f);
}

TEST(SendReceive, CancellingTheStepEndsTheWait) {
  Graph g;
  const Output x = ReceiveFrom(g, kA, kB, "x", DT_FLOAT);
  Session session = *Session::Create(g);
  LocalRendezvous rendezvous;
  const auto late = session.Run(
      {}, {x}, {}, {.timeout = std::chrono::milliseconds(50), .rendezvous = &rendezvous});
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status())) << late.status();
  Cancellation cancellation;
  std::thread canceller([&] { cancellation.Cancel(absl::CancelledError("enough")); });
  const auto cancelled =
      session.Run({}, {x}, {}, {.cancellation = &cancellation, .rendezvous = &rendezvous});
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(cancelled.status())) << cancelled.status();
}

}  // namespace
}  // namespace weir
