#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/rpc/client.h"
#include "weir/rpc/server.h"
#include "weir/tests/rpc/certificates.h"

namespace weir::rpc {
namespace {

using testing::Certificate;
using testing::MakeAuthority;
using testing::MakeCertificate;

class TlsTest : public ::testing::Test {
 protected:
  void Serve(const std::string& client_authority = "") {
    auto server = Server::Start(
        {.certificate = own_.certificate, .key = own_.key, .client_authority = client_authority});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Returns the result for a client with these options.
  absl::Status Run(ClientOptions options) {
    options.connect_timeout = std::chrono::milliseconds(2000);
    EnableGrpcTargets(options);
    Graph g;
    const Output two = Const(g, 2.f);
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, {.target = server_->target()}));
    WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run({two}));
    EXPECT_EQ(out[0].scalar<float>(), 2);
    return absl::OkStatus();
  }

  const Certificate authority_ = MakeAuthority(), other_ = MakeAuthority();
  const Certificate own_ = MakeCertificate(authority_);
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, ClientVerifiesTheServer) {
  Serve();
  const absl::Status status = Run({.server_authority = authority_.certificate});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(absl::IsUnavailable(Run({.server_authority = other_.certificate})));
  EXPECT_TRUE(absl::IsUnavailable(Run({})));  // not encrypted
}

TEST_F(TlsTest, ServerVerifiesTheClient) {
  Serve(authority_.certificate);
  const Certificate client = MakeCertificate(authority_), stranger = MakeCertificate(other_);
  const auto run = [&](const Certificate& certificate) {
    return Run({.server_authority = authority_.certificate,
                .certificate = certificate.certificate,
                .key = certificate.key});
  };
  const absl::Status status = run(client);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_FALSE(run(stranger).ok());
  EXPECT_FALSE(Run({.server_authority = authority_.certificate}).ok());
}

TEST_F(TlsTest, CertificatesAreReplaced) {
  Serve();
  EXPECT_TRUE(Run({.server_authority = authority_.certificate}).ok());
  const Certificate next = MakeCertificate(other_);
  EXPECT_TRUE(absl::IsInvalidArgument(
      server_->ReplaceTlsFiles({.certificate = next.certificate, .key = own_.key})));
  EXPECT_TRUE(absl::IsInvalidArgument(server_->ReplaceTlsFiles({.certificate = "x", .key = "y"})));
  EXPECT_TRUE(absl::IsInvalidArgument(server_->ReplaceTlsFiles(
      {.certificate = own_.certificate, .key = own_.key, .client_authority = own_.certificate})));
  EXPECT_TRUE(Run({.server_authority = authority_.certificate}).ok());
  const absl::Status replaced =
      server_->ReplaceTlsFiles({.certificate = next.certificate, .key = next.key});
  EXPECT_TRUE(replaced.ok()) << replaced;
  EXPECT_TRUE(Run({.server_authority = other_.certificate}).ok());
  EXPECT_TRUE(absl::IsUnavailable(Run({.server_authority = authority_.certificate})));
}

TEST_F(TlsTest, InvalidCertificatesAreRefused) {
  const auto start = [](const std::string& certificate, const std::string& key,
                        const std::string& authority) {
    return Server::Start({.certificate = certificate, .key = key, .client_authority = authority})
        .status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(start("x", "y", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(start(own_.certificate, "y", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(start(own_.certificate, own_.key, "z")));
}

}  // namespace
}  // namespace weir::rpc
