#include "weir/tests/fuzz/mutate.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weir/core/graph/op.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/fuzz/random_values.h"

// Mutates the message, not its bytes: randomly changed bytes rarely parse, and a message that
// parses but is rejected by the importer exercises little. So most changes keep the graph
// well-formed (a type stays a type, a name is one of the graph's) but change its meaning: that
// reaches shape functions and kernels. New nodes have constants of the right types as inputs, with
// random shapes and values: every registered op is used, also those that no case uses.
namespace weir::fuzz {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<proto::NodeDef>;

class Mutator {
 public:
  Mutator(uint64_t seed, proto::GraphDef* graph) : random_(seed), graph_(*graph) {}

  void Run() {
    for (uint64_t changes = 1 + random_.Below(4); changes > 0; --changes) ChangeOnce();
  }

 private:
  void ChangeOnce() {
    Nodes* nodes = graph_.mutable_node();
    const int functions = graph_.library().function_size();
    if (functions > 0 && random_.OneIn(3)) {
      proto::FunctionDef* f = graph_.mutable_library()->mutable_function(
          static_cast<int>(random_.Below(static_cast<uint64_t>(functions))));
      if (random_.OneIn(8)) return ChangeSignature(f);
      nodes = f->mutable_node_def();
    }
    if (nodes->empty() || (nodes == graph_.mutable_node() && random_.OneIn(3)))
      return AddOp(*random_.OneOf(Ops()));
    proto::NodeDef* node = nodes->Mutable(Index(nodes->size()));
    switch (random_.Below(10)) {
      case 0:
        return ChangeInputs(node, *nodes);
      case 1:
        return ChangeOp(node);
      case 2:
        return ChangeNodes(nodes);
      case 3:
        node->set_device(random_.Text());
        return;
      default:
        return ChangeAttr(node);
    }
  }

  int Index(int size) { return static_cast<int>(random_.Below(static_cast<uint64_t>(size))); }

  // ---- attributes

  void ChangeAttr(proto::NodeDef* node) {
    std::vector<std::string> names;
    for (const auto& [name, value] : node->attr()) names.push_back(name);
    if (names.empty()) return;
    std::sort(names.begin(), names.end());  // a map has no defined order
    const std::string& name = random_.OneOf(names);
    if (random_.OneIn(16)) {
      node->mutable_attr()->erase(name);
      return;
    }
    ChangeValue(&(*node->mutable_attr())[name]);
  }

  void ChangeValue(proto::AttrValue* value) {
    switch (value->value_case()) {
      case proto::AttrValue::kI:
        return value->set_i(random_.Int());
      case proto::AttrValue::kF:
        return value->set_f(static_cast<float>(random_.Float()));
      case proto::AttrValue::kB:
        return value->set_b(!value->b());
      case proto::AttrValue::kS:
        return value->set_s(random_.Text());
      case proto::AttrValue::kType:
        return value->set_type(static_cast<proto::DataType>(random_.Type()));
      case proto::AttrValue::kShape:
        return ChangeShape(value->mutable_shape());
      case proto::AttrValue::kTensor:
        return ChangeTensor(value->mutable_tensor());
      case proto::AttrValue::kFunc:
        return value->mutable_func()->set_name(FunctionName());
      case proto::AttrValue::kList:
        return ChangeList(value->mutable_list());
      default:
        return value->set_i(random_.Int());
    }
  }

  std::string FunctionName() {
    const int functions = graph_.library().function_size();
    if (functions == 0) return "f";
    return graph_.library().function(Index(functions)).signature().name();
  }

  void ChangeShape(proto::TensorShapeProto* shape) {
    if (random_.OneIn(6)) {
      shape->Clear();
      shape->set_unknown_rank(random_.OneIn(2));
      return;
    }
    if (shape->dim_size() > 0 && !random_.OneIn(4)) {
      shape->mutable_dim(Index(shape->dim_size()))->set_size(random_.Int());
      return;
    }
    shape->Clear();
    for (const int64_t d : random_.Dims()) shape->add_dim()->set_size(d);
  }

