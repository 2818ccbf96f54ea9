#ifndef WEIR_RPC_MODELS_REQUEST_LOG_H_
#define WEIR_RPC_MODELS_REQUEST_LOG_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/tensor/mutex.h"
#include "weir/rpc/lib/background_writer.h"
#include "weir/serving/model_config.h"

namespace weir::proto::serving {
class PredictionLog;
}  // namespace weir::proto::serving

namespace weir::rpc {

// Options of a RequestLog.
struct RequestLogOptions {
  int64_t max_file_bytes = int64_t{256} << 20;
  std::chrono::milliseconds max_file_age = std::chrono::minutes(10);
  int64_t max_waiting_bytes = int64_t{64} << 20;
  // Called with an error of a file, at most once per minute, on the thread of the log.
  std::function<void(const absl::Status&)> on_error = {};
};

// Logs a sample of the requests of models with their responses, as TensorFlow Serving does:
// TFRecord files of PredictionLogs (proto/prediction_log.proto), which can serve as warm-up
// requests.
//
// A file has the name PREFIX.20261128-090000.1234.7.tfrecord, with the time when it was begun, the
// process and a number. While it is being written, ".open" follows: a name that ends in .tfrecord
// is that of a complete file, which the log does not touch again, so it may be moved or deleted.
// The log begins a new file when one is large or old enough. After a crash, an .open file has all
// records that were flushed, which happens at least once per second.
//
// Never delays a call: records that arrive faster than they can be written are dropped and counted.
// Thread-safe.
class RequestLog {
 public:
  explicit RequestLog(const RequestLogOptions& options = {});
  // Writes what waits and completes the files.
  ~RequestLog();

  // Replaces which requests are logged.
  void Configure(const std::vector<serving::ModelConfig>& models);
  // Draws whether this request of a model is logged.
  bool Samples(const std::string& model) const;
  // Adds an entry of the model, and sets its log_metadata but for the model_spec.
  void Add(const std::string& model, proto::serving::PredictionLog* entry);
  // The number of records that were dropped.
  int64_t dropped() const;

 private:
  class Files;

  const std::unique_ptr<Files> files_;  // used by the writer's thread
  mutable Mutex mutex_;
  std::map<std::string, serving::RequestLogging> models_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<BackgroundWriter> writer_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_MODELS_REQUEST_LOG_H_
