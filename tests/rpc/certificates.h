#ifndef WEIR_TESTS_RPC_CERTIFICATES_H_
#define WEIR_TESTS_RPC_CERTIFICATES_H_

#include <string>

namespace weir::testing {

// A certificate and its private key, in PEM format.
struct Certificate {
  std::string certificate, key;
};

// An authority, valid for a day, with a new key.
Certificate MakeAuthority();
// Signed by the authority, for 127.0.0.1.
Certificate MakeCertificate(const Certificate& authority);

}  // namespace weir::testing

#endif  // WEIR_TESTS_RPC_CERTIFICATES_H_
