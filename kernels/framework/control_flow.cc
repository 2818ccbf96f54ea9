#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/summarize.h"

// Control-flow kernels: ordering, branching, checks and printing. They report a dead output to the
// executor with SetOutputDead; the executor runs no kernel but Merge when an input is dead.
namespace weir {

namespace {

absl::Status NoOp(KernelContext&) { return absl::OkStatus(); }
absl::Status Switch(KernelContext& c) {
  const Tensor& pred = c.input(1);
  if (pred.rank() != 0) {
    return InvalidArgument("The second input must be a scalar, but it has shape ",
                           pred.shape().ToString());
  }
  const int side = *pred.data<bool>() ? 1 : 0;
  c.SetOutput(side, c.input(0));
  c.SetOutputDead(1 - side);
  return absl::OkStatus();
}

absl::Status SwitchN(KernelContext& c) {
  const Tensor& index = c.input(1);
  if (index.rank() != 0) {
    return InvalidArgument("The second input must be a scalar, but it has shape ",
                           index.shape().ToString());
  }
  const int last = c.num_outputs() - 1, given = *index.data<int32_t>();
  const int taken = given < 0 || given > last ? last : given;
  for (int i = 0; i <= last; ++i) {
    if (i != taken) c.SetOutputDead(i);
  }
  c.SetOutput(taken, c.input(0));
  return absl::OkStatus();
}

// The plan assumes that an output aliases at most one input, so the chosen value is copied if it is
// in the step's arena.
absl::Status Merge(KernelContext& c, const std::vector<Tensor>& indices) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input_is_dead(i)) continue;
    const Tensor& in = c.input(i);
    // Fast path: the loop counters pass through here.
    constexpr size_t kSmall = 64;
    const bool copies = in.num_bytes() <= kSmall && c.device().is_host();
    Tensor* const out = copies ? c.PlannedOutput(0, in.shape()) : nullptr;
    if (out != nullptr) {
      std::memmove(out->raw(), in.raw(), in.num_bytes());
    } else {
      WEIR_RETURN_IF_ERROR(OutputRun(c, 0, in, 0, in.shape()));
    }
    c.SetOutput(1, indices[static_cast<size_t>(i)]);
    return absl::OkStatus();
  }
  c.SetOutputDead(0);
  c.SetOutputDead(1);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMerge(const KernelInit& init) {
  std::vector<Tensor> indices;
  for (int i = 0; i < init.node.num_inputs(); ++i) indices.push_back(Tensor::Scalar<int32_t>(i));
  return Kernel([indices = std::move(indices)](KernelContext& c) { return Merge(c, indices); });
}

absl::Status RefSelect(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(0), "Index"));
  if (index < 0 || index >= c.num_inputs() - 1) {
    return InvalidArgument("Index must be in the range [0, ", c.num_inputs() - 1, ") but got ",
                           index);
  }
  c.SetOutput(0, c.input(static_cast<int>(index) + 1));
  return absl::OkStatus();
}

// Forwards references and values in a loop unchanged: the executor handles entering, leaving and
// iterating a frame.
absl::Status Pass(KernelContext& c) {
  c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeAssert(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t summarize, NarrowAttr(init.node, "summarize"));
  return Kernel([summarize](KernelContext& c) -> absl::Status {
    const Tensor& condition = c.input(0);
    if (condition.rank() != 0) {
      return InvalidArgument("In[0] should be a scalar: ", condition.shape().ToString());
    }
    if (*condition.data<bool>()) return absl::OkStatus();
    std::string message = "assertion failed: ";
    for (int i = 1; i < c.num_inputs(); ++i) {
      absl::StrAppend(&message, i > 1 ? " " : "", "[", Summarize(c.input(i), summarize), "]");
    }
    return absl::InvalidArgumentError(message);
  });
}

