#include "weir/ops/lib/external_access.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/core/io/file_posix.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array.h"
#include "weir/session/session.h"

// Runs every built-in op that takes or holds strings, with the path of a file that does not exist
// in each of them, and records which ops try to access it: through Files(), or past it by the C
// library's functions.
namespace weir {
namespace {

constexpr char kPath[] = "/weir-trap/file";
bool was_accessed = false;

void Record(absl::string_view path) {
  if (absl::StrContains(path, "weir-trap")) was_accessed = true;
}

}  // namespace
}  // namespace weir

extern "C" {

int open(const char* path, int flags, ...) {
  weir::Record(path);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return openat(AT_FDCWD, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  weir::Record(path);
  using Fopen = FILE* (*)(const char*, const char*);
  static const auto next = reinterpret_cast<Fopen>(dlsym(RTLD_NEXT, "fopen"));
  return next(path, mode);
}

}  // extern "C"

namespace weir {
namespace {

// Every function of a PosixFileSystem that takes a path calls Find.
class TrapFileSystem final : public PosixFileSystem {
  absl::StatusOr<Place> Find(const std::string& path, Meaning) const override {
    Record(path);
    return absl::PermissionDeniedError(path);
  }
};

bool IsFree(const AttrSpec& attr) {  // of a string: not one of a list of words
  return attr.allowed_strings.empty() && attr.name != "shared_name" && attr.name != "container";
}

bool MakesReader(const OpSpec& op) {
  return op.outputs().size() == 1 && op.outputs()[0].name == "reader_handle";
}

bool HasStrings(const OpSpec& op) {
  const auto takes = [](const ArgSpec& arg) { return arg.type == DT_STRING; };
  const auto holds = [](const AttrSpec& attr) {
    return attr.kind == AttrSpec::Kind::kString && IsFree(attr);
  };
  return MakesReader(op) || std::any_of(op.inputs().begin(), op.inputs().end(), takes) ||
         std::any_of(op.attrs().begin(), op.attrs().end(), holds);
}

// A call of an op, with the path for each string. Digit i of `ranks`, to the base 3: the rank of
// input i.
class Call {
 public:
  Call(const OpSpec& op, int ranks) : op_(op), ranks_(ranks) {
    if (op.deprecated_version() > 0) graph_.versions().producer = op.deprecated_version() - 1;
    for (const AttrSpec& attr : op.attrs()) AddAttr(attr);
    Node* const node = AddNode(graph_, op.name(), Arguments(), attrs_);
    if (node != nullptr) AddUses(node);
  }

  void Run() {
    if (!graph_.status().ok()) return;
    auto session = Session::Create(graph_, {.num_threads = 1});
    ASSERT_TRUE(session.ok()) << session.status();
    for (const auto& targets : steps_)
      session->Run({}, {}, targets, {.timeout = std::chrono::seconds(5)}).status().IgnoreError();
  }

 private:
  void AddAttr(const AttrSpec& attr) {
    using Kind = AttrSpec::Kind;
    const bool is_text = attr.kind == Kind::kString && IsFree(attr) && !Precedes(attr.name);
    if (attr.kind == Kind::kType && attr.default_value.has_value() && !attr.is_list)
      types_[attr.name] = *attr.default_value->get_if<DataType>();
    if (attr.default_value.has_value() && !is_text) return;
    const int64_t least = attr.minimum.value_or(1);
    const int64_t smallest = attr.name == "version" ? 2 : 1;  // the only one of snapshots
    const int64_t number = least < 0 ? least : std::max<int64_t>(least, smallest);
    const DataType any = attr.name == "output_types" ? DT_STRING : DT_FLOAT;
    const DataType type = attr.allowed_types.empty() ? any : attr.allowed_types[0];
    if (attr.kind == Kind::kString) {
      const std::string text =
          attr.name == "output_stream" ? absl::StrCat("file://", kPath) : kPath;
      attrs_.emplace_back(
          attr.name, attr.is_list ? AttrValue(std::vector<std::string>{text}) : AttrValue(text));
    } else if (attr.kind == Kind::kFunction) {
      attrs_.emplace_back(attr.name, Same());
    } else if (attr.kind == Kind::kInt) {
      attrs_.emplace_back(
          attr.name, attr.is_list ? AttrValue(std::vector<int64_t>{number}) : AttrValue(number));
    } else if (attr.kind == Kind::kType) {
      types_[attr.name] = type;
      attrs_.emplace_back(attr.name,
                          attr.is_list ? AttrValue(std::vector<DataType>{type}) : AttrValue(type));
    } else if (attr.kind == Kind::kBool) {
      attrs_.emplace_back(attr.name, false);
    } else if (attr.kind == Kind::kShape) {
      attrs_.emplace_back(
          attr.name, attr.is_list ? AttrValue(std::vector<Shape>{Shape()}) : AttrValue(Shape()));
    }
  }

  // Strings that are read before a file is opened, and must be valid.
  static bool Precedes(absl::string_view name) {
    return absl::StartsWith(name, "shape") || name == "compression_type" || name == "encoding" ||
           name == "delimiter" || name == "compression" || name == "mode";
  }

  std::vector<Arg> Arguments() {
    std::vector<Arg> arguments;
    for (size_t i = 0; i < op_.inputs().size(); ++i) {
      const ArgSpec& arg = op_.inputs()[i];
      const std::string& of = arg.type_list_attr.empty() ? arg.type_attr : arg.type_list_attr;
      const Output value = Argument(arg, of.empty() ? arg.type : types_[of], Rank(i));
      const bool is_list = !arg.type_list_attr.empty() || !arg.number_attr.empty();
      arguments.push_back(is_list ? Arg(Outputs{value}) : Arg(value));
    }
    return arguments;
  }

  int Rank(size_t i) const {
    int ranks = ranks_;
    for (; i > 0; --i) ranks /= 3;
    return ranks % 3;
  }

  Output Argument(const ArgSpec& arg, DataType type, int rank) {
    const Shape shape(std::vector<int64_t>(rank, 1));
    const NamedAttr key = {"key_dtype", DT_STRING}, value = {"value_dtype", DT_STRING};
    if (arg.name == "table_handle")
      return Output(AddNode(graph_, arg.is_ref ? "HashTable" : "HashTableV2", {}, {key, value}), 0);
    if (arg.name == "writer") return Output(AddNode(graph_, "SummaryWriter", {}), 0);
    if (arg.name == "cache") return Output(AddNode(graph_, "DummyMemoryCache", {}), 0);
    if (arg.name == "input_dataset") return OneString();
    if (absl::EndsWith(arg.name, "_cols")) return Const(graph_, Tensor::Vector<int64_t>({}));
    if (arg.name == "record_bytes" || arg.name == "buffer_size")
      return Const(graph_, Tensor::Scalar(int64_t{1}));
    if (arg.name == "field_delim") return Const(graph_, ",");
    if (arg.name == "driver_name") return Const(graph_, "sqlite");
    if (type == DT_STRING)
      return Const(graph_, Tensor::Of<std::string>(shape, {Precedes(arg.name) ? "" : kPath}));
    const bool has_zero = type != DT_INVALID && type != DT_RESOURCE && type != DT_VARIANT;
    return has_zero ? Const(graph_, Tensor::Zeros(type, shape)) : Output();
  }

  // Returns a dataset of one string.
  Output OneString() {
    return Output(AddNode(graph_, "TensorDataset", {Arg(Outputs{Const(graph_, "text")})},
                          {{"output_shapes", std::vector<Shape>{Shape()}}}),
                  0);
  }

  // Returns a function of a dataset.
  FunctionRef Same() {
    Graph body;
    const Output dataset = Placeholder(body, DT_VARIANT);
    DefineFunction(graph_, "same", body, {dataset}, {Identity(dataset)}).IgnoreError();
    return FunctionRef{"same", nullptr};
  }

  // Adds what makes the results of a node read files: iterators of datasets, reads of readers.
  void AddUses(Node* node) {
    steps_.push_back({Operation(node)});
    if (node->num_outputs() == 0) return;
    const Output made(node, 0);
    const NamedAttr types = {"output_types", std::vector<DataType>{DT_STRING}},
                    shapes = {"output_shapes", std::vector<Shape>{Shape()}};
    if (op_.outputs()[0].type == DT_VARIANT) {
      const Output iterator(AddNode(graph_, "IteratorV2", {},
                                    {{"shared_name", "i"}, {"container", ""}, types, shapes}),
                            0);
      steps_.push_back({Operation(AddNode("MakeIterator", {made, iterator}))});
      steps_.push_back({Operation(AddNode("IteratorGetNext", {iterator}, {types, shapes}))});
    } else if (MakesReader(op_)) {
      const bool is_ref = op_.outputs()[0].is_ref;
      const std::string end = is_ref ? "" : "V2";
      const Output queue(AddNode(graph_, "FIFOQueue" + end, {},
                                 {{"component_types", std::vector<DataType>{DT_STRING}}}),
                         0);
      const Output path = Const(graph_, Tensor::Scalar(kPath));
      steps_.push_back({Operation(AddNode("QueueEnqueue" + end, {queue, Arg(Outputs{path})}))});
      steps_.push_back({Operation(AddNode("ReaderRead" + end, {made, queue}))});
    }
  }

  const OpSpec& op_;
  const int ranks_;
  Graph graph_;
  Attrs attrs_;
  std::map<std::string, DataType> types_;
  std::vector<std::vector<Operation>> steps_;
};

TEST(ExternalAccess, OpsThatAccessFilesAreThoseDeclared) {
  TrapFileSystem files;
  const ScopedFileSystem trap(&files);
  std::set<std::string> accessing, declared;
  for (const OpSpec* op : BuiltinOps().All()) {
    if (ExternalAccessOf(op->name()) == ExternalAccess::kFiles) declared.insert(op->name());
    if (!HasStrings(*op)) continue;
    was_accessed = false;
    int num_ranks = 1;
    for (size_t i = 0; i < std::min<size_t>(op->inputs().size(), 5); ++i) num_ranks *= 3;
    for (int ranks = 0; ranks < num_ranks && !was_accessed; ++ranks) Call(*op, ranks).Run();
    if (was_accessed) accessing.insert(op->name());
  }
  EXPECT_THAT(accessing, testing::ContainerEq(declared));
}

}  // namespace
}  // namespace weir
