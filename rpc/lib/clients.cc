#include "weir/rpc/lib/clients.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cmath>
#include <ratio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weir::rpc {

namespace {

constexpr int64_t kBytesPerMb = 1 << 20;
constexpr int64_t kMaxQuota = 1'000'000'000;

}  // namespace

absl::Status OverQuota(const Client& client, absl::string_view what, int64_t quota) {
  return absl::ResourceExhaustedError(
      absl::StrCat("Client ", client.name(), " has reached its quota of ", quota, " ", what));
}

Client::Client(std::string name)
    : name_(std::move(name)),
      memory_(MemoryQuota::New(
          nullptr, absl::StrCat("client ", name_, " (memory-mb in weir serve --clients)"), 0)) {}

ClientQuotas Client::quotas() const {
  const MutexLock lock(mutex_);
  return quotas_;
}

void Client::set_quotas(const ClientQuotas& quotas) {
  const MutexLock lock(mutex_);
  quotas_ = quotas;
  memory_->set_limit(quotas.memory_mb * kBytesPerMb);
}

void Client::PayOffCpu() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::ratio<60>> minutes = now - owed_at_;
  owed_cpu_ = std::max(0.0, owed_cpu_ - minutes.count() * static_cast<double>(quotas_.cpu_seconds));
  owed_at_ = now;
}

void Client::ChargeCpu(double seconds) {
  const MutexLock lock(mutex_);
  PayOffCpu();
  owed_cpu_ += seconds;
}

absl::Status Client::CheckCpu() {
  const auto quota = static_cast<double>(quotas_.cpu_seconds);
  PayOffCpu();
  if (quota == 0 || owed_cpu_ < quota) return absl::OkStatus();
  return OverQuota(*this,
                   absl::StrFormat("CPU seconds per minute: try again in %.0f seconds",
                                   std::ceil((owed_cpu_ - quota) * 60 / quota) + 1),
                   quotas_.cpu_seconds);
}

absl::Status Client::Use::Start(int64_t request_bytes) {
  if (client_ == nullptr) return absl::OkStatus();
  const MutexLock lock(client_->mutex_);
  const ClientQuotas& quotas = client_->quotas_;
  if (quotas.calls > 0 && client_->num_calls_ >= quotas.calls)
    return OverQuota(*client_, "concurrent calls", quotas.calls);
  if (quotas.request_mb > 0 &&
      request_bytes > quotas.request_mb * kBytesPerMb - client_->request_bytes_)
    return OverQuota(*client_,
                     absl::StrCat("MB of requests in progress: this one has ", request_bytes,
                                  " bytes, the others have ", client_->request_bytes_),
                     quotas.request_mb);
  WEIR_RETURN_IF_ERROR(client_->CheckCpu());
  is_counted_ = true;
  request_bytes_ = request_bytes;
  ++client_->num_calls_;
  client_->request_bytes_ += request_bytes;
  return absl::OkStatus();
}

absl::Status Client::Use::StartResponse(int64_t response_bytes) {
  if (client_ == nullptr) return absl::OkStatus();
  const MutexLock lock(client_->mutex_);
  const int64_t quota = client_->quotas_.response_mb, others = client_->response_bytes_;
  if (quota > 0 && response_bytes > quota * kBytesPerMb - others)
    return OverQuota(*client_,
                     absl::StrCat("MB of responses that it has not read: this one has ",
                                  response_bytes, " bytes, the others have ", others),
                     quota);
  response_bytes_ = response_bytes;
  client_->response_bytes_ += response_bytes;
  return absl::OkStatus();
}

Client::Use::~Use() {
  if (client_ == nullptr) return;
  const MutexLock lock(client_->mutex_);
  client_->response_bytes_ -= response_bytes_;
  if (!is_counted_) return;
  --client_->num_calls_;
  client_->request_bytes_ -= request_bytes_;
}

absl::StatusOr<std::string> BearerToken(absl::string_view authorization) {
  constexpr absl::string_view kBearer = "bearer ";
  if (authorization.empty()) return std::string();
  if (!absl::StartsWithIgnoreCase(authorization, kBearer) || authorization.size() == kBearer.size())
    return absl::UnauthenticatedError("Expected 'authorization: Bearer TOKEN'");
  return std::string(authorization.substr(kBearer.size()));
}

// Parses a list of clients. Goes on after a mistake, to find the others.
class Clients::Parser {
 public:
  explicit Parser(absl::string_view file) : file_(file) {}

