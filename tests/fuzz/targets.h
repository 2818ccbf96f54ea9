#ifndef WEIR_TESTS_FUZZ_TARGETS_H_
#define WEIR_TESTS_FUZZ_TARGETS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::fuzz {

// The function that a fuzzer calls with arbitrary bytes. It returns on success, including expected
// errors, and aborts on a failure.
using Target = void (*)(absl::string_view);

void GraphBytes(absl::string_view bytes);       // a binary GraphDef
void GraphText(absl::string_view bytes);        // a GraphDef as text
void Table(absl::string_view bytes);            // a checkpoint table, or blocks of one
void Bundle(absl::string_view bytes);           // index and data of a checkpoint, or its entries
void Records(absl::string_view bytes);          // a record file, or events in it
void Npy(absl::string_view bytes);              // a .npy file
void NpzCheckpoint(absl::string_view bytes);    // a .npz file as a checkpoint
void Safetensors(absl::string_view bytes);      // a .safetensors file
void Gguf(absl::string_view bytes);             // a .gguf file
void Hdf5(absl::string_view bytes);             // an HDF5 file of weights
void Keras(absl::string_view bytes);            // a .keras file
void Onnx(absl::string_view bytes);             // an ONNX model
void CheckpointState(absl::string_view bytes);  // a file named "checkpoint"
void Examples(absl::string_view bytes);         // records, JSON lines or CSV
void Datasets(absl::string_view bytes);         // a file that a dataset reads
void Feeds(absl::string_view bytes);            // tensors fed to a step
void Steps(absl::string_view bytes);            // a binary GraphDef that is run (mutate.h)
void Requests(absl::string_view bytes);         // requests to a server
void WorkerRequests(absl::string_view bytes);   // requests to a task of a cluster
void Sockets(absl::string_view bytes);          // what is written to a server's sockets
void Configs(absl::string_view bytes);          // the configuration files of a server of models
void Json(absl::string_view bytes);             // the body of a REST request
void Wav(absl::string_view bytes);              // a WAV file
void Webp(absl::string_view bytes);             // a WebP file
void Npz(absl::string_view bytes);              // a .npz file
void Csv(absl::string_view bytes);              // a CSV file
void JsonValue(absl::string_view bytes);        // a tensor, or tf.Examples, as JSON
void ValueFile(absl::string_view bytes);        // a file of any kind that weir run feeds

// The targets linked into a program: those of files, or one of those that need the whole runtime.
struct Row {
  const char* name;  // the name of its directory in corpus/
  Target target;
  int rounds;  // number of noise inputs in a test
};
std::vector<Row> Rows();

// ---- for writing targets

// Aborts, with the line, unless the condition is true.
void Require(bool condition, const char* what);

// Reads values from the front of an input; returns zeros and empty strings when it is exhausted.
class Input {
 public:
  explicit Input(absl::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint8_t Byte();
  // Returns bytes that follow a length of two bytes (or all that remain).
  absl::string_view NextBytes();
  absl::string_view RemainingBytes();

 private:
  absl::string_view bytes_;
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_TARGETS_H_
