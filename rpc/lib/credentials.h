#ifndef WEIR_RPC_LIB_CREDENTIALS_H_
#define WEIR_RPC_LIB_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/tls_files.h"

struct grpc_ssl_server_certificate_config;

namespace weir::rpc {

// The credentials of a server, which can be replaced while it runs. gRPC's C++ interface has no
// such credentials; this class gives its C interface a callback, which it calls for each
// connection.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  // Returns INVALID_ARGUMENT if the files are not a certificate, its key and an authority.
  static absl::StatusOr<std::shared_ptr<TlsCredentials>> Create(const TlsFiles& files);

  // See Server::ReplaceTlsFiles.
  absl::Status Replace(const TlsFiles& files);

 private:
  explicit TlsCredentials(const TlsFiles& files) : files_(files) {}
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  // Returns the files as gRPC's configuration; null if gRPC has them.
  grpc_ssl_server_certificate_config* TakeNewConfig();

  Mutex mutex_;
  TlsFiles files_ ABSL_GUARDED_BY(mutex_);
  bool is_new_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CREDENTIALS_H_