  void ChangeTensor(proto::TensorProto* tensor) {
    switch (random_.Below(4)) {
      case 0:
        return ChangeShape(tensor->mutable_tensor_shape());
      case 1:
        return tensor->set_dtype(static_cast<proto::DataType>(random_.Type()));
      case 2:
        if (!tensor->tensor_content().empty()) {
          std::string* bytes = tensor->mutable_tensor_content();
          (*bytes)[random_.Below(bytes->size())] = static_cast<char>(random_.Int());
          return;
        }
        [[fallthrough]];
      default:
        const Tensor value = random_.Value(static_cast<DataType>(tensor->dtype()));
        if (value.initialized()) TensorToProto(value, tensor);
    }
  }

  template <class List, class Make>
  void ChangeElements(List* list, const Make& make) {
    const auto at = random_.Below(static_cast<uint64_t>(list->size()) + 1);
    if (at == static_cast<uint64_t>(list->size())) {
      list->Add(make());
    } else if (random_.OneIn(4)) {
      list->erase(list->begin() + static_cast<int>(at));
    } else {
      list->begin()[static_cast<int>(at)] = make();
    }
  }

  void ChangeList(proto::AttrValue::ListValue* list) {
    if (list->s_size() > 0)
      return ChangeElements(list->mutable_s(), [&] { return random_.Text(); });
    if (list->f_size() > 0)
      return ChangeElements(list->mutable_f(), [&] { return static_cast<float>(random_.Float()); });
    if (list->type_size() > 0)
      return ChangeElements(list->mutable_type(), [&] { return static_cast<int>(random_.Type()); });
    if (list->shape_size() > 0) return ChangeShape(list->mutable_shape(Index(list->shape_size())));
    if (list->func_size() > 0) return list->mutable_func(0)->set_name(FunctionName());
    ChangeElements(list->mutable_i(), [&] { return random_.Int(); });
  }

  // ---- edges and nodes

  std::string AnyInput(const Nodes& nodes) {
    std::string name = nodes.Get(Index(nodes.size())).name();
    if (random_.OneIn(6)) return absl::StrCat("^", name);
    if (random_.OneIn(4)) absl::StrAppend(&name, ":", random_.Int());
    return name;
  }

  void ChangeInputs(proto::NodeDef* node, const Nodes& nodes) {
    const int n = node->input_size();
    if (n == 0 || random_.OneIn(5)) {
      node->add_input(AnyInput(nodes));
    } else if (random_.OneIn(5)) {
      node->mutable_input()->erase(node->mutable_input()->begin() + Index(n));
    } else if (random_.OneIn(3)) {
      node->mutable_input()->SwapElements(Index(n), Index(n));
    } else {
      node->set_input(Index(n), AnyInput(nodes));
    }
  }

  // Changes the op to another one with the same number of inputs.
  void ChangeOp(proto::NodeDef* node) {
    const OpSpec* now = BuiltinOps().Find(node->op());
    if (now == nullptr) return;
    const std::vector<const OpSpec*>& all = Ops();
    for (int i = 0; i < 20; ++i) {
      const OpSpec* other = random_.OneOf(all);
      if (other->inputs().size() != now->inputs().size()) continue;
      node->set_op(other->name());
      for (const AttrSpec& attr : other->attrs()) {
        if (node->attr().count(attr.name) == 0) SetAttr(attr, node);
      }
      return;
    }
  }

  void ChangeNodes(Nodes* nodes) {
    if (random_.OneIn(2)) {
      nodes->erase(nodes->begin() + Index(nodes->size()));
      return;
    }
    proto::NodeDef copy = nodes->Get(Index(nodes->size()));
    if (!random_.OneIn(6)) copy.set_name(NewName());
    *nodes->Add() = std::move(copy);
  }

