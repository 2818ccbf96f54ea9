#include "weir/core/graph/graph.h"

#include <re2/re2.h>
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/shape_context.h"
#include "weir/core/graph/signature.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/tensor/exception.h"

namespace weir {

Graph& Output::graph() const { return node->graph(); }
absl::Status Output::CheckIndex() const {
  if (index >= 0 && index < node->num_outputs()) return absl::OkStatus();
  return InvalidArgument("Node ", node->Label(), " (type: '", node->op_name(),
                         "', num of outputs: ", node->num_outputs(), ") does not have output ",
                         index);
}

namespace {

// Returns whether the handle is valid and refers to an output; a wrong index fails the graph.
bool Exists(const Output& o) {
  if (!o.valid()) return false;
  const absl::Status status = o.CheckIndex();
  if (!status.ok()) o.graph().Fail(status);
  return status.ok();
}

}  // namespace

DataType Output::dtype() const {
  return Exists(*this) ? BaseType(node->output_type(index)) : DT_INVALID;
}
bool Output::is_ref() const { return Exists(*this) && IsRef(node->output_type(index)); }
const Shape& Output::shape() const {
  static const Shape* const unknown = new Shape(Shape::UnknownRank());
  return Exists(*this) ? node->output_shape(index) : *unknown;
}
const HandleData* Output::handle_data() const {
  return Exists(*this) ? node->output_handle(index) : nullptr;
}
int64_t Output::dim(int i) const {
  const Shape& s = shape();
  if (!s.has_rank() || i >= s.rank() || i < -s.rank()) return Shape::kUnknown;
  return s.dim(i);
}
std::string Output::name() const { return valid() ? absl::StrCat(node->name(), ":", index) : ""; }
std::string Operation::name() const { return valid() ? node->name() : ""; }

namespace {

// The memory of all nodes. Nodes are allocated from blocks that are never freed. In front of each
// node is its generation counter (see Generation), which is odd while the node is alive, so a
// handle to an earlier node never matches again.
class NodeMemory {
 public:
  static NodeMemory& Instance() {
    static NodeMemory& memory = *new NodeMemory;
    return memory;
  }

  void* Take() {
    const MutexLock lock(mutex_);
    if (free_ == nullptr) AddBlock();
    Slot* const slot = free_;
    free_ = slot->next;
    ASAN_UNPOISON_MEMORY_REGION(slot->node, sizeof(slot->node));
    slot->generation.fetch_add(1, std::memory_order_relaxed);
    return slot->node;
  }

  void Return(void* node) {
    Slot* const slot = reinterpret_cast<Slot*>(static_cast<char*>(node) - offsetof(Slot, node));
    const MutexLock lock(mutex_);
    slot->generation.fetch_add(1, std::memory_order_relaxed);
    Free(slot);
  }

 private:
  static constexpr size_t kBlock = 64;

  struct Slot {
    Slot* next = nullptr;
    uint32_t reserved = 0;
    std::atomic<uint32_t> generation{0};  // directly in front of the node
    alignas(Node) char node[sizeof(Node)];
  };
  static_assert(offsetof(Slot, node) == offsetof(Slot, generation) + sizeof(uint32_t));

  void AddBlock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    blocks_.push_back(std::make_unique<Slot[]>(kBlock));
    for (size_t i = kBlock; i-- > 0;) Free(&blocks_.back()[i]);
  }

  void Free(Slot* slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    slot->next = std::exchange(free_, slot);
    ASAN_POISON_MEMORY_REGION(slot->node, sizeof(slot->node));
  }

