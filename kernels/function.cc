#include <algorithm>
#include <thread>

#include "absl/strings/str_join.h"
#include "weir/core/float_mode.h"
#include "weir/core/function.h"
#include "weir/kernels/arguments.h"
#include "weir/kernels/registry.h"

// Nodes that call functions. A callee is a plan of its own (session/functions.cc); what is here
// chooses which one to run, and how often. Values that go in and out lie in host memory.
//
// A callee that may wait (for a queue, say) would keep a thread of the pool from those it waits
// for. Such a call is made in a thread of its own: rare, and dear beside the rest, but it cannot
// lock up.
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

std::string TypesText(const DataTypes& types) {
  return absl::StrCat(
      "(",
      absl::StrJoin(types, ", ", [](std::string* out, DataType t) { *out += DataTypeName(t); }),
      ")");
}

// The function, if it takes and gives these types.
absl::StatusOr<Function*> FindFunction(const KernelInit& init, const FunctionRef& ref,
                                       const DataTypes& args, const DataTypes& results) {
  WEIR_ASSIGN_OR_RETURN(Function * function, FindFunction(init, ref));
  if (function->arg_types() == args && function->result_types() == results) return function;
  return InvalidArgument("Function '", ref.name, "' is called with arguments ", TypesText(args),
                         " for results ", TypesText(results), ", but it takes ",
                         TypesText(function->arg_types()), " and gives ",
                         TypesText(function->result_types()));
}

absl::Status CallOnce(KernelContext& c, Function& f, absl::Span<const Tensor> args) {
  Tensors results;
  WEIR_RETURN_IF_ERROR(f.Call(c.step(), c.node(), args, &results));
  SetOutputs(c, std::move(results));
  return absl::OkStatus();
}

Kernel CallKernel(const std::vector<Function*>& callees, Kernel::Run run) {
  const bool may_wait =
      std::any_of(callees.begin(), callees.end(), [](const Function* f) { return f->may_wait(); });
  if (!may_wait) return Kernel(std::move(run));
  return Kernel([run = std::move(run)](KernelContext& c, Kernel::Done done) {
    std::thread([&run, &c, done = std::move(done), mode = FloatMode::Current()] {
      const ScopedFloatMode as_the_step(mode);
      done(run(c));
    }).detach();
  });
}

absl::StatusOr<Kernel> MakeCallOf(const KernelInit& init, const FunctionRef& ref) {
  WEIR_ASSIGN_OR_RETURN(Function * f,
                        FindFunction(init, ref, InputTypes(init.node, 0), OutputTypes(init.node)));
  return CallKernel({f}, [f](KernelContext& c) { return CallOnce(c, *f, InputsFrom(c, 0)); });
}

absl::StatusOr<Kernel> MakeCall(const KernelInit& init) {
  return MakeCallOf(init, CalleeOf(init.node));
}

absl::StatusOr<Kernel> MakeSymbolicGradient(const KernelInit& init) {
  const FunctionRef ref{init.node.op_name(), std::make_shared<AttrMap>(init.node.attrs())};
  WEIR_ASSIGN_OR_RETURN(const Function* f, FindFunction(init, ref));
  const auto want = static_cast<size_t>(init.node.num_outputs()), got = f->result_types().size();
  if (got != want) {
    return InvalidArgument("SymGrad expects to return ", want, " tensor(s), but get ", got,
                           " tensor(s) instead: the gradient function gives ",
                           TypesText(f->result_types()));
  }
  return MakeCallOf(init, ref);
}

absl::StatusOr<Kernel> MakeRemoteCall(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(Function * f,
                        FindFunction(init, init.attr<FunctionRef>("f"), InputTypes(init.node, 1),
                                     OutputTypes(init.node)));
  return CallKernel({f}, [f, functions = init.functions](KernelContext& c) -> absl::Status {
    if (c.input(0).num_elements() != 1) return InvalidArgument("target must be a scalar");
    WEIR_RETURN_IF_ERROR(functions->CheckDevice(*c.input_data<std::string>(0)));
    return CallOnce(c, *f, InputsFrom(c, 1));
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
  WEIR_ASSIGN_OR_RETURN(Function * then_branch,
                        FindFunction(init, init.attr<FunctionRef>("then_branch"), args, results));
  WEIR_ASSIGN_OR_RETURN(Function * else_branch,
                        FindFunction(init, init.attr<FunctionRef>("else_branch"), args, results));
  return CallKernel({then_branch, else_branch}, [=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const bool is_true, IsTrue(c.input(0)));
    return CallOnce(c, is_true ? *then_branch : *else_branch, InputsFrom(c, 1));
  });
}

absl::StatusOr<Kernel> MakeCase(const KernelInit& init) {
  const DataTypes args = InputTypes(init.node, 1), results = OutputTypes(init.node);
  std::vector<Function*> branches;
  for (const FunctionRef& ref : init.attr<std::vector<FunctionRef>>("branches")) {
    WEIR_ASSIGN_OR_RETURN(branches.emplace_back(), FindFunction(init, ref, args, results));
  }
  return CallKernel(branches, [branches](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(0), "branch_index"));
    const auto last = static_cast<int64_t>(branches.size()) - 1;
    return CallOnce(c, *branches[index < 0 || index > last ? last : index], InputsFrom(c, 1));
  });
}

