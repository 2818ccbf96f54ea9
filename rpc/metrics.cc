#include "weir/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/http_server.h"

namespace weir::rpc {

namespace {

constexpr int kMaxConnections = 64;
constexpr std::chrono::seconds kTimeLimit{5};

// Gauges that are computed when they are scraped.
class Gauges final {
 public:
  void SetLoadCallback(std::function<Metrics::Load()> load) {
    const MutexLock lock(mutex_);
    load_ = std::move(load);
  }

  std::vector<prometheus::MetricFamily> Collect() const {
    const MutexLock lock(mutex_);
    const Metrics::Load load = load_ ? load_() : Metrics::Load();
    return {Gauge("weir_sessions", "Open sessions.", load.sessions),
            Gauge("weir_calls", "Calls in progress.", load.calls)};
  }

 private:
  static prometheus::MetricFamily Gauge(const char* name, const char* help, int value) {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = prometheus::MetricType::Gauge;
    family.metric.resize(1);
    family.metric[0].gauge.value = value;
    return family;
  }

  mutable Mutex mutex_;
  std::function<Metrics::Load()> load_ ABSL_GUARDED_BY(mutex_);
};

// Buckets from a millisecond to a minute and a half.
prometheus::Histogram::BucketBoundaries DurationBuckets() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 0.001; bound < 100; bound *= 3) bounds.push_back(bound);
  return bounds;
}

}  // namespace

struct Metrics::Impl {
  HttpResponse Answer(const HttpRequest& request) const {
    if (request.Path() != "/metrics") return HttpError(404, "The page here is /metrics");
    if (request.method != "GET") {
      HttpResponse refused = HttpError(405, "Use GET");
      refused.headers = {{"Allow", "GET, HEAD"}};
      return refused;
    }
    return {200, "text/plain; version=0.0.4; charset=utf-8", Page()};
  }

  std::string Page() const {
    std::ostringstream out;
    const prometheus::TextSerializer serializer;
    serializer.Serialize(out, registry.Collect());
    serializer.Serialize(out, gauges.Collect());
    return out.str();
  }

  prometheus::Registry registry;
  Gauges gauges;
  prometheus::Family<prometheus::Counter>& calls = prometheus::BuildCounter()
                                                       .Name("weir_calls_total")
                                                       .Help("Completed calls.")
                                                       .Register(registry);
  prometheus::Family<prometheus::Histogram>& seconds = prometheus::BuildHistogram()
                                                           .Name("weir_call_seconds")
                                                           .Help("Duration of calls in seconds.")
                                                           .Register(registry);
  std::unique_ptr<HttpServer> server;  // uses what is above
};

Metrics::Metrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Metrics::~Metrics() = default;

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Serve(const std::string& address, int port) {
  auto impl = std::make_unique<Impl>();
  HttpServerOptions options;
  options.address = address;
  options.port = port;
  options.num_threads = 1;
  options.max_connections = options.max_client_connections = kMaxConnections;
  options.max_body_bytes = 0;
  options.keep_alive = false;
  options.header_timeout = options.transfer_timeout = kTimeLimit;
  WEIR_ASSIGN_OR_RETURN(
      impl->server, HttpServer::Start(options, [shown = impl.get()](const HttpRequest& request) {
        return shown->Answer(request);
      }));
  return std::unique_ptr<Metrics>(new Metrics(std::move(impl)));
}

int Metrics::port() const { return impl_->server->port(); }

void Metrics::CountCall(absl::string_view method, const absl::Status& status,
                        std::chrono::nanoseconds took) {
  const std::string name(method);
  impl_->calls.Add({{"method", name}, {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
  impl_->seconds.Add({{"method", name}}, DurationBuckets())
      .Observe(std::chrono::duration<double>(took).count());
}

void Metrics::SetLoadCallback(std::function<Load()> load) {
  impl_->gauges.SetLoadCallback(std::move(load));
}

}  // namespace weir::rpc