  void ChangeSignature(proto::FunctionDef* f) {
    auto* args = random_.OneIn(2) ? f->mutable_signature()->mutable_input_arg()
                                  : f->mutable_signature()->mutable_output_arg();
    if (args->empty()) return;
    if (random_.OneIn(3)) {
      args->erase(args->begin() + Index(args->size()));
    } else {
      args->Mutable(Index(args->size()))->set_type(static_cast<proto::DataType>(random_.Type()));
    }
  }

  // ---- a node of any op

  static const std::vector<const OpSpec*>& Ops() {
    static const std::vector<const OpSpec*>* const ops =
        new std::vector<const OpSpec*>(BuiltinOps().All());
    return *ops;
  }

  std::string NewName() { return absl::StrCat("fuzz", graph_.node_size(), "_", made_++); }

  void AddOp(const OpSpec& op) {
    proto::NodeDef node;
    node.set_name(NewName());
    node.set_op(op.name());
    for (const AttrSpec& attr : op.attrs()) {
      // Usually keeps the default, except a default type, which is one of many.
      const bool is_type = attr.kind == AttrSpec::Kind::kType;
      if (!attr.default_value || random_.OneIn(is_type ? 2 : 6)) SetAttr(attr, &node);
    }
    for (const ArgSpec& arg : op.inputs()) AddInputs(op, arg, &node);
    for (int i = 0; i < static_cast<int>(op.outputs().size()); ++i) {
      (*node.mutable_attr())[absl::StrCat(kFetchMark, random_.Below(kMaxSteps), ".", i)].set_b(
          true);
    }
    (*node.mutable_attr())[absl::StrCat(kTargetMark, 0)].set_b(true);
    *graph_.add_node() = std::move(node);
  }

  void SetAttr(const AttrSpec& attr, proto::NodeDef* node) {
    proto::AttrValue* value = &(*node->mutable_attr())[attr.name];
    value->Clear();
    if (!attr.is_list) return SetOne(attr, value);
    const int64_t size = std::min<int64_t>(
        std::max(attr.minimum.value_or(0), static_cast<int64_t>(random_.Below(4))), 8);
    proto::AttrValue::ListValue* list = value->mutable_list();
    for (int64_t i = 0; i < size; ++i) {
      proto::AttrValue one;
      SetOne(attr, &one);
      if (one.value_case() == proto::AttrValue::kI) list->add_i(one.i());
      if (one.value_case() == proto::AttrValue::kF) list->add_f(one.f());
      if (one.value_case() == proto::AttrValue::kB) list->add_b(one.b());
      if (one.value_case() == proto::AttrValue::kS) list->add_s(one.s());
      if (one.value_case() == proto::AttrValue::kType) list->add_type(one.type());
      if (one.value_case() == proto::AttrValue::kShape) *list->add_shape() = one.shape();
      if (one.value_case() == proto::AttrValue::kTensor) *list->add_tensor() = one.tensor();
      if (one.value_case() == proto::AttrValue::kFunc) *list->add_func() = one.func();
    }
  }

  void SetOne(const AttrSpec& attr, proto::AttrValue* value) {
    switch (attr.kind) {
      case AttrSpec::Kind::kString:
        return value->set_s(attr.allowed_strings.empty() ? random_.Text()
                                                         : random_.OneOf(attr.allowed_strings));
      case AttrSpec::Kind::kInt: {
        const int64_t least = attr.is_list ? random_.Int() : attr.minimum.value_or(0);
        return value->set_i(random_.OneIn(4) ? random_.Int()
                                             : least + static_cast<int64_t>(random_.Below(3)));
      }
      case AttrSpec::Kind::kFloat:
        return value->set_f(static_cast<float>(random_.Float()));
      case AttrSpec::Kind::kBool:
        return value->set_b(random_.OneIn(2));
      case AttrSpec::Kind::kType:
        return value->set_type(static_cast<proto::DataType>(
            attr.allowed_types.empty() ? random_.Type() : random_.OneOf(attr.allowed_types)));
      case AttrSpec::Kind::kShape:
        return ChangeShape(value->mutable_shape());
      case AttrSpec::Kind::kTensor:
        return TensorToProto(random_.Value(DT_FLOAT), value->mutable_tensor());
      case AttrSpec::Kind::kFunction:
        return value->mutable_func()->set_name(FunctionName());
    }
  }