  absl::StatusOr<List> Parse(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      ParseLine(line.substr(0, line.find('#')));
    }
    if (list_.quotas.empty() && mistakes_.empty())
      mistakes_.push_back(absl::StrCat(file_, ": expected at least one client"));
    if (mistakes_.empty()) return std::move(list_);
    return InvalidArgument(absl::StrJoin(mistakes_, "\n"));
  }

 private:
  void ParseLine(absl::string_view line) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) return;
    name_ = std::string(words[0]);
    if (absl::StrContains(name_, "="))
      return Mistake("expected the name of a client before '", name_, "'");
    if (list_.quotas.contains(name_))
      return Mistake("there is already a client '", name_, "'; expected another name");
    list_.quotas[name_] = {};
    is_provable_ = false;
    for (size_t i = 1; i < words.size(); ++i) ParseSetting(words[i]);
    if (!is_provable_) Mistake("client '", name_, "' needs token-sha256=HEX or certificate=NAME");
  }

  void ParseSetting(absl::string_view setting) {
    const size_t end = setting.find('=');
    if (end == absl::string_view::npos)
      return Mistake("expected KEY=VALUE instead of '", Shown(setting), "'");
    const absl::string_view key = setting.substr(0, end), value = setting.substr(end + 1);
    ClientQuotas& quotas = list_.quotas[name_];
    if (key == "token-sha256") return ParseToken(value);
    if (key == "certificate") return ParseCertificate(value);
    if (key == "sessions") return ParseQuota(key, value, &quotas.sessions);
    if (key == "calls") return ParseQuota(key, value, &quotas.calls);
    if (key == "request-mb") return ParseQuota(key, value, &quotas.request_mb);
    if (key == "response-mb") return ParseQuota(key, value, &quotas.response_mb);
    if (key == "memory-mb") return ParseQuota(key, value, &quotas.memory_mb);
    if (key == "cpu-seconds") return ParseQuota(key, value, &quotas.cpu_seconds);
    Mistake("unknown key '", Shown(key),
            "'; expected token-sha256, certificate, sessions, calls, request-mb, response-mb, "
            "memory-mb or cpu-seconds");
  }

  void ParseToken(absl::string_view hex) {
    is_provable_ = true;
    Digest digest;
    const bool is_hex = hex.size() == 2 * digest.size() &&
                        std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
    if (!is_hex)
      return Mistake("token-sha256 has ", hex.size(),
                     " characters; expected 64 hexadecimal digits");
    const std::string bytes = absl::HexStringToBytes(hex);
    std::copy(bytes.begin(), bytes.end(), digest.begin());
    for (const auto& [other, client] : list_.tokens) {
      if (other == digest) return Mistake("client '", client, "' has the same token");
    }
    list_.tokens.emplace_back(digest, name_);
  }

  void ParseCertificate(absl::string_view name) {
    is_provable_ = true;
    if (name.empty()) return Mistake("expected certificate=NAME");
    const auto [it, is_new] = list_.certificates.emplace(name, name_);
    if (!is_new) Mistake("client '", it->second, "' has the same certificate name");
  }

  void ParseQuota(absl::string_view key, absl::string_view value, int64_t* quota) {
    if (!absl::SimpleAtoi(value, quota) || *quota < 1 || *quota > kMaxQuota)
      Mistake(key, "=", Shown(value), ": expected a whole number from 1 to ", kMaxQuota);
  }

  // A misplaced word may be a secret, so messages show its beginning only.
  static std::string Shown(absl::string_view word) {
    constexpr size_t kShown = 20;
    return word.size() <= kShown ? std::string(word) : absl::StrCat(word.substr(0, 4), "...");
  }

  template <class... Parts>
  void Mistake(const Parts&... parts) {
    mistakes_.push_back(absl::StrCat(file_, ":", line_, ": ", parts...));
  }

  const std::string file_;
  int line_ = 0;
  std::string name_;          // of the client of the line
  bool is_provable_ = false;  // whether the line says how the client proves itself
  List list_;
  std::vector<std::string> mistakes_;
};

absl::StatusOr<std::unique_ptr<Clients>> Clients::Parse(absl::string_view file,
                                                        absl::string_view text) {
  std::unique_ptr<Clients> clients(new Clients);
  WEIR_RETURN_IF_ERROR(clients->Replace(file, text));
  return clients;
}

absl::Status Clients::Replace(absl::string_view file, absl::string_view text) {
  WEIR_ASSIGN_OR_RETURN(List list, Parser(file).Parse(text));
  const MutexLock lock(mutex_);
  std::map<std::string, std::shared_ptr<Client>> clients;
  for (const auto& [name, quotas] : list.quotas) {
    std::shared_ptr<Client>& client = clients[name];
    const auto known = clients_.find(name);
    client = known == clients_.end() ? std::make_shared<Client>(name) : known->second;
    client->set_quotas(quotas);
  }
  list_ = std::move(list);
  clients_ = std::move(clients);
  return absl::OkStatus();
}

bool Clients::HaveCpuQuotas() const {
  const MutexLock lock(mutex_);
  return std::any_of(list_.quotas.begin(), list_.quotas.end(),
                     [](const auto& client) { return client.second.cpu_seconds > 0; });
}

bool Clients::HaveMemoryQuotas() const {
  const MutexLock lock(mutex_);
  return std::any_of(list_.quotas.begin(), list_.quotas.end(),
                     [](const auto& client) { return client.second.memory_mb > 0; });
}

absl::StatusOr<std::shared_ptr<Client>> Clients::Identify(
    const ClientCredentials& credentials) const {
  const MutexLock lock(mutex_);
  if (!credentials.token.empty()) {
    Digest digest;
    SHA256(reinterpret_cast<const uint8_t*>(credentials.token.data()), credentials.token.size(),
           digest.data());
    // Compares with all, so that the time does not depend on the token.
    const std::string* name = nullptr;
    for (const auto& [other, client] : list_.tokens) {
      if (CRYPTO_memcmp(other.data(), digest.data(), digest.size()) == 0) name = &client;
    }
    if (name == nullptr) return absl::UnauthenticatedError("The bearer token is of no client");
    return clients_.find(*name)->second;
  }
  for (const std::string& name : credentials.certificate_names) {
    const auto it = list_.certificates.find(name);
    if (it != list_.certificates.end()) return clients_.find(it->second)->second;
  }
  return absl::UnauthenticatedError(
      credentials.certificate_names.empty()
          ? "This server serves known clients only: expected 'authorization: Bearer TOKEN' or a "
            "certificate"
          : "The certificate is of no client that this server knows");
}

}  // namespace weir::rpc
