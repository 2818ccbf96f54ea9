#include "weir/serving/inference.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "weir/serving/shown_name.h"

// The checks of signatures and results, and the texts of their errors, are those of TensorFlow
// Serving's classifier.cc and regressor.cc.
namespace weir::serving {
namespace {

constexpr char kDefaultSignature[] = "serving_default";
constexpr char kInputs[] = "inputs";
constexpr char kClasses[] = "classes";
constexpr char kScores[] = "scores";
constexpr char kOutputs[] = "outputs";

// "DT_FLOAT".
std::string WireName(DataType dtype) {
  return absl::StrCat("DT_", absl::AsciiStrToUpper(DataTypeName(dtype)));
}

std::string NameOf(const std::string& signature) {
  return signature.empty() ? kDefaultSignature : signature;
}

// The kind of a call on examples: "classification", and the method of its signatures.
struct Kind {
  const char* name;
  const char* method;
};
constexpr Kind kClassify = {"classification", "tensorflow/serving/classify"};
constexpr Kind kRegress = {"regression", "tensorflow/serving/regress"};

absl::StatusOr<const SignatureInfo*> FindSignature(const Servable& servable,
                                                   const std::string& signature, const Kind& kind) {
  const auto found = servable.signatures().find(signature);
  if (found == servable.signatures().end()) {
    std::vector<std::string> names;
    for (const auto& [name, info] : servable.signatures()) names.push_back(name);
    return InvalidArgument("No signature was found with the name: ", ShownName(signature),
                           "; the model has: ", absl::StrJoin(names, ","));
  }
  const SignatureInfo& info = found->second;
  if (info.method_name != kind.method) {
    return InvalidArgument("Expected ", kind.name, " signature method_name to be ", kind.method,
                           ". Was: ", info.method_name);
  }
  if (info.inputs.size() != 1) return InvalidArgument("Expected one input Tensor.");
  if (info.inputs.count(kInputs) == 0)
    return FailedPrecondition("No ", kind.name, " inputs found in SignatureDef: expected '",
                              kInputs, "', found '", info.inputs.begin()->first, "'");
  return &info;
}

// Returns the examples as the tensor that a signature takes. Concatenated messages are one message
// with the features of both.
absl::StatusOr<Tensor> ToTensor(const Examples& examples) {
  if (examples.examples.empty()) return InvalidArgument("Input is empty.");
  const Shape shape({static_cast<int64_t>(examples.examples.size())});
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), DT_STRING, shape));
  std::string* out = tensor.data<std::string>();
  for (const std::string& example : examples.examples) *out++ = examples.context + example;
  return tensor;
}

// A call on examples that has been checked and run.
struct Call {
  std::shared_ptr<const Servable> servable;
  std::string signature;
  NamedTensors outputs;
  Answered by() const { return {servable->name(), servable->version(), signature}; }
};

absl::StatusOr<Call> Run(ModelManager& models, std::shared_ptr<const Servable> servable,
                         const std::string& signature, const std::vector<std::string>& outputs,
                         const Examples& examples, const RunOptions& options, Priority priority) {
  WEIR_ASSIGN_OR_RETURN(Tensor input, ToTensor(examples));
  Call call{std::move(servable), NameOf(signature), {}};
  WEIR_ASSIGN_OR_RETURN(call.outputs,
                        models.Run(*call.servable, call.signature, {{kInputs, std::move(input)}},
                                   outputs, options, priority));
  return call;
}

const Tensor* Find(const NamedTensors& outputs, const char* name) {
  const auto found = outputs.find(name);
  return found != outputs.end() ? &found->second : nullptr;
}