  Mutex mutex_;
  Slot* free_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::unique_ptr<Slot[]>> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void* Node::operator new(size_t bytes) {
  assert(bytes == sizeof(Node));
  static_cast<void>(bytes);
  return NodeMemory::Instance().Take();
}

void Node::operator delete(void* memory) { NodeMemory::Instance().Return(memory); }

Graph::Graph(const OpRegistry& ops, GraphOptions options) : ops_(ops), options_(options) {}
Graph::~Graph() = default;

const std::string& Graph::name_scope() { return scopes_.get().name; }
void Graph::set_name_scope(std::string scope) { scopes_.get().name = std::move(scope); }
Graph::Context& Graph::context() { return scopes_.get().context; }

std::shared_ptr<void>& Graph::ExtensionSlot(std::type_index type) { return extensions_[type]; }

const absl::Status& Graph::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
  return status_;
}

absl::Status Graph::TakeStatus() { return std::exchange(status_, absl::OkStatus()); }

Node* Graph::FindNode(absl::string_view name) const { return names_.Find(name); }

absl::StatusOr<Output> Graph::FindOutput(absl::string_view name) const {
  int index = 0;
  absl::string_view node_name = name;
  if (const size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
    node_name = name.substr(0, colon);
    if (!absl::SimpleAtoi(name.substr(colon + 1), &index) || index < 0) {
      return InvalidArgument("The name '", name,
                             "' looks like a Tensor name, but is not a valid one. Tensor names "
                             "must be of the form \"<op_name>:<output_index>\".");
    }
  }
  Node* node = FindNode(node_name);
  if (node == nullptr) {
    return NotFound("The name '", name,
                    "' refers to a Tensor which does not exist. The operation, '", node_name,
                    "', does not exist in the graph.");
  }
  if (index >= node->num_outputs() && HasOpenOutputs(*node)) return UnknownOpError(*node);
  if (index >= node->num_outputs()) {
    return NotFound("The name '", name,
                    "' refers to a Tensor which does not exist. The operation, '", node_name,
                    "', exists but only has ", node->num_outputs(), " outputs.");
  }
  return Output(node, index);
}

std::string Graph::UniqueName(absl::string_view name, bool mark) {
  return mark ? names_.TakeUnique(name) : names_.Unique(name).text();
}

void Graph::SetSharedAttrs(Node* node, AttrMap attrs) {
  if (AnyIsTensor(attrs.begin(), attrs.end())) {
    node->attrs_ = std::move(attrs);
    return;
  }
  LastBuilt& last = last_built_[node->op_];
  if (last.attrs != attrs) last = {.attrs = std::move(attrs)};
  node->attrs_ = last.attrs;
}

void Graph::SetInternedDevice(Node* node, absl::string_view device) {
  node->device_ = device.empty() ? nullptr : &*devices_.emplace(device).first;
}

// ---- nodes named after their first user

void Graph::AddDeferredName(DeferredName deferred) {
  // Enough for the arguments of one call; the names of fetched nodes stay deferred.
  constexpr size_t kMaxDeferredNames = 64;
  if (deferred_names_.size() == kMaxDeferredNames) {
    deferred_names_.front().node->name_is_deferred_ = false;
    deferred_names_.erase(deferred_names_.begin());
  }
  deferred.node->name_is_deferred_ = true;
  deferred_names_.push_back(std::move(deferred));
}

// Names are assigned as if the nodes with deferred names had none: all of them release their names,
// the most recent one first, and then take the next free names.
void Graph::ResolveDeferredNames(absl::Span<const Output> inputs, const std::string& user) {
  std::vector<std::pair<Node*, std::string>> names;
  for (const Output& in : inputs) {
    if (!in.node->name_is_deferred_) continue;
    in.node->name_is_deferred_ = false;
    const auto it = std::find_if(deferred_names_.begin(), deferred_names_.end(),
                                 [&](const DeferredName& u) { return u.node == in.node; });
    const size_t outer = absl::StartsWith(user, it->scope) ? it->scope.size() : 0;
    names.emplace_back(in.node, absl::StrCat(user.substr(0, user.find('/', outer)), "/",
                                             it->name.substr(it->scope.size())));
  }
  if (names.empty()) return;
  for (auto u = deferred_names_.rbegin(); u != deferred_names_.rend(); ++u) ReleaseName(*u);
  std::erase_if(deferred_names_, [](const DeferredName& u) { return !u.node->name_is_deferred_; });
  for (const auto& [node, name] : names) Rename(node, name);
  for (const DeferredName& u : deferred_names_) Rename(u.node, u.name);
}

void Graph::NameHere(const Output& value) {
  if (!value.valid() || !value.node->name_is_deferred_) return;
  const auto it = std::find_if(deferred_names_.begin(), deferred_names_.end(),
                               [&](const DeferredName& u) { return u.node == value.node; });
  const std::string name = name_scope() + it->name.substr(it->scope.size());
  for (auto u = deferred_names_.rbegin(); u != deferred_names_.rend(); ++u) ReleaseName(*u);
  deferred_names_.erase(it);
  value.node->name_is_deferred_ = false;
  Rename(value.node, name);
  for (const DeferredName& u : deferred_names_) Rename(u.node, u.name);
}

// Renames the node to a unique form of `name`.
void Graph::Rename(Node* node, const std::string& name) {
  const NameIndex::FreeName free = names_.Unique(name);
  node->name_ = free.text();
  names_.AddUnique(node, free);
}

// Releases the node's name for reuse if it is the last one derived from the requested name.
void Graph::ReleaseName(const DeferredName& deferred) {
  names_.Remove(deferred.node);
  names_.Release(deferred.name, deferred.node->name_);
}

// ---- changes

absl::Status Graph::AddControlInput(Node* node, Node* control) {
  if (node->graph_ != this || control->graph_ != this) {
    return InvalidArgument("Control edge ", control->name(), " -> ", node->name(),
                           " connects nodes of different graphs");
  }
  if (finalized_) return FailedPrecondition("Graph is finalized and cannot be modified.");
  auto& controls = node->control_inputs_;
  if (std::find(controls.begin(), controls.end(), control) == controls.end()) {
    controls.push_back(control);
    RecordChange(node, "adding control input");
  }
  return absl::OkStatus();
}

absl::Status Graph::SetControlInputs(Node* node, absl::Span<Node* const> controls) {
  if (finalized_) return FailedPrecondition("Graph is finalized and cannot be modified.");
  const std::vector<Node*> wanted(controls.begin(), controls.end());
  const auto before = std::exchange(node->control_inputs_, {});
  RecordChange(node, "setting control inputs");
  for (Node* control : wanted) {
    if (absl::Status s = AddControlInput(node, control); !s.ok()) {
      node->control_inputs_ = before;
      return s;
    }
  }
  return absl::OkStatus();
}

absl::Status Graph::SetInput(Node* node, int index, Output value) {
  if (finalized_) return FailedPrecondition("Graph is finalized and cannot be modified.");
  if (index < 0 || index >= node->num_inputs()) {
    return OutOfRange(node->Label(), " has ", node->num_inputs(), " inputs, not ", index + 1);
  }
  if (!value.valid())
    return InvalidArgument(node->Label(), ": input ", index, " is an invalid Output");
  WEIR_RETURN_IF_ERROR(value.CheckIndex());
  const DataType wanted = node->input_type(index);
  const DataType given = value.node->output_type(value.index);
  if (!AcceptsType(wanted, given)) {
    return InvalidArgument(node->Label(), ": input ", index, " expects ", DataTypeName(wanted),
                           " but ", value.name(), " is ", DataTypeName(given));
  }
  node->inputs_[index] = value;
  RecordChange(node, "updating input tensor");
  return absl::OkStatus();
}

void Graph::SetAttr(Node* node, absl::string_view name, AttrValue value) {
  node->attrs_.insert_or_assign(name, std::move(value));
  RecordChange(node, "setting attribute");
}

void Graph::SetDevice(Node* node, absl::string_view device) {
  SetInternedDevice(node, device);
  RecordChange(node, "setting device");
}

void Graph::KeepChanges() const { num_tracked_.store(num_nodes(), std::memory_order_relaxed); }

void Graph::RecordChange(const Node* node, const char* what) {
  if (node->id_ < num_tracked_.load(std::memory_order_relaxed)) changes_.push_back({node, what});
}

absl::Status Graph::InferShapes(Node* node) {
  const ShapeFn& fn = node->op().shape_fn();
  if (!fn) return absl::OkStatus();
  absl::InlinedVector<Shape, 2> shapes;
  absl::InlinedVector<const HandleData*, 2> handles;
  for (const Output& in : node->inputs()) {
    shapes.push_back(in.shape());
    handles.push_back(in.handle_data());
  }
  ShapeContext context(*node, shapes, handles, GraphValues());
  const auto located = [&](const absl::Status& s) {
    std::vector<std::string> inputs;
    for (const Output& in : node->inputs()) inputs.push_back(in.shape().ToString());
    return absl::Status(s.code(),
                        absl::StrCat(s.message(), " for node ", node->Label(),
                                     " with input shapes: ", absl::StrJoin(inputs, ", "), "."));
  };
  const auto infer = [&] { return fn(context); };
  if (absl::Status s = CatchExceptions("The shape function", infer); !s.ok()) return located(s);
  for (int i = 0; i < node->num_outputs(); ++i) {
    absl::StatusOr<Shape> merged = node->outputs_[i].shape.MergeWith(context.outputs()[i]);
    if (!merged.ok()) return located(merged.status());
    node->outputs_[i].shape = *std::move(merged);
    if (const auto& handle = context.output_handles()[i]) {
      node->outputs_[i].handle = std::make_unique<HandleData>(*handle);
    }
  }
  return absl::OkStatus();
}

absl::Status Graph::RefineShape(Output output, const Shape& shape) {
  WEIR_RETURN_IF_ERROR(output.CheckIndex());
  WEIR_ASSIGN_OR_RETURN(output.node->outputs_[output.index].shape, output.shape().MergeWith(shape));
  return absl::OkStatus();
}

// Follows tf.compat.v1.get_seed. Two zero seeds would mean "nondeterministic", so a deterministic
// pair of zeros becomes (0, 2^31 - 1).
std::pair<int64_t, int64_t> Graph::NextSeed(std::optional<int64_t> op_seed) {
  constexpr int64_t kDefaultGraphSeed = 87654321;
  constexpr int64_t kMaxSeed = (int64_t{1} << 31) - 1;
  if (!seed_ && !op_seed) return {0, 0};
  std::pair<int64_t, int64_t> seeds;
  if (seed_) {
    seeds = {*seed_, op_seed ? *op_seed : seeds_taken_++};
  } else {
    seeds = {kDefaultGraphSeed, *op_seed};
  }
  if (seeds.first == 0 && seeds.second == 0) seeds.second = kMaxSeed;
  return seeds;
}

void Graph::AddToCollection(absl::string_view key, CollectionItem item) {
  const MutexLock lock(collections_mutex_);
  collections_[std::string(key)].push_back(std::move(item));
}

void Graph::AddToCollections(const std::vector<std::string>& keys, const CollectionItem& item) {
  for (auto it = keys.begin(); it != keys.end(); ++it) {
    if (std::find(keys.begin(), it, *it) == it) AddToCollection(*it, item);
  }
}

namespace {

std::string ItemName(const CollectionItem& item) {
  if (const auto* output = std::get_if<Output>(&item)) return output->name();
  if (const auto* op = std::get_if<Operation>(&item)) return op->name();
  if (const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item))
    return *object == nullptr ? "" : (*object)->name();
  return "";
}

}  // namespace

