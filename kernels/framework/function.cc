#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "weir/core/io/function_library.h"
#include "weir/core/runtime/float_mode.h"
#include "weir/core/runtime/function.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/kernels/lib/registry.h"

// Kernels that call functions. A callee is a plan of its own (session/runtime/functions.cc); the
// kernels decide which one to call, and how often. Arguments and results are in host memory.
//
// A callee that may block (on a queue, say) would occupy a thread of the pool that the work it
// waits for may need. Such a call runs in a thread of its own: rare and comparatively expensive,
// but free of deadlocks.
namespace weir {

namespace {

Tensors InputsFrom(const KernelContext& c, int first) {
  Tensors inputs;
  inputs.reserve(c.num_inputs() - first);
  for (int i = first; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
  return inputs;
}

void SetOutputs(KernelContext& c, Tensors values) {
  for (size_t i = 0; i < values.size(); ++i) c.SetOutput(static_cast<int>(i), std::move(values[i]));
}

DataTypes InputTypes(const Node& node, int first) {
  DataTypes types;
  for (int i = first; i < node.num_inputs(); ++i) types.push_back(BaseType(node.input_type(i)));
  return types;
}

DataTypes OutputTypes(const Node& node) {
  DataTypes types;
  for (int i = 0; i < node.num_outputs(); ++i) types.push_back(BaseType(node.output_type(i)));
  return types;
}

// Errors have TensorFlow's codes and messages; CheckResults returns INTERNAL there too.
absl::Status CheckArguments(const DataTypes& wanted, const DataTypes& given) {
  if (wanted.size() != given.size()) {
    return InvalidArgument("Expects ", wanted.size(), " arguments, but ", given.size(),
                           " is provided");
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (wanted[i] == given[i]) continue;
    return InvalidArgument("Expects arg[", i, "] to be ", DataTypeName(wanted[i]), " but ",
                           DataTypeName(given[i]), " is provided");
  }
  return absl::OkStatus();
}

absl::Status CheckResults(const DataTypes& wanted, const DataTypes& given) {
  if (wanted.size() != given.size()) {
    return Internal("Expect to produce ", wanted.size(), " tensors, but only get ", given.size());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (wanted[i] == given[i]) continue;
    return Internal("Expect ", i, "-th output is of type ", DataTypeName(wanted[i]), " but get ",
                    DataTypeName(given[i]));
  }
  return absl::OkStatus();
}

// The results of a loop's body are the next loop-carried values.
absl::Status CheckNextValues(absl::string_view loop, const DataTypes& wanted,
                             const DataTypes& given) {
  if (wanted.size() != given.size()) {
    return InvalidArgument(loop, " loop body returned ", given.size(),
                           " arguments. Expected: ", wanted.size());
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (wanted[i] == given[i]) continue;
    return InvalidArgument("Expected type ", DataTypeName(wanted[i]), " for return value ", i,
                           " but got ", DataTypeName(given[i]));
  }
  return absl::OkStatus();
}

// A function, and the error of calling it. As in TensorFlow, a mismatch is an error only when the
// call is made: a branch that is not taken may have any signature.
struct Callee {
  Function* function;
  absl::Status mismatch;

  absl::Status Call(KernelContext& c, absl::Span<const Tensor> args, Tensors* results) const {
    WEIR_RETURN_IF_ERROR(mismatch);
    return function->Call(c.step(), c.node(), args, results);
  }
};

// `check_results` is called with the function's result types.
template <class CheckResults>
absl::StatusOr<Callee> FindCallee(const KernelInit& init, const FunctionRef& ref,
                                  const DataTypes& args, const CheckResults& check_results) {
  WEIR_ASSIGN_OR_RETURN(Function * function, FindFunction(init, ref));
  absl::Status mismatch = CheckArguments(function->arg_types(), args);
  if (mismatch.ok()) mismatch = check_results(function->result_types());
  if (mismatch.ok()) return Callee{function, std::move(mismatch)};
  const std::string where = absl::StrCat("Function '", ref.name, "' does not fit its call: ");
  return Callee{function, absl::Status(mismatch.code(), absl::StrCat(where, mismatch.message()))};
}

absl::StatusOr<Callee> FindCallee(const KernelInit& init, const FunctionRef& ref,
                                  const DataTypes& args, const DataTypes& results) {
  return FindCallee(init, ref, args,
                    [&](const DataTypes& given) { return CheckResults(results, given); });
}

absl::StatusOr<Callee> FindBody(const KernelInit& init, absl::string_view loop,
                                const DataTypes& args, const DataTypes& values) {
  return FindCallee(init, init.attr<FunctionRef>("body"), args,
                    [&](const DataTypes& given) { return CheckNextValues(loop, values, given); });
}

absl::StatusOr<Callee> FindCondition(const KernelInit& init, const DataTypes& values) {
  return FindCallee(
      init, init.attr<FunctionRef>("cond"), values, [](const DataTypes& given) -> absl::Status {
        if (given.size() == 1) return absl::OkStatus();
        return InvalidArgument("Expected a single scalar return value from WhileOp cond, got ",
                               given.size(), " tensors.");
      });
}

absl::Status CallOnce(KernelContext& c, const Callee& f, absl::Span<const Tensor> args) {
  Tensors results;
  WEIR_RETURN_IF_ERROR(f.Call(c, args, &results));
  SetOutputs(c, std::move(results));
  return absl::OkStatus();
}

Kernel CallKernel(const std::vector<Callee>& callees, Kernel::Run run) {
  const bool may_wait = std::any_of(callees.begin(), callees.end(),
                                    [](const Callee& f) { return f.function->may_wait(); });
  if (!may_wait) return Kernel(std::move(run));
  return Kernel([run = std::move(run)](KernelContext& c, Kernel::Done done) {
    std::thread([&run, &c, done = std::move(done), mode = FloatMode::Current(),
                 memory = MemoryQuota::ShareCurrent()] {
      const ScopedFloatMode as_the_step(mode);
      const ScopedMemoryQuota of_the_step(memory.get());
      done(run(c));
    }).detach();
  });
}

absl::StatusOr<Kernel> MakeCallOf(const KernelInit& init, const FunctionRef& ref) {
  WEIR_ASSIGN_OR_RETURN(const Callee f,
                        FindCallee(init, ref, InputTypes(init.node, 0), OutputTypes(init.node)));
  return CallKernel({f}, [f](KernelContext& c) { return CallOnce(c, f, InputsFrom(c, 0)); });
}

// A missing function has another message and code for plain calls than for branches and loops.
absl::StatusOr<Kernel> MakeCall(const KernelInit& init) {
  const FunctionRef ref = CalleeOf(init.node);
  const auto& library = init.node.graph().functions();
  if (library == nullptr || library->FindDef(ref.name) == nullptr)
    return InvalidArgument("Failed to find function \"", ref.name, "\" in function library");
  return MakeCallOf(init, ref);
}

absl::StatusOr<Kernel> MakeSymbolicGradient(const KernelInit& init) {
  const FunctionRef ref{init.node.op_name(), std::make_shared<AttrMap>(init.node.attrs())};
  WEIR_ASSIGN_OR_RETURN(const Function* f, FindFunction(init, ref));
  const auto want = static_cast<size_t>(init.node.num_outputs()), got = f->result_types().size();
  if (got != want) {
    return InvalidArgument("SymGrad expects to return ", want, " tensor(s), but get ", got,
                           " tensor(s) instead.");
  }
  return MakeCallOf(init, ref);
}

absl::StatusOr<Kernel> MakeRemoteCall(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const Callee f,
                        FindCallee(init, init.attr<FunctionRef>("f"), InputTypes(init.node, 1),
                                   OutputTypes(init.node)));
  return CallKernel({f}, [f, functions = init.functions](KernelContext& c) -> absl::Status {
    if (c.input(0).num_elements() != 1) return InvalidArgument("target must be a scalar");
    WEIR_RETURN_IF_ERROR(functions->CheckDevice(*c.input_data<std::string>(0)));
    return CallOnce(c, f, InputsFrom(c, 1));
  });
}

absl::StatusOr<bool> IsTrue(const Tensor& value) {
  if (value.rank() > 0) return value.num_elements() > 0;
  bool is_true = false;
  if (value.dtype() == DT_BOOL) return value.scalar<bool>();
  if (value.dtype() == DT_STRING) return !value.scalar<std::string>().empty();
  if (DispatchType(value.dtype(), Numbers{},
                   [&]<class T>() { is_true = value.scalar<T>() != T(0); })) {
    return is_true;
  }
  return InvalidArgument(DataTypeName(value.dtype()), " cannot be converted to a boolean");
}

absl::StatusOr<Kernel> MakeIf(const KernelInit& init) {
  const DataTypes args = InputTypes(init.node, 1), results = OutputTypes(init.node);
  WEIR_ASSIGN_OR_RETURN(const Callee then_branch,
                        FindCallee(init, init.attr<FunctionRef>("then_branch"), args, results));
  WEIR_ASSIGN_OR_RETURN(const Callee else_branch,
                        FindCallee(init, init.attr<FunctionRef>("else_branch"), args, results));
  return CallKernel({then_branch, else_branch}, [=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const bool is_true, IsTrue(c.input(0)));
    return CallOnce(c, is_true ? then_branch : else_branch, InputsFrom(c, 1));
  });
}

absl::StatusOr<Kernel> MakeCase(const KernelInit& init) {
  const DataTypes args = InputTypes(init.node, 1), results = OutputTypes(init.node);
  std::vector<Callee> branches;
  for (const FunctionRef& ref : init.attr<std::vector<FunctionRef>>("branches")) {
    WEIR_ASSIGN_OR_RETURN(branches.emplace_back(), FindCallee(init, ref, args, results));
  }
  return CallKernel(branches, [branches](KernelContext& c) -> absl::Status {
    if (c.input(0).rank() > 0) return InvalidArgument("branch_index must be scalar");
    const int32_t index = *c.input_data<int32_t>(0);
    const auto last = static_cast<int32_t>(branches.size()) - 1;
    return CallOnce(c, branches[index < 0 || index > last ? last : index], InputsFrom(c, 1));
  });
}

absl::StatusOr<Kernel> MakeWhile(const KernelInit& init) {
  const DataTypes types = InputTypes(init.node, 0);
  WEIR_ASSIGN_OR_RETURN(const Callee cond, FindCondition(init, types));
  WEIR_ASSIGN_OR_RETURN(const Callee body, FindBody(init, "While", types, types));
  return CallKernel({cond, body}, [cond, body](KernelContext& c) -> absl::Status {
    Tensors vars = InputsFrom(c, 0), next;
    for (;;) {
      WEIR_RETURN_IF_ERROR(cond.Call(c, vars, &next));
      WEIR_ASSIGN_OR_RETURN(const bool goes_on, IsTrue(next[0]));
      if (!goes_on) break;
      WEIR_RETURN_IF_ERROR(body.Call(c, vars, &next));
      vars.swap(next);
    }
    SetOutputs(c, std::move(vars));
    return absl::OkStatus();
  });
}

absl::StatusOr<int64_t> ReadBound(const KernelContext& c, int i, absl::string_view name) {
  if (c.input(i).rank() == 0) return *c.input_data<int32_t>(i);
  return InvalidArgument(name, " must be a scalar, but ", c.input(i).shape().ToString());
}

absl::StatusOr<Kernel> MakeFor(const KernelInit& init) {
  const DataTypes types = InputTypes(init.node, 3);
  DataTypes args = {DT_INT32};
  args.insert(args.end(), types.begin(), types.end());
  WEIR_ASSIGN_OR_RETURN(const Callee body, FindBody(init, "For", args, types));
  return CallKernel({body}, [body](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const int64_t start, ReadBound(c, 0, "start"));
    WEIR_ASSIGN_OR_RETURN(const int64_t limit, ReadBound(c, 1, "limit"));
    WEIR_ASSIGN_OR_RETURN(const int64_t delta, ReadBound(c, 2, "delta"));
    const bool ends = start == limit || (start < limit ? delta > 0 : delta < 0);
    if (!ends) {
      return InvalidArgument("Invalid start/limit/delta: ", start, " ", limit, " ", delta);
    }
    Tensors vars = InputsFrom(c, 2), next;
    for (int64_t i = start; start < limit ? i < limit : i > limit; i += delta) {
      vars[0] = Tensor::Scalar(static_cast<int32_t>(i));
      WEIR_RETURN_IF_ERROR(body.Call(c, vars, &next));
      std::move(next.begin(), next.end(), vars.begin() + 1);
    }
    for (size_t i = 1; i < vars.size(); ++i)
      c.SetOutput(static_cast<int>(i) - 1, std::move(vars[i]));
    return absl::OkStatus();
  });
}

