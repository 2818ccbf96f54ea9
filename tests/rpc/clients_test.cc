#include "weir/rpc/lib/clients.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

using testing::HasSubstr;

// printf %s sesame | sha256sum.
constexpr char kSesame[] = "d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";

std::unique_ptr<Clients> Parse(absl::string_view text) {
  auto clients = Clients::Parse("clients", text);
  EXPECT_TRUE(clients.ok()) << clients.status();
  return clients.ok() ? *std::move(clients) : nullptr;
}

std::string NameOf(const Clients& clients, const ClientCredentials& credentials) {
  const auto client = clients.Identify(credentials);
  return client.ok() ? (*client)->name() : absl::StatusCodeToString(client.status().code());
}

TEST(Clients, AreIdentifiedByTokenOrCertificate) {
  const auto clients =
      Parse(absl::StrCat("# who may use this server\n\nalice token-sha256=", kSesame,
                         " sessions=2\nbob\tcertificate=bob.example.com # Bob\n"));
  ASSERT_NE(clients, nullptr);
  EXPECT_EQ(NameOf(*clients, {.token = "sesame"}), "alice");
  EXPECT_EQ(NameOf(*clients, {.certificate_names = {"x", "bob.example.com"}}), "bob");
  EXPECT_EQ(NameOf(*clients, {.token = "Sesame"}), "UNAUTHENTICATED");
  EXPECT_EQ(NameOf(*clients, {.certificate_names = {"eve.example.com"}}), "UNAUTHENTICATED");
  EXPECT_EQ(NameOf(*clients, {}), "UNAUTHENTICATED");
  // A wrong token is not made up for by a certificate.
  EXPECT_EQ(NameOf(*clients, {.token = "x", .certificate_names = {"bob.example.com"}}),
            "UNAUTHENTICATED");
}

TEST(Clients, EveryMistakeHasItsLine) {
  const absl::Status status =
      Clients::Parse("clients.txt",
                     absl::StrCat("alice token-sha256=", kSesame, "\n",
                                  "bob\n"
                                  "alice certificate=a\n"
                                  "carol certificate=c sesions=3 calls=0 request-mb=much\n"
                                  "dave token-sha256=sesame\n"
                                  "erin certificate=c token-sha256=",
                                  kSesame, "\n",
                                  "sessions=3\n"
                                  "frank certificate= quota\n"))
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "clients.txt:2: client 'bob' needs token-sha256=HEX or certificate=NAME\n"
            "clients.txt:3: there is already a client 'alice'; expected another name\n"
            "clients.txt:4: unknown key 'sesions'; expected token-sha256, certificate, sessions, "
            "calls, request-mb, response-mb, memory-mb or cpu-seconds\n"
            "clients.txt:4: calls=0: expected a whole number from 1 to 1000000000\n"
            "clients.txt:4: request-mb=much: expected a whole number from 1 to 1000000000\n"
            "clients.txt:5: token-sha256 has 6 characters; expected 64 hexadecimal digits\n"
            "clients.txt:6: client 'carol' has the same certificate name\n"
            "clients.txt:6: client 'alice' has the same token\n"
            "clients.txt:7: expected the name of a client before 'sessions=3'\n"
            "clients.txt:8: expected certificate=NAME\n"
            "clients.txt:8: expected KEY=VALUE instead of 'quota'");
  EXPECT_FALSE(Clients::Parse("clients.txt", "# nobody\n").ok());
}

TEST(Clients, MessagesDoNotContainMisplacedSecrets) {
  const std::string secret = "8f0c3b7d9e2a4f6182c5d0e7";
  for (const std::string& text : {"alice " + secret, "alice " + secret + "=1",
                                  "alice token-sha256=" + secret, "alice sessions=" + secret}) {
    const absl::Status status = Clients::Parse("clients", text).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr(secret))) << text;
  }
}

TEST(Clients, CallsCountWhileTheyLast) {
  const auto clients = Parse("a certificate=a calls=2 request-mb=3");
  ASSERT_NE(clients, nullptr);
  const auto client = *clients->Identify({.certificate_names = {"a"}});
  constexpr int64_t kMb = 1 << 20;
  {
    Client::Use first(client), second(client), third(client);
    EXPECT_TRUE(first.Start(2 * kMb).ok());
    const absl::Status large = second.Start(kMb + 1);
    EXPECT_TRUE(absl::IsResourceExhausted(large));
    EXPECT_THAT(std::string(large.message()),
                HasSubstr("Client a has reached its quota of 3 MB of requests in progress"));
    EXPECT_TRUE(second.Start(kMb).ok());
    const absl::Status many = third.Start(0);
    EXPECT_TRUE(absl::IsResourceExhausted(many));
    EXPECT_EQ(many.message(), "Client a has reached its quota of 2 concurrent calls");
  }
  Client::Use next(client);
  EXPECT_TRUE(next.Start(3 * kMb).ok());
}

TEST(Clients, ResponsesCountUntilTheyAreRead) {
  const auto clients = Parse("a certificate=a response-mb=3");
  ASSERT_NE(clients, nullptr);
  const auto client = *clients->Identify({.certificate_names = {"a"}});
  constexpr int64_t kMb = 1 << 20;
  {
    Client::Use first(client), second(client);
    EXPECT_TRUE(first.StartResponse(2 * kMb).ok());
    const absl::Status large = second.StartResponse(kMb + 1);
    EXPECT_TRUE(absl::IsResourceExhausted(large));
    EXPECT_EQ(large.message(),
              "Client a has reached its quota of 3 MB of responses that it has not read: this one "
              "has 1048577 bytes, the others have 2097152");
    EXPECT_TRUE(second.StartResponse(kMb).ok());
  }
  EXPECT_TRUE(Client::Use(client).StartResponse(3 * kMb).ok());
}

TEST(Clients, ProcessorTimeIsPaidOffAtTheRateOfTheQuota) {
  const auto clients = Parse("a certificate=a cpu-seconds=600\nb certificate=b");
  ASSERT_NE(clients, nullptr);
  EXPECT_TRUE(clients->HaveCpuQuotas());
  const auto client = *clients->Identify({.certificate_names = {"a"}});
  const auto start = [](const std::shared_ptr<Client>& of) { return Client::Use(of).Start(0); };
  client->ChargeCpu(599);
  EXPECT_TRUE(start(client).ok());
  client->ChargeCpu(5);  // half a second pays off 5 seconds
  const absl::Status status = start(client);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("quota of 600 CPU seconds per minute"));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_TRUE(start(client).ok());

  const auto unlimited = *clients->Identify({.certificate_names = {"b"}});
  unlimited->ChargeCpu(1e9);
  EXPECT_TRUE(start(unlimited).ok());
}

TEST(Clients, ReplacedListKeepsClientsThatAreInBoth) {
  const auto clients = Parse("a certificate=a\nb certificate=b");
  ASSERT_NE(clients, nullptr);
  const auto a = *clients->Identify({.certificate_names = {"a"}});
  EXPECT_FALSE(clients->Replace("clients", "a certificate=").ok());
  EXPECT_EQ(NameOf(*clients, {.certificate_names = {"b"}}), "b")
      << "an invalid list changes nothing";
  ASSERT_TRUE(clients->Replace("clients", "a certificate=other sessions=7").ok());
  EXPECT_EQ(*clients->Identify({.certificate_names = {"other"}}), a);
  EXPECT_EQ(a->quotas().sessions, 7);
  EXPECT_EQ(NameOf(*clients, {.certificate_names = {"b"}}), "UNAUTHENTICATED");
}

}  // namespace
}  // namespace weir::rpc
