#ifndef WEIR_CORE_EVENT_WRITER_H_
#define WEIR_CORE_EVENT_WRITER_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "weir/core/record.h"

namespace weir {

struct EventWriterOptions {
  std::string filename_suffix = {};
  // What was added longer ago is handed to the operating system by the next call that adds
  // something.
  std::chrono::seconds flush_period{120};
};

// Writes an event file for TensorBoard: losses, histograms, the graph. The file is
// `logdir`/events.out.tfevents.<seconds>.<host><suffix>. Safe to use from many threads. Calls cost
// a copy into a buffer; Flush and the destructor hand it on. After an error every call returns it.
class EventWriter {
 public:
  // Makes the directory if it is missing.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(
      const std::string& logdir, const EventWriterOptions& options = {});
  ~EventWriter();

  const std::string& path() const { return path_; }

  // A serialized Summary, as summary ops give. A tag's metadata is kept with its first value only.
  // INVALID_ARGUMENT if it cannot be parsed.
  absl::Status AddSummary(absl::string_view summary, int64_t step);
  absl::Status AddScalar(absl::string_view tag, float value, int64_t step);
  // A serialized GraphDef (SerializeGraph), for the graph page; MetaGraphDef; RunMetadata of a step
  // under a tag of its own.
  absl::Status AddGraph(absl::string_view graph_def, int64_t step = 0);
  absl::Status AddMetaGraph(absl::string_view meta_graph_def, int64_t step = 0);
  absl::Status AddRunMetadata(absl::string_view tag, absl::string_view run_metadata, int64_t step);
  absl::Status Flush();
  absl::Status Close();

 private:
  EventWriter(std::string path, std::unique_ptr<RecordWriter> records,
              std::chrono::seconds flush_period);
  template <class Fill>
  absl::Status Add(int64_t step, Fill fill);

  const std::string path_;
  const std::chrono::seconds flush_period_;
  std::mutex mutex_;
  std::unique_ptr<RecordWriter> records_;
  std::chrono::steady_clock::time_point last_flush_;
  std::set<std::string> tags_with_metadata_;
};

}  // namespace weir

#endif  // WEIR_CORE_EVENT_WRITER_H_
