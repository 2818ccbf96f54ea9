#include "weir/tests/rpc/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <memory>

namespace weir::testing {

namespace {

template <class T>
T* Need(T* made) {
  if (made == nullptr) std::abort();
  return made;
}

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <class T>
using Ptr = std::unique_ptr<T, Free>;

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

Ptr<BIO> Reader(const std::string& text) {
  return Ptr<BIO>(Need(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))));
}

void AddExtension(X509* certificate, int kind, const char* value) {
  const Ptr<X509_EXTENSION> extension(Need(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value)));
  X509_add_ext(certificate, extension.get(), -1);
}

// Creates a certificate with its own key, signed with the issuer's key, or self-signed if there is
// no issuer.
Certificate Make(const char* name, long serial, const Certificate* issuer) {
  const Ptr<EVP_PKEY> key(Need(EVP_EC_gen("P-256")));
  const Ptr<X509> made(Need(X509_new()));
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  if (issuer == nullptr) {
    AddExtension(made.get(), NID_basic_constraints, "critical,CA:TRUE");
    X509_set_issuer_name(made.get(), subject);
    X509_sign(made.get(), key.get(), EVP_sha256());
  } else {
    AddExtension(made.get(), NID_subject_alt_name, "IP:127.0.0.1");
    const Ptr<BIO> certificate = Reader(issuer->certificate), private_key = Reader(issuer->key);
    const Ptr<X509> authority(
        Need(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr)));
    const Ptr<EVP_PKEY> authority_key(
        Need(PEM_read_bio_PrivateKey(private_key.get(), nullptr, nullptr, nullptr)));
    X509_set_issuer_name(made.get(), X509_get_subject_name(authority.get()));
    X509_sign(made.get(), authority_key.get(), EVP_sha256());
  }
  const Ptr<BIO> certificate(Need(BIO_new(BIO_s_mem()))), private_key(Need(BIO_new(BIO_s_mem())));
  PEM_write_bio_X509(certificate.get(), made.get());
  PEM_write_bio_PrivateKey(private_key.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {Contents(certificate.get()), Contents(private_key.get())};
}

}  // namespace

Certificate MakeAuthority() { return Make("Weir's test authority", 1, nullptr); }
Certificate MakeCertificate(const Certificate& authority, const char* name) {
  return Make(name, 2, &authority);
}

}  // namespace weir::testing
