#ifndef WEIR_CORE_IO_EVENT_WRITER_H_
#define WEIR_CORE_IO_EVENT_WRITER_H_

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "weir/core/io/record.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/mutex.h"

// Event files, which TensorBoard reads.
namespace WEIR_API weir {

// How the file is named and when it is written.
struct EventWriterOptions {
  std::string filename_suffix = {};  // appended to the file's name
  // Buffered data older than this is handed to the operating system by the next call that adds an
  // event.
  std::chrono::seconds flush_period{120};
};

// Writes an event file for TensorBoard: losses, histograms, the graph. The file is
// `logdir`/events.out.tfevents.<seconds>.<host><suffix>. Thread-safe. Each call copies the event
// into a buffer; Flush and the destructor hand the buffer to the operating system. After an error,
// every call returns that error.
class EventWriter {
 public:
  // Creates the writer, and `logdir` if it is missing.
  static absl::StatusOr<std::unique_ptr<EventWriter>> Create(
      const std::string& logdir, const EventWriterOptions& options = {});
  ~EventWriter();

  // The path of the file.
  const std::string& path() const { return path_; }

  // Adds a serialized Summary, the output of summary ops. Only the first value of each tag keeps
  // the tag's metadata. Returns INVALID_ARGUMENT if `summary` cannot be parsed.
  absl::Status AddSummary(absl::string_view summary, int64_t step);
  // Adds a number under `tag`.
  absl::Status AddScalar(absl::string_view tag, float value, int64_t step);
  // Adds a serialized GraphDef (see SerializeGraph) for the graph page, a serialized MetaGraphDef,
  // or the serialized RunMetadata of a step under its own tag.
  absl::Status AddGraph(absl::string_view graph_def, int64_t step = 0);
  absl::Status AddMetaGraph(absl::string_view meta_graph_def, int64_t step = 0);
  absl::Status AddRunMetadata(absl::string_view tag, absl::string_view run_metadata, int64_t step);
  // Hands buffered events to the operating system, and closes the file. After Close every call
  // returns an error.
  absl::Status Flush();
  absl::Status Close();

 private:
  EventWriter(std::string path, std::unique_ptr<RecordWriter> records,
              std::chrono::seconds flush_period);
  template <class Fill>
  absl::Status Add(int64_t step, Fill fill);

  const std::string path_;
  const std::chrono::seconds flush_period_;
  Mutex mutex_;
  const std::unique_ptr<RecordWriter> records_ ABSL_PT_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point last_flush_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> tags_with_metadata_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir

#endif  // WEIR_CORE_IO_EVENT_WRITER_H_
