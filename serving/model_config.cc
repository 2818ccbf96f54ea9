#include "weir/serving/model_config.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/proto/model_server_config.pb.h"
#include "weir/serving/shown_name.h"
#include "weir/serving/text_config.h"

namespace weir::serving {
namespace {

using Path = std::vector<TextConfig::Field>;

// A mistake in one of the models, and the field of its message that has it.
struct Mistake {
  absl::Status status;
  std::string field = {};
  std::string label = {};  // of version_labels, the one with this key
};
Mistake Wrong(absl::string_view field, const std::string& text) {
  return {InvalidArgument(text), std::string(field)};
}

std::string Quoted(absl::string_view text) { return absl::StrCat("'", ShownName(text), "'"); }

bool IsName(absl::string_view name) {
  return !name.empty() && absl::c_all_of(name, [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != '/' && c != ':';
  });
}

bool IsAbsolute(absl::string_view path) {
  return absl::StartsWith(path, "/") && absl::c_none_of(path, [](char c) {
           return absl::ascii_iscntrl(static_cast<unsigned char>(c));
         });
}

Mistake CheckVersions(const VersionPolicy& policy) {
  constexpr char kField[] = "model_version_policy";
  if (policy.kind == VersionPolicy::Kind::kLatest && policy.num_versions < 1) {
    return Wrong(kField, absl::StrCat("num_versions is ", policy.num_versions,
                                      "; expected a number of versions, 1 or more"));
  }
  if (policy.kind != VersionPolicy::Kind::kSpecific) return {};
  if (policy.versions.empty())
    return Wrong(kField, "specific names no version; expected versions: N");
  std::set<int64_t> seen;
  for (const int64_t version : policy.versions) {
    if (version < 0)
      return Wrong(kField, absl::StrCat("version ", version, "; expected 0 or more"));
    if (!seen.insert(version).second)
      return Wrong(kField, absl::StrCat("version ", version, " is named twice"));
  }
  return {};
}

Mistake CheckLabels(const ModelConfig& model) {
  const bool is_specific = model.versions.kind == VersionPolicy::Kind::kSpecific;
  for (const auto& entry : model.labels) {
    const std::string& label = entry.first;
    const int64_t version = entry.second;
    const auto wrong = [&](const std::string& text) {
      return Mistake{InvalidArgument("label ", Quoted(label), text), "version_labels", label};
    };
    if (!IsName(label)) return wrong("; expected printable characters without space, '/' and ':'");
    if (version < 0)
      return wrong(absl::StrCat(" is for version ", version, "; expected 0 or more"));
    if (is_specific && absl::c_count(model.versions.versions, version) == 0) {
      return wrong(absl::StrCat(" is for version ", version, ", which the policy does not serve; ",
                                "expected one of: ", absl::StrJoin(model.versions.versions, ", ")));
    }
  }
  return {};
}

Mistake CheckModel(const ModelConfig& model) {
  if (model.name.empty()) return Wrong("name", "a model has no name; expected name: \"...\"");
  if (!IsName(model.name)) {
    return Wrong("name",
                 absl::StrCat("name ", Quoted(model.name),
                              "; expected printable characters without space, '/' and ':'"));
  }
  if (model.base_path.empty())
    return Wrong("base_path", "no base_path; expected an absolute path, such as \"/models/mnist\"");
  if (!IsAbsolute(model.base_path)) {
    return Wrong("base_path",
                 absl::StrCat("base_path ", Quoted(model.base_path),
                              "; expected an absolute path, such as \"/models/mnist\""));
  }
  for (Mistake mistake : {CheckVersions(model.versions), CheckLabels(model)}) {
    if (!mistake.status.ok()) return mistake;
  }
  if (model.max_memory_bytes < 0) {
    return {InvalidArgument("max_memory_bytes is ", model.max_memory_bytes,
                            "; expected 0 for no limit, or a number of bytes")};
  }
  if (model.batching) {
    const absl::Status batching = CheckBatchingOptions(*model.batching);
    if (!batching.ok()) return {batching};
  }
  if (!model.logging) return {};
  if (!IsAbsolute(model.logging->filename_prefix)) {
    return Wrong("logging_config",
                 absl::StrCat("filename_prefix ", Quoted(model.logging->filename_prefix),
                              "; expected an absolute path"));
  }
  if (!(model.logging->sampling_rate >= 0 && model.logging->sampling_rate <= 1)) {
    return Wrong("logging_config", absl::StrCat("sampling_rate is ", model.logging->sampling_rate,
                                                "; expected a number from 0 to 1"));
  }
  return {};
}

// Makes an error of the model at an index, and of a field in its message, say where it is.
using Locate = std::function<absl::Status(int model, const Mistake& mistake)>;

absl::Status CheckModels(const std::vector<ModelConfig>& models, const Locate& locate) {
  std::map<std::string, int> indexes;
  for (int i = 0; i < static_cast<int>(models.size()); ++i) {
    Mistake mistake = CheckModel(models[i]);
    if (mistake.status.ok() && !indexes.emplace(models[i].name, i).second)
      mistake = Wrong("name", absl::StrCat("two models have the name ", Quoted(models[i].name)));
    if (!mistake.status.ok()) return locate(i, mistake);
  }
  return absl::OkStatus();
}

Mistake ReadPlatform(const proto::serving::ModelConfig& from) {
  const bool has_type = from.model_type() != proto::serving::MODEL_TYPE_UNSPECIFIED;
  if (has_type && !from.model_platform().empty()) {
    return Wrong("model_type",
                 "Illegal setting both model_type(deprecated) and model_platform. Expected "
                 "model_platform: \"tensorflow\" alone");
  }
  if (has_type) {
    if (from.model_type() == proto::serving::TENSORFLOW) return {};
    return Wrong("model_type", "model_type OTHER; expected model_platform: \"tensorflow\"");
  }
  if (from.model_platform() == "tensorflow") return {};
  if (!from.model_platform().empty()) {
    return Wrong("model_platform", absl::StrCat("model_platform ", Quoted(from.model_platform()),
                                                "; expected \"tensorflow\""));
  }
  return Wrong("model_platform",
               "Illegal setting neither model_type(deprecated) nor model_platform. Expected "
               "model_platform: \"tensorflow\"");
}

VersionPolicy PolicyFromProto(
    const proto::serving::FileSystemStoragePathSourceConfig::ServableVersionPolicy& from) {
  VersionPolicy policy;
  if (from.has_all()) policy.kind = VersionPolicy::Kind::kAll;
  if (from.has_specific()) {
    policy.kind = VersionPolicy::Kind::kSpecific;
    policy.versions.assign(from.specific().versions().begin(), from.specific().versions().end());
  }
  // 0 is the default of the message, and means 1.
  if (from.has_latest() && from.latest().num_versions() > 0) {
    policy.num_versions = static_cast<int>(
        std::min<uint32_t>(from.latest().num_versions(), std::numeric_limits<int>::max()));
  }
  return policy;
}

Mistake ReadLogging(const proto::serving::LoggingConfig& from, ModelConfig* model) {
  constexpr char kField[] = "logging_config";
  const std::string& type = from.log_collector_config().type();
  if (from.has_custom_logging_config() || from.sampling_config().per_task_sampling_configs_size())
    return Wrong(kField, "only log_collector_config and a sampling_rate are supported");
  if (!type.empty() && type != "tfrecord") {
    return Wrong(kField, absl::StrCat("log_collector_config has type ", Quoted(type),
                                      "; expected \"tfrecord\""));
  }
  model->logging = RequestLogging{from.log_collector_config().filename_prefix(),
                                  from.sampling_config().sampling_rate()};
  return {};
}

Mistake ReadModel(const proto::serving::ModelConfig& from, ModelConfig* model) {
  model->name = from.name();
  model->base_path = from.base_path();
  model->versions = PolicyFromProto(from.model_version_policy());
  model->labels = {from.version_labels().begin(), from.version_labels().end()};
  if (Mistake mistake = ReadPlatform(from); !mistake.status.ok()) return mistake;
  return from.has_logging_config() ? ReadLogging(from.logging_config(), model) : Mistake{};
}

absl::StatusOr<std::vector<ModelConfig>> ReadModels(const proto::serving::ModelServerConfig& config,
                                                    const Locate& locate) {
  std::vector<ModelConfig> models;
  for (const proto::serving::ModelConfig& from : config.model_config_list().config()) {
    const Mistake mistake = ReadModel(from, &models.emplace_back());
    if (!mistake.status.ok()) return locate(static_cast<int>(models.size()) - 1, mistake);
  }
  WEIR_RETURN_IF_ERROR(CheckModels(models, locate));
  return models;
}

absl::Status CheckKind(const proto::serving::ModelServerConfig& config) {
  if (config.has_model_config_list()) return absl::OkStatus();
  return InvalidArgument(
      config.has_custom_model_config() ? "custom_model_config is not supported" : "no models",
      "; expected model_config_list { config { name: \"...\" base_path: \"/...\" model_platform: "
      "\"tensorflow\" } }");
}

// Names the model, for configurations that are not text.
Locate ByName(const std::function<std::string(int)>& name) {
  return [name](int model, const Mistake& mistake) {
    return Annotate(mistake.status, absl::StrCat("model ", model, ", ", Quoted(name(model))));
  };
}

// The labels of each model in the order of the text, which the message has, as a repeated field,
// until its map is used.
std::vector<std::vector<std::string>> LabelsInOrder(
    const proto::serving::ModelServerConfig& config) {
  std::vector<std::vector<std::string>> labels;
  for (const proto::serving::ModelConfig& model : config.model_config_list().config()) {
    const google::protobuf::Reflection& reflection = *model.GetReflection();
    const auto* const field =
        proto::serving::ModelConfig::descriptor()->FindFieldByName("version_labels");
    const auto* const key = field->message_type()->FindFieldByName("key");
    std::vector<std::string>& of_model = labels.emplace_back();
    for (int i = 0; i < reflection.FieldSize(model, field); ++i) {
      const google::protobuf::Message& entry = reflection.GetRepeatedMessage(model, field, i);
      of_model.push_back(entry.GetReflection()->GetString(entry, key));
    }
  }
  return labels;
}

absl::Status CheckLabelsAreDistinct(const std::vector<std::vector<std::string>>& labels,
                                    const TextConfig& source) {
  for (int model = 0; model < static_cast<int>(labels.size()); ++model) {
    std::set<std::string> seen;
    for (int i = 0; i < static_cast<int>(labels[model].size()); ++i) {
      if (seen.insert(labels[model][i]).second) continue;
      const Path path = {{"model_config_list"}, {"config", model}, {"version_labels", i}};
      return InvalidArgument("line ", source.Line(path), ": label ", Quoted(labels[model][i]),
                             " is given twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ModelConfig>> ParseModelConfigs(absl::string_view text) {
  proto::serving::ModelServerConfig config;
  WEIR_ASSIGN_OR_RETURN(const TextConfig source, TextConfig::Parse(text, &config));
  const std::vector<std::vector<std::string>> labels = LabelsInOrder(config);
  WEIR_RETURN_IF_ERROR(CheckLabelsAreDistinct(labels, source));
  const absl::Status kind = CheckKind(config);
  if (!kind.ok()) {
    return Annotate(kind, absl::StrCat("line ", source.Line({{"custom_model_config"}})));
  }
  const auto locate = [&](int model, const Mistake& mistake) {
    const auto label = absl::c_find(labels[model], mistake.label);
    const auto index = label != labels[model].end() ? label - labels[model].begin() : 0;
    const Path path = {
        {"model_config_list"}, {"config", model}, {mistake.field, static_cast<int>(index)}};
    return Annotate(mistake.status, absl::StrCat("line ", source.Line(path)));
  };
  WEIR_ASSIGN_OR_RETURN(std::vector<ModelConfig> models, ReadModels(config, locate));
  for (int i = 0; i < static_cast<int>(models.size()); ++i) {
    const Path model = {{"model_config_list"}, {"config", i}};
    Path base_path = model, prefix = model;
    base_path.push_back({"base_path"});
    models[i].line = source.Line(base_path);
    for (const char* field : {"logging_config", "log_collector_config", "filename_prefix"})
      prefix.push_back({field});
    if (models[i].logging) models[i].logging->line = source.Line(prefix);
  }
  return models;
}

absl::StatusOr<std::vector<ModelConfig>> ModelConfigsFromProto(
    const proto::serving::ModelServerConfig& config) {
  WEIR_RETURN_IF_ERROR(CheckKind(config));
  return ReadModels(config,
                    ByName([&](int i) { return config.model_config_list().config(i).name(); }));
}

absl::Status CheckModelConfigs(const std::vector<ModelConfig>& models) {
  return CheckModels(models, ByName([&](int i) { return models[i].name; }));
}

}  // namespace weir::serving
