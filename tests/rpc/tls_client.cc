#include "weir/tests/rpc/tls_client.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <csignal>

namespace weir::rpc {

using weir::testing::Certificate;

namespace {

X509* ParseCertificate(const std::string& text) {
  BIO* const bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

void Use(const Certificate& own, SSL_CTX* context) {
  X509* const certificate = ParseCertificate(own.certificate);
  SSL_CTX_use_certificate(context, certificate);
  X509_free(certificate);
  BIO* const bio = BIO_new_mem_buf(own.key.data(), static_cast<int>(own.key.size()));
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_PrivateKey(context, key);
  EVP_PKEY_free(key);
  BIO_free(bio);
}

}  // namespace

struct TlsConnection::Impl {
  explicit Impl(int port) : connection(port) {}

  RawConnection connection;
  SSL_CTX* context = nullptr;
  SSL* tls = nullptr;
  bool is_connected = false;
};

TlsConnection::TlsConnection(int port, const Certificate& authority, const Certificate* own)
    : impl_(std::make_unique<Impl>(port)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that the server has closed
  impl_->context = SSL_CTX_new(TLS_client_method());
  X509* const trusted = ParseCertificate(authority.certificate);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(impl_->context), trusted);
  X509_free(trusted);
  SSL_CTX_set_verify(impl_->context, SSL_VERIFY_PEER, nullptr);
  if (own != nullptr) Use(*own, impl_->context);
  impl_->tls = SSL_new(impl_->context);
  SSL_set_fd(impl_->tls, impl_->connection.fd());
  impl_->is_connected = SSL_connect(impl_->tls) == 1;
}

TlsConnection::~TlsConnection() {
  if (impl_->is_connected) SSL_shutdown(impl_->tls);
  SSL_free(impl_->tls);
  SSL_CTX_free(impl_->context);
}

void TlsConnection::Send(const std::string& text) {
  if (impl_->is_connected) SSL_write(impl_->tls, text.data(), static_cast<int>(text.size()));
}

std::string TlsConnection::ReadAll() {
  std::string response;
  if (!impl_->is_connected) return response;
  char buffer[4096];
  for (int n; (n = SSL_read(impl_->tls, buffer, sizeof(buffer))) > 0;)
    response.append(buffer, static_cast<size_t>(n));
  return response;
}

}  // namespace weir::rpc