// Checks that a result of Classify, if there is one, has a row for each example.
absl::Status CheckClassOutput(const Tensor* output, const char* name, DataType dtype,
                              int64_t num_examples) {
  if (output == nullptr) return absl::OkStatus();
  if (output->rank() != 2) {
    return InvalidArgument("Expected Tensor shape: [batch_size num_classes] but got ",
                           output->shape().ToString());
  }
  if (output->dtype() != dtype) {
    return InvalidArgument("Expected ", name, " Tensor of ", WireName(dtype),
                           ". Got: ", WireName(output->dtype()));
  }
  if (output->dim(0) != num_examples) {
    return InvalidArgument("Expected ", name, " output batch size of ", num_examples,
                           ". Got: ", output->dim(0));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<Class>>> ToClasses(const NamedTensors& outputs,
                                                          int64_t num_examples) {
  const Tensor *classes = Find(outputs, kClasses), *scores = Find(outputs, kScores);
  WEIR_RETURN_IF_ERROR(CheckClassOutput(classes, kClasses, DT_STRING, num_examples));
  WEIR_RETURN_IF_ERROR(CheckClassOutput(scores, kScores, DT_FLOAT, num_examples));
  if (classes != nullptr && scores != nullptr && classes->dim(1) != scores->dim(1)) {
    return InvalidArgument("Tensors class and score should match in dim_size(1). Got ",
                           classes->dim(1), " vs. ", scores->dim(1));
  }
  const int64_t width = classes != nullptr ? classes->dim(1) : scores->dim(1);
  std::vector<std::vector<Class>> rows(num_examples, std::vector<Class>(width));
  for (int64_t i = 0; i < num_examples; ++i) {
    for (int64_t c = 0; c < width; ++c) {
      if (classes != nullptr) rows[i][c].label = classes->flat<std::string>()[i * width + c];
      if (scores != nullptr) rows[i][c].score = scores->flat<float>()[i * width + c];
    }
  }
  return rows;
}

absl::Status CheckRegression(const Tensor& output, int64_t num_examples) {
  if (output.rank() != 1 && !(output.rank() == 2 && output.dim(1) == 1)) {
    return InvalidArgument(
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got ",
        output.shape().ToString());
  }
  if (output.dim(0) != num_examples) {
    return InvalidArgument("Input batch size did not match output batch size: ", num_examples,
                           " vs. ", output.dim(0));
  }
  if (output.dtype() != DT_FLOAT) {
    return InvalidArgument("Expected output Tensor of DT_FLOAT.  Got: ", WireName(output.dtype()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Prediction> Predict(ModelManager& models, const ModelSpec& spec,
                                   const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs,
                                   const RunOptions& options, Priority priority) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<const Servable> servable, models.Find(spec));
  Prediction prediction{{servable->name(), servable->version(), NameOf(spec.signature)}, {}};
  WEIR_ASSIGN_OR_RETURN(prediction.outputs, models.Run(*servable, prediction.by.signature, inputs,
                                                       outputs, options, priority));
  return prediction;
}

absl::StatusOr<Classification> Classify(ModelManager& models, const ModelSpec& spec,
                                        const Examples& examples, const RunOptions& options,
                                        Priority priority) {
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable, models.Find(spec));
  return Classify(models, std::move(servable), spec.signature, examples, options, priority);
}

absl::StatusOr<Classification> Classify(ModelManager& models,
                                        std::shared_ptr<const Servable> servable,
                                        const std::string& signature, const Examples& examples,
                                        const RunOptions& options, Priority priority) {
  WEIR_ASSIGN_OR_RETURN(const SignatureInfo* info,
                        FindSignature(*servable, NameOf(signature), kClassify));
  if (info->outputs.empty() || info->outputs.size() > 2) {
    return InvalidArgument("Expected one or two output Tensors, found ", info->outputs.size());
  }
  std::vector<std::string> outputs;
  for (const char* name : {kClasses, kScores}) {
    if (info->outputs.count(name) > 0) outputs.push_back(name);
  }
  if (outputs.empty()) {
    return FailedPrecondition(
        "Expected classification signature outputs to contain at least one of \"", kClasses,
        "\" or \"", kScores, "\". Signature has: \"", info->outputs.begin()->first, "\"");
  }
  WEIR_ASSIGN_OR_RETURN(const Call call, Run(models, std::move(servable), signature, outputs,
                                             examples, options, priority));
  Classification result{call.by(), {}};
  WEIR_ASSIGN_OR_RETURN(result.classes,
                        ToClasses(call.outputs, static_cast<int64_t>(examples.examples.size())));
  return result;
}

absl::StatusOr<Regression> Regress(ModelManager& models, const ModelSpec& spec,
                                   const Examples& examples, const RunOptions& options,
                                   Priority priority) {
  WEIR_ASSIGN_OR_RETURN(std::shared_ptr<const Servable> servable, models.Find(spec));
  return Regress(models, std::move(servable), spec.signature, examples, options, priority);
}

absl::StatusOr<Regression> Regress(ModelManager& models, std::shared_ptr<const Servable> servable,
                                   const std::string& signature, const Examples& examples,
                                   const RunOptions& options, Priority priority) {
  WEIR_ASSIGN_OR_RETURN(const SignatureInfo* info,
                        FindSignature(*servable, NameOf(signature), kRegress));
  if (info->outputs.size() != 1) return InvalidArgument("Expected one output Tensor.");
  if (info->outputs.count(kOutputs) == 0) {
    return FailedPrecondition("No regression outputs found in SignatureDef: expected '", kOutputs,
                              "', found '", info->outputs.begin()->first, "'");
  }
  WEIR_ASSIGN_OR_RETURN(const Call call, Run(models, std::move(servable), signature, {kOutputs},
                                             examples, options, priority));
  const Tensor& output = call.outputs.at(kOutputs);
  WEIR_RETURN_IF_ERROR(CheckRegression(output, static_cast<int64_t>(examples.examples.size())));
  Regression result{call.by(), {}};
  result.values.assign(output.flat<float>().begin(), output.flat<float>().end());
  return result;
}

}  // namespace weir::serving
