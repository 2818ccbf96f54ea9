#ifndef WEIR_CAPI_EAGER_PROGRAM_H_
#define WEIR_CAPI_EAGER_PROGRAM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "weir/capi/eager/signature.h"
#include "weir/capi/session.h"

namespace weir::capi {

// The graph of all ops that a context has executed, with its functions, and a session. It grows,
// and is used by one thread at a time, except that steps run concurrently.
class Program {
 public:
  // An op that is ready to run.
  struct Callable {
    std::string op;          // the name
    DataTypes output_types;  // without references
    // By input: whether an output may be written over it.
    std::vector<bool> may_overwrite;
    std::shared_ptr<Program> program;  // outlives the step
    Step step;                         // of all inputs and outputs
  };

  // Creates a program without functions.
  static absl::StatusOr<std::shared_ptr<Program>> Make(const SessionOptions& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  TF_Session* session() { return session_; }
  // The device names of the session, of which the CPU's is the first.
  std::vector<std::string> DeviceNames() const;

  const OpRegistry& ops() const { return *ops_; }
  // Returns the record of a function's signature; null if there is no such function.
  const OpSpec* FindFunction(absl::string_view name) const;
  // Adds a function. INVALID_ARGUMENT if there is a different one of its name.
  absl::Status AddFunction(const TF_Function* function);
  // Adds those functions of another program that `is_wanted` returns true for.
  absl::Status CopyFunctions(const Program& from,
                             const std::function<bool(const std::string&)>& is_wanted);

  // Adds the op to the graph and prepares it; see callable.cc.
  static absl::StatusOr<std::shared_ptr<const Callable>> Prepare(
      const std::shared_ptr<Program>& self, const Signature& signature);

 private:
  Program() = default;
  absl::StatusOr<Outputs> Arguments(Graph& graph, absl::Span<const DataType> types);

  TF_Graph* const graph_ = TF_NewGraph();
  TF_Session* session_ = nullptr;
  const OpRegistry* ops_ = nullptr;
  const KernelRegistry* kernels_ = nullptr;
  bool allow_soft_placement_ = false;
  // The placeholders that stand for the inputs of each type, which all ops share.
  std::map<DataType, Outputs> placeholders_;
};

using Callable = Program::Callable;

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_PROGRAM_H_
