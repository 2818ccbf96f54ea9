#include "weir/rpc/lib/credentials.h"

#include <grpc/grpc_security.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <random>

namespace weir::rpc {

namespace {

grpc_ssl_client_certificate_request_type ClientRequest(const TlsFiles& files) {
  return files.client_authority.empty()
             ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
             : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
}

}  // namespace

// gRPC has no function that checks certificates, so this starts a server, at a name that nobody
// knows.
absl::StatusOr<std::shared_ptr<TlsCredentials>> TlsCredentials::Create(const TlsFiles& files) {
  if (files.certificate.empty() || files.key.empty())
    return InvalidArgument("TLS needs both a certificate and its key");
  const std::shared_ptr<TlsCredentials> probe(new TlsCredentials(files));
  std::random_device random;
  grpc::CallbackGenericService service;  // gRPC refuses servers without a service
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  builder.AddListeningPort(absl::StrCat("unix-abstract:weir-", random(), "-", random()), probe);
  if (builder.BuildAndStart() == nullptr)
    return InvalidArgument("The certificate, the key or the client authority is invalid");
  return std::shared_ptr<TlsCredentials>(new TlsCredentials(files));
}

absl::Status TlsCredentials::Replace(const TlsFiles& files) {
  WEIR_RETURN_IF_ERROR(Create(files).status());
  const MutexLock lock(mutex_);
  if (files.client_authority.empty() != files_.client_authority.empty())
    return InvalidArgument("The server cannot begin, or cease, to require client certificates");
  files_ = files;
  is_new_ = true;
  return absl::OkStatus();
}

grpc_ssl_server_certificate_config* TlsCredentials::TakeNewConfig() {
  const MutexLock lock(mutex_);
  if (!is_new_) return nullptr;
  is_new_ = false;
  const grpc_ssl_pem_key_cert_pair pair = {files_.key.c_str(), files_.certificate.c_str()};
  // gRPC requires an authority, also if it does not ask for client certificates.
  const std::string& authority =
      files_.client_authority.empty() ? files_.certificate : files_.client_authority;
  return grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
}

int TlsCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  const auto fetch = [](void* self, grpc_ssl_server_certificate_config** config) {
    *config = static_cast<TlsCredentials*>(self)->TakeNewConfig();
    return *config == nullptr ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED
                              : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  };
  grpc_ssl_client_certificate_request_type request;
  {
    const MutexLock lock(mutex_);
    request = ClientRequest(files_);
  }
  grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(request, fetch, this));
  const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
  grpc_server_credentials_release(credentials);
  return port;
}

}  // namespace weir::rpc
