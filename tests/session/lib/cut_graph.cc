#include "weir/tests/session/lib/cut_graph.h"

#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/runtime/rendezvous.h"
#include "weir/core/tensor/status.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/plan/disjoint_sets.h"

namespace weir {

namespace {

constexpr std::array<const char*, 2> kDevices = {"/job:a/replica:0/task:0/device:CPU:0",
                                                 "/job:b/replica:0/task:0/device:CPU:0"};
constexpr int kRoot = -1, kUnknown = -2;
constexpr int kControl = -1;  // in place of the number of an output: the node's completion

std::string TensorName(const std::string& node, int output) {
  return output == kControl ? "^" + node : output == 0 ? node : absl::StrCat(node, ":", output);
}

void SetType(proto::NodeDef* node, const char* attr, DataType type) {
  (*node->mutable_attr())[attr].set_type(static_cast<proto::DataType>(type));
}

}  // namespace

class CutGraph::Cutter {
 public:
  Cutter(const Graph& graph, const PartFn& part_of) : graph_(graph) {
    ExportGraphDef(graph, &def_);
    for (proto::GraphDef& part : parts_) {
      *part.mutable_versions() = def_.versions();
      *part.mutable_library() = def_.library();
    }
    FindFrames();
    AssignParts(part_of);
  }

  absl::Status Run() {
    for (const auto& node : graph_.nodes()) AddNode(*node);
    // A part without values from the other one must know how often to run, too.
    for (const auto& node : graph_.nodes()) {
      const int frame = frame_[node->id()], part = part_[node->id()];
      if (frame != kRoot && frames_[frame].is_cut && part != PartOfCondition(frame))
        ControlLoop(part, frame);
    }
    return status_;
  }

  const proto::GraphDef& part(int i) const { return parts_[i]; }
  int part_of(const Node& node) const { return part_[node.id()]; }
  // `name`: of a node or of one of its outputs.
  const Node& NodeOf(const std::string& name) const {
    return *graph_.FindNode(name.substr(0, name.find(':')));
  }
  int num_edges() const { return static_cast<int>(edges_.size()); }

  // Returns the nodes that a step needs, by id.
  std::vector<bool> Needed(const std::vector<const Node*>& roots,
                           const std::set<std::string>& fed) const {
    std::vector<bool> needed(graph_.num_nodes(), false);
    std::vector<const Node*> stack;
    const auto need = [&](const Node* node) {
      if (!needed[node->id()]) stack.push_back(node);
      needed[node->id()] = true;
    };
    for (const Node* root : roots) need(root);
    while (!stack.empty()) {
      const Node& node = *stack.back();
      stack.pop_back();
      if (fed.contains(node.name())) continue;
      for (const Output& in : node.inputs()) need(in.node);
      for (const Node* control : node.control_inputs()) need(control);
    }
    return needed;
  }

  // Returns the nodes that the part has to run besides those that it shares with the graph.
  std::vector<std::string> AddedTargets(int part, const std::vector<bool>& needed) const {
    std::vector<std::string> targets;
    for (const Edge& edge : edges_) {
      if (edge.from != part) continue;
      bool is_needed = false;
      for (const int user : edge.users) is_needed = is_needed || needed[user];
      if (edge.condition_of != kRoot)
        is_needed = NeedsControlLoop(1 - part, edge.condition_of, needed);
      if (is_needed) targets.push_back(edge.send);
    }
    for (const auto& [at, merge] : control_loops_) {
      if (at.first == part && part != PartOfCondition(at.second) &&
          NeedsControlLoop(part, at.second, needed))
        targets.push_back(merge);
    }
    return targets;
  }

 private:
  struct Frame {
    std::string name;
    int parent = kRoot;
    const Node* condition = nullptr;
    bool is_cut = false;  // both parts have nodes in it
  };
  struct Edge {
    int from;                  // the part
    std::string send;          // the node
    std::vector<int> users;    // ids of nodes in the other part
    int condition_of = kRoot;  // of the frame whose LoopCond it sends
  };

  static bool Is(const Node& node, ControlFlow flow) {
    return node.op().traits().control_flow == flow;
  }

