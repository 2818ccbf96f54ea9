#ifndef WEIR_TESTS_RPC_TLS_CLIENT_H_
#define WEIR_TESTS_RPC_TLS_CLIENT_H_

#include <memory>
#include <string>

#include "weir/tests/rpc/certificates.h"
#include "weir/tests/rpc/http_client.h"

namespace weir::rpc {

// A connection to 127.0.0.1 under TLS, for tests.
class TlsConnection {
 public:
  // Trusts servers that `authority` has signed. Shows the certificate `own`, unless it is null.
  TlsConnection(int port, const weir::testing::Certificate& authority,
                const weir::testing::Certificate* own = nullptr);
  // Closes the connection, as a client that ends properly does.
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // Does nothing if there is no connection.
  void Send(const std::string& text);
  // Reads until the server closes the connection; "" if there is none.
  std::string ReadAll();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::rpc

#endif  // WEIR_TESTS_RPC_TLS_CLIENT_H_
