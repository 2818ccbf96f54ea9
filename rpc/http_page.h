#ifndef WEIR_RPC_HTTP_PAGE_H_
#define WEIR_RPC_HTTP_PAGE_H_

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/listener.h"

namespace weir::rpc {

// Serves one page over HTTP. One thread reads from and writes to all connections without waiting
// for any, so a client that sends half a request delays nobody. A connection that is not done
// within five seconds is closed, and so is the oldest one if there are too many.
class HttpPage {
 public:
  // Serves what `page` returns as plain text at `path`, "/metrics". `page` runs on the thread of
  // the object. Port 0 selects a free port. Returns UNAVAILABLE if the port is in use.
  static absl::StatusOr<std::unique_ptr<HttpPage>> Serve(const std::string& address, int port,
                                                         const std::string& path,
                                                         std::function<std::string()> page);
  ~HttpPage();
  HttpPage(const HttpPage&) = delete;
  HttpPage& operator=(const HttpPage&) = delete;

  int port() const { return listener_->port(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    int fd;
    Clock::time_point until;
    std::string request = {};
    std::string answer = {};  // what is still to be sent, once the request is complete
  };

  HttpPage(std::string path, std::function<std::string()> page)
      : path_(std::move(path)), page_(std::move(page)) {}
  void Run();
  void TakeNewConnections();
  // Reads and writes what can be without waiting. Returns false when the connection is done.
  bool Progress(Connection* connection);
  std::string Answer(absl::string_view request) const;

  const std::string path_;
  const std::function<std::string()> page_;
  std::unique_ptr<Listener> listener_;
  int wake_ = -1;                      // an eventfd
  std::list<Connection> connections_;  // by age
  Mutex mutex_;
  std::vector<int> new_connections_ ABSL_GUARDED_BY(mutex_);
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_HTTP_PAGE_H_
