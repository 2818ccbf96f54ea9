#include <algorithm>
#include <cstring>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/math/scalar_program.h"

// _ScalarLoop: a while loop in which all loop-carried values and all intermediate values are
// scalars. A session creates it from a structured loop (session/passes/fuse_scalar_loops.cc). In
// the executor an iteration of such a loop costs a few hundred nanoseconds, of which the arithmetic
// takes two or three.
namespace weir {

namespace {

using Cell = ScalarProgram::Cell;

struct ScalarLoop {
  ScalarProgram program;
  int num_variables = 0;
  int num_condition_ops = 0;  // the program's first ops
  int condition = 0;          // a value
  std::vector<int> next;      // by loop-carried value: the value at the end of the body

  absl::Status operator()(KernelContext& c) const {
    Cell values[kMaxScalars];
    for (int k = 0; k < program.num_arguments(); ++k) {
      const Tensor& argument = c.input(k);
      if (argument.rank() != 0) {
        return InvalidArgument("argument ", k, " of a scalar loop must be a scalar, but has shape ",
                               argument.shape().ToString());
      }
      std::memcpy(&values[k], argument.raw(), ElementSize(program.type(k)));
    }
    Iterate(values);
    for (int k = 0; k < num_variables; ++k) {
      Tensor* out = c.PlannedOutput(k, Shape());
      if (out == nullptr) {
        WEIR_ASSIGN_OR_RETURN(out, c.AllocateOutput(k, Shape()));
      }
      std::memcpy(out->raw(), &values[k], ElementSize(program.type(k)));
    }
    return absl::OkStatus();
  }

  void Iterate(Cell* values) const {
    Cell next_values[kMaxScalars];
    for (int64_t i = 1;; ++i) {
      program.Run(0, num_condition_ops, values);
      uint8_t continues;
      std::memcpy(&continues, &values[condition], sizeof(continues));
      if (continues == 0) return;
      program.Run(num_condition_ops, program.num_ops(), values);
      for (int k = 0; k < num_variables; ++k) next_values[k] = values[next[k]];
      std::copy_n(next_values, num_variables, values);
      ThrowIfCancelledAt(i);
    }
  }
};

absl::StatusOr<Kernel> MakeScalarLoop(const KernelInit& init) {
  const Node& node = init.node;
  std::vector<DataType> types;
  for (int k = 0; k < node.num_inputs(); ++k) types.push_back(node.input_type(k));
  WEIR_ASSIGN_OR_RETURN(
      ScalarProgram program,
      ScalarProgram::Create(node, init.attr<std::vector<std::string>>("fused_ops"), types));
  ScalarLoop loop{.num_variables = node.num_outputs()};
  const int64_t condition_ops = init.attr<int64_t>("num_condition_ops");
  const int64_t condition = init.attr<int64_t>("condition");
  const auto next = init.attr<std::vector<int64_t>>("next");
  const int64_t known = program.num_arguments() + condition_ops;
  if (condition_ops < 0 || condition_ops > program.num_ops() || condition < 0 ||
      condition >= known || program.type(static_cast<int>(condition)) != DT_BOOL) {
    return InvalidArgument("the condition, value ", condition,
                           ", is not a bool among the arguments and the results of the first ",
                           condition_ops, " ops");
  }
  for (int k = 0; k < node.num_outputs(); ++k) {
    const int64_t value = k < static_cast<int>(next.size()) ? next[k] : -1;
    if (value < 0 || value >= program.num_values() ||
        program.type(static_cast<int>(value)) != node.output_type(k) ||
        !IsScalarType(node.output_type(k))) {
      return InvalidArgument("loop variable ", k, " has no value of type ",
                             DataTypeName(node.output_type(k)), " for the next iteration");
    }
    loop.next.push_back(static_cast<int>(value));
  }
  loop.program = std::move(program);
  loop.num_condition_ops = static_cast<int>(condition_ops);
  loop.condition = static_cast<int>(condition);
  return Kernel(std::move(loop));
}

}  // namespace

void AddScalarLoopKernels(KernelRegistry* r) { r->Add("_ScalarLoop", kCpu, MakeScalarLoop); }

}  // namespace weir
