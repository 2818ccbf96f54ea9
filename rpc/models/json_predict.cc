#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/rpc/models/json_events.h"
#include "weir/rpc/models/json_request.h"
#include "weir/rpc/models/json_store.h"

namespace weir::rpc {

namespace {

using serving::SignatureInfo;
using serving::TensorInfo;

constexpr size_t kMaxInputs = 1000;
constexpr int64_t kMaxExpansion = 4;  // bytes of tensors for each byte of text
constexpr int64_t kSmallBytes = int64_t{64} << 20;

// Finds the shape of nested lists, whose rank is known at the first value or empty list, and each
// extent at the end of the first list of its level.
class ShapeFinder {
 public:
  absl::Status Value() {
    if (rank_ < 0) rank_ = level();
    if (level() != rank_) {
      return InvalidArgument("JSON Value found at incorrect level: ", level() + 1,
                             " in the JSON DOM. Expected at level: ", rank_ + 1);
    }
    CountItem();
    return absl::OkStatus();
  }
  absl::Status BeginList() {
    if (rank_ >= 0 && level() >= rank_) {
      return InvalidArgument("Encountered list at unexpected level: ", level(), " expected < ",
                             rank_);
    }
    if (level() >= Shape::kMaxRank)
      return InvalidArgument("A tensor has at most ", Shape::kMaxRank, " dimensions");
    CountItem();
    counts_.push_back(0);
    return absl::OkStatus();
  }
  absl::Status EndList() {
    const int64_t count = counts_.back();
    counts_.pop_back();
    if (extents_.size() <= counts_.size()) extents_.resize(counts_.size() + 1, -1);
    int64_t& extent = extents_[counts_.size()];
    if (extent < 0) extent = count;
    if (extent != count) {
      return InvalidArgument("Encountered list at unexpected size: ", count, " at level: ", level(),
                             " expected size: ", extent);
    }
    if (count == 0) rank_ = level() + 1;
    return absl::OkStatus();
  }
  absl::StatusOr<Shape> Found() const { return Shape::Make(extents_); }

 private:
  int level() const { return static_cast<int>(counts_.size()); }
  void CountItem() {
    if (!counts_.empty()) ++counts_.back();
  }

  int rank_ = -1;
  std::vector<int64_t> extents_, counts_;  // by level; counts of lists that have not ended
};

// An input: its shape after the first pass, its values after the second one.
struct Input {
  ShapeFinder shape;
  Tensor tensor;
  int64_t next = 0;  // the element that is stored next
  int64_t row = -1;  // the latest object that had it
};

// Both passes over a request. The first one accepts inputs of any name, because the signature may
// be named behind them; the input without a name is "".
class RequestParser final : public JsonHandler {
 public:
  const std::string& signature() const { return signature_; }
  bool by_rows() const { return by_rows_; }
  bool is_named() const { return is_named_; }
  std::map<std::string, Input>& inputs() { return inputs_; }

  absl::Status FinishFirstPass() {
    if (keys_.count("instances") + keys_.count("inputs") == 0)
      return InvalidArgument("Missing 'inputs' or 'instances' key");
    is_storing_ = true;
    keys_.clear();
    for (auto& [name, input] : inputs_) input.row = -1;
    return absl::OkStatus();
  }

  absl::Status Scalar(JsonScalar& value) override {
    if (depth_ == 0) return InvalidArgument("JSON Value: ", value.ToString(), " Is not object");
    if (field_ == Field::kOther) return absl::OkStatus();
    if (field_ == Field::kSignature) {
      if (value.kind != JsonScalar::Kind::kString)
        return InvalidArgument("'signature_name' key must be a string value.");
      signature_ = std::move(value.text);
      return absl::OkStatus();
    }
    WEIR_RETURN_IF_ERROR(BeginValue(/*is_list=*/false));
    WEIR_RETURN_IF_ERROR(Locate(is_storing_ ? StoreNext(value) : input_->shape.Value()));
    EndUnnamedRow();
    return absl::OkStatus();
  }

  absl::Status BeginList() override {
    if (depth_ == 0) return InvalidArgument("JSON Value is a list, and not object");
    ++depth_;
    if (field_ == Field::kSignature)
      return InvalidArgument("'signature_name' key must be a string value.");
    if (field_ == Field::kOther) return absl::OkStatus();
    if (by_rows_ && depth_ == kRowDepth) return absl::OkStatus();  // the list of rows
    WEIR_RETURN_IF_ERROR(BeginValue(/*is_list=*/true));
    return is_storing_ ? absl::OkStatus() : Locate(input_->shape.BeginList());
  }

