#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "weir/capi/api_def_text.h"
#include "weir/capi/objects.h"
#include "weir/proto/api_def.pb.h"
#include "weir/proto/op_def.pb.h"

// How ops appear in the API of a language: made from their signatures, changed by texts.

namespace weir::capi {

namespace {

// The messages that a text does not parse with, in one line.
class ParseErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", "line ", line + 1, ", column ", column + 1,
                    ": ", message);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void Describe(const proto::OpDef::ArgDef& from, proto::ApiDef::Arg* arg) {
  arg->set_name(from.name());
  arg->set_rename_to(from.name());
  arg->set_description(from.description());
}

void Describe(const proto::OpDef::AttrDef& from, proto::ApiDef::Attr* attr) {
  attr->set_name(from.name());
  attr->set_rename_to(from.name());
  if (from.has_default_value()) *attr->mutable_default_value() = from.default_value();
  attr->set_description(from.description());
}

proto::ApiDef MakeApiDef(const proto::OpDef& op) {
  proto::ApiDef def;
  def.set_graph_op_name(op.name());
  def.set_visibility(proto::ApiDef::VISIBLE);
  def.add_endpoint()->set_name(op.name());
  for (const auto& arg : op.input_arg()) {
    Describe(arg, def.add_in_arg());
    def.add_arg_order(arg.name());
  }
  for (const auto& arg : op.output_arg()) Describe(arg, def.add_out_arg());
  for (const auto& attr : op.attr()) Describe(attr, def.add_attr());
  def.set_summary(op.summary());
  def.set_description(op.description());
  return def;
}

void MergeElement(const proto::ApiDef::Arg& from, proto::ApiDef::Arg* arg) {
  if (!from.rename_to().empty()) arg->set_rename_to(from.rename_to());
  if (!from.description().empty()) arg->set_description(from.description());
}

void MergeElement(const proto::ApiDef::Attr& from, proto::ApiDef::Attr* attr) {
  if (!from.rename_to().empty()) attr->set_rename_to(from.rename_to());
  if (from.has_default_value()) *attr->mutable_default_value() = from.default_value();
  if (!from.description().empty()) attr->set_description(from.description());
}

// Merges arguments or attributes into those of the same names.
template <class Elements>
absl::Status MergeElements(const Elements& from, absl::string_view kind, absl::string_view op,
                           Elements* elements) {
  for (const auto& element : from) {
    const auto it = std::find_if(elements->begin(), elements->end(),
                                 [&](const auto& e) { return e.name() == element.name(); });
    if (it == elements->end()) {
      return FailedPrecondition(kind, " ", element.name(), " not defined in base api for ", op);
    }
    MergeElement(element, &*it);
  }
  return absl::OkStatus();
}

absl::Status MergeOrder(const proto::ApiDef& from, proto::ApiDef* def) {
  if (from.arg_order().empty()) return absl::OkStatus();
  if (from.arg_order_size() != def->arg_order_size()) {
    return FailedPrecondition("Invalid number of arguments ", from.arg_order_size(), " for ",
                              def->graph_op_name(), ". Expected: ", def->arg_order_size());
  }
  if (!std::is_permutation(from.arg_order().begin(), from.arg_order().end(),
                           def->arg_order().begin())) {
    return FailedPrecondition("Invalid arg_order: ", absl::StrJoin(from.arg_order(), ", "), " for ",
                              def->graph_op_name(),
                              ". All elements in arg_order override must match base arg_order: ",
                              absl::StrJoin(def->arg_order(), ", "));
  }
  *def->mutable_arg_order() = from.arg_order();
  return absl::OkStatus();
}

void MergeTexts(const proto::ApiDef& from, proto::ApiDef* def) {
  if (!from.summary().empty()) def->set_summary(from.summary());
  std::string text = from.description().empty() ? def->description() : from.description();
  if (!from.description_prefix().empty()) text = from.description_prefix() + "\n" + text;
  if (!from.description_suffix().empty()) text += "\n" + from.description_suffix();
  def->set_description(text);
}

absl::Status Merge(const proto::ApiDef& from, proto::ApiDef* def) {
  const std::string& op = def->graph_op_name();
  if (from.visibility() != proto::ApiDef::DEFAULT_VISIBILITY)
    def->set_visibility(from.visibility());
  if (!from.endpoint().empty()) *def->mutable_endpoint() = from.endpoint();
  WEIR_RETURN_IF_ERROR(MergeElements(from.in_arg(), "Argument", op, def->mutable_in_arg()));
  WEIR_RETURN_IF_ERROR(MergeElements(from.out_arg(), "Argument", op, def->mutable_out_arg()));
  WEIR_RETURN_IF_ERROR(MergeOrder(from, def));
  WEIR_RETURN_IF_ERROR(MergeElements(from.attr(), "Attribute", op, def->mutable_attr()));
  MergeTexts(from, def);
  return absl::OkStatus();
}

// Replaces a name in backquotes in all documentation of an op.
void RenameInTexts(const std::string& from, const std::string& to, proto::ApiDef* def) {
  if (from == to) return;
  const std::string quoted = absl::StrCat("`", from, "`"), renamed = absl::StrCat("`", to, "`");
  const auto rename = [&](std::string* text) { absl::StrReplaceAll({{quoted, renamed}}, text); };
  for (auto& arg : *def->mutable_in_arg()) rename(arg.mutable_description());
  for (auto& arg : *def->mutable_out_arg()) rename(arg.mutable_description());
  for (auto& attr : *def->mutable_attr()) rename(attr.mutable_description());
  rename(def->mutable_summary());
  rename(def->mutable_description());
}

void RenameInTexts(proto::ApiDef* def) {
  if (def->endpoint_size() > 0) RenameInTexts(def->graph_op_name(), def->endpoint(0).name(), def);
  // Copies: the documentation that they hold changes.
  const auto in_args = def->in_arg();
  const auto out_args = def->out_arg();
  const auto attrs = def->attr();
  for (const auto& arg : in_args) RenameInTexts(arg.name(), arg.rename_to(), def);
  for (const auto& arg : out_args) RenameInTexts(arg.name(), arg.rename_to(), def);
  for (const auto& attr : attrs) RenameInTexts(attr.name(), attr.rename_to(), def);
}

}  // namespace

}  // namespace weir::capi

