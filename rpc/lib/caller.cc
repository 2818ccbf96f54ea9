#include "weir/rpc/lib/caller.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/server_context.h>

#include <string>

#include "absl/strings/match.h"

namespace weir::rpc {

absl::StatusOr<std::shared_ptr<Client>> CallerOf(const grpc::ServerContextBase& context,
                                                 const Clients* clients) {
  if (clients == nullptr) return nullptr;
  ClientCredentials credentials;
  constexpr absl::string_view kBearer = "bearer ";
  const auto header = context.client_metadata().find("authorization");
  if (header != context.client_metadata().end()) {
    const absl::string_view value(header->second.data(), header->second.size());
    if (!absl::StartsWithIgnoreCase(value, kBearer) || value.size() == kBearer.size())
      return absl::UnauthenticatedError("Expected the metadata 'authorization: Bearer TOKEN'");
    credentials.token = std::string(value.substr(kBearer.size()));
  }
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && peer->IsPeerAuthenticated()) {
    for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
      for (const grpc::string_ref& name : peer->FindPropertyValues(property))
        credentials.certificate_names.emplace_back(name.data(), name.size());
    }
  }
  return clients->Identify(credentials);
}

}  // namespace weir::rpc
