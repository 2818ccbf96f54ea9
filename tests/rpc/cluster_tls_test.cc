// Clusters under TLS: who is admitted, and who is refused.

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/rpc/client.h"
#include "weir/rpc/lib/clients.h"
#include "weir/rpc/lib/listener.h"
#include "weir/rpc/server.h"
#include "weir/session/session.h"
#include "weir/tests/rpc/certificates.h"

namespace weir::rpc {
namespace {

using testing::Certificate;
using ::testing::HasSubstr;
using testing::MakeAuthority;
using testing::MakeCertificate;

const TaskName kPs = {"ps", 0}, kWorker = {"worker", 0};

// Its port is free again when this returns.
int FreePort() { return (*Listener::Bind("127.0.0.1", 0))->port(); }

class ClusterTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_ = *ClusterSpec::Parse(
        absl::StrCat("ps|127.0.0.1:", FreePort(), ",worker|127.0.0.1:", FreePort()));
  }

  ServerOptions Plain(const TaskName& name) const {
    ServerOptions options;
    const std::string address = cluster_.AddressOf(name);
    options.port = std::stoi(address.substr(address.rfind(':') + 1));
    options.cluster = ClusterOptions{cluster_, name};
    return options;
  }
  // With a certificate of this name. `mutual`: demands certificates.
  ServerOptions WithTls(const TaskName& name, const Certificate& own, bool mutual = true) const {
    ServerOptions options = Plain(name);
    options.certificate = own.certificate;
    options.key = own.key;
    options.cluster->authority = authority_.certificate;
    if (mutual) options.client_authority = authority_.certificate;
    return options;
  }
  Server& Start(const ServerOptions& options) {
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << server.status();
    return **servers_.insert(servers_.end(), *std::move(server));
  }

  // Runs a step on the ps and the worker, whose master is the worker.
  absl::Status Run(const Server& worker) {
    EnableGrpcTargets(client_);
    Graph g;
    Output x;
    {
      const DeviceScope on(g, "/job:ps/task:0");
      x = Identity(Const(g, 2.f)) * 2.f;
    }
    const Output y = x + 1.f;
    WEIR_ASSIGN_OR_RETURN(Session session,
                          Session::Create(g, {.operation_timeout = std::chrono::seconds(10),
                                              .target = worker.target()}));
    WEIR_ASSIGN_OR_RETURN(const Tensors values, session.Run({y}));
    EXPECT_EQ(values[0].scalar<float>(), 5.f);
    return absl::OkStatus();
  }
  void UseTls(const Certificate& own) {
    client_.server_authority = authority_.certificate;
    client_.certificate = own.certificate;
    client_.key = own.key;
  }

  const Certificate authority_ = MakeAuthority(), other_ = MakeAuthority();
  const Certificate own_ = MakeCertificate(authority_);
  ClusterSpec cluster_;
  ClientOptions client_;
  std::vector<std::unique_ptr<Server>> servers_;
};

TEST_F(ClusterTlsTest, TasksAuthenticateEachOther) {
  Start(WithTls(kPs, MakeCertificate(authority_, "ps")));
  const Server& worker = Start(WithTls(kWorker, MakeCertificate(authority_, "worker")));
  UseTls(own_);
  const absl::Status status = Run(worker);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClusterTlsTest, ATaskWithoutTlsIsRefusedByName) {
  Start(Plain(kPs));
  const Server& worker = Start(WithTls(kWorker, own_));
  UseTls(own_);
  const absl::Status status = Run(worker);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("/job:ps/replica:0/task:0 at 127.0.0.1:"));
  EXPECT_THAT(status.message(), HasSubstr("speaks no TLS"));
}

TEST_F(ClusterTlsTest, ATaskOfAnotherAuthorityIsRefusedByName) {
  Start(WithTls(kPs, MakeCertificate(other_)));
  const Server& worker = Start(WithTls(kWorker, own_));
  UseTls(own_);
  const absl::Status status = Run(worker);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("The certificate of /job:ps/replica:0/task:0"));
}

// The certificate is for 127.0.0.1.
TEST_F(ClusterTlsTest, ATaskAtAnotherNameIsRefused) {
  ServerOptions ps = WithTls(kPs, own_);
  cluster_ =
      *ClusterSpec::Parse(absl::StrCat("ps|localhost:", ps.port, ",worker|127.0.0.1:", FreePort()));
  ps.cluster->cluster = cluster_;
  Start(ps);
  const Server& worker = Start(WithTls(kWorker, own_));
  UseTls(own_);
  const absl::Status status = Run(worker);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("localhost"));
}

// A master without a certificate cannot begin a step on a task that demands one.
TEST_F(ClusterTlsTest, AMasterWithoutTlsIsNotAdmitted) {
  Start(WithTls(kPs, own_));
  const Server& worker = Start(Plain(kWorker));
  const absl::Status status = Run(worker);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;  // it waits for a task that answers
}

TEST_F(ClusterTlsTest, StepsAreTakenFromNamedMastersOnly) {
  const auto start_ps = [&](const char* clients) {
    servers_.clear();
    ServerOptions ps = WithTls(kPs, MakeCertificate(authority_, "ps"));
    ps.clients = *Clients::Parse("clients", clients);
    Start(ps);
    return &Start(WithTls(kWorker, MakeCertificate(authority_, "worker")));
  };
  UseTls(own_);
  absl::Status status = Run(*start_ps("master certificate=worker sessions=2"));
  EXPECT_TRUE(status.ok()) << status;
  status = Run(*start_ps("somebody certificate=another"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("/job:ps/replica:0/task:0"));
}

TEST_F(ClusterTlsTest, TasksMayShowTokens) {
  // Of the token "secret".
  constexpr char kClients[] =
      "tasks token-sha256=2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
  const auto start = [&](const TaskName& name, const std::string& token) -> Server& {
    ServerOptions options = WithTls(name, own_, /*mutual=*/false);
    options.clients = *Clients::Parse("clients", kClients);
    options.cluster->token = token;
    return Start(options);
  };
  client_.server_authority = authority_.certificate;
  client_.token = "secret";
  start(kPs, "secret");
  absl::Status status = Run(start(kWorker, "secret"));
  EXPECT_TRUE(status.ok()) << status;
  servers_.pop_back();
  status = Run(start(kWorker, "wrong"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
}

TEST_F(ClusterTlsTest, CertificatesAreReplaced) {
  Server& ps = Start(WithTls(kPs, own_));
  Server& worker = Start(WithTls(kWorker, own_));
  UseTls(own_);
  ASSERT_TRUE(Run(worker).ok());
  const Certificate next = MakeCertificate(authority_, "next");
  for (Server* server : {&ps, &worker}) {
    const absl::Status replaced =
        server->ReplaceTlsFiles({.certificate = next.certificate,
                                 .key = next.key,
                                 .client_authority = authority_.certificate});
    ASSERT_TRUE(replaced.ok()) << replaced;
  }
  const absl::Status status = Run(worker);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClusterTlsTest, ATaskNeedsAnAuthority) {
  ServerOptions options = WithTls(kPs, own_, /*mutual=*/false);
  options.cluster->authority = "";
  const absl::Status status = Server::Start(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("--tls-server-ca"));
}

}  // namespace
}  // namespace weir::rpc
