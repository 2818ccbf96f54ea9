#ifndef WEIR_RPC_LIB_CLIENTS_H_
#define WEIR_RPC_LIB_CLIENTS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/mutex.h"
#include "weir/core/tensor/status.h"

namespace weir::rpc {

// What one client may use at a time. Zero: no limit besides the server's.
struct ClientQuotas {
  int64_t sessions = 0;    // open ones
  int64_t calls = 0;       // concurrent; those that close sessions or report the status are free
  int64_t request_mb = 0;  // of the requests of its calls in progress, as they are on the wire
  // Of the responses of its calls over gRPC, until the client has read them.
  int64_t response_mb = 0;
  // Of tensors, strings and messages that it holds: in steps, and in its variables, queues, tables
  // and iterators. On servers that run sessions in their own process.
  int64_t memory_mb = 0;
  // Processor time of its sessions per minute, on servers that run them in processes of their own.
  int64_t cpu_seconds = 0;
};

// A client of a server, known by name. Thread-safe.
class Client {
 public:
  // Creates a client without quotas.
  explicit Client(std::string name);

  // As in the file of clients.
  const std::string& name() const { return name_; }
  // Its current quotas. Lower ones hold for later calls and sessions.
  ClientQuotas quotas() const;
  void set_quotas(const ClientQuotas& quotas);
  // The memory that it holds, limited by its quota.
  const std::shared_ptr<MemoryQuota>& memory() const { return memory_; }

  // Charges processor time to the client. Beyond its quota, its calls are refused until the time
  // has been paid off at the rate of the quota.
  void ChargeCpu(double seconds);

  // What one call of the client uses, until this object is destroyed. Without a client there are no
  // quotas.
  class Use {
   public:
    // Uses nothing yet. `client` may be null.
    explicit Use(std::shared_ptr<Client> client) : client_(std::move(client)) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // Call it at most once. Returns RESOURCE_EXHAUSTED, with the quota, if the call exceeds one.
    absl::Status Start(int64_t request_bytes);
    // The same for a response that is going to be sent.
    absl::Status StartResponse(int64_t response_bytes);

   private:
    const std::shared_ptr<Client> client_;
    int64_t request_bytes_ = 0, response_bytes_ = 0;
    bool is_counted_ = false;
  };

 private:
  // Returns RESOURCE_EXHAUSTED while the client has used too much processor time.
  absl::Status CheckCpu() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pays off processor time for the time since the last call.
  void PayOffCpu() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const std::shared_ptr<MemoryQuota> memory_;
  mutable Mutex mutex_;
  ClientQuotas quotas_ ABSL_GUARDED_BY(mutex_);
  int64_t num_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t request_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t response_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Processor time that has not been paid off, in seconds, and when this was computed.
  double owed_cpu_ ABSL_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point owed_at_ ABSL_GUARDED_BY(mutex_);
};

// Returns RESOURCE_EXHAUSTED for a client whose use of something is at its quota.
absl::Status OverQuota(const Client& client, absl::string_view what, int64_t quota);

// How a caller proves who it is.
struct ClientCredentials {
  std::string token;                           // without "Bearer "; empty: none
  std::vector<std::string> certificate_names;  // subject alternative names, common name
};

// Returns the token of an authorization header or metadata, "Bearer TOKEN"; "" if `authorization`
// is empty. UNAUTHENTICATED for another scheme, or without a token.
absl::StatusOr<std::string> BearerToken(absl::string_view authorization);

// The clients that a server knows, as a file lists them. A line has a name, how the client proves
// that it is this client (one or more of the first two), and quotas:
//
//   # comment
//   alice token-sha256=2bb8...e7 sessions=4 calls=16 request-mb=256 memory-mb=1024
//   bob   certificate=bob.example.com
//
// A token-sha256 is what `printf %s TOKEN | sha256sum` prints: a token must be long and random,
// such as the output of `openssl rand -hex 32`. Tokens are compared in constant time. A certificate
// matches by a subject alternative name or its common name. Thread-safe.
class Clients {
 public:
  // `file` is the name of the file in messages, `text` its contents. Returns INVALID_ARGUMENT with
  // all mistakes, each with its line and what was expected there.
  static absl::StatusOr<std::unique_ptr<Clients>> Parse(absl::string_view file,
                                                        absl::string_view text);
  // Replaces the list by that of another text. A client that is in both keeps its sessions and gets
  // the new quotas. On an error the list is unchanged.
  absl::Status Replace(absl::string_view file, absl::string_view text);

  // Returns whether a client has a quota of processor time, or of memory.
  bool HaveCpuQuotas() const;
  bool HaveMemoryQuotas() const;
  // Returns UNAUTHENTICATED for a token that no client has, and if there is neither a token nor the
  // name of a client in the certificate. Never returns null.
  absl::StatusOr<std::shared_ptr<Client>> Identify(const ClientCredentials& credentials) const;

 private:
  using Digest = std::array<uint8_t, 32>;  // SHA-256
  struct List {
    std::map<std::string, ClientQuotas> quotas;  // by client
    std::vector<std::pair<Digest, std::string>> tokens;
    std::map<std::string, std::string> certificates;  // the client by the name
  };
  class Parser;

  Clients() = default;

  mutable Mutex mutex_;
  List list_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Client>> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_CLIENTS_H_
