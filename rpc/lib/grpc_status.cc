#include "weir/rpc/lib/grpc_status.h"

namespace weir::rpc {

namespace {

// Peers accept 8 KB of headers, in which non-ASCII bytes take three bytes each.
constexpr size_t kMaxMessageBytes = 2048;

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message());
  if (message.size() > kMaxMessageBytes) {
    const absl::string_view all = status.message();
    message = absl::StrCat(all.substr(0, kMaxMessageBytes / 2), " ... ",
                           all.substr(all.size() - kMaxMessageBytes / 2));
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), message);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace weir::rpc
