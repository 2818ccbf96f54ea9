#include <algorithm>
#include <limits>
#include <queue>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "weir/core/function_library.h"
#include "weir/core/graph_io.h"
#include "weir/core/proto_values.h"
#include "weir/core/signature.h"
#include "weir/core/unknown_op.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/op_def.pb.h"

namespace weir {

namespace {

// The newest GraphDef version that Weir understands: that of the newest TensorFlow release it is
// tested against.
constexpr int kConsumerVersion = 2474;
// The number of outputs that all nodes of one import may have in addition to one per byte of the
// GraphDef.
constexpr int64_t kBaseOutputs = kMaxNodeArity;
constexpr absl::string_view kColocationPrefix = "loc:@";
constexpr absl::string_view kOutputShapes = "_output_shapes";
constexpr absl::string_view kValueError = "_value_error";

// An input in the syntax of NodeDef: "name", "name:k" or "^name".
struct InputName {
  absl::string_view node;
  int index = 0;
  bool control = false;
};

InputName ParseInput(absl::string_view text) {
  InputName input{text};
  if (absl::ConsumePrefix(&input.node, "^")) {
    input.control = true;
    return input;
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == text.size()) return input;
  const absl::string_view digits = text.substr(colon + 1);
  const bool is_number = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
  if (is_number && absl::SimpleAtoi(digits, &input.index)) input.node = text.substr(0, colon);
  return input;
}

// ---- serialized GraphDefs

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t MessageTag(int field) {
  return WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

absl::Status Corrupt(absl::string_view where) {
  return InvalidArgument("Error parsing GraphDef: Wire format was corrupt (in ", where, ")");
}

// Returns a stream over at most 2 GiB of `bytes`.
CodedInputStream StreamOf(absl::string_view bytes) {
  constexpr size_t kMaxBytes = std::numeric_limits<int>::max();
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(std::min(bytes.size(), kMaxBytes)));
}

// Returns a length-delimited field, whose tag has been read, as a view into `bytes`, the data of
// the stream. Returns false if the field extends beyond `bytes`.
bool ReadField(absl::string_view bytes, CodedInputStream* in, absl::string_view* field) {
  uint32_t length = 0;
  if (!in->ReadVarint32(&length)) return false;
  const size_t begin = static_cast<size_t>(in->CurrentPosition());
  if (length > bytes.size() - begin) return false;
  *field = bytes.substr(begin, length);
  return true;
}

// A serialized GraphDef split into its nodes and a GraphDef of everything else.
struct GraphBytes {
  std::vector<absl::string_view> nodes;
  std::string rest;
};

absl::StatusOr<GraphBytes> SplitGraph(absl::string_view bytes) {
  GraphBytes parts;
  for (absl::string_view left = bytes; !left.empty();) {
    CodedInputStream in = StreamOf(left);
    const auto corrupt = [&] {
      return Corrupt(absl::StrCat("the field at byte ", bytes.size() - left.size()));
    };
    const uint32_t tag = in.ReadTag();
    if (tag == MessageTag(proto::GraphDef::kNodeFieldNumber)) {
      absl::string_view node;
      if (!ReadField(left, &in, &node)) return corrupt();
      parts.nodes.push_back(node);
      left.remove_prefix(static_cast<size_t>(node.end() - left.begin()));
    } else {
      if (tag == 0 || !WireFormatLite::SkipField(&in, tag)) return corrupt();
      const size_t size = static_cast<size_t>(in.CurrentPosition());
      absl::StrAppend(&parts.rest, left.substr(0, size));
      left.remove_prefix(size);
    }
  }
  return parts;
}

absl::Status CheckVersions(const proto::VersionDef& versions) {
  if (versions.producer() < 0) {
    return InvalidArgument("GraphDef producer version ", versions.producer(),
                           " below min producer 0 supported by Weir");
  }
  if (versions.min_consumer() > kConsumerVersion) {
    return InvalidArgument("GraphDef min consumer version ", versions.min_consumer(),
                           " above current version ", kConsumerVersion,
                           " for Weir.  Please upgrade Weir.");
  }
  for (const int bad : versions.bad_consumers()) {
    if (bad == kConsumerVersion) {
      return InvalidArgument("GraphDef disallows consumer version ", bad,
                             ".  Please upgrade Weir: this version is likely buggy.");
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Imports a GraphDef in four steps: check and index the names; resolve inputs to nodes of the
// GraphDef or to outputs of the graph (input_map); add the nodes in topological order, lowest
// position first, so that a sorted GraphDef keeps its order; and close the back edges of loops,
// which the order ignores. The first two steps need only names, ops and inputs, which are available
// for all nodes. For a serialized GraphDef, the rest of a node is parsed when it is added. The only
// ignored edges are those from a NextIteration to a Merge; nodes that can never be added are part
// of a cycle, which is an error. Until the end, the graph's name index, function library and
// unknown ops are unchanged, so a failed import only drops the added nodes and restores the
// versions.
class GraphImporter {
 public:
  // `nodes`: the serialized nodes, if `def` has everything else. `num_bytes`: total size of both.
  // `cleared`: null, or `def` itself if its attributes may be cleared after use.
  GraphImporter(Graph& graph, const proto::GraphDef& def, std::vector<absl::string_view> nodes,
                size_t num_bytes, const ImportOptions& options, proto::GraphDef* cleared = nullptr)
      : graph_(graph),
        def_(def),
        node_bytes_(std::move(nodes)),
        options_(options),
        cleared_(cleared),
        first_new_(graph.num_nodes()) {
    prefix_ = options.prefix;
    while (absl::EndsWith(prefix_, "/")) prefix_.pop_back();
    if (!prefix_.empty()) prefix_ += '/';
    outputs_left_ = kBaseOutputs + static_cast<int64_t>(num_bytes);
  }

  absl::StatusOr<Outputs> Run() {
    if (graph_.finalized()) {
      return FailedPrecondition("Graph is finalized and cannot be modified.");
    }
    // Shape functions read the versions.
    const GraphVersions versions = graph_.versions();
    MergeVersions();
    absl::StatusOr<Outputs> returned = Import();
    if (!returned.ok()) {
      DropNodes();
      graph_.versions() = versions;
      return returned;
    }
    Commit();
    return returned;
  }

 private:
  // The parts of a node that determine its edges.
  struct NodeHeader {
    absl::string_view name, op;
    size_t first_input = 0, num_inputs = 0;  // in inputs_
  };

  // One input of a node: output `index` of node `def` of the GraphDef, or of `mapped`.
  struct Edge {
    int def = -1;
    int index = 0;
    Node* mapped = nullptr;
    bool control = false;
    bool back = false;
  };

  absl::StatusOr<Outputs> Import() {
    WEIR_RETURN_IF_ERROR(CheckVersions(def_.versions()));
    WEIR_ASSIGN_OR_RETURN(functions_, Functions());
    WEIR_RETURN_IF_ERROR(ReadNodeHeaders());
    WEIR_RETURN_IF_ERROR(IndexNames());
    WEIR_RETURN_IF_ERROR(ResolveInputs());
    WEIR_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder());
    nodes_.assign(headers_.size(), nullptr);
    graph_.nodes_.reserve(first_new_ + order.size());
    graph_.names_.Reserve(graph_.names_.size() + order.size());
    for (const int i : order) {
      const absl::Status status = AddNode(i);
      if (!status.ok()) return AtNode(i, status);
    }
    for (const int i : order) WEIR_RETURN_IF_ERROR(CloseLoops(i));
    absl::StatusOr<Outputs> returned = ResolveReturnElements();
    ResolveTypes();
    return returned;
  }

  absl::Status AtNode(int i, const absl::Status& status) const {
    return Annotate(status, absl::StrCat("Node '", headers_[i].name, "' (", headers_[i].op, ")"));
  }

  absl::Status ReadNodeHeaders() {
    headers_.resize(node_bytes_.empty() ? def_.node_size() : node_bytes_.size());
    for (size_t i = 0; i < headers_.size(); ++i) {
      NodeHeader& header = headers_[i];
      header.first_input = inputs_.size();
      if (node_bytes_.empty()) {
        const proto::NodeDef& node = def_.node(static_cast<int>(i));
        header.name = node.name();
        header.op = node.op();
        inputs_.insert(inputs_.end(), node.input().begin(), node.input().end());
      } else if (!ReadNodeHeader(node_bytes_[i], &header)) {
        return Corrupt(absl::StrCat("node ", i));
      }
      header.num_inputs = inputs_.size() - header.first_input;
    }
    return absl::OkStatus();
  }

  bool ReadNodeHeader(absl::string_view bytes, NodeHeader* header) {
    CodedInputStream in = StreamOf(bytes);
    while (const uint32_t tag = in.ReadTag()) {
      const bool is_input = tag == MessageTag(proto::NodeDef::kInputFieldNumber),
                 is_name = tag == MessageTag(proto::NodeDef::kNameFieldNumber);
      if (!is_input && !is_name && tag != MessageTag(proto::NodeDef::kOpFieldNumber)) {
        if (!WireFormatLite::SkipField(&in, tag)) return false;
        continue;
      }
      absl::string_view field;
      if (!ReadField(bytes, &in, &field) || !in.Skip(static_cast<int>(field.size()))) return false;
      if (is_input) {
        inputs_.push_back(field);
      } else {
        (is_name ? header->name : header->op) = field;
      }
    }
    return in.ConsumedEntireMessage();
  }

  absl::Span<const absl::string_view> InputsOf(const NodeHeader& header) const {
    return absl::MakeConstSpan(inputs_).subspan(header.first_input, header.num_inputs);
  }

  // Valid until the next call.
  absl::StatusOr<const proto::NodeDef*> DefOf(int i) {
    if (node_bytes_.empty()) return &def_.node(i);
    const absl::string_view bytes = node_bytes_[i];
    if (bytes.size() > std::numeric_limits<int>::max() ||
        !parsed_.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return Corrupt(absl::StrCat("node ", i));
    return &parsed_;
  }

  // Returns the functions of the graph and those of the GraphDef.
  absl::StatusOr<std::shared_ptr<const FunctionLibrary>> Functions() const {
    if (def_.library().ByteSizeLong() == 0) return graph_.functions();
    return FunctionLibrary::Extend(graph_.functions(), def_.library());
  }

  absl::Status IndexNames() {
    by_name_.reserve(headers_.size());
    std::string prefixed;
    for (size_t i = 0; i < headers_.size(); ++i) {
      const absl::string_view name = headers_[i].name;
      absl::string_view full = name;
      if (!prefix_.empty()) full = prefixed = absl::StrCat(prefix_, name);
      if (!IsNodeName(full) || name.empty()) {
        return InvalidArgument("Node '", name, "': Node name contains invalid characters");
      }
      if (!by_name_.try_emplace(name, static_cast<int>(i)).second) {
        return InvalidArgument("Node '", name, "' is not unique");
      }
      if (first_new_ > 0 && graph_.FindNode(full) != nullptr)
        return AlreadyExists("Node name '", full, "' already exists in the Graph");
    }
    return absl::OkStatus();
  }

  absl::Status ResolveInputs() {
    for (const auto& [name, output] : options_.input_map) {
      if (!output.valid() || &output.graph() != &graph_) {
        return InvalidArgument("input_map['", name, "'] is not an output of the graph");
      }
      map_[MapKey(ParseInput(name))] = output;
    }
    absl::flat_hash_set<std::pair<absl::string_view, int>> used;
    edges_begin_.push_back(0);
    for (const NodeHeader& node : headers_) {
      bool after_control = false;
      for (const absl::string_view text : InputsOf(node)) {
        const InputName input = ParseInput(text);
        if (after_control && !input.control) {
          return InvalidArgument("Node '", node.name,
                                 "': Control dependencies must come after regular dependencies");
        }
        after_control = input.control;
        WEIR_ASSIGN_OR_RETURN(edges_.emplace_back(), ResolveInput(node, input));
        if (edges_.back().mapped != nullptr) used.insert(MapKey(input));
      }
      edges_begin_.push_back(edges_.size());
    }
    for (const auto& [key, output] : map_) {
      if (!used.contains(key) && !by_name_.contains(key.first)) {
        return InvalidArgument("Attempted to map inputs that were not found in graph_def: [",
                               key.first, ":", key.second, "]");
      }
    }
    return absl::OkStatus();
  }

  static std::pair<absl::string_view, int> MapKey(const InputName& input) {
    return {input.node, input.control ? -1 : input.index};
  }

  absl::StatusOr<Edge> ResolveInput(const NodeHeader& node, const InputName& input) const {
    Edge edge;
    edge.control = input.control;
    edge.index = input.index;
    if (!map_.empty()) {
      const auto mapped = map_.find(MapKey(input));
      if (mapped != map_.end()) {
        edge.mapped = mapped->second.node;
        edge.index = mapped->second.index;
        return edge;
      }
    }
    const auto it = by_name_.find(input.node);
    if (it == by_name_.end()) {
      return InvalidArgument("Node '", node.name, "': Unknown input node '", input.node, "'");
    }
    edge.def = it->second;
    edge.back = !edge.control && IsMerge(node) && IsNextIteration(headers_[edge.def]);
    return edge;
  }

  static bool IsMerge(const NodeHeader& node) {
    return node.op == "Merge" || node.op == "RefMerge";
  }
  static bool IsNextIteration(const NodeHeader& node) {
    return node.op == "NextIteration" || node.op == "RefNextIteration";
  }

  absl::Span<const Edge> EdgesOf(int i) const {
    return absl::MakeConstSpan(edges_).subspan(edges_begin_[i],
                                               edges_begin_[i + 1] - edges_begin_[i]);
  }

  static bool MustPrecede(const Edge& edge) { return edge.mapped == nullptr && !edge.back; }

  // Returns the positions of the nodes in topological order.
  absl::StatusOr<std::vector<int>> TopologicalOrder() const {
    const int n = static_cast<int>(headers_.size());
    std::vector<int> waiting(n, 0);
    std::vector<size_t> begin(n + 1, 0);
    for (const Edge& edge : edges_) {
      if (MustPrecede(edge)) ++begin[edge.def + 1];
    }
    for (int i = 0; i < n; ++i) begin[i + 1] += begin[i];
    std::vector<int> consumers(begin[n]);
    std::vector<size_t> next = begin;
    for (int i = 0; i < n; ++i) {
      for (const Edge& edge : EdgesOf(i)) {
        if (!MustPrecede(edge)) continue;
        ++waiting[i];
        consumers[next[edge.def]++] = i;
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (int i = 0; i < n; ++i) {
      if (waiting[i] == 0) ready.push(i);
    }
    std::vector<int> order;
    order.reserve(n);
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (size_t c = begin[i]; c < begin[i + 1]; ++c) {
        if (--waiting[consumers[c]] == 0) ready.push(consumers[c]);
      }
    }
    if (static_cast<int>(order.size()) < n) return CycleError(waiting, n - order.size());
    return order;
  }

  // Walks backwards among the blocked nodes until a node repeats.
  absl::Status CycleError(const std::vector<int>& waiting, size_t count) const {
    const auto blocked = [&](const Edge& e) { return MustPrecede(e) && waiting[e.def] > 0; };
    int at =
        static_cast<int>(std::find_if(waiting.begin(), waiting.end(), [](int w) { return w > 0; }) -
                         waiting.begin());
    std::vector<int> position(headers_.size(), -1);
    std::vector<int> path;
    while (position[at] < 0) {
      position[at] = static_cast<int>(path.size());
      path.push_back(at);
      const absl::Span<const Edge> edges = EdgesOf(at);
      at = std::find_if(edges.begin(), edges.end(), blocked)->def;
    }
    path.erase(path.begin(), path.begin() + position[at]);
    path.push_back(at);
    std::reverse(path.begin(), path.end());
    constexpr size_t kMaxNamed = 10;
    const size_t left_out = path.size() > kMaxNamed ? path.size() - kMaxNamed : 0;
    path.resize(path.size() - left_out);
    return InvalidArgument(
        count, count == 1 ? " node" : " nodes", " in a cycle: ",
        absl::StrJoin(path, " -> ",
                      [this](std::string* out, int i) { absl::StrAppend(out, headers_[i].name); }),
        left_out > 0 ? " -> ..." : "");
  }

  // Returns null for an unknown op.
  absl::StatusOr<const OpSpec*> FindOp(const std::string& name) const {
    if (const OpSpec* op = graph_.ops().Find(name)) return op;
    const bool is_function = functions_ != nullptr && functions_->FindDef(name) != nullptr;
    return is_function ? functions_->FindOp(name) : nullptr;
  }

  absl::Status AddNode(int i) {
    WEIR_ASSIGN_OR_RETURN(const proto::NodeDef* const given, DefOf(i));
    const proto::NodeDef& def = *given;
    auto node = std::make_unique<Node>();
    node->graph_ = &graph_;
    node->id_ = graph_.num_nodes();
    node->name_ = prefix_ + def.name();
    graph_.SetInternedDevice(node.get(), def.device());
    WEIR_ASSIGN_OR_RETURN(node->op_, FindOp(def.op()));
    WEIR_RETURN_IF_ERROR(node->op_ != nullptr ? BuildKnownOp(i, def, node.get())
                                              : BuildUnknownOp(i, def, node.get()));
    WEIR_RETURN_IF_ERROR(RefineShapes(def, node.get()));
    if (cleared_ != nullptr) cleared_->mutable_node(i)->clear_attr();
    nodes_[i] = node.get();
    graph_.names_.Add(node.get());
    graph_.nodes_.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status BuildKnownOp(int i, const proto::NodeDef& def, Node* node) {
    const OpSpec& op = *node->op_;
    if (op.deprecated_version() > 0 && def_.versions().producer() >= op.deprecated_version()) {
      return Unimplemented("Op ", op.name(), " is not available in GraphDef version ",
                           def_.versions().producer(), ". It has been removed in version ",
                           op.deprecated_version(), ". ", op.deprecation(), ".");
    }
    WEIR_RETURN_IF_ERROR(SetAttrs(def, node));
    WEIR_RETURN_IF_ERROR(SetOutputs(node));
    WEIR_RETURN_IF_ERROR(SetInputs(i, node));
    return HasDamagedValue(*node) ? absl::OkStatus() : graph_.InferShapes(node);
  }

  absl::Status SetAttrs(const proto::NodeDef& def, Node* node) {
    AttrMap attrs;
    attrs.reserve(def.attr_size() + 1);
    std::string value_error;
    for (const auto& [name, value] : def.attr()) {
      if (name == kOutputShapes) continue;
      absl::StatusOr<AttrValue> attr = AttrFromProto(value, &expansion_left_);
      if (absl::IsInvalidArgument(attr.status()) && IsConstValue(*node, name, value)) {
        value_error = std::string(attr.status().message());
        attr = AttrValue(Tensor());
      }
      if (!attr.ok()) return Annotate(attr.status(), absl::StrCat("attr '", name, "'"));
      attrs.emplace(name, *std::move(attr));
    }
    if (!value_error.empty()) attrs.emplace(kValueError, value_error);
    WEIR_RETURN_IF_ERROR(CompleteAttrs(*node->op_, &attrs));
    if (attrs.find("_class") != attrs.end()) WEIR_RETURN_IF_ERROR(PrefixMarks(def, &attrs));
    graph_.SetSharedAttrs(node, std::move(attrs));
    return absl::OkStatus();
  }

  absl::Status PrefixMarks(const proto::NodeDef& def, AttrMap* attrs) const {
    const auto* given = attrs->find("_class")->second.get_if<std::vector<std::string>>();
    if (given == nullptr) return absl::OkStatus();
    std::vector<std::string> marks = *given;
    for (std::string& text : marks) {
      absl::string_view other = text;
      if (!absl::ConsumePrefix(&other, kColocationPrefix)) continue;
      const bool is_here = by_name_.contains(other);
      // A previous import may have added the node.
      if (!is_here && prefix_.empty() && graph_.FindNode(other) != nullptr) continue;
      if (!is_here) {
        return InvalidArgument("Node '", def.name(),
                               "' expects to be colocated with unknown node '", other, "'");
      }
      text = absl::StrCat(kColocationPrefix, prefix_, other);
    }
    attrs->insert_or_assign("_class", AttrValue(std::move(marks)));
    return absl::OkStatus();
  }

  // As in TensorFlow, a constant with damaged bytes fails the steps that need it, not the import.
  static bool IsConstValue(const Node& node, absl::string_view name,
                           const proto::AttrValue& value) {
    return node.op_name() == "Const" && name == "value" && value.has_tensor();
  }

  static bool HasDamagedValue(const Node& node) {
    const AttrValue* value = node.op_name() == "Const" ? node.FindAttr("value") : nullptr;
    const Tensor* tensor = value == nullptr ? nullptr : value->get_if<Tensor>();
    return tensor != nullptr && !tensor->initialized();
  }

  absl::Status SetOutputs(Node* node) {
    WEIR_ASSIGN_OR_RETURN(const NodeTypes types,
                          ArgTypes(*node->op_, node->op_->outputs(), node->attrs_,
                                   std::min(kMaxNodeArity, outputs_left_)));
    outputs_left_ -= static_cast<int64_t>(types.size());
    node->SetOutputTypes(types);
    return absl::OkStatus();
  }

  absl::Status SetInputs(int i, Node* node) {
    const OpSpec& op = *node->op_;
    WEIR_ASSIGN_OR_RETURN(node->input_types_,
                          ArgTypes(op, op.inputs(), node->attrs_, kMaxNodeArity));
    SetControlInputs(i, node);
    for (const Edge& edge : EdgesOf(i)) {
      if (edge.control) break;
      node->inputs_.emplace_back();
      if (node->inputs_.size() > node->input_types_.size()) continue;
      if (edge.back) continue;
      const int k = node->num_inputs() - 1;
      WEIR_ASSIGN_OR_RETURN(node->inputs_[k], CheckedSource(edge, *node, k));
    }
    if (node->inputs_.size() == node->input_types_.size()) return absl::OkStatus();
    return InvalidArgument(
        "NodeDef expected inputs '",
        absl::StrJoin(node->input_types_, ", ",
                      [](std::string* out, DataType t) { *out += DataTypeName(t); }),
        "' do not match ", node->num_inputs(), " inputs specified; Op<", op.Signature(), ">");
  }

  // Control inputs come after all other inputs.
  void SetControlInputs(int i, Node* node) const {
    absl::flat_hash_set<const Node*> controls;
    for (const Edge& edge : EdgesOf(i)) {
      if (!edge.control) continue;
      Node* const source = Source(edge);
      if (controls.insert(source).second) node->control_inputs_.push_back(source);
    }
  }

  Node* Source(const Edge& edge) const {
    return edge.mapped != nullptr ? edge.mapped : nodes_[edge.def];
  }

  // Returns false if the node has no such output and cannot get one.
  bool HasOutput(Node* node, int index) {
    const int missing = index + 1 - node->num_outputs();
    if (missing <= 0) return true;
    if (!HasOpenOutputs(*node) || index >= kMaxNodeArity || missing > outputs_left_) return false;
    outputs_left_ -= missing;
    node->outputs_.resize(index + 1);
    return true;
  }

  absl::StatusOr<Output> OutputOf(const Edge& edge) {
    Node* const source = Source(edge);
    if (HasOutput(source, edge.index)) return Output(source, edge.index);
    return InvalidArgument("Connecting to invalid output ", edge.index, " of source node ",
                           source->name(), " which has ", source->num_outputs(), " outputs.");
  }

  static bool Accepts(DataType wanted, DataType given) {
    return BaseType(wanted) == BaseType(given) && (IsRef(given) || !IsRef(wanted));
  }

  // Returns the output that an edge comes from, after checking its type for input k.
  absl::StatusOr<Output> CheckedSource(const Edge& edge, const Node& node, int k) {
    WEIR_ASSIGN_OR_RETURN(const Output source, OutputOf(edge));
    const DataType wanted = node.input_type(k);
    DataType& given = source.node->outputs_[source.index].type;
    if (given == DT_INVALID) given = wanted;  // the consumer determines the type
    if (!Accepts(wanted, given)) {
      return InvalidArgument("Input ", k, " of node ", node.name(), " was passed ",
                             DataTypeName(given), " from ", source.name(),
                             " incompatible with expected ", DataTypeName(wanted), ".");
    }
    return source;
  }

  // ---- nodes with unknown ops

  // An op's definition, with the default values of its attributes.
  struct Definition {
    OpSpec spec;
    AttrMap defaults = {};
  };

  absl::Status BuildUnknownOp(int i, const proto::NodeDef& def, Node* node) {
    SetControlInputs(i, node);
    for (const Edge& edge : EdgesOf(i)) {
      if (edge.control) break;
      WEIR_ASSIGN_OR_RETURN(node->inputs_.emplace_back(), OutputOf(edge));
    }
    node->attrs_ = ReadableAttrs(def);
    if (node->FindAttr("_class") != nullptr) WEIR_RETURN_IF_ERROR(PrefixMarks(def, &node->attrs_));
    const std::optional<Definition> found = DefinitionOf(def.op());
    const bool fits = found && SetTypesFromDefinition(*found, node);
    if (!fits) {
      for (const Output& in : node->inputs_)
        node->input_types_.push_back(in.node->output_type(in.index));
    }
    proto::NodeDef kept = def;
    kept.clear_name();
    kept.clear_op();
    kept.clear_input();
    kept.clear_device();
    unknown_ops_.push_back(std::make_unique<const UnknownOp>(fits ? found->spec : OpSpec(def.op()),
                                                             fits, DeterministicBytes(kept)));
    node->op_ = unknown_ops_.back().get();
    return absl::OkStatus();
  }

  // Returns the attributes that can be parsed; export writes the others from the stored NodeDef.
  AttrMap ReadableAttrs(const proto::NodeDef& def) {
    AttrMap attrs;
    for (const auto& [name, value] : def.attr()) {
      if (name == kOutputShapes) continue;
      absl::StatusOr<AttrValue> attr = AttrFromProto(value, &expansion_left_);
      if (attr.ok()) attrs.emplace(name, *std::move(attr));
    }
    return attrs;
  }

  std::optional<Definition> DefinitionOf(const std::string& name) {
    if (const OpSpec* op = ClientOps().Find(name)) return Definition{*op};
    if (op_list_ == nullptr) {
      op_list_ = std::make_unique<proto::OpList>();
      if (!ParseBytes(options_.op_list, op_list_.get()).ok()) op_list_->Clear();
    }
    const auto def = std::find_if(op_list_->op().begin(), op_list_->op().end(),
                                  [&](const proto::OpDef& op) { return op.name() == name; });
    if (def == op_list_->op().end()) return std::nullopt;
    absl::StatusOr<OpSpec> spec = OpFromProto(*def);
    if (!spec.ok()) return std::nullopt;
    Definition found{*std::move(spec)};
    for (const auto& attr : def->attr()) {
      if (!attr.has_default_value()) continue;
      absl::StatusOr<AttrValue> value = AttrFromProto(attr.default_value(), &expansion_left_);
      if (value.ok()) found.defaults.emplace(attr.name(), *std::move(value));
    }
    return found;
  }

  // Sets the types given by the definition. Returns false, and sets nothing, if the node does not
  // match it.
  bool SetTypesFromDefinition(const Definition& found, Node* node) {
    AttrMap attrs = node->attrs_;
    for (const auto& [name, value] : found.defaults) attrs.emplace(name, value);
    if (!CompleteAttrs(found.spec, &attrs).ok()) return false;
    const auto inputs = ArgTypes(found.spec, found.spec.inputs(), attrs, kMaxNodeArity);
    const auto outputs =
        ArgTypes(found.spec, found.spec.outputs(), attrs, std::min(kMaxNodeArity, outputs_left_));
    if (!inputs.ok() || !outputs.ok() || inputs->size() != node->inputs_.size()) return false;
    for (size_t k = 0; k < inputs->size(); ++k) {
      const Output& in = node->inputs_[k];
      const DataType given = in.node->output_type(in.index);
      if (given != DT_INVALID && !Accepts((*inputs)[k], given)) return false;
    }
    node->input_types_ = *inputs;
    outputs_left_ -= static_cast<int64_t>(outputs->size());
    node->SetOutputTypes(*outputs);
    return true;
  }

  // Sets the types of outputs without a consumer that determines them.
  void ResolveTypes() {
    if (unknown_ops_.empty()) return;
    for (int i = first_new_; i < graph_.num_nodes(); ++i) {
      Node& node = *graph_.nodes_[i];
      for (int k = 0; k < node.num_outputs(); ++k) {
        DataType& type = node.outputs_[k].type;
        if (type == DT_INVALID) type = TypeFromAttrs(node, k);
      }
    }
    for (int i = first_new_; i < graph_.num_nodes(); ++i) {
      Node& node = *graph_.nodes_[i];
      for (int k = 0; k < node.num_inputs(); ++k) {
        const Output& in = node.inputs_[k];
        if (node.input_types_[k] == DT_INVALID)
          node.input_types_[k] = in.node->output_type(in.index);
      }
    }
  }

  absl::Status RefineShapes(const proto::NodeDef& def, Node* node) {
    const auto it = def.attr().find(std::string(kOutputShapes));
    if (it == def.attr().end()) return absl::OkStatus();
    const auto& shapes = it->second.list().shape();
    if (shapes.empty() && node->num_outputs() > 0) return absl::OkStatus();
    if (!HasOutput(node, shapes.size() - 1) || shapes.size() != node->num_outputs()) {
      return InvalidArgument("Node '", node->name(), "' has ", node->num_outputs(),
                             " outputs but the _output_shapes attribute specifies shapes for ",
                             shapes.size(), " outputs");
    }
    for (int k = 0; k < node->num_outputs(); ++k) {
      WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(shapes.Get(k)));
      const absl::Status status = graph_.RefineShape(node->output(k), shape);
      if (!status.ok()) {
        return InvalidArgument("Node '", node->name(), "' has an _output_shapes attribute ",
                               "inconsistent with the GraphDef for output #", k, ": ",
                               status.message());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CloseLoops(int i) {
    const absl::Span<const Edge> edges = EdgesOf(i);
    for (size_t k = 0; k < edges.size(); ++k) {
      if (!edges[k].back) continue;
      Node* const merge = nodes_[i];
      absl::StatusOr<Output> source = CheckedSource(edges[k], *merge, static_cast<int>(k));
      if (!source.ok()) return AtNode(i, source.status());
      merge->inputs_[k] = *source;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Outputs> ResolveReturnElements() {
    Outputs out;
    for (const std::string& name : options_.return_elements) {
      const InputName element = ParseInput(name);
      const bool is_tensor = element.node.size() != name.size();
      const auto mapped = map_.find(MapKey(element));
      if (is_tensor && mapped != map_.end()) {
        out.push_back(mapped->second);
        continue;
      }
      const auto it = by_name_.find(element.node);
      Node* const node = it == by_name_.end() ? nullptr : nodes_[it->second];
      if (node == nullptr || element.control || (is_tensor && !HasOutput(node, element.index))) {
        return InvalidArgument("Requested return_element '", name, "' not found in graph_def.");
      }
      out.emplace_back(node, element.index);
    }
    return out;
  }

  void DropNodes() {
    for (int i = first_new_; i < graph_.num_nodes(); ++i)
      graph_.names_.Remove(graph_.nodes_[i].get());
    graph_.nodes_.resize(first_new_);
  }

  void Commit() {
    for (int i = first_new_; i < graph_.num_nodes(); ++i) ReserveName(graph_.nodes_[i]->name_);
    graph_.set_functions(functions_);
    if (unknown_ops_.empty()) return;
    auto& ops = graph_.Extension<UnknownOps>().ops;
    std::move(unknown_ops_.begin(), unknown_ops_.end(), std::back_inserter(ops));
  }

  // Reserves the name and its enclosing scopes.
  void ReserveName(absl::string_view name) {
    graph_.names_.Take(name);
    for (size_t slash = name.rfind('/'); slash != absl::string_view::npos && slash > 0;
         slash = name.rfind('/', slash - 1)) {
      if (!graph_.names_.Take(name.substr(0, slash))) return;
    }
  }

  void MergeVersions() {
    GraphVersions& mine = graph_.versions();
    const proto::VersionDef& other = def_.versions();
    mine.producer = first_new_ == 0 ? other.producer() : std::min(mine.producer, other.producer());
    mine.min_consumer = std::max(mine.min_consumer, other.min_consumer());
    for (const int bad : other.bad_consumers()) {
      auto& list = mine.bad_consumers;
      if (std::find(list.begin(), list.end(), bad) == list.end()) list.push_back(bad);
    }
  }

  Graph& graph_;
  const proto::GraphDef& def_;
  const std::vector<absl::string_view> node_bytes_;  // of all nodes, or empty
  proto::NodeDef parsed_;                            // from one of node_bytes_
  const ImportOptions& options_;
  proto::GraphDef* const cleared_;
  const int first_new_;
  std::string prefix_;
  int64_t outputs_left_ = 0;
  int64_t expansion_left_ = kExpansionBudget;
  std::shared_ptr<const FunctionLibrary> functions_;
  std::unique_ptr<proto::OpList> op_list_;  // from options_; parsed on first use
  std::vector<std::unique_ptr<const UnknownOp>> unknown_ops_;
  std::vector<NodeHeader> headers_;  // by position in the GraphDef
  std::vector<absl::string_view> inputs_;
  absl::flat_hash_map<absl::string_view, int> by_name_;  // to positions in the GraphDef
  absl::flat_hash_map<std::pair<absl::string_view, int>, Output> map_;  // index -1: control
  std::vector<Edge> edges_;          // of all nodes, concatenated
  std::vector<size_t> edges_begin_;  // position of the first edge of node i
  std::vector<Node*> nodes_;         // by position in the GraphDef
};

absl::StatusOr<Outputs> ImportGraphDef(Graph& graph, const proto::GraphDef& def,
                                       const ImportOptions& options) {
  return GraphImporter(graph, def, {}, def.ByteSizeLong(), options).Run();
}

absl::StatusOr<Outputs> ImportGraph(Graph& graph, absl::string_view bytes,
                                    const ImportOptions& options) {
  WEIR_ASSIGN_OR_RETURN(GraphBytes parts, SplitGraph(bytes));
  proto::GraphDef rest;
  if (parts.rest.size() > std::numeric_limits<int>::max() ||
      !rest.ParsePartialFromString(parts.rest))
    return Corrupt("a field other than node");
  return GraphImporter(graph, rest, std::move(parts.nodes), bytes.size(), options).Run();
}

// Used by graph_file.cc.
absl::StatusOr<Outputs> ImportAndClear(Graph& graph, proto::GraphDef* def,
                                       const ImportOptions& options) {
  return GraphImporter(graph, *def, {}, def->ByteSizeLong(), options, def).Run();
}

}  // namespace weir