std::vector<CollectionItem> Graph::collection(absl::string_view key,
                                              absl::string_view scope) const {
  std::vector<CollectionItem> items;
  {
    const MutexLock lock(collections_mutex_);
    const auto it = collections_.find(key);
    if (it == collections_.end()) return {};
    items = it->second;
  }
  if (scope.empty()) return items;
  const RE2 pattern(re2::StringPiece(scope.data(), scope.size()), RE2::Quiet);
  if (!pattern.ok()) {
    // An invalid filter is an error of the graph, like a builder's invalid argument; const_cast
    // because only const functions request filtered lists.
    const_cast<Graph*>(this)->Fail(InvalidArgument("invalid regular expression '", scope,
                                                   "' as a filter of collection '", key,
                                                   "': ", pattern.error()));
    return {};
  }
  std::erase_if(items, [&](const CollectionItem& item) {
    const std::string name = ItemName(item);
    return name.empty() || !pattern.Match(name, 0, name.size(), RE2::ANCHOR_START, nullptr, 0);
  });
  return items;
}

std::vector<CollectionItem>& Graph::LiveCollection(absl::string_view key) {
  const MutexLock lock(collections_mutex_);
  return collections_[std::string(key)];
}

void Graph::ClearCollection(absl::string_view key) {
  const MutexLock lock(collections_mutex_);
  const auto it = collections_.find(key);
  if (it != collections_.end()) cleared_collections_.push_back(collections_.extract(it));
}

void Graph::SetCollection(absl::string_view key, std::vector<CollectionItem> items) {
  const MutexLock lock(collections_mutex_);
  collections_[std::string(key)] = std::move(items);
}

std::vector<std::string> Graph::CollectionKeys() const {
  const MutexLock lock(collections_mutex_);
  std::vector<std::string> keys;
  for (const auto& [key, items] : collections_) keys.push_back(key);
  return keys;
}

}  // namespace weir
