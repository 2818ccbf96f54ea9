#ifndef WEIR_TESTS_RPC_CERTIFICATES_H_
#define WEIR_TESTS_RPC_CERTIFICATES_H_

#include <string>

namespace weir::testing {

// A certificate and its private key, in PEM format.
struct Certificate {
  std::string certificate, key;
};

// Creates a certificate authority, valid for a day, with a new key.
Certificate MakeAuthority();
// Creates a certificate for 127.0.0.1 with this common name, signed by the authority.
Certificate MakeCertificate(const Certificate& authority, const char* name = "test");

}  // namespace weir::testing

#endif  // WEIR_TESTS_RPC_CERTIFICATES_H_