struct TF_ApiDefMap {
  absl::Status Put(absl::string_view text) {
    const weir::MutexLock lock(mutex);
    if (is_read) {
      return weir::FailedPrecondition(
          "TF_ApiDefMapPut cannot be called after TF_ApiDefMapGet has been called.");
    }
    weir::proto::ApiDefs changes;
    weir::capi::ParseErrors errors;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    if (!parser.ParseFromString(weir::capi::QuoteLines(text), &changes))
      return weir::InvalidArgument("Unparseable ApiDefs text: ", errors.text());
    for (const weir::proto::ApiDef& change : changes.op()) {
      const auto it = defs.find(change.graph_op_name());
      if (it == defs.end()) continue;
      weir::proto::ApiDef merged = it->second;
      WEIR_RETURN_IF_ERROR(weir::capi::Merge(change, &merged));
      it->second = std::move(merged);
    }
    return absl::OkStatus();
  }

  // Returns null if there is no such op.
  const weir::proto::ApiDef* Get(absl::string_view name) {
    const weir::MutexLock lock(mutex);
    if (!std::exchange(is_read, true)) {
      for (auto& [op, def] : defs) weir::capi::RenameInTexts(&def);
    }
    const auto it = defs.find(name);
    return it == defs.end() ? nullptr : &it->second;
  }

  weir::Mutex mutex;
  bool is_read ABSL_GUARDED_BY(mutex) = false;  // the names in texts are as renamed
  std::map<std::string, weir::proto::ApiDef, std::less<>> defs ABSL_GUARDED_BY(mutex);
};

using weir::capi::HaveAll;
using weir::capi::SetStatus;

TF_ApiDefMap* TF_NewApiDefMap(TF_Buffer* op_list_buffer, TF_Status* status) {
  if (!HaveAll("TF_NewApiDefMap", {op_list_buffer}, status)) return nullptr;
  weir::proto::OpList list;
  if (!weir::capi::ParseMessage(weir::capi::BytesOf(op_list_buffer), &list)) {
    SetStatus(status, weir::InvalidArgument("Unparseable OpList"));
    return nullptr;
  }
  auto* const map = new TF_ApiDefMap;
  const weir::MutexLock lock(map->mutex);
  for (const auto& op : list.op()) map->defs[op.name()] = weir::capi::MakeApiDef(op);
  SetStatus(status, absl::OkStatus());
  return map;
}

void TF_DeleteApiDefMap(TF_ApiDefMap* apimap) { delete apimap; }

void TF_ApiDefMapPut(TF_ApiDefMap* api_def_map, const char* text, size_t text_len,
                     TF_Status* status) {
  if (!HaveAll("TF_ApiDefMapPut", {api_def_map, text}, status)) return;
  SetStatus(status, text_len > INT32_MAX
                        ? weir::InvalidArgument("the text has ", text_len, " bytes")
                        : api_def_map->Put({text, text_len}));
}

TF_Buffer* TF_ApiDefMapGet(TF_ApiDefMap* api_def_map, const char* name, size_t name_len,
                           TF_Status* status) {
  if (!HaveAll("TF_ApiDefMapGet", {api_def_map, name}, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  const weir::proto::ApiDef* const def = api_def_map->Get({name, name_len});
  if (def == nullptr) return nullptr;
  const std::string bytes = def->SerializeAsString();
  return TF_NewBufferFromString(bytes.data(), bytes.size());
}
