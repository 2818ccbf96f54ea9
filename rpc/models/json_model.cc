#include "weir/rpc/models/json_model.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "weir/rpc/models/status_page.h"

namespace weir::rpc {

namespace {

using nlohmann::ordered_json;

std::string Dump(const ordered_json& value) {
  return value.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json JsonOf(const std::map<std::string, serving::TensorInfo>& infos) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, info] : infos) {
    ordered_json dims = ordered_json::array();
    for (const int64_t extent : info.shape.dims())
      dims.push_back({{"size", absl::StrCat(extent)}, {"name", ""}});
    all[name] = {{"dtype", absl::StrCat("DT_", absl::AsciiStrToUpper(DataTypeName(info.dtype)))},
                 {"tensor_shape", {{"dim", dims}, {"unknown_rank", !info.shape.has_rank()}}},
                 {"name", info.tensor}};
  }
  return all;
}

}  // namespace

std::string MetadataResponse(const serving::Servable& servable) {
  ordered_json signatures = ordered_json::object();
  for (const auto& [name, signature] : servable.signatures()) {
    signatures[name] = {{"inputs", JsonOf(signature.inputs)},
                        {"outputs", JsonOf(signature.outputs)},
                        {"method_name", signature.method_name}};
  }
  return Dump({{"model_spec",
                {{"name", servable.name()},
                 {"signature_name", ""},
                 {"version", absl::StrCat(servable.version())}}},
               {"metadata", {{"signature_def", {{"signature_def", signatures}}}}}});
}

std::string StatesResponse(const std::vector<serving::VersionStatus>& versions) {
  ordered_json states = ordered_json::array();
  for (const serving::VersionStatus& version : versions) {
    states.push_back({{"version", absl::StrCat(version.version)},
                      {"state", NameOf(version.state)},
                      {"status",
                       {{"error_code", absl::StatusCodeToString(version.error.code())},
                        {"error_message", std::string(version.error.message())}}}});
  }
  return Dump({{"model_version_status", states}});
}

}  // namespace weir::rpc