absl::StatusOr<Kernel> MakePrint(const KernelInit& init) {
  const std::string message = init.attr<std::string>("message");
  const int64_t first_n = init.attr<int64_t>("first_n");
  WEIR_ASSIGN_OR_RETURN(const int64_t summarize, NarrowAttr(init.node, "summarize"));
  const auto calls = std::make_shared<std::atomic<int64_t>>(0);
  return Kernel([=](KernelContext& c) -> absl::Status {
    c.SetOutput(0, c.input(0));
    if (first_n >= 0 && calls->fetch_add(1) >= first_n) return absl::OkStatus();
    std::string line = message;
    for (int i = 1; i < c.num_inputs(); ++i)
      absl::StrAppend(&line, "[", Summarize(c.input(i), summarize), "]");
    line += "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    return absl::OkStatus();
  });
}

constexpr absl::string_view kFilePrefix = "file://";

absl::Status WriteText(const std::string& stream, const std::string& text) {
  absl::string_view path = stream;
  if (absl::ConsumePrefix(&path, kFilePrefix)) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          Files().OpenAtEnd(std::string(path)));
    WEIR_RETURN_IF_ERROR(file->Append(text));
    return file->Close();
  }
  std::FILE* const file = stream == "stdout" ? stdout : stderr;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return written && std::fflush(file) == 0 ? absl::OkStatus()
                                           : DataLoss("Could not write to ", stream);
}

absl::StatusOr<Kernel> MakePrintV2(const KernelInit& init) {
  const std::string stream = init.attr<std::string>("output_stream"),
                    end = init.attr<std::string>("end");
  const bool known = stream == "stdout" || stream == "stderr" || stream == "log(info)" ||
                     stream == "log(warning)" || stream == "log(error)" ||
                     stream.compare(0, kFilePrefix.size(), kFilePrefix.data()) == 0;
  if (!known) {
    return InvalidArgument(
        "Unknown output stream: ", stream,
        ", Valid streams are: stdout, stderr, log(info), log(warning), log(error), file://<path>");
  }
  return Kernel([stream, end](KernelContext& c) -> absl::Status {
    if (c.input(0).rank() != 0) {
      return InvalidArgument("Input is expected to be scalar, but got ",
                             c.input(0).shape().ToString());
    }
    return WriteText(stream, *c.input(0).data<std::string>() + end);
  });
}

double Tiny(const KernelInit&) { return 20; }

}  // namespace

void AddControlFlowKernels(KernelRegistry* r) {
  r->Add("NoOp", kCpu, NoOp).Cost(Tiny);
  r->Add("ControlTrigger", kCpu, NoOp).AcceptsDead().Cost(Tiny);
  r->Add("Switch", kCpu, Switch).Aliases({0, 0}).HostArgs({"pred"}).Cost(Tiny);
  r->Add("RefSwitch", kCpu, Switch).HostArgs({"pred"}).Cost(Tiny);
  r->Add("_SwitchN", kCpu, SwitchN).HostArgs({"output_index"}).Cost(Tiny);
  r->Add("Merge", kCpu, MakeMerge).AcceptsDead().HostArgs({"value_index"});
  r->Add("RefMerge", kCpu, MakeMerge).AcceptsDead().HostArgs({"value_index"}).Cost(Tiny);
  r->Add("RefSelect", kCpu, RefSelect).HostArgs({"index"}).Cost(Tiny);
  for (const char* op : {"Enter", "Exit", "NextIteration", "LoopCond"}) {
    r->Add(op, kCpu, Pass).Aliases({0}).Cost(Tiny);
  }
  for (const char* op :
       {"RefIdentity", "RefEnter", "RefExit", "RefNextIteration", "DebugGradientRefIdentity"}) {
    r->Add(op, kCpu, Pass).Cost(Tiny);
  }
  r->Add("Assert", kCpu, MakeAssert).HostArgs({"condition", "data"});
  r->Add("Print", kCpu, MakePrint).Aliases({0}).HostArgs({"input", "data", "output"});
  r->Add("PrintV2", kCpu, MakePrintV2).HostArgs({"input"});
}

}  // namespace weir
