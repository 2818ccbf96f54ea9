#include "weir/capi/eager/op.h"
#include "weir/capi/session.h"
#include "weir/session/runtime/donated_feeds.h"

// Executions of ops: on the calling thread, or by an executor.

namespace weir::capi {

namespace {

// Returns whether the op may write over the tensor of an input: it is the only holder, and the
// memory was allocated here, not by the client, who may look at it.
bool MayTake(const TFE_TensorHandle& input) {
  if (input.is_shared()) return false;
  const BufferPtr& buffer = input.value().buffer();
  return buffer && buffer->unique() && buffer->allocator() != nullptr;
}

// Returns the error of a step in the words of TensorFlow's kernels, with the op.
absl::Status OpError(const absl::Status& error, const std::string& op) {
  const absl::Status bare = StepError(error);
  absl::string_view text = bare.message();
  text = text.substr(0, text.find("\n\t [[{{node "));
  return absl::Status(bare.code(), absl::StrCat(text, " [Op:", op, "]"));
}

// Runs an op. The values of `inputs` that nobody else holds may be used up.
absl::Status Run(const Callable& callable, absl::Span<TFE_TensorHandle* const> inputs,
                 Recorder& recorder, Tensors* outputs) {
  for (const TFE_TensorHandle* input : inputs) WEIR_RETURN_IF_ERROR(input->Wait());
  absl::InlinedVector<Tensor, 4> feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool takes = callable.may_overwrite[i] && MayTake(*inputs[i]);
    feeds.push_back(takes ? inputs[i]->Take() : inputs[i]->value());
  }
  const DonatedFeeds donated(absl::MakeSpan(feeds));
  const absl::Status status = recorder.Run(callable.op, callable.step, feeds, outputs);
  return status.ok() ? status : OpError(status, callable.op);
}

// An execution that waits in an executor. Holds references to its inputs and outputs.
class WaitingCall final : public EagerExecutor::Call {
 public:
  WaitingCall(std::shared_ptr<const Callable> callable, const TFE_Op& op)
      : callable_(std::move(callable)), recorder_(op.context->recorder) {
    for (TFE_TensorHandle* input : op.inputs) inputs_.push_back(input->Ref());
    for (const DataType type : callable_->output_types)
      outputs_.push_back(new TFE_TensorHandle(type));
  }
  ~WaitingCall() override {
    for (TFE_TensorHandle* input : inputs_) input->Unref();
    for (TFE_TensorHandle* output : outputs_) output->Unref();
  }

  absl::Span<TFE_TensorHandle* const> outputs() const { return outputs_; }
  absl::Status Run() override {
    Tensors values;
    WEIR_RETURN_IF_ERROR(capi::Run(*callable_, inputs_, *recorder_, &values));
    for (size_t i = 0; i < values.size(); ++i) outputs_[i]->Set(std::move(values[i]));
    return absl::OkStatus();
  }
  void Abort(const absl::Status& error) override {
    for (TFE_TensorHandle* output : outputs_) output->Fail(error);
  }

 private:
  const std::shared_ptr<const Callable> callable_;
  const std::shared_ptr<Recorder> recorder_;
  absl::InlinedVector<TFE_TensorHandle*, 4> inputs_, outputs_;
};

// Adds a call to an executor, and returns its outputs.
absl::Status Enqueue(EagerExecutor& executor, std::unique_ptr<WaitingCall> call,
                     TFE_TensorHandle** retvals) {
  absl::InlinedVector<TFE_TensorHandle*, 4> outputs;
  for (TFE_TensorHandle* output : call->outputs()) outputs.push_back(output->Ref());
  const absl::Status added = executor.Add(std::move(call));
  if (added.ok()) {
    std::copy(outputs.begin(), outputs.end(), retvals);
  } else {
    for (TFE_TensorHandle* output : outputs) output->Unref();
  }
  return added;
}

absl::Status CheckRoom(size_t num_outputs, TFE_TensorHandle* const* retvals, int num_retvals) {
  if (static_cast<int64_t>(num_outputs) > num_retvals) {
    return InvalidArgument("Expecting ", num_outputs, " outputs, but *num_retvals is ",
                           num_retvals);
  }
  if (retvals == nullptr && num_outputs > 0)
    return InvalidArgument("the array for ", num_outputs, " outputs is null");
  return absl::OkStatus();
}

absl::Status Execute(TFE_Op& op, TFE_TensorHandle** retvals, int* num_retvals) {
  WEIR_RETURN_IF_ERROR(op.error);
  if (std::optional<Tensor> value = DirectValue(op)) {
    WEIR_RETURN_IF_ERROR(CheckRoom(1, retvals, *num_retvals));
    retvals[0] = new TFE_TensorHandle(*std::move(value));
    *num_retvals = 1;
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const auto callable, op.context->Find(op.signature));
  const size_t count = callable->output_types.size();
  WEIR_RETURN_IF_ERROR(CheckRoom(count, retvals, *num_retvals));
  const std::shared_ptr<EagerExecutor> executor = op.context->ThreadExecutor();
  if (executor->is_async()) {
    WEIR_RETURN_IF_ERROR(Enqueue(*executor, std::make_unique<WaitingCall>(callable, op), retvals));
  } else {
    Tensors outputs;
    WEIR_RETURN_IF_ERROR(Run(*callable, op.inputs, *op.context->recorder, &outputs));
    for (size_t i = 0; i < count; ++i) retvals[i] = new TFE_TensorHandle(std::move(outputs[i]));
  }
  *num_retvals = static_cast<int>(count);
  return absl::OkStatus();
}

}  // namespace

}  // namespace weir::capi

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  if (weir::capi::HaveAll("TFE_Execute", {op, num_retvals}, status))
    weir::capi::SetStatus(status, weir::capi::Execute(*op, retvals, num_retvals));
}