absl::Status ToBool(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const bool is_true, IsTrue(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
  *output->data<bool>() = is_true;
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeFakeParam(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("dtype");
  Shape shape = init.attr<Shape>("shape");
  if (!shape.has_rank()) shape = Shape({0});
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) < 0) shape.set_dim(i, 0);
  }
  return Kernel([dtype, shape](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(HostAllocator(), dtype, shape));
    if (IsPlain(dtype)) std::fill_n(static_cast<char*>(zeros.raw()), zeros.num_bytes(), 0);
    c.SetOutput(0, std::move(zeros));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeDeviceIndex(const KernelInit& init) {
  const auto names = init.attr<std::vector<std::string>>("device_names");
  const auto at = std::find(names.begin(), names.end(), init.device.place().name());
  return Kernel::Constant(Tensor::Scalar(static_cast<int32_t>(at - names.begin())));
}

absl::Status NoArgument(KernelContext& c) {
  return FailedPrecondition(
      "argument ", c.node().attr<int64_t>("index"),
      " of a function has no value: the function body runs outside of a call");
}

// No-op: reads share the variable's memory already.
absl::Status DisableCopyOnRead(KernelContext&) { return absl::OkStatus(); }

}  // namespace

void AddFunctionKernels(KernelRegistry* r) {
  const std::pair<const char*, absl::StatusOr<Kernel> (*)(const KernelInit&)> callers[] = {
      {"Case", MakeCase},
      {"For", MakeFor},
      {"If", MakeIf},
      {"PartitionedCall", MakeCall},
      {"RemoteCall", MakeRemoteCall},
      {"StatefulPartitionedCall", MakeCall},
      {"StatelessCase", MakeCase},
      {"StatelessIf", MakeIf},
      {"StatelessWhile", MakeWhile},
      {"SymbolicGradient", MakeSymbolicGradient},
      {"While", MakeWhile},
  };
  for (const auto& [op, make] : callers) r->Add(op, kCpu, make).HostArgs({kAllArgs});
  r->Add("_Arg", kCpu, NoArgument);
  r->Add("DeviceIndex", kCpu, MakeDeviceIndex);
  r->Add("DisableCopyOnRead", kCpu, DisableCopyOnRead);
  r->Add("FakeParam", kCpu, MakeFakeParam);
  r->Add("ToBool", kCpu, ToBool);
}

}  // namespace weir