absl::StatusOr<Kernel> MakeWhile(const KernelInit& init) {
  const DataTypes types = InputTypes(init.node, 0);
  const FunctionRef cond_ref = init.attr<FunctionRef>("cond");
  WEIR_ASSIGN_OR_RETURN(Function * cond, FindFunction(init, cond_ref));
  if (cond->arg_types() != types || cond->result_types().size() != 1) {
    return InvalidArgument("The condition '", cond_ref.name, "' takes ",
                           TypesText(cond->arg_types()), " and gives ",
                           TypesText(cond->result_types()), ", but the loop has ", TypesText(types),
                           " and needs one result");
  }
  WEIR_ASSIGN_OR_RETURN(Function * body,
                        FindFunction(init, init.attr<FunctionRef>("body"), types, types));
  return CallKernel({cond, body}, [cond, body](KernelContext& c) -> absl::Status {
    Tensors vars = InputsFrom(c, 0), next;
    for (;;) {
      WEIR_RETURN_IF_ERROR(cond->Call(c.step(), c.node(), vars, &next));
      WEIR_ASSIGN_OR_RETURN(const bool goes_on, IsTrue(next[0]));
      if (!goes_on) break;
      WEIR_RETURN_IF_ERROR(body->Call(c.step(), c.node(), vars, &next));
      vars.swap(next);
    }
    SetOutputs(c, std::move(vars));
    return absl::OkStatus();
  });
}

absl::StatusOr<Kernel> MakeFor(const KernelInit& init) {
  const DataTypes types = InputTypes(init.node, 3);
  DataTypes args = {DT_INT32};
  args.insert(args.end(), types.begin(), types.end());
  WEIR_ASSIGN_OR_RETURN(Function * body,
                        FindFunction(init, init.attr<FunctionRef>("body"), args, types));
  return CallKernel({body}, [body](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const int64_t start, ReadInt(c.input(0), "start"));
    WEIR_ASSIGN_OR_RETURN(const int64_t limit, ReadInt(c.input(1), "limit"));
    WEIR_ASSIGN_OR_RETURN(const int64_t delta, ReadInt(c.input(2), "delta"));
    const bool ends = start == limit || (start < limit ? delta > 0 : delta < 0);
    if (!ends) {
      return InvalidArgument("Invalid start/limit/delta: ", start, " ", limit, " ", delta);
    }
    Tensors vars = InputsFrom(c, 2), next;
    for (int64_t i = start; start < limit ? i < limit : i > limit; i += delta) {
      vars[0] = Tensor::Scalar(static_cast<int32_t>(i));
      WEIR_RETURN_IF_ERROR(body->Call(c.step(), c.node(), vars, &next));
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
  const char* const kind = init.device.place() == kCpu ? "CPU" : "GPU";
  const auto at = std::find(names.begin(), names.end(), kind);
  return Kernel::Constant(Tensor::Scalar(static_cast<int32_t>(at - names.begin())));
}

absl::Status NoArgument(KernelContext& c) {
  return FailedPrecondition("argument ", c.node().attr<int64_t>("index"),
                            " of a function has no value: it is not run by a call");
}

// Reads share the variable's memory already.
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
  for (const auto& [op, make] : callers) {
    // On an accelerator too, so that variables whose handles are captured may lie there.
    for (const Place place : {kCpu, kGpu}) r->Add(op, place, make).HostArgs({kAllArgs});
  }
  r->Add("_Arg", kCpu, NoArgument);
  r->Add("_Arg", kGpu, NoArgument);
  r->Add("DeviceIndex", kCpu, MakeDeviceIndex);
  r->Add("DeviceIndex", kGpu, MakeDeviceIndex).HostArgs({kAllArgs});
  r->Add("DisableCopyOnRead", kCpu, DisableCopyOnRead);
  r->Add("DisableCopyOnRead", kGpu, DisableCopyOnRead).HostArgs({kAllArgs});
  r->Add("FakeParam", kCpu, MakeFakeParam);
  r->Add("ToBool", kCpu, ToBool);
}

}  // namespace weir
