#ifndef WEIR_TESTS_FUZZ_TARGETS_H_
#define WEIR_TESTS_FUZZ_TARGETS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weir::fuzz {

// What a fuzzer calls with any bytes. Returns if all is well, errors included; aborts if not.
using Target = void (*)(absl::string_view);

void GraphBytes(absl::string_view bytes);       // a binary GraphDef
void GraphText(absl::string_view bytes);        // a GraphDef as text
void Table(absl::string_view bytes);            // a table, or blocks of one
void Bundle(absl::string_view bytes);           // index and data of a checkpoint, or its entries
void Records(absl::string_view bytes);          // a file of records, or events in it
void Npy(absl::string_view bytes);              // a .npy file
void CheckpointState(absl::string_view bytes);  // a file named "checkpoint"
void Feeds(absl::string_view bytes);            // tensors fed to a step
void Steps(absl::string_view bytes);            // a binary GraphDef that is run (mutate.h)
void Requests(absl::string_view bytes);         // requests to a server

// The targets that a program links: those of files, or one of those that need the whole runtime.
struct Row {
  const char* name;  // of its folder in corpus/
  Target target;
  int rounds;  // of noise in a test
};
std::vector<Row> Rows();

// ---- for writing targets

// Aborts, with the line, unless it is true.
void Require(bool condition, const char* what);

// Takes an input apart from the front; gives zeros and empty strings when it is used up.
class Input {
 public:
  explicit Input(absl::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint8_t Byte();
  // A length of two bytes, and so many bytes (or what is left).
  absl::string_view Piece();
  absl::string_view Rest();

 private:
  absl::string_view bytes_;
};

}  // namespace weir::fuzz

#endif  // WEIR_TESTS_FUZZ_TARGETS_H_
