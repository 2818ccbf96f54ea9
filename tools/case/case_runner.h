#ifndef WEIR_TOOLS_CASE_CASE_RUNNER_H_
#define WEIR_TOOLS_CASE_CASE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"
#include "weir/kernels/lib/backend.h"

// Conformance cases: a folder with a graph, inputs, the results of another runtime, and case.json:
//
//   graph, meta, saved_model (with tags): the file or folder to load
//   load_error {code, expect_error}: importing it or preparing a step must fail
//   variable_defs, collections: the expected contents of the MetaGraphDef
//   rtol, atol: of the case or of a step, see compare.h
//   steps: run in order in one session; each has some of
//     feed {tensor: file}, target [node], fetch {tensor: recorded file}, repeat
//     signature, inputs, outputs: tensors by the names of a SignatureDef
//     restore, save: by the SaverDef, with this prefix (save: in a scratch folder)
//     checkpoint, tensors {name: recorded file}: read without the graph
//     code, expect_error: it must fail with this code, and a message that contains the text
//     layer "python": skipped, because it is a Python-only check
//
// A feed {"path": p} is a string, p in the case's folder; {"scratch": p}, in the scratch folder.
// value_file.h describes the formats of the files.
namespace weir::tools {

struct CaseResult {
  enum Outcome { kPassed, kFailed, kSkipped };
  Outcome outcome = kPassed;
  std::string why;                 // the first failure, or why the case was skipped
  std::vector<std::string> more;   // further failures
  std::vector<std::string> notes;  // skipped steps
  uint32_t bits = 0;               // CRC-32C of everything fetched and compared
};

struct CaseOptions {
  int num_threads = 0;               // of the session; 0: one per processor
  std::vector<std::string> disable;  // optimizations to disable, as in SessionOptions::disable
  std::shared_ptr<const BackendRegistry> backends;  // as in SessionOptions::backends
};

// Loads the case's graph into a new session and runs all its steps in order. Reports every error in
// the result: a missing or malformed case.json is a failed case.
CaseResult RunCase(const std::string& folder, const CaseOptions& options = {});

// Returns the folders in and below `roots` that contain a case.json, in order, without searching
// below such a folder. NOT_FOUND for a root that is not a folder or contains no case.
absl::StatusOr<std::vector<std::string>> FindCases(const std::vector<std::string>& roots);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CASE_CASE_RUNNER_H_
