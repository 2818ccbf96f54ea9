#ifndef WEIR_TOOLS_CKPT_HDF5_PROCESS_H_
#define WEIR_TOOLS_CKPT_HDF5_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "weir/core/tensor/mutex.h"
#include "weir/tools/ckpt/hdf5_reader.h"

namespace weir::tools {

// A child process that reads an HDF5 file by HDF5's library, which damaged files have crashed. The
// child is a fork, so it reads the file that the parent has opened; it has limits of memory and of
// processor time. What it sends is checked like a file. Thread-safe.
class Hdf5Process {
 public:
  // Starts the process, which opens the file: see Hdf5Reader::Open. DATA_LOSS also if the library
  // crashes or exceeds a limit; messages begin with `what`.
  static absl::StatusOr<std::unique_ptr<Hdf5Process>> Start(const FilePart& part,
                                                            const std::string& what);
  // Ends the process.
  ~Hdf5Process();
  Hdf5Process(const Hdf5Process&) = delete;
  Hdf5Process& operator=(const Hdf5Process&) = delete;

  const Hdf5Contents& contents() const { return contents_; }
  // Reads elements of the tensor contents().tensors[tensor], at most kPieceBytes.
  absl::Status Read(size_t tensor, uint64_t first, uint64_t count, char* out);

 private:
  Hdf5Process(std::string what, pid_t child, int socket)
      : what_(std::move(what)), child_(child), socket_(socket) {}
  // Receives the answer to a request, `size` bytes of it into `out`, or an error.
  absl::StatusOr<std::string> ReceiveContents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReceiveStatus(uint64_t* size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns why the process has ended.
  absl::Status Death() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string what_;
  Hdf5Contents contents_;
  Mutex mutex_;
  pid_t child_ ABSL_GUARDED_BY(mutex_);  // 0 after its death
  const int socket_;
  absl::Status death_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_HDF5_PROCESS_H_