  // Returns the types of an argument's tensors, according to the node's attributes.
  std::vector<DataType> TypesOf(const OpSpec& op, const ArgSpec& arg, const proto::NodeDef& node) {
    const auto type_of = [&](const std::string& name) {
      const auto it = node.attr().find(name);
      if (it != node.attr().end()) return static_cast<DataType>(it->second.type());
      const AttrSpec* spec = op.FindAttr(name);
      const DataType* type = spec != nullptr && spec->default_value
                                 ? spec->default_value->get_if<DataType>()
                                 : nullptr;
      return type != nullptr ? *type : DT_FLOAT;
    };
    if (!arg.type_list_attr.empty()) {
      std::vector<DataType> types;
      const auto it = node.attr().find(arg.type_list_attr);
      if (it == node.attr().end()) return types;
      for (const int t : it->second.list().type()) types.push_back(static_cast<DataType>(t));
      return types;
    }
    int64_t count = 1;
    if (!arg.number_attr.empty()) {
      const auto it = node.attr().find(arg.number_attr);
      count = it == node.attr().end() ? 1 : std::clamp<int64_t>(it->second.i(), 0, 6);
    }
    const DataType type = arg.type_attr.empty() ? arg.type : type_of(arg.type_attr);
    return std::vector<DataType>(static_cast<size_t>(count), type);
  }

  void AddInputs(const OpSpec& op, const ArgSpec& arg, proto::NodeDef* node) {
    for (const DataType type : TypesOf(op, arg, *node)) {
      const Tensor value = arg.is_ref ? Tensor() : random_.Value(type);
      if (value.initialized()) {
        node->add_input(AddConstant(value));
      } else {
        node->add_input(Producer(type, arg.is_ref));
      }
    }
  }

  std::string AddConstant(const Tensor& value) {
    proto::NodeDef node;
    node.set_name(NewName());
    node.set_op("Const");
    (*node.mutable_attr())["dtype"].set_type(static_cast<proto::DataType>(value.dtype()));
    TensorToProto(value, (*node.mutable_attr())["value"].mutable_tensor());
    *graph_.add_node() = node;
    return node.name();
  }

  // Returns a node of the graph, or a new one without inputs, whose output 0 has the type: handles,
  // references, variants.
  std::string Producer(DataType type, bool is_ref) {
    std::vector<std::string> names;
    for (const proto::NodeDef& node : graph_.node()) {
      const OpSpec* op = BuiltinOps().Find(node.op());
      if (op == nullptr || op->outputs().empty()) continue;
      const ArgSpec& out = op->outputs()[0];
      if (is_ref ? out.is_ref : out.type == type) names.push_back(node.name());
    }
    if (!names.empty() && !random_.OneIn(4)) return random_.OneOf(names);
    for (int i = 0; i < 2000; ++i) {
      const OpSpec& op = *random_.OneOf(Ops());
      if (op.outputs().empty() || depth_ > 2) continue;
      const ArgSpec& out = op.outputs()[0];
      if (is_ref ? !out.is_ref : out.type != type) continue;
      ++depth_;
      AddOp(op);
      --depth_;
      return graph_.node(graph_.node_size() - 1).name();
    }
    return "missing";
  }

  RandomValues random_;
  proto::GraphDef& graph_;
  int made_ = 0, depth_ = 0;
};

}  // namespace

void Mutate(uint64_t seed, proto::GraphDef* graph) { Mutator(seed, graph).Run(); }

}  // namespace weir::fuzz
