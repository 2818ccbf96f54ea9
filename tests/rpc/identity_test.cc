#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/certificates.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/rpc/client.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/server.h"

namespace weir::rpc {
namespace {

using testing::Certificate;
using ::testing::HasSubstr;
using testing::MakeAuthority;
using testing::MakeCertificate;

// The tokens are "sesame" and "mellon".
constexpr char kClients[] =
    "alice token-sha256=d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272 "
    "sessions=2\n"
    "bob token-sha256=83006a438f94daf3a7dd9c7b27f70c15e443c0ca55d58fcdfa76899ae466b455\n"
    "carol certificate=carol.example.com\n";

// A server that knows its clients, and a variable that each of them can set and read.
class IdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto clients = Clients::Parse("clients", kClients);
    ASSERT_TRUE(clients.ok()) << clients.status();
    clients_ = *std::move(clients);
    Serve({.clients = clients_});
    v_ = GetVariable(g_, "v", {}, Constant(7));
    init_ = GlobalVariablesInitializer(g_);
  }
  void Serve(ServerOptions options) {
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  absl::StatusOr<Session> Open(const std::string& token) {
    return Open(ClientOptions{.token = token});
  }
  absl::StatusOr<Session> Open(ClientOptions options) {
    options.connect_timeout = std::chrono::seconds(5);
    EnableGrpcTargets(options);
    return Session::Create(g_, {.target = server_->target()});
  }

  std::shared_ptr<Clients> clients_;
  std::unique_ptr<Server> server_;
  Graph g_;
  Variable v_;
  Operation init_;
};

TEST_F(IdentityTest, ClientsHaveStateOfTheirOwn) {
  auto alice = Open("sesame"), other = Open("sesame"), bob = Open("mellon");
  ASSERT_TRUE(alice.ok() && other.ok() && bob.ok()) << alice.status() << bob.status();
  ASSERT_TRUE(alice->Run(init_).ok());
  EXPECT_TRUE(other->Run({v_.value()}).ok()) << "the client's sessions share it";
  EXPECT_TRUE(absl::IsFailedPrecondition(bob->Run({v_.value()}).status()));
  ASSERT_TRUE(bob->Run(init_).ok());
  alice->Reset();
  EXPECT_TRUE(absl::IsAborted(other->Run({v_.value()}).status()));
  EXPECT_TRUE(bob->Run({v_.value()}).ok()) << "neither closed nor emptied by another's Reset";
}

TEST_F(IdentityTest, UnknownCallersAreUnauthenticated) {
  EXPECT_TRUE(absl::IsUnauthenticated(Open("Sesame").status()));
  const absl::Status status = Open("").status();
  EXPECT_TRUE(absl::IsUnauthenticated(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("authorization: Bearer"));
  EXPECT_TRUE(absl::IsUnauthenticated(GetServerStatus(server_->target()).status()));
  EXPECT_TRUE(GetServerStatus(server_->target(), {.token = "mellon"}).ok());
}

TEST_F(IdentityTest, QuotaOfSessionsIsTheClients) {
  auto first = Open("sesame"), second = Open("sesame");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status third = Open("sesame").status();
  EXPECT_TRUE(absl::IsResourceExhausted(third));
  EXPECT_THAT(std::string(third.message()),
              HasSubstr("Client alice has reached its quota of 2 sessions"));
  EXPECT_TRUE(Open("mellon").ok());
  first = absl::CancelledError();  // closes it
  EXPECT_TRUE(Open("sesame").ok());
}

TEST_F(IdentityTest, CertificatesIdentifyClients) {
  const Certificate authority = MakeAuthority(), own = MakeCertificate(authority);
  Serve({.certificate = own.certificate,
         .key = own.key,
         .client_authority = authority.certificate,
         .clients = clients_});
  const auto with = [&](const char* name) {
    const Certificate certificate = MakeCertificate(authority, name);
    return Open(ClientOptions{.server_authority = authority.certificate,
                              .certificate = certificate.certificate,
                              .key = certificate.key});
  };
  auto carol = with("carol.example.com");
  ASSERT_TRUE(carol.ok()) << carol.status();
  EXPECT_TRUE(carol->Run(init_).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(with("eve.example.com").status()));
}

}  // namespace
}  // namespace weir::rpc
