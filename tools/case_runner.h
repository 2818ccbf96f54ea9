#ifndef WEIR_TOOLS_CASE_RUNNER_H_
#define WEIR_TOOLS_CASE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/device.h"
#include "weir/core/status.h"

// Conformance cases: a folder with a graph, inputs, the results that another runtime gave, and
// case.json:
//
//   graph, meta, saved_model (with tags): the file or folder to load
//   load_error {code, expect_error}: it must be refused, when imported or when a step is prepared
//   variable_defs, collections: what the MetaGraphDef must be found to hold
//   rtol, atol: of the case or of a step, see compare.h
//   steps: run in order in one session; each has some of
//     feed {tensor: file}, target [node], fetch {tensor: recorded file}, repeat
//     signature, inputs, outputs: tensors by the names of a SignatureDef
//     restore, save: by the SaverDef, with this prefix (save: in a scratch folder)
//     checkpoint, tensors {name: recorded file}: read without the graph
//     code, expect_error: it must fail with this code, and a message that contains the text
//     layer "python": left out, for it is another language's check
//
// A feed {"path": p} is a string, p in the case's folder; {"scratch": p}, in the scratch folder.
// Files are those of value_file.h.
namespace weir::tools {

struct CaseResult {
  enum Outcome { kPassed, kFailed, kSkipped };
  Outcome outcome = kPassed;
  std::string why;                 // the first complaint, or why it was skipped
  std::vector<std::string> more;   // further complaints
  std::vector<std::string> notes;  // steps that were left out
  uint32_t bits = 0;               // CRC-32C of all that was fetched and compared
};

struct CaseOptions {
  int num_threads = 0;               // of the session; 0: one a processor
  std::vector<std::string> disable;  // optimizations, as SessionOptions::disable
  std::function<std::vector<std::unique_ptr<Device>>()> make_devices;  // the same
};

// Loads the case's graph into a session of its own and runs all its steps in order. Never fails
// otherwise than by its result: a missing or malformed case.json is a failed case.
CaseResult RunCase(const std::string& folder, const CaseOptions& options = {});

// The folders with a case.json among `roots` and below them, in order; one is not looked into
// further. NOT_FOUND for a root that is no folder, or has none.
absl::StatusOr<std::vector<std::string>> FindCases(const std::vector<std::string>& roots);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CASE_RUNNER_H_
