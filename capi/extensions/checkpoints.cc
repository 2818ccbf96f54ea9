#include <nlohmann/json.hpp>

#include "weir/c_api.h"
#include "weir/capi/objects.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/checkpoint_state.h"

// Checkpoints as files: found, verified and read.

namespace weir::capi {

namespace {

using Json = nlohmann::ordered_json;

std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// As `weir ckpt verify --json` has it.
Json ReportOf(const char* path, const BundleReport& report) {
  Json problems = Json::array();
  for (const BundleProblem& problem : report.problems) {
    problems.push_back({{"file", problem.file},
                        {"offset", problem.offset},
                        {"size", problem.size},
                        {"tensor", problem.name},
                        {"message", problem.message}});
  }
  return {{"checkpoint", path},
          {"sound", report.problems.empty()},
          {"tensors", report.tensors},
          {"index_bytes", report.index_bytes},
          {"data_bytes", report.data_bytes},
          {"problems", std::move(problems)}};
}

absl::StatusOr<std::string> TensorsOf(const char* path) {
  WEIR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(path));
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, reader->List());
  Json list = Json::array();
  for (const CheckpointTensor& tensor : tensors) {
    list.push_back(
        {{"name", tensor.name},
         {"dtype", DataTypeName(tensor.dtype)},
         {"shape", std::vector<int64_t>(tensor.shape.dims().begin(), tensor.shape.dims().end())}});
  }
  return TextOf(list);
}

absl::StatusOr<TF_Tensor*> ReadTensor(const char* path, const char* name) {
  WEIR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(path));
  WEIR_ASSIGN_OR_RETURN(const Tensor value, reader->Read(name));
  return NewTensor(value);
}

}  // namespace

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::SetBuffer;
using weir::capi::SetStatus;

void weir_latest_checkpoint(const char* folder, TF_Buffer* path, TF_Status* status) {
  if (!HaveAll("weir_latest_checkpoint", {folder, path}, status)) return;
  const auto latest = weir::LatestCheckpoint(folder);
  if (latest.ok()) SetBuffer(*latest, path);
  SetStatus(status, latest.status());
}

int weir_checkpoint_verify(const char* path, TF_Buffer* report, TF_Status* status) {
  if (!HaveAll("weir_checkpoint_verify", {path}, status)) return -1;
  const auto verified = weir::VerifyBundle(path);
  SetStatus(status, verified.status());
  if (!verified.ok()) return -1;
  if (report != nullptr)
    SetBuffer(weir::capi::TextOf(weir::capi::ReportOf(path, *verified)), report);
  return verified->problems.empty() ? 1 : 0;
}

void weir_checkpoint_tensors(const char* path, TF_Buffer* tensors, TF_Status* status) {
  if (!HaveAll("weir_checkpoint_tensors", {path, tensors}, status)) return;
  const auto list = weir::capi::TensorsOf(path);
  if (list.ok()) SetBuffer(*list, tensors);
  SetStatus(status, list.status());
}

TF_Tensor* weir_checkpoint_read(const char* path, const char* name, TF_Status* status) {
  if (!HaveAll("weir_checkpoint_read", {path, name}, status)) return nullptr;
  const auto tensor = weir::capi::ReadTensor(path, name);
  SetStatus(status, tensor.status());
  return tensor.ok() ? *tensor : nullptr;
}
