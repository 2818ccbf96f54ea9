#include "weir/rpc/cluster/partition.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/graph.pb.h"
#include "weir/rpc/cluster/reachable_functions.h"
#include "weir/session/passes/passes.h"

// Partitioning. An edge whose ends are on two tasks is cut: the sender's part gets a _Send, that of
// the receiver a _Recv, and all consumers on one task share the pair. A control edge is cut by
// sending an empty constant that runs after its source; an Identity behind the _Recv is dead if the
// source was. The nodes that move values between the frames of v1 control flow stay with the values
// that they move, wherever they were placed: an Enter with the Merge that it starts, an Exit with
// its Switch.
//
// A _Recv has no inputs, so something must make it run once an iteration in a loop. That is a
// control edge from its task's pivot of the loop: a Merge of a loop variable, which is alive at the
// start of every iteration, also of the last, when the condition is false. A task that runs parts
// of the body and no loop variable gets a control loop (control_flow_ops of TensorFlow's
// graph_partition.cc): an Enter, a Merge, a Switch on the received LoopCond and a NextIteration of
// an empty constant. Both ends then count the same iterations, which are part of the keys.
//
// A reference that crosses is sent by value, for each consumer by itself. It is read after the
// control inputs of the consumer, which would otherwise see the value before an assignment that it
// waits for.
namespace weir::rpc {

namespace {

// Constants up to this size are copied to the tasks that use them.
constexpr int64_t kCopiedBytes = 1024;

void AddControl(const std::string& node, proto::NodeDef* def) {
  const std::string control = absl::StrCat("^", node);
  for (const std::string& input : def->input()) {
    if (input == control) return;
  }
  def->add_input(control);
}

class Partitioner {
 public:
  Partitioner(PlanGraph plan, const Graph& graph, const TaskPlacement& placement)
      : plan_(std::move(plan)), graph_(graph), placement_(placement) {}

  absl::StatusOr<StepPartition> Run() {
    for (const PlanGraph::Carry& carry : plan_.carries) next_[carry.carry] = carry.next;
    AssignTasks();
    FindPivots();
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      if (plan_.nodes[i].kind == PlanNode::Kind::kOp)
        WEIR_RETURN_IF_ERROR(Add(static_cast<int>(i)));
    }
    for (const PlanValue& fetch : plan_.fetches) AddFetch(fetch);
    for (auto& [task, def] : parts_) {
      WriteVersions(def.get());
      if (graph_.functions() != nullptr) AddReachableFunctions(*graph_.functions(), def.get());
      partition_.parts.emplace_back(task, std::move(def));
    }
    return std::move(partition_);
  }

 private:
  // ---- tasks

  // The node behind a value: for the value of the previous iteration, the NextIteration.
  PlanValue Resolve(const PlanValue& value) const {
    const auto it = next_.find(value.node);
    return it == next_.end() ? value : it->second;
  }
  const PlanNode& NodeOf(int id) const { return plan_.nodes[id]; }

