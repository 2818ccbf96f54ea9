#include <memory>
#include <mutex>
#include <vector>

#include "weir/core/runtime/resource.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Stacks: the gradient of a loop uses them to access the values of the forward iterations, last one
// first. The step that runs the stack's op creates it; it is destroyed with the last handle to it.
namespace weir {

namespace {

class Stack final : public Resource {
 public:
  Stack(std::string name, DataType dtype, int64_t max_size)
      : name_(std::move(name)), dtype_(dtype), max_size_(max_size) {}

  std::string Describe() const override { return "stack '" + name_ + "'"; }
  void Clear() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    values_.clear();
  }

  absl::Status CheckType(DataType dtype) const {
    if (dtype == dtype_) return absl::OkStatus();
    return InvalidArgument("Must have type ", DataTypeName(dtype_), " but got ",
                           DataTypeName(dtype), " (stack '", name_, "')");
  }
  // `value` owns its memory.
  absl::Status Push(Tensor value) {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckOpen());
    if (max_size_ >= 0 && static_cast<int64_t>(values_.size()) >= max_size_)
      return InvalidArgument("Stack[", name_, "] overflowed its max_size (", max_size_, ")");
    values_.push_back(std::move(value));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Pop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckOpen());
    if (values_.empty()) return InvalidArgument("Stack[", name_, "] is empty when calling Pop().");
    Tensor value = std::move(values_.back());
    values_.pop_back();
    return value;
  }

 private:
  absl::Status CheckOpen() const {
    return closed_ ? InvalidArgument("Stack[", name_, "] has already been closed.")
                   : absl::OkStatus();
  }

  const std::string name_;
  const DataType dtype_;
  const int64_t max_size_;
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<Tensor> values_;
};

absl::StatusOr<Kernel> MakeStack(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("elem_type");
  std::string name = init.attr<std::string>("stack_name");
  if (name.empty()) name = init.node.name();
  return Kernel([dtype, name](KernelContext& c) -> absl::Status {
    int64_t max_size = -1;
    if (c.num_inputs() > 0) {
      WEIR_ASSIGN_OR_RETURN(max_size, ReadInt(c.input(0), "max_size"));
    }
    ResourceHandle handle;
    handle.device = c.device().text();
    handle.name = name;
    handle.resource = std::make_shared<Stack>(name, dtype, max_size);
    c.SetOutput(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  });
}

absl::Status Push(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, c.resource<Stack>(0));
  WEIR_RETURN_IF_ERROR(stack->CheckType(c.input(1).dtype()));
  WEIR_ASSIGN_OR_RETURN(Tensor value, c.Own(c.input(1)));
  WEIR_RETURN_IF_ERROR(stack->Push(std::move(value)));
  c.SetOutput(0, c.input(1));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakePop(const KernelInit& init) {
  const DataType dtype = init.attr<DataType>("elem_type");
  return Kernel([dtype](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, c.resource<Stack>(0));
    WEIR_RETURN_IF_ERROR(stack->CheckType(dtype));
    WEIR_ASSIGN_OR_RETURN(Tensor value, stack->Pop());
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

absl::Status Close(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<Stack> stack, c.resource<Stack>(0));
  stack->Clear();
  return absl::OkStatus();
}

}  // namespace

void AddStackKernels(KernelRegistry* r) {
  r->Add("StackV2", kCpu, MakeStack);
  r->Add("StackPushV2", kCpu, Push).Aliases({1});
  r->Add("StackPopV2", kCpu, MakePop);
  r->Add("StackCloseV2", kCpu, Close);
  // The legacy ops take a reference to their stack, and their signatures do not say that they
  // modify it.
  r->Add("Stack", kCpu, MakeStack);
  r->Add("StackPush", kCpu, Push).Aliases({1}).Writes({0});
  r->Add("StackPop", kCpu, MakePop).Writes({0});
  r->Add("StackClose", kCpu, Close).Writes({0});
}

}  // namespace weir