  int OutputFrame(const Node& node) {
    const int frame = frame_[node.id()];
    if (frame == kUnknown) return kUnknown;
    if (Is(node, ControlFlow::kExit)) return frames_[frame].parent;
    if (!Is(node, ControlFlow::kEnter)) return frame;
    const std::string name = node.attr<std::string>("frame_name");
    const auto [it, is_new] = frame_of_name_.try_emplace({frame, name}, frames_.size());
    if (is_new) frames_.push_back({name, frame});
    return it->second;
  }

  void FindFrames() {
    frame_.assign(graph_.num_nodes(), kUnknown);
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& node : graph_.nodes()) {
        if (frame_[node->id()] != kUnknown) continue;
        int frame = node->num_inputs() == 0 && node->control_inputs().empty() ? kRoot : kUnknown;
        for (const Output& in : node->inputs())
          if (frame == kUnknown) frame = OutputFrame(*in.node);
        for (const Node* control : node->control_inputs())
          if (frame == kUnknown) frame = OutputFrame(*control);
        if (frame == kUnknown) continue;
        frame_[node->id()] = frame;
        changed = true;
        if (Is(*node, ControlFlow::kLoopCond)) frames_[frame].condition = node.get();
      }
    }
  }

  void AssignParts(const PartFn& part_of) {
    DisjointSets groups(graph_.num_nodes());
    for (const auto& node : graph_.nodes()) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Output& in = node->input(i);
        const DataType type = in.node->output_type(in.index);
        const bool carries =
            Is(*node, ControlFlow::kMerge) &&
            (Is(*in.node, ControlFlow::kNextIteration) || Is(*in.node, ControlFlow::kEnter));
        if (IsRef(type) || type == DT_RESOURCE || type == DT_VARIANT || carries)
          groups.Join(node->id(), in.node->id());
      }
      for (const std::string& with : node->colocations()) {
        if (const Node* const other = graph_.FindNode(with)) groups.Join(node->id(), other->id());
      }
    }
    part_.resize(graph_.num_nodes());
    std::map<int, int> part_of_group;
    for (const auto& node : graph_.nodes()) {
      const auto [it, is_new] = part_of_group.try_emplace(groups.Find(node->id()), 0);
      if (is_new) it->second = part_of(*node);
      part_[node->id()] = it->second;
    }
    for (const auto& node : graph_.nodes()) {
      for (int f = frame_[node->id()]; f != kRoot; f = frames_[f].parent) {
        if (frames_[f].condition != nullptr && part_[node->id()] != PartOfCondition(f))
          frames_[f].is_cut = true;
      }
    }
  }

  int PartOfCondition(int frame) const { return part_[frames_[frame].condition->id()]; }

  bool NeedsControlLoop(int part, int frame, const std::vector<bool>& needed) const {
    if (!needed[frames_[frame].condition->id()]) return false;
    for (const auto& node : graph_.nodes()) {
      if (!needed[node->id()] || part_[node->id()] != part) continue;
      for (int f = frame_[node->id()]; f != kRoot; f = frames_[f].parent)
        if (f == frame) return true;
    }
    return false;
  }

  // Returns a new node of the part, with an unused name.
  proto::NodeDef* Add(int part, const char* op, const std::string& name) {
    proto::NodeDef* const node = parts_[part].add_node();
    node->set_name(absl::StrCat(name, "_S", next_name_++));
    node->set_op(op);
    return node;
  }

  void AddNode(const Node& node) {
    const int part = part_[node.id()];
    proto::NodeDef* const def = parts_[part].add_node();
    *def = def_.node(node.id());
    def->clear_input();
    std::vector<std::string> inputs;
    for (const Output& in : node.inputs())
      inputs.push_back(Value(*in.node, in.index, part, node.id()));
    for (const Node* control : node.control_inputs())
      inputs.push_back("^" + Value(*control, kControl, part, node.id()));
    for (const std::string& input : inputs) def->add_input(input);
  }

  // Returns the name of a value, or for kControl of a node, in the part where `user` is.
  std::string Value(const Node& from, int output, int part, int user) {
    if (part_[from.id()] == part)
      return output == kControl ? from.name() : TensorName(from.name(), output);
    const auto [it, is_new] = received_.try_emplace({from.id(), output});
    if (is_new) {
      it->second.edge = static_cast<int>(edges_.size());
      edges_.push_back({.from = 1 - part});
      Cross(from, output, part, it->second.edge);
    }
    if (user >= 0) edges_[it->second.edge].users.push_back(user);
    return it->second.name;
  }

  // Adds the two ends of an edge to `part`, and sets the name of what is received.
  void Cross(const Node& from, int output, int part, int edge) {
    const std::string key = absl::StrCat("edge_", edge, "_", from.name());
    DataType type = DT_FLOAT;
    std::string source = from.name();
    if (output == kControl) {
      source = AddConst(1 - part, from.name() + "/ctrl", from.name());
    } else {
      type = BaseType(from.output_type(output));
      source = TensorName(source, output);
    }
    proto::NodeDef* const send = Add(1 - part, "_Send", from.name());
    send->add_input(source);
    SetType(send, "T", type);
    SetEdge(send, key, 1 - part);
    edges_[edge].send = send->name();
    proto::NodeDef* const receive = Add(part, "_Recv", from.name());
    SetType(receive, "tensor_type", type);
    SetEdge(receive, key, 1 - part);
    const int at = parts_[part].node_size() - 1;
    std::string& name = received_[{from.id(), output}].name;
    name = receive->name();
    if (output == kControl) {
      proto::NodeDef* const identity = Add(part, "Identity", from.name());
      identity->add_input(name);
      SetType(identity, "T", type);
      name = identity->name();
    }
    const int frame = OutputFrame(from);
    if (frame != kRoot) parts_[part].mutable_node(at)->add_input("^" + ControlLoop(part, frame));
  }

  void SetEdge(proto::NodeDef* node, const std::string& key, int from) {
    auto& attrs = *node->mutable_attr();
    attrs["tensor_name"].set_s(key);
    attrs["send_device"].set_s(kDevices[from]);
    attrs["recv_device"].set_s(kDevices[1 - from]);
    attrs["send_device_incarnation"].set_i(7);
  }

  // Adds a float[0], which comes after the node `after` (empty: after nothing).
  std::string AddConst(int part, const std::string& name, const std::string& after) {
    proto::NodeDef* const node = Add(part, "Const", name);
    if (!after.empty()) node->add_input("^" + after);
    SetType(node, "dtype", DT_FLOAT);
    TensorToProto(Tensor(DT_FLOAT, Shape({0})), (*node->mutable_attr())["value"].mutable_tensor());
    return node->name();
  }

  // Returns the Merge of the part's control loop of a frame.
  std::string ControlLoop(int part, int frame) {
    const auto [it, is_new] = control_loops_.try_emplace({part, frame});
    if (!is_new) return it->second;
    const Frame& f = frames_[frame];
    if (f.condition == nullptr) {
      status_ = InvalidArgument("A cross-device loop must have a pivot predicate: ", f.name);
      return "";
    }
    const std::string name = absl::StrCat("cloop", frame);
    const std::string start =
        f.parent == kRoot ? AddConst(part, name, "") : std::string(ControlLoop(part, f.parent));
    proto::NodeDef* const enter = Add(part, "Enter", name);
    enter->add_input(start);
    SetType(enter, "T", DT_FLOAT);
    (*enter->mutable_attr())["frame_name"].set_s(f.name);
    const std::string enter_name = enter->name();
    proto::NodeDef* const merge = Add(part, "Merge", name);
    SetType(merge, "T", DT_FLOAT);
    (*merge->mutable_attr())["N"].set_i(2);
    const std::string merge_name = merge->name();
    const int at = parts_[part].node_size() - 1;
    control_loops_[{part, frame}] = merge_name;
    const std::string condition = Value(*f.condition, 0, part, -1);
    if (PartOfCondition(frame) != part)
      edges_[received_[{f.condition->id(), 0}].edge].condition_of = frame;
    proto::NodeDef* const branch = Add(part, "Switch", name);
    branch->add_input(merge_name);
    branch->add_input(condition);
    SetType(branch, "T", DT_FLOAT);
    const std::string body = branch->name() + ":1";
    proto::NodeDef* const next = Add(part, "NextIteration", name);
    next->add_input(body);
    SetType(next, "T", DT_FLOAT);
    parts_[part].mutable_node(at)->add_input(enter_name);
    parts_[part].mutable_node(at)->add_input(next->name());
    return merge_name;
  }

  struct Received {
    std::string name;
    int edge = -1;
  };

  const Graph& graph_;
  proto::GraphDef def_;
  std::array<proto::GraphDef, 2> parts_;
  absl::Status status_;
  std::vector<int> frame_, part_;  // by node
  std::vector<Frame> frames_;
  std::map<std::pair<int, std::string>, int> frame_of_name_;  // by parent and name
  std::map<std::pair<int, int>, Received> received_;          // by node and output
  std::vector<Edge> edges_;
  std::map<std::pair<int, int>, std::string> control_loops_;  // by part and frame: the Merge
  int next_name_ = 0;
};

