#ifndef WEIR_RPC_LIB_TLS_FILES_H_
#define WEIR_RPC_LIB_TLS_FILES_H_

#include <string>

namespace weir::rpc {

// What a server needs for TLS, in PEM format. With `client_authority`, only clients with
// certificates signed by that authority are accepted.
struct TlsFiles {
  std::string certificate = {};       // the server's
  std::string key = {};               // of the certificate
  std::string client_authority = {};  // empty: clients need no certificate
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_TLS_FILES_H_
