#include "weir/session/model/scoped_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weir/ops/lib/collections.h"
#include "weir/proto/control_flow.pb.h"
#include "weir/proto/node_def.pb.h"
#include "weir/proto/queue_runner.pb.h"

namespace weir {

namespace {

// Returns the prefix before the name proper: "^", "loc:@" or "".
absl::string_view PrefixOf(absl::string_view name) {
  for (const absl::string_view mark : {"^", "loc:@"}) {
    if (absl::StartsWith(name, mark)) return mark;
  }
  return "";
}

using Rename = std::function<std::string(const std::string&)>;

void Apply(const Rename& rename, std::string* name) {
  if (!name->empty()) *name = rename(*name);
}

void Apply(const Rename& rename, google::protobuf::RepeatedPtrField<std::string>* names) {
  for (std::string& name : *names) Apply(rename, &name);
}

void Apply(const Rename& rename, proto::ValuesDef* values) {
  Apply(rename, values->mutable_values());
  google::protobuf::Map<std::string, std::string> external;
  for (const auto& [key, value] : values->external_values()) external[rename(key)] = rename(value);
  *values->mutable_external_values() = std::move(external);
}

void Apply(const Rename& rename, proto::ControlFlowContextDef* context);

void Apply(const Rename& rename, proto::CondContextDef* context) {
  Apply(rename, context->mutable_context_name());
  Apply(rename, context->mutable_pred_name());
  Apply(rename, context->mutable_pivot_name());
  Apply(rename, context->mutable_values_def());
  for (auto& nested : *context->mutable_nested_contexts()) Apply(rename, &nested);
}

void Apply(const Rename& rename, proto::WhileContextDef* context) {
  Apply(rename, context->mutable_context_name());
  Apply(rename, context->mutable_pivot_name());
  Apply(rename, context->mutable_pivot_for_pred_name());
  Apply(rename, context->mutable_pivot_for_body_name());
  Apply(rename, context->mutable_maximum_iterations_name());
  Apply(rename, context->mutable_loop_exit_names());
  Apply(rename, context->mutable_loop_enter_names());
  Apply(rename, context->mutable_values_def());
  for (auto& nested : *context->mutable_nested_contexts()) Apply(rename, &nested);
}

// The parser limits the nesting depth.
void Apply(const Rename& rename, proto::ControlFlowContextDef* context) {
  if (context->has_cond_ctxt()) Apply(rename, context->mutable_cond_ctxt());
  if (context->has_while_ctxt()) Apply(rename, context->mutable_while_ctxt());
}

template <class Context>
std::string Renamed(const std::string& bytes, const Rename& rename) {
  Context context;
  if (!context.ParseFromString(bytes)) return "";
  Apply(rename, &context);
  return context.SerializeAsString();
}

template <class Context>
std::string Named(const std::string& bytes) {
  Context context;
  return context.ParseFromString(bytes) ? context.context_name() : "";
}

}  // namespace

std::string ScopePrefix(absl::string_view scope) {
  while (absl::ConsumeSuffix(&scope, "/")) {
  }
  return scope.empty() ? "" : absl::StrCat(scope, "/");
}

bool InScope(absl::string_view name, absl::string_view prefix) {
  return absl::StartsWith(name.substr(PrefixOf(name).size()), prefix);
}

std::string StripScope(absl::string_view name, absl::string_view prefix) {
  if (!InScope(name, prefix)) return std::string(name);
  const absl::string_view mark = PrefixOf(name);
  return absl::StrCat(mark, name.substr(mark.size() + prefix.size()));
}

std::string AddScope(absl::string_view name, absl::string_view prefix) {
  const absl::string_view mark = PrefixOf(name);
  return absl::StrCat(mark, prefix, name.substr(mark.size()));
}

std::string AsNodeName(absl::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_./-", c))
      c = '_';
  }
  if (name.empty() || !absl::ascii_isalnum(static_cast<unsigned char>(name[0])))
    name.insert(0, "node");
  return name;
}

void StripScope(absl::string_view prefix, const std::function<void(const std::string&)>& unbound,
                proto::NodeDef* node) {
  node->set_name(StripScope(node->name(), prefix));
  for (std::string& input : *node->mutable_input()) {
    if (InScope(input, prefix)) {
      input = StripScope(input, prefix);
    } else {
      input = AddScope(input, kUnboundPrefix);
      unbound(input);
    }
  }
  if (const auto mark = node->mutable_attr()->find("_class"); mark != node->mutable_attr()->end()) {
    auto* places = mark->second.mutable_list()->mutable_s();
    int kept = 0;
    for (std::string& place : *places) {
      if (InScope(place, prefix)) *places->Mutable(kept++) = StripScope(place, prefix);
    }
    places->DeleteSubrange(kept, places->size() - kept);
  }
  const auto frame = node->mutable_attr()->find("frame_name");
  if (frame != node->mutable_attr()->end())
    frame->second.set_s(StripScope(frame->second.s(), prefix));
}

void ForEachName(proto::QueueRunnerDef* def, const std::function<void(std::string*)>& fn) {
  fn(def->mutable_queue_name());
  for (std::string& name : *def->mutable_enqueue_op_name()) fn(&name);
  fn(def->mutable_close_op_name());
  fn(def->mutable_cancel_op_name());
}

bool IsContextCollection(absl::string_view collection) {
  return collection == collections::kCondContext || collection == collections::kWhileContext;
}

std::string RenameContext(absl::string_view collection, const std::string& bytes,
                          const Rename& rename) {
  return collection == collections::kCondContext ? Renamed<proto::CondContextDef>(bytes, rename)
                                                 : Renamed<proto::WhileContextDef>(bytes, rename);
}

std::string ContextName(absl::string_view collection, const std::string& bytes) {
  return collection == collections::kCondContext ? Named<proto::CondContextDef>(bytes)
                                                 : Named<proto::WhileContextDef>(bytes);
}

std::string UnusedName(const std::string& base,
                       absl::FunctionRef<bool(const std::string&)> is_taken) {
  std::string name = base;
  for (int i = 1; is_taken(name); ++i) name = absl::StrCat(base, "_", i);
  return name;
}

}  // namespace weir
