#ifndef WEIR_RPC_HTTP_CERTIFICATE_NAMES_H_
#define WEIR_RPC_HTTP_CERTIFICATE_NAMES_H_

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace weir::rpc {

// Returns the names in the certificate of a connection's peer, which OpenSSL has verified: first
// its subject alternative names (DNS names, addresses of mail, URIs, IP addresses as text), then
// its common names. Empty if the peer has shown no certificate.
std::vector<std::string> CertificateNames(const SSL* connection);

}  // namespace weir::rpc

#endif  // WEIR_RPC_HTTP_CERTIFICATE_NAMES_H_