CutGraph::~CutGraph() = default;

absl::StatusOr<std::unique_ptr<CutGraph>> CutGraph::Create(const Graph& graph,
                                                           const PartFn& part_of,
                                                           const SessionOptions& options) {
  std::unique_ptr<CutGraph> cut(new CutGraph);
  cut->cutter_ = std::make_unique<Cutter>(graph, part_of);
  WEIR_RETURN_IF_ERROR(cut->cutter_->Run());
  for (int i = 0; i < 2; ++i) {
    cut->graphs_[i] = std::make_unique<Graph>();
    WEIR_RETURN_IF_ERROR(ImportGraphDef(*cut->graphs_[i], cut->cutter_->part(i)).status());
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*cut->graphs_[i], options));
    cut->sessions_.push_back(std::move(session));
  }
  return cut;
}

int CutGraph::num_edges() const { return cutter_->num_edges(); }

absl::StatusOr<Tensors> CutGraph::Run(const NamedTensors& feeds,
                                      const std::vector<std::string>& fetches,
                                      const std::vector<std::string>& targets,
                                      std::chrono::milliseconds timeout) {
  std::set<std::string> fed;
  for (const auto& [name, value] : feeds) fed.insert(name);
  std::vector<const Node*> roots;
  for (const auto* names : {&fetches, &targets}) {
    for (const std::string& name : *names) roots.push_back(&cutter_->NodeOf(name));
  }
  const std::vector<bool> needed = cutter_->Needed(roots, fed);
  struct Part {
    NamedTensors feeds;
    std::vector<std::string> fetches, targets;
    absl::StatusOr<Tensors> results = Tensors();
  };
  std::array<Part, 2> parts;
  const auto part_of = [&](const std::string& name) -> Part& {
    return parts[cutter_->part_of(cutter_->NodeOf(name))];
  };
  for (const auto& feed : feeds) {
    if (needed[cutter_->NodeOf(feed.first).id()]) part_of(feed.first).feeds.push_back(feed);
  }
  for (const std::string& name : fetches) part_of(name).fetches.push_back(name);
  for (const std::string& name : targets) part_of(name).targets.push_back(name);
  LocalRendezvous rendezvous;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    const std::vector<std::string> added = cutter_->AddedTargets(i, needed);
    parts[i].targets.insert(parts[i].targets.end(), added.begin(), added.end());
    threads.emplace_back([&, i] {
      Part& part = parts[i];
      if (part.fetches.empty() && part.targets.empty()) return;
      part.results = sessions_[i].Run(part.feeds, part.fetches, part.targets,
                                      {.timeout = timeout, .rendezvous = &rendezvous});
      if (!part.results.ok()) rendezvous.Abort(part.results.status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Part& part : parts) WEIR_RETURN_IF_ERROR(part.results.status());
  Tensors results;
  std::array<size_t, 2> next = {0, 0};
  for (const std::string& name : fetches) {
    const int i = cutter_->part_of(cutter_->NodeOf(name));
    results.push_back((*parts[i].results)[next[i]++]);
  }
  return results;
}

}  // namespace weir
