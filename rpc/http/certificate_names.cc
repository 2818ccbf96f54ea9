#include "weir/rpc/http/certificate_names.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

#include <memory>

namespace weir::rpc {

namespace {

std::string TextOf(const ASN1_STRING* text) {
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
}

// "127.0.0.1" or "::1"; "" if the bytes are no address.
std::string AddressOf(const ASN1_OCTET_STRING* bytes) {
  const int length = ASN1_STRING_length(bytes);
  if (length != 4 && length != 16) return "";
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text, sizeof(text));
  return text;
}

std::string NameOf(const GENERAL_NAME& name) {
  switch (name.type) {
    case GEN_DNS:
    case GEN_EMAIL:
    case GEN_URI:
      return TextOf(name.d.ia5);
    case GEN_IPADD:
      return AddressOf(name.d.iPAddress);
    default:
      return "";
  }
}

void AddAlternativeNames(const X509* certificate, std::vector<std::string>* names) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  if (all == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    std::string name = NameOf(*sk_GENERAL_NAME_value(all.get(), i));
    if (!name.empty()) names->push_back(std::move(name));
  }
}

void AddCommonNames(const X509* certificate, std::vector<std::string>* names) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;) {
    unsigned char* utf8 = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
    if (size < 0) continue;
    names->emplace_back(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
    OPENSSL_free(utf8);
  }
}

}  // namespace

std::vector<std::string> CertificateNames(const SSL* connection) {
  std::vector<std::string> names;
  const X509* const certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr) return names;
  AddAlternativeNames(certificate, &names);
  AddCommonNames(certificate, &names);
  return names;
}

}  // namespace weir::rpc
