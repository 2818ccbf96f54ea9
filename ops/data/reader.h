#ifndef WEIR_OPS_DATA_READER_H_
#define WEIR_OPS_DATA_READER_H_

#include <string>
#include <utility>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/containers/queue.h"

// Readers of records from files whose names come from a queue. The names of nodes are those that
// Python generates.
namespace WEIR_API weir {

// A reader in the graph, which keeps its position from step to step. A value type: copies are
// handles to the same reader.
class Reader {
 public:
  // Reads lines, without their line ends. Keys are "file:number", counted from 1.
  static Reader TextLine(Graph& graph, int64_t skip_header_lines = 0, absl::string_view name = {});
  // Reads records of TFRecord files. Keys are "file:offset". `compression` is "", "ZLIB" or "GZIP".
  static Reader TfRecord(Graph& graph, absl::string_view compression = {},
                         absl::string_view name = {});
  // Reads whole files. The key is the file's name.
  static Reader WholeFile(Graph& graph, absl::string_view name = {});
  // Returns the queue's elements themselves.
  static Reader Identity(Graph& graph, absl::string_view name = {});
  // Reads records of equal size.
  struct FixedLength {
    // Of a record, and at the start and end of each file.
    int64_t record_bytes = 0, header_bytes = 0, footer_bytes = 0;
    int64_t hop_bytes = 0;      // from one record to the next; 0: record_bytes
    std::string encoding = {};  // "", "ZLIB" or "GZIP"
  };
  // Keys are "file:number", counted from 0.
  static Reader FixedLengthRecords(Graph& graph, const FixedLength& layout,
                                   absl::string_view name = {});

  // Returns the key and the value of the next record. OUT_OF_RANGE once all files are read and the
  // queue is closed.
  std::pair<Output, Output> Read(const Queue& queue, absl::string_view name = {}) const;
  // Returns up to `num_records` records, all from one file.
  std::pair<Output, Output> ReadUpTo(const Queue& queue, Output num_records,
                                     absl::string_view name = {}) const;
  Output NumRecordsProduced(absl::string_view name = {}) const;
  Output NumWorkUnitsCompleted(absl::string_view name = {}) const;
  // Returns a string from which RestoreState resumes. Only for WholeFile and Identity.
  Output SerializeState(absl::string_view name = {}) const;
  Operation RestoreState(Output state, absl::string_view name = {}) const;
  Operation Reset(absl::string_view name = {}) const;
  const Output& handle() const { return handle_; }

 private:
  explicit Reader(Output handle) : handle_(handle) {}
  static Reader Make(Graph& graph, absl::string_view op, Attrs attrs, absl::string_view name);
  Output handle_;
};

}  // namespace weir

#endif  // WEIR_OPS_DATA_READER_H_