  absl::Status EndList() override {
    --depth_;
    if (field_ == Field::kOther) return absl::OkStatus();
    if (by_rows_ && depth_ == kRowDepth - 1) return EndRows();
    if (!is_storing_) WEIR_RETURN_IF_ERROR(Locate(input_->shape.EndList()));
    EndUnnamedRow();
    return absl::OkStatus();
  }

  absl::Status BeginObject() override {
    ++depth_;
    if (depth_ == 1 || field_ == Field::kOther) return absl::OkStatus();
    if (field_ == Field::kSignature)
      return InvalidArgument("'signature_name' key must be a string value.");
    if (by_rows_ && depth_ == kRowDepth) return RowsAreNoList();
    if (depth_ != ObjectDepth())
      return Locate(InvalidArgument("JSON Value of Type: Object is neither a value nor a list"));
    if (by_rows_ && row_ > 0 && !is_named_) {
      return InvalidArgument("Expecting value/list but got object at item ", row_,
                             " of input list");
    }
    is_named_ = true;
    in_object_ = true;
    return absl::OkStatus();
  }

  absl::Status Key(const std::string& name) override {
    if (depth_ == 1) return BeginField(name);
    if (field_ == Field::kOther) return absl::OkStatus();
    if (inputs_.size() >= kMaxInputs && inputs_.count(name) == 0)
      return InvalidArgument("More than ", kMaxInputs, " named inputs");
    const bool is_new = inputs_.count(name) == 0;
    if (is_new && row_ > 0) return KeysDiffer();
    key_ = name;
    input_ = &inputs_[name];
    if (input_->row == row_) return InvalidArgument("Key '", name, "' occurs twice in an object");
    input_->row = row_;
    return is_new && by_rows_ && !is_storing_ ? input_->shape.BeginList() : absl::OkStatus();
  }

  absl::Status EndObject() override {
    --depth_;
    if (depth_ == 0 || field_ == Field::kOther) return absl::OkStatus();
    in_object_ = false;
    if (!by_rows_) return absl::OkStatus();
    for (const auto& [name, input] : inputs_) {
      if (input.row != row_) return KeysDiffer();
    }
    ++row_;
    return absl::OkStatus();
  }

 private:
  enum class Field { kOther, kSignature, kTensors };

  // The depth of objects whose keys are inputs.
  int ObjectDepth() const { return by_rows_ ? kRowDepth + 1 : 2; }

  absl::Status BeginField(const std::string& name) {
    const bool is_known = name == "signature_name" || name == "instances" || name == "inputs";
    field_ = !is_known                  ? Field::kOther
             : name == "signature_name" ? Field::kSignature
                                        : Field::kTensors;
    if (!is_known) return absl::OkStatus();
    if (!keys_.insert(name).second) return InvalidArgument("Key '", name, "' occurs twice");
    if (field_ != Field::kTensors) return absl::OkStatus();
    if (keys_.count("instances") + keys_.count("inputs") == 2) {
      return InvalidArgument(
          "Not formatted correctly expecting only one of 'inputs' or "
          "'instances' keys to exist");
    }
    by_rows_ = name == "instances";
    row_ = 0;
    is_named_ = false;
    return absl::OkStatus();
  }

  // Selects the input without a name, unless a key has selected one.
  absl::Status BeginValue(bool is_list) {
    if (by_rows_ && depth_ < kRowDepth) return RowsAreNoList();
    if (in_object_) return absl::OkStatus();
    if (is_named_) {
      return InvalidArgument("Expecting object but got ", is_list ? "list" : "value", " at item ",
                             row_, " of input list");
    }
    const bool is_new = inputs_.empty();
    input_ = &inputs_[""];
    return is_new && by_rows_ ? input_->shape.BeginList() : absl::OkStatus();
  }

  absl::Status StoreNext(JsonScalar& value) {
    WEIR_RETURN_IF_ERROR(StoreJson(value, &input_->tensor, input_->next));
    ++input_->next;
    return absl::OkStatus();
  }

  absl::Status EndRows() {
    if (row_ == 0) return InvalidArgument("No values in 'instances' array");
    if (is_storing_) return absl::OkStatus();
    for (auto& [name, input] : inputs_) WEIR_RETURN_IF_ERROR(input.shape.EndList());
    return absl::OkStatus();
  }

  // The depth of lists and objects in the list of rows.
  static constexpr int kRowDepth = 2;
  void EndUnnamedRow() {
    if (by_rows_ && depth_ == kRowDepth && !in_object_) ++row_;
  }

  static absl::Status RowsAreNoList() {
    return InvalidArgument("Excepting 'instances' to be an list/array");
  }

