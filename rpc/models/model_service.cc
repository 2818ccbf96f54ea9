#include "weir/rpc/models/model_service.h"

#include <utility>

#include "weir/proto/get_model_status.pb.h"
#include "weir/proto/model_management.pb.h"
#include "weir/rpc/models/model_messages.h"

namespace weir::rpc {

namespace {

using State = proto::serving::ModelVersionStatus;

State::State StateToProto(serving::VersionState state) {
  switch (state) {
    case serving::VersionState::kUnknown:
      return State::UNKNOWN;
    case serving::VersionState::kStart:
      return State::START;
    case serving::VersionState::kLoading:
      return State::LOADING;
    case serving::VersionState::kAvailable:
      return State::AVAILABLE;
    case serving::VersionState::kUnloading:
      return State::UNLOADING;
    case serving::VersionState::kEnd:
      return State::END;
  }
  return State::UNKNOWN;
}

void StatusToProto(const absl::Status& from, proto::serving::StatusProto* to) {
  to->set_error_code(static_cast<proto::error::Code>(from.raw_code()));
  to->set_error_message(std::string(from.message()));
}

}  // namespace

absl::Status ModelService::GetModelStatus(const proto::serving::GetModelStatusRequest& request,
                                          Call& call,
                                          proto::serving::GetModelStatusResponse* response) {
  if (!request.has_model_spec()) return InvalidArgument("Missing ModelSpec");
  WEIR_ASSIGN_OR_RETURN(const std::vector<serving::VersionStatus> versions,
                        models_.Status(SpecFromProto(request.model_spec())));
  call.model = request.model_spec().name();
  for (const serving::VersionStatus& version : versions) {
    State* status = response->add_model_version_status();
    status->set_version(version.version);
    status->set_state(StateToProto(version.state));
    StatusToProto(version.error, status->mutable_status());
  }
  return absl::OkStatus();
}

absl::Status ModelService::HandleReloadConfigRequest(
    const proto::serving::ReloadConfigRequest& request, Call&,
    proto::serving::ReloadConfigResponse* response) {
  if (reload_ == nullptr)
    return absl::PermissionDeniedError("This server does not let clients replace its models");
  WEIR_ASSIGN_OR_RETURN(std::vector<serving::ModelConfig> models,
                        serving::ModelConfigsFromProto(request.config()));
  WEIR_RETURN_IF_ERROR(reload_(std::move(models)));
  StatusToProto(absl::OkStatus(), response->mutable_status());
  return absl::OkStatus();
}

}  // namespace weir::rpc
