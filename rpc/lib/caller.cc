#include "weir/rpc/lib/caller.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/server_context.h>

#include <string>

namespace weir::rpc {

absl::StatusOr<std::shared_ptr<Client>> CallerOf(const grpc::ServerContextBase& context,
                                                 const Clients* clients) {
  if (clients == nullptr) return nullptr;
  ClientCredentials credentials;
  const auto header = context.client_metadata().find("authorization");
  if (header != context.client_metadata().end()) {
    WEIR_ASSIGN_OR_RETURN(credentials.token,
                          BearerToken({header->second.data(), header->second.size()}));
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
