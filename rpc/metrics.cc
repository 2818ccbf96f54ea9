#include "weir/rpc/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/http/http_server.h"

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
            Gauge("weir_calls", "Calls in progress.", load.calls),
            Gauge("weir_dropped_log_records", "Records that the logs of requests dropped.",
                  static_cast<double>(load.dropped_log_records))};
  }

 private:
  static prometheus::MetricFamily Gauge(const char* name, const char* help, double value) {
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

// TensorFlow Serving's buckets of latencies, in microseconds.
prometheus::Histogram::BucketBoundaries LatencyBuckets() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 10; bounds.size() < 33; bound *= 1.8) bounds.push_back(bound);
  return bounds;
}

}  // namespace

struct Metrics::Impl {
  HttpResponse Answer(const HttpRequest& request) const {
    if (request.Path() != path) return HttpError(404, absl::StrCat("The page here is ", path));
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
  prometheus::Family<prometheus::Counter>& model_calls = prometheus::BuildCounter()
                                                             .Name("weir_model_calls_total")
                                                             .Help("Completed calls of models.")
                                                             .Register(registry);
  prometheus::Family<prometheus::Histogram>& model_seconds =
      prometheus::BuildHistogram()
          .Name("weir_model_call_seconds")
          .Help("Duration of calls of models in seconds.")
          .Register(registry);
  // TensorFlow Serving's names of the same.
  prometheus::Family<prometheus::Counter>& request_count =
      prometheus::BuildCounter()
          .Name(":tensorflow:serving:request_count")
          .Help("The total number of requests.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& request_latency =
      prometheus::BuildHistogram()
          .Name(":tensorflow:serving:request_latency")
          .Help("Distribution of wall time in microseconds of requests.")
          .Register(registry);
  std::string path;                    // of the page
  std::unique_ptr<HttpServer> server;  // uses what is above; null: not served
};

Metrics::Metrics(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Metrics::~Metrics() = default;

std::unique_ptr<Metrics> Metrics::Create() {
  return std::unique_ptr<Metrics>(new Metrics(std::make_unique<Impl>()));
}

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Serve(const std::string& address, int port,
                                                        const std::string& path) {
  std::unique_ptr<Metrics> metrics = Create();
  Impl* const impl = metrics->impl_.get();
  impl->path = path;
  HttpServerOptions options;
  options.address = address;
  options.port = port;
  options.num_threads = 1;
  options.max_connections = options.max_client_connections = kMaxConnections;
  options.max_body_bytes = 0;
  options.keep_alive = false;
  options.header_timeout = options.transfer_timeout = kTimeLimit;
  WEIR_ASSIGN_OR_RETURN(impl->server,
                        HttpServer::Start(options, [impl](const HttpRequest& request) {
                          return impl->Answer(request);
                        }));
  return metrics;
}

int Metrics::port() const { return impl_->server == nullptr ? 0 : impl_->server->port(); }

std::string Metrics::Page() const { return impl_->Page(); }

void Metrics::CountCall(const CallRecord& call) {
  const std::string method(call.method);
  const std::string code = absl::StatusCodeToString(call.status.code());
  const std::chrono::duration<double> seconds = call.took;
  const std::chrono::duration<double, std::micro> micros = call.took;
  impl_->calls.Add({{"method", method}, {"code", code}}).Increment();
  impl_->seconds.Add({{"method", method}}, DurationBuckets()).Observe(seconds.count());
  const std::string& model = call.call.model;
  if (model.empty()) return;
  impl_->model_calls.Add({{"model", model}, {"method", method}, {"code", code}}).Increment();
  impl_->model_seconds.Add({{"model", model}, {"method", method}}, DurationBuckets())
      .Observe(seconds.count());
  impl_->request_count.Add({{"model_name", model}, {"status", code}}).Increment();
  impl_->request_latency
      .Add({{"model_name", model}, {"API", method}, {"entrypoint", std::string(call.entrypoint)}},
           LatencyBuckets())
      .Observe(micros.count());
}

void Metrics::SetLoadCallback(std::function<Load()> load) {
  impl_->gauges.SetLoadCallback(std::move(load));
}

}  // namespace weir::rpc
