#include <array>

#include "absl/strings/match.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/json_response.h"
#include "weir/tests/fuzz/targets.h"

// The bodies of REST requests: the first byte selects a signature, the rest is the text. What is
// accepted is written as a response, and that response is a request with the same tensors.
namespace weir::fuzz {

namespace {

using rpc::JsonPredictRequest;
using rpc::ParsePredictRequest;
using rpc::PredictResponse;

constexpr std::array<DataType, 14> kTypes = {DT_FLOAT,  DT_DOUBLE, DT_HALF,  DT_BFLOAT16, DT_INT8,
                                             DT_INT16,  DT_INT32,  DT_INT64, DT_UINT8,    DT_UINT16,
                                             DT_UINT32, DT_UINT64, DT_BOOL,  DT_STRING};

// Signatures of one input, and of two.
serving::SignatureInfo SignatureOf(uint8_t selector) {
  const size_t type = selector % kTypes.size();
  serving::SignatureInfo signature;
  signature.inputs["x_bytes"] = {"x:0", kTypes[type], Shape::UnknownRank()};
  if (selector >= 128)
    signature.inputs["b64"] = {"y:0", kTypes[(type + 5) % kTypes.size()], Shape::UnknownRank()};
  return signature;
}

bool SameTensors(const serving::NamedTensors& a, const serving::NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || tensor.shape() != other->second.shape()) return false;
    // The bits of NaNs are not kept.
    const bool has_nans = IsFloating(tensor.dtype());
    const bool is_same = has_nans ? tensor.ToString(1 << 20) == other->second.ToString(1 << 20)
                                  : IdenticalTensors(tensor, other->second);
    if (!is_same) return false;
  }
  return true;
}

void CheckRoundTrip(const JsonPredictRequest& request, const serving::SignatureInfo& signature) {
  const auto written = PredictResponse(request.inputs, request.by_rows, size_t{1} << 30);
  if (!written.ok()) {  // a string in "b64" that is not UTF-8
    Require(absl::IsInvalidArgument(written.status()), "a response is written");
    return;
  }
  std::string text = *written;
  const std::string name = request.by_rows ? "predictions" : "outputs";
  text.replace(text.find(name), name.size(), request.by_rows ? "instances" : "inputs");
  const auto again = ParsePredictRequest(text, [&](const std::string&) { return &signature; });
  Require(again.ok(), "a response is a request");
  Require(SameTensors(request.inputs, again->inputs), "with the same tensors");
}

}  // namespace

void Json(absl::string_view bytes) {
  Input in(bytes);
  const serving::SignatureInfo signature = SignatureOf(in.Byte());
  const absl::string_view text = in.RemainingBytes();
  const auto request = ParsePredictRequest(text, [&](const std::string&) { return &signature; });
  if (request.ok()) CheckRoundTrip(*request, signature);
  const auto examples = rpc::ParseExamplesRequest(text);
  if (examples.ok()) Require(!examples->examples.examples.empty(), "there are examples");
}

std::vector<Row> Rows() { return {{"json", Json, 4000}}; }

}  // namespace weir::fuzz