  void AssignTasks() {
    tasks_.assign(plan_.nodes.size(), 0);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind == PlanNode::Kind::kOp) tasks_[i] = placement_.Of(*n.node).task;
    }
    // Enters and NextIterations go to their first user, which is visited last.
    for (size_t i = plan_.nodes.size(); i-- > 0;) {
      for (const PlanValue& input : plan_.nodes[i].inputs) {
        const int source = Resolve(input).node;
        const PlanNode& s = NodeOf(source);
        if (s.IsValueFlow(ControlFlow::kEnter) || s.IsValueFlow(ControlFlow::kNextIteration))
          tasks_[source] = tasks_[i];
      }
    }
    // Switches and Exits go to the producers of their values.
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (!n.IsValueFlow(ControlFlow::kSwitch) && !n.IsValueFlow(ControlFlow::kExit)) continue;
      const int source = Resolve(n.inputs[0]).node;
      if (NodeOf(source).kind == PlanNode::Kind::kOp) tasks_[i] = tasks_[source];
    }
  }

  proto::GraphDef* Part(int task) {
    std::unique_ptr<proto::GraphDef>& part = parts_[task];
    if (part == nullptr) part = std::make_unique<proto::GraphDef>();
    return part.get();
  }

  void WriteVersions(proto::GraphDef* def) const {
    const GraphVersions& versions = graph_.versions();
    def->mutable_versions()->set_producer(versions.producer);
    def->mutable_versions()->set_min_consumer(versions.min_consumer);
    for (const int bad : versions.bad_consumers) def->mutable_versions()->add_bad_consumers(bad);
  }

  // ---- nodes

  std::string NewName(absl::string_view base) {
    std::string name;
    do {
      name = absl::StrCat(base, "_S", next_number_++);
    } while (graph_.FindNode(name) != nullptr);
    return name;
  }

  proto::NodeDef* NewNode(int task, const std::string& name, const char* op) {
    proto::NodeDef* const def = Part(task)->add_node();
    def->set_name(name);
    def->set_op(op);
    def->set_device(Host(task).name);
    return def;
  }
  const ServerDevice& Host(int task) const { return placement_.tasks()[task].host(); }

  // Where a node runs. One that follows its values to another task runs on the host there.
  std::string DeviceOf(int id) const {
    const TaskPlacement::Place& place = placement_.Of(*NodeOf(id).node);
    return place.task == tasks_[id] ? place.device : Host(tasks_[id]).name;
  }

  // Without inputs, and without colocations, which may be with nodes of other parts.
  static void CopyNode(const Node& node, const std::string& device, proto::NodeDef* def) {
    NodeToProto(node, def);
    def->clear_input();
    def->set_device(device);
    def->mutable_attr()->erase("_class");
  }

  absl::Status Add(int id) {
    const PlanNode& n = NodeOf(id);
    const int task = tasks_[id];
    proto::NodeDef def;
    CopyNode(*n.node, DeviceOf(id), &def);
    for (const PlanValue& input : n.inputs) {
      WEIR_ASSIGN_OR_RETURN(*def.add_input(), ValueOn(task, Resolve(input), &n));
    }
    std::set<std::string> names;
    for (const int control : n.controls) {
      WEIR_ASSIGN_OR_RETURN(std::string name, ControlOn(task, control));
      if (!name.empty()) names.insert(std::move(name));
    }
    for (const std::string& name : names) def.add_input(absl::StrCat("^", name));
    Part(task)->add_node()->Swap(&def);
    return absl::OkStatus();
  }

  bool IsCopied(int id) const {
    const PlanNode& n = NodeOf(id);
    if (!n.is_const() || !n.controls.empty()) return false;
    const auto* const value = n.node->FindAttr("value")->get_if<Tensor>();
    return value != nullptr && value->initialized() && value->dtype() != DT_STRING &&
           value->num_bytes() <= kCopiedBytes;
  }

  // Returns the name, in the part of `task`, of a value that `user` takes there.
  absl::StatusOr<std::string> ValueOn(int task, const PlanValue& value, const PlanNode* user) {
    const PlanNode& n = NodeOf(value.node);
    const bool is_fed = n.kind == PlanNode::Kind::kFeed;
    if (!is_fed && tasks_[value.node] == task) return NameOf(value);
    if (IsCopied(value.node)) {
      if (copies_.emplace(value.node, task).second)
        CopyNode(*n.node, Host(task).name, Part(task)->add_node());
      return n.node->name();
    }
    const bool is_shared = is_fed || !IsRef(n.type(value.output));
    if (!is_shared) return Receive(task, value, user);
    const auto key = std::make_tuple(value.node, value.output, task);
    if (const auto it = received_.find(key); it != received_.end()) return it->second;
    WEIR_ASSIGN_OR_RETURN(std::string name, is_fed ? absl::StatusOr<std::string>(Feed(task, value))
                                                   : Receive(task, value, nullptr));
    return received_[key] = std::move(name);
  }

  std::string NameOf(const PlanValue& value) const {
    const std::string& name = NodeOf(value.node).node->name();
    return value.output == 0 ? name : absl::StrCat(name, ":", value.output);
  }

  // Cuts an edge. `reader` is set if the value is a reference that this node reads.
  absl::StatusOr<std::string> Receive(int task, const PlanValue& value, const PlanNode* reader) {
    const PlanNode& n = NodeOf(value.node);
    const int from = tasks_[value.node];
    const Pair pair = {from, task, NewEdge("edge", n), BaseType(n.type(value.output))};
    std::string sent = NameOf(value);
    if (reader != nullptr) {
      proto::NodeDef* const read = AddIdentity(from, n.node->name(), sent, pair.type);
      sent = read->name();
      for (const int control : reader->controls) {
        WEIR_ASSIGN_OR_RETURN(const std::string name, ControlOn(from, control));
        if (!name.empty()) AddControl(name, read);
      }
    }
    Send(pair, n, sent);
    return Recv(pair, n);
  }

  proto::NodeDef* AddIdentity(int task, absl::string_view base, const std::string& input,
                              DataType type) {
    proto::NodeDef* const identity = NewNode(task, NewName(base), "Identity");
    identity->add_input(input);
    SetType("T", type, identity);
    return identity;
  }

  // Returns the name of a node of the part of `task` that ends, dead or alive, after this node has;
  // "" if there is nothing to wait for.
  absl::StatusOr<std::string> ControlOn(int task, int id) {
    const PlanNode& n = NodeOf(id);
    if (tasks_[id] == task) return n.node->name();
    if (IsCopied(id)) return "";
    const auto key = std::make_tuple(id, -1, task);
    if (const auto it = received_.find(key); it != received_.end()) return it->second;
    const Pair pair = {tasks_[id], task, NewEdge("edge", n), DT_FLOAT};
    const std::string signal = NewName(absl::StrCat(n.node->name(), "/ctrl"));
    AddControl(n.node->name(), EmptyConst(pair.from, signal));
    Send(pair, n, signal);
    WEIR_ASSIGN_OR_RETURN(const std::string received, Recv(pair, n));
    return received_[key] = AddIdentity(task, n.node->name(), received, DT_FLOAT)->name();
  }

  // ---- pairs

  static proto::AttrValue& Attr(const char* name, proto::NodeDef* def) {
    return (*def->mutable_attr())[name];
  }
  static void SetType(const char* attr, DataType type, proto::NodeDef* def) {
    Attr(attr, def).set_type(static_cast<proto::DataType>(type));
  }

  proto::NodeDef* EmptyConst(int task, const std::string& name) {
    proto::NodeDef* const def = NewNode(task, name, "Const");
    SetType("dtype", DT_FLOAT, def);
    TensorToProto(Tensor::Vector<float>({}), (*def->mutable_attr())["value"].mutable_tensor());
    return def;
  }

  // An edge between two tasks.
  struct Pair {
    int from, to;
    std::string edge;  // a name of its own
    DataType type;
  };

  std::string NewEdge(const char* kind, const PlanNode& source) {
    return absl::StrCat(kind, "_", next_edge_++, "_", source.node->name());
  }

  // A name stands for one pair in all steps of the session: TensorFlow's tasks keep the kernels of
  // stateful nodes by name, with the attributes of the step that came first.
  proto::NodeDef* NewEnd(const Pair& pair, const PlanNode& source, bool sends) {
    const std::string name =
        NewName(absl::StrCat(source.node->name(), "/", pair.edge, "_", pair.from, "_", pair.to, "_",
                             DataTypeName(pair.type)));
    proto::NodeDef* const def =
        NewNode(sends ? pair.from : pair.to, name, sends ? "_Send" : "_Recv");
    SetType(sends ? "T" : "tensor_type", pair.type, def);
    Attr("tensor_name", def).set_s(pair.edge);
    Attr("send_device", def).set_s(Host(pair.from).name);
    Attr("send_device_incarnation", def).set_i(static_cast<int64_t>(Host(pair.from).incarnation));
    Attr("recv_device", def).set_s(Host(pair.to).name);
    Attr("client_terminated", def).set_b(false);
    return def;
  }

  // Sends `value`, a name in the part of the sender.
  void Send(const Pair& pair, const PlanNode& source, const std::string& value) {
    NewEnd(pair, source, true)->add_input(value);
  }

  absl::StatusOr<std::string> Recv(const Pair& pair, const PlanNode& source) {
    std::string pivot;
    if (source.value_loop >= 0) {
      WEIR_ASSIGN_OR_RETURN(pivot, PivotOn(pair.to, source.value_loop));
    }
    proto::NodeDef* const recv = NewEnd(pair, source, false);
    if (!pivot.empty()) AddControl(pivot, recv);
    return recv->name();
  }

  RendezvousKey KeyOf(const Pair& pair) const {
    const ServerDevice& sender = Host(pair.from);
    RendezvousKey key;
    key.send_device = sender.name;
    key.receive_device = Host(pair.to).name;
    key.incarnation = sender.incarnation;
    key.edge = pair.edge;
    key.text = absl::StrFormat("%s;%016x;%s;%s;0:0", key.send_device, key.incarnation,
                               key.receive_device, key.edge);
    return key;
  }

  // The master sends feeds from its own task, and receives fetches there.
  std::string Feed(int task, const PlanValue& value) {
    const PlanNode& n = NodeOf(value.node);
    const Pair pair = {0, task, NewEdge("feed", n), plan_.TypeOf(value)};
    const auto feed = std::find(plan_.feeds.begin(), plan_.feeds.end(), value);
    partition_.feeds.push_back({static_cast<int>(feed - plan_.feeds.begin()), KeyOf(pair)});
    return NewEnd(pair, n, false)->name();
  }

  void AddFetch(const PlanValue& fetch) {
    const PlanNode& n = NodeOf(fetch.node);
    const Pair pair = {tasks_[fetch.node], 0, NewEdge("fetch", n), BaseType(n.type(fetch.output))};
    Send(pair, n, NameOf(fetch));
    partition_.fetches.push_back(KeyOf(pair));
  }

  // ---- loops

  // Finds the Merges of loop variables, and the conditions of loops.
  void FindPivots() {
    conditions_.assign(plan_.loops.size(), -1);
    enters_.assign(plan_.loops.size(), nullptr);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (n.kind != PlanNode::Kind::kOp) continue;
      if (n.is_enter()) enters_[n.value_loop] = n.node;
      if (n.loop < 0) continue;
      if (n.Is(ControlFlow::kLoopCond)) conditions_[n.loop] = static_cast<int>(i);
      if (!n.Is(ControlFlow::kMerge)) continue;
      for (const PlanValue& input : n.inputs) {
        if (NodeOf(input.node).kind == PlanNode::Kind::kCarry)
          pivots_.try_emplace({n.loop, tasks_[i]}, n.node->name());
      }
    }
  }

  // Returns the name of a node of the task that runs once in each iteration of the loop.
  absl::StatusOr<std::string> PivotOn(int task, int loop) {
    if (const auto it = pivots_.find({loop, task}); it != pivots_.end()) return it->second;
    return AddControlLoop(task, loop);
  }

  absl::StatusOr<std::string> AddControlLoop(int task, int loop) {
    const PlanLoop& frame = plan_.loops[loop];
    if (conditions_[loop] < 0 || enters_[loop] == nullptr) {
      return InvalidArgument("A cross-device loop must have a pivot predicate: ", frame.frame_name);
    }
    const std::string start = NewName("control_loop/start"), enter = NewName("control_loop/Enter"),
                      merge = NewName("control_loop/Merge"), turn = NewName("control_loop/Switch"),
                      next = NewName("control_loop/NextIteration");
    pivots_[{loop, task}] = merge;  // the condition's _Recv below needs it
    std::string outer;
    if (frame.parent >= 0) {
      WEIR_ASSIGN_OR_RETURN(outer, PivotOn(task, frame.parent));
    }
    proto::NodeDef* def = EmptyConst(task, start);
    if (!outer.empty()) AddControl(outer, def);
    const auto add = [&](const std::string& name, const char* op,
                         std::initializer_list<std::string> inputs) {
      def = NewNode(task, name, op);
      for (const std::string& input : inputs) def->add_input(input);
      SetType("T", DT_FLOAT, def);
    };
    add(enter, "Enter", {start});
    Attr("frame_name", def).set_s(frame.frame_name);
    Attr("is_constant", def).set_b(false);
    Attr("parallel_iterations", def)
        .set_i(enters_[loop]->attr_or<int64_t>("parallel_iterations", kParallelIterations));
    add(merge, "Merge", {enter, next});
    Attr("N", def).set_i(2);
    WEIR_ASSIGN_OR_RETURN(const std::string condition,
                          ValueOn(task, {conditions_[loop], 0}, nullptr));
    add(turn, "Switch", {merge, condition});
    add(next, "NextIteration", {absl::StrCat(turn, ":1")});
    return merge;
  }

  static constexpr int64_t kParallelIterations = 10;  // TensorFlow's default

  const PlanGraph plan_;
  const Graph& graph_;
  const TaskPlacement& placement_;
  StepPartition partition_;
  std::map<int, std::unique_ptr<proto::GraphDef>> parts_;  // by task
  std::vector<int> tasks_;                                 // by node of the plan
  absl::flat_hash_map<int, PlanValue> next_;               // by kCarry: its NextIteration
  // By node, output (-1: its end) and task: the node there that stands for it.
  std::map<std::tuple<int, int, int>, std::string> received_;
  std::set<std::pair<int, int>> copies_;               // constants, and the tasks with a copy
  std::vector<int> conditions_;                        // by loop: its LoopCond
  std::vector<const Node*> enters_;                    // by loop: one of its Enters
  std::map<std::pair<int, int>, std::string> pivots_;  // by loop and task
  int next_number_ = 1, next_edge_ = 1;
};

}  // namespace

StepPart::StepPart(int of, std::unique_ptr<proto::GraphDef> nodes)
    : task(of), graph(std::move(nodes)) {}
StepPart::StepPart(StepPart&&) noexcept = default;
StepPart& StepPart::operator=(StepPart&&) noexcept = default;
StepPart::~StepPart() = default;

absl::StatusOr<StepPartition> PartitionStep(const PlanRequest& request, const Graph& graph,
                                            const TaskPlacement& placement) {
  WEIR_ASSIGN_OR_RETURN(PlanGraph plan, PruneGraph(request, graph));
  WEIR_RETURN_IF_ERROR(FindLoops(plan));
  return Partitioner(std::move(plan), graph, placement).Run();
}

}  // namespace weir::rpc
