#include "weir/tests/onnx/node_case.h"

#include <cmath>
#include <complex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/core/io/record.h"
#include "weir/onnx/onnx_import.h"
#include "weir/onnx/tensor_reader.h"
#include "weir/proto/onnx.pb.h"
#include "weir/session/session.h"

namespace weir::onnx {

namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

absl::StatusOr<std::vector<std::string>> ReadNumbered(const std::string& prefix) {
  std::vector<std::string> out;
  for (int i = 0; Files().Exists(absl::StrCat(prefix, i, ".pb")); ++i) {
    WEIR_ASSIGN_OR_RETURN(out.emplace_back(), ReadFile(absl::StrCat(prefix, i, ".pb")));
  }
  return out;
}

// ---- comparison

template <class T>
double Distance(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string>)
    return a == b ? 0 : INFINITY;
  else if constexpr (std::is_same_v<T, std::complex<float>> ||
                     std::is_same_v<T, std::complex<double>>)
    return static_cast<double>(std::abs(a - b));
  else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
                     std::is_floating_point_v<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
    return std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : INFINITY;
  } else if constexpr (std::is_integral_v<T>)
    return a == b ? 0 : std::abs(static_cast<double>(a) - static_cast<double>(b));
  else
    return a == b ? 0 : INFINITY;  // compared as bits
}

template <class T>
double Size(const T& a) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return static_cast<double>(std::abs(a));
  else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
                     std::is_floating_point_v<T> || std::is_integral_v<T>)
    return std::abs(static_cast<double>(a));
  else
    return 0;
}

absl::Status CompareTensors(const Tensor& have, const Tensor& want) {
  if (have.dtype() != want.dtype() || have.shape() != want.shape())
    return DataLoss("it is ", have.Description(), "; expected ", want.Description());
  absl::Status status;
  const double relative = have.dtype() == DT_BFLOAT16 ? 1.0 / 64
                          : have.dtype() == DT_HALF   ? 1.0 / 512
                                                      : kRelative;
  const auto compare = [&]<class T>() {
    for (int64_t i = 0; i < have.num_elements(); ++i) {
      const T &a = have.data<T>()[i], &b = want.data<T>()[i];
      const double distance = Distance(a, b);
      if (distance == 0 || distance <= kAbsolute + relative * Size(b)) continue;
      status = DataLoss("element ", i, " differs; it is\n", have.ToString(), "\nexpected\n",
                        want.ToString());
      return;
    }
  };
  using Compared =
      JoinLists<Floats, Complexes, SignedIntegers, UnsignedIntegers, List<bool, std::string>>;
  if (DispatchType(have.dtype(), Compared(), compare)) return status;
  const bool equal = std::equal(static_cast<const char*>(have.raw()),
                                static_cast<const char*>(have.raw()) + have.num_bytes(),
                                static_cast<const char*>(want.raw()));
  return equal ? absl::OkStatus() : DataLoss("bits of ", have.Description(), " differ");
}

absl::StatusOr<Tensor> ParseTensor(const std::string& bytes) {
  proto::onnx::TensorProto def;
  if (!def.ParseFromString(bytes) || def.data_type() == 0)
    return Unimplemented("the case has a value that is not a tensor");
  return TensorReader("").Read(def);
}

}  // namespace

absl::StatusOr<NodeCase> ReadNodeCase(const std::string& folder) {
  NodeCase out{.name = std::string(BaseName(folder))};
  WEIR_ASSIGN_OR_RETURN(out.model, ReadFile(JoinPath(folder, "model.onnx")));
  proto::onnx::ModelProto model;
  if (!model.ParseFromString(out.model) || model.graph().node_size() == 0)
    return InvalidArgument(folder, ": no model");
  out.op = model.graph().node(model.graph().node_size() - 1).op_type();
  WEIR_ASSIGN_OR_RETURN(out.inputs, ReadNumbered(JoinPath(folder, "test_data_set_0/input_")));
  WEIR_ASSIGN_OR_RETURN(out.outputs, ReadNumbered(JoinPath(folder, "test_data_set_0/output_")));
  return out;
}

// A record with name, operator and the numbers of inputs and outputs goes before the messages.
absl::Status WriteNodeCases(const std::vector<NodeCase>& cases, const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordWriter> writer, RecordWriter::Create(path));
  for (const NodeCase& each : cases) {
    WEIR_RETURN_IF_ERROR(writer->Append(
        absl::StrCat(each.name, " ", each.op, " ", each.inputs.size(), " ", each.outputs.size())));
    WEIR_RETURN_IF_ERROR(writer->Append(each.model));
    for (const std::string& input : each.inputs) WEIR_RETURN_IF_ERROR(writer->Append(input));
    for (const std::string& output : each.outputs) WEIR_RETURN_IF_ERROR(writer->Append(output));
  }
  return writer->Close();
}

absl::StatusOr<std::vector<NodeCase>> ReadNodeCases(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RecordReader> reader, RecordReader::Open(path));
  const auto next = [&]() -> absl::StatusOr<std::string> {
    WEIR_ASSIGN_OR_RETURN(std::optional<std::string> record, reader->Next());
    if (!record) return DataLoss(path, " ends within a case");
    return *std::move(record);
  };
  std::vector<NodeCase> cases;
  while (true) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> head, reader->Next());
    if (!head) return cases;
    const std::vector<std::string> words = absl::StrSplit(*head, ' ');
    if (words.size() != 4) return DataLoss(path, ": '", *head, "' is no head of a case");
    NodeCase& out = cases.emplace_back(NodeCase{.name = words[0], .op = words[1]});
    WEIR_ASSIGN_OR_RETURN(out.model, next());
    for (int i = 0; i < std::stoi(words[2]); ++i) {
      WEIR_ASSIGN_OR_RETURN(out.inputs.emplace_back(), next());
    }
    for (int i = 0; i < std::stoi(words[3]); ++i) {
      WEIR_ASSIGN_OR_RETURN(out.outputs.emplace_back(), next());
    }
  }
}

absl::Status RunNodeCase(const NodeCase& node_case) {
  proto::onnx::ModelProto def;
  if (!def.ParseFromString(node_case.model)) return InvalidArgument("no model");
  Graph graph;
  WEIR_ASSIGN_OR_RETURN(const MetaGraph meta, ImportOnnx(graph, node_case.model));
  const Signature& signature = meta.signatures.at("serving_default");
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph));
  Feeds feeds;
  for (size_t i = 0; i < node_case.inputs.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensor value, ParseTensor(node_case.inputs[i]));
    const auto input = signature.inputs.find(def.graph().input(static_cast<int>(i)).name());
    if (input == signature.inputs.end()) continue;
    WEIR_ASSIGN_OR_RETURN(const Output placeholder, graph.FindOutput(input->second));
    feeds.emplace_back(placeholder, value);
  }
  Outputs fetches;
  for (const auto& output : def.graph().output()) {
    WEIR_ASSIGN_OR_RETURN(fetches.emplace_back(),
                          graph.FindOutput(signature.outputs.at(output.name())));
  }
  WEIR_ASSIGN_OR_RETURN(const Tensors results, session.Run(feeds, fetches));
  for (size_t i = 0; i < results.size() && i < node_case.outputs.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensor want, ParseTensor(node_case.outputs[i]));
    WEIR_RETURN_IF_ERROR(Annotate(CompareTensors(results[i], want), absl::StrCat("output ", i)));
  }
  return absl::OkStatus();
}

}  // namespace weir::onnx