  absl::Status KeysDiffer() const {
    const auto name_of = [](std::string* out, const auto& named) { out->append(named.first); };
    return InvalidArgument("Failed to process element: ", row_,
                           " of 'instances' list. JSON object keys must be equal to: ",
                           absl::StrJoin(inputs_, ",", name_of));
  }

  // Adds where in the request an error is.
  absl::Status Locate(const absl::Status& status) const {
    if (status.ok() || (!by_rows_ && !in_object_)) return status;
    const std::string key = in_object_ ? absl::StrCat(" key: ", key_) : "";
    if (!by_rows_) return Annotate(status, absl::StrCat("Failed to process", key, " of 'inputs'"));
    return Annotate(status, absl::StrCat("Failed to process element: ", row_, key,
                                         " of 'instances' list. Error"));
  }

  Field field_ = Field::kOther;  // the key of the request that is being parsed
  std::set<std::string> keys_;   // of the request
  int depth_ = 0;                // of lists and objects
  std::string signature_;
  bool by_rows_ = false, is_named_ = false, is_storing_ = false;
  bool in_object_ = false;  // whose keys are inputs
  int64_t row_ = 0;
  std::string key_;  // of the input
  Input* input_ = nullptr;
  std::map<std::string, Input> inputs_;
};

// Compares the names of the inputs with those of the signature.
absl::Status CheckNames(RequestParser& request, const SignatureInfo& signature) {
  const std::map<std::string, TensorInfo>& infos = signature.inputs;
  const char* const field = request.by_rows() ? "instances" : "inputs";
  if (infos.empty()) {
    return InvalidArgument("Failed to get input map for signature: ",
                           request.signature().empty() ? "DEFAULT" : request.signature());
  }
  if (!request.is_named()) {
    if (infos.size() == 1) return absl::OkStatus();
    return InvalidArgument(field, " is a plain ", request.by_rows() ? "list" : "value/list",
                           ", but expecting ", request.by_rows() ? "list of objects" : "an object",
                           " as multiple input tensors required as per tensorinfo_map");
  }
  for (const auto& [name, info] : infos) {
    if (request.inputs().count(name) + signature.defaults.count(name) == 0)
      return InvalidArgument("Missing named input: ", name, " in '", field, "' object.");
  }
  for (const auto& [name, input] : request.inputs()) {
    if (infos.count(name) == 0)
      return InvalidArgument("JSON object: does not have named input: ", name);
  }
  return absl::OkStatus();
}

absl::Status AllocateTensors(RequestParser& request, const std::map<std::string, TensorInfo>& infos,
                             size_t text_bytes) {
  const int64_t limit = std::max(kSmallBytes, kMaxExpansion * static_cast<int64_t>(text_bytes));
  int64_t bytes = 0;
  for (auto& [name, input] : request.inputs()) {
    const DataType dtype = (request.is_named() ? infos.find(name) : infos.begin())->second.dtype;
    if (!IsInJson(dtype)) return Unimplemented("Conversion of JSON to type: ", DataTypeName(dtype));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, input.shape.Found());
    // There is a value in the text for each element, so that this does not overflow.
    bytes += shape.num_elements() * static_cast<int64_t>(ElementSize(dtype));
    if (bytes > limit) {
      return absl::ResourceExhaustedError(absl::StrCat("The tensors of a request of ", text_bytes,
                                                       " bytes have more than ", limit,
                                                       " bytes: send fewer rows at once"));
    }
    WEIR_ASSIGN_OR_RETURN(input.tensor, Tensor::Allocate(HostAllocator(), dtype, shape));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JsonPredictRequest> ParsePredictRequest(absl::string_view json,
                                                       const FindSignature& find_signature) {
  RequestParser parser;
  WEIR_RETURN_IF_ERROR(ParseJson(json, parser));
  WEIR_RETURN_IF_ERROR(parser.FinishFirstPass());
  WEIR_ASSIGN_OR_RETURN(const SignatureInfo* const signature, find_signature(parser.signature()));
  WEIR_RETURN_IF_ERROR(CheckNames(parser, *signature));
  const std::map<std::string, TensorInfo>& infos = signature->inputs;
  WEIR_RETURN_IF_ERROR(AllocateTensors(parser, infos, json.size()));
  WEIR_RETURN_IF_ERROR(ParseJson(json, parser));
  JsonPredictRequest request = {parser.signature(), parser.by_rows(), {}};
  for (auto& [name, input] : parser.inputs()) {
    const std::string& input_name = parser.is_named() ? name : infos.begin()->first;
    request.inputs[input_name] = std::move(input.tensor);
  }
  return request;
}

}  // namespace weir::rpc
