#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rpc/call_trap.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/registry.h"
#include "weir/proto/graph.pb.h"
#include "weir/rpc/file_access.h"
#include "weir/session/session.h"
#include "weir/tests/fuzz/marked_steps.h"
#include "weir/tests/fuzz/mutate.h"
#include "weir/tests/io/test_files.h"

// Runs valid calls of every op (tests/interop/valid_calls.bin.gz) in which one string at a time, an
// attribute or an element of a tensor, is replaced by a path. Under a trap on system calls, no op
// may open or change a file except through the FileSystem, and with a server's restriction none
// outside of the allowed folder. The ops that reach the FileSystem are compared with a table.
namespace weir {
namespace {

using testing::CallTrap;
using testing::TrappedCall;

// What ops do to files.
constexpr char kReads = 'r', kWrites = 'w', kLooks = 'l';

// Forwards to a file system, and records what it is asked.
class Door final : public FileSystem {
 public:
  // Records the calls whose path contains `folder`.
  Door(FileSystem& files, CallTrap& trap, std::string folder)
      : files_(files), trap_(trap), folder_(std::move(folder)) {}

  // Returns the kinds of calls since the last TakeUses, in order of letters.
  std::string TakeUses() {
    const MutexLock lock(mutex_);
    const std::string uses(uses_.begin(), uses_.end());
    uses_.clear();
    return uses;
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.Create(path); });
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return Pass(kReads, path, [&] { return files_.Open(path); });
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.OpenAtEnd(path); });
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Pass(kWrites, from, [&] { return files_.Rename(from, to); });
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    return Pass(kWrites, from, [&] { return files_.Link(from, to); });
  }
  absl::Status Remove(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.Remove(path); });
  }
  absl::Status SyncDirectory(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.SyncDirectory(path); });
  }
  absl::Status MakeDirectory(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.MakeDirectory(path); });
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.RemoveDirectory(path); });
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return Pass(kWrites, path, [&] { return files_.Lock(path); });
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return Pass(kLooks, path, [&] { return files_.List(path); });
  }
  bool Exists(const std::string& path) override {
    return Pass(kLooks, path, [&] { return files_.Exists(path); });
  }
  bool IsDirectory(const std::string& path) override {
    return Pass(kLooks, path, [&] { return files_.IsDirectory(path); });
  }

 private:
  template <class F>
  std::invoke_result_t<F> Pass(char use, const std::string& path, F&& call) {
    if (absl::StrContains(path, folder_)) {
      const MutexLock lock(mutex_);
      uses_.insert(use);
    }
    const CallTrap::Door scope(trap_);
    return call();
  }

  FileSystem& files_;
  CallTrap& trap_;
  const std::string folder_;
  Mutex mutex_;
  std::set<char> uses_ ABSL_GUARDED_BY(mutex_);
};

// Files that libraries and the allocator read, whatever an op is given.
bool IsSystemFile(absl::string_view path) {
  constexpr absl::string_view kDirectories[] = {"/proc/", "/sys/", "/etc/", "/usr/", "/lib"};
  return path == "/dev/urandom" ||
         std::any_of(std::begin(kDirectories), std::end(kDirectories),
                     [&](absl::string_view prefix) { return absl::StartsWith(path, prefix); });
}

std::vector<proto::GraphDef> ValidCalls() {
  gzFile file = gzopen("tests/interop/valid_calls.bin.gz", "rb");
  std::vector<proto::GraphDef> graphs;
  uint32_t size = 0;
  while (gzread(file, &size, sizeof(size)) == sizeof(size)) {
    std::string bytes(size, 0);
    if (gzread(file, bytes.data(), size) != static_cast<int>(size)) break;
    graphs.emplace_back().ParseFromString(bytes);
  }
  gzclose(file);
  return graphs;
}

// A string that a node takes or holds.
struct Site {
  int node;          // in the GraphDef
  std::string attr;  // empty: the input
  int input = 0;
  bool is_list = false;  // as an input: one path in a vector
};

// Returns the strings of all nodes. A node of the graph that is not imported is left out.
std::vector<Site> Sites(const proto::GraphDef& def, const Graph& graph) {
  std::vector<Site> sites;
  for (int i = 0; i < def.node_size(); ++i) {
    for (const auto& [name, value] : def.node(i).attr()) {
      const bool is_text = value.value_case() == proto::AttrValue::kS || value.list().s_size() > 0;
      if (is_text && name[0] != '_') sites.push_back({i, name});
    }
    const Node* node = graph.FindNode(def.node(i).name());
    const int num_inputs = node == nullptr ? 0 : static_cast<int>(node->inputs().size());
    for (int input = 0; input < num_inputs; ++input) {
      if (node->inputs()[input].dtype() != DT_STRING) continue;
      for (const bool is_list : {false, true}) sites.push_back({i, "", input, is_list});
    }
  }
  return sites;
}

proto::NodeDef* AddNode(const std::string& op, proto::GraphDef* graph) {
  proto::NodeDef* node = graph->add_node();
  node->set_op(op);
  node->set_name(absl::StrCat("added_", graph->node_size()));
  return node;
}

void Mark(proto::NodeDef* node, int step) {
  (*node->mutable_attr())[absl::StrCat(fuzz::kTargetMark, step)].set_b(true);
}

// Replaces the string, and adds steps that run the node, and the dataset that it may be.
proto::GraphDef WithPath(proto::GraphDef graph, const Site& site, const std::string& path) {
  proto::NodeDef* node = graph.mutable_node(site.node);
  if (site.attr.empty()) {
    proto::NodeDef* text = AddNode("Const", &graph);
    node = graph.mutable_node(site.node);
    node->set_input(site.input, text->name());
    (*text->mutable_attr())["dtype"].set_type(proto::DT_STRING);
    proto::TensorProto* value = (*text->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(proto::DT_STRING);
    value->add_string_val(path);
    if (site.is_list) value->mutable_tensor_shape()->add_dim()->set_size(1);
  } else {
    proto::AttrValue& value = (*node->mutable_attr())[site.attr];
    for (std::string& text : *value.mutable_list()->mutable_s()) text = path;
    if (value.list().s_size() == 0) value.set_s(path);
    // Where the words are in a file, they are not in this list.
    if (site.attr == "vocab_file") (*node->mutable_attr())["unigrams"].mutable_list()->clear_f();
  }
  Mark(node, fuzz::kMaxSteps - 2);
  const OpSpec* const op = BuiltinOps().Find(node->op());
  const bool has_output = op != nullptr && !op->outputs().empty();
  if (!has_output || !absl::StrContains(node->op(), "Dataset")) return graph;
  const std::string name = node->name();
  proto::AttrValue types, shapes;
  types.mutable_list()->add_type(proto::DT_STRING);
  const auto given = node->attr().find("output_types");
  if (given != node->attr().end()) types = given->second;
  while (shapes.list().shape_size() < types.list().type_size())
    shapes.mutable_list()->add_shape()->set_unknown_rank(true);
  proto::NodeDef* iterator = AddNode("IteratorV2", &graph);
  proto::NodeDef* make = AddNode("MakeIterator", &graph);
  proto::NodeDef* next = AddNode("IteratorGetNext", &graph);
  for (const char* attr : {"shared_name", "container"}) (*iterator->mutable_attr())[attr].set_s("");
  for (proto::NodeDef* typed : {iterator, next}) {
    (*typed->mutable_attr())["output_types"] = types;
    (*typed->mutable_attr())["output_shapes"] = shapes;
  }
  make->add_input(name);
  make->add_input(iterator->name());
  next->add_input(iterator->name());
  Mark(make, fuzz::kMaxSteps - 2);
  Mark(next, fuzz::kMaxSteps - 1);
  return graph;
}

// Returns whether a string of the op may be a path: an attribute with a list of values may not.
bool HasStrings(const OpSpec& op) {
  for (const ArgSpec& input : op.inputs()) {
    if (input.type == DT_STRING && !input.is_ref) return true;
  }
  return std::any_of(op.attrs().begin(), op.attrs().end(), [](const AttrSpec& attr) {
    return attr.kind == AttrSpec::Kind::kString && attr.allowed_strings.empty();
  });
}

// Sets an attribute that has no default value to a small one of its kind.
void SetSmallest(const AttrSpec& spec, proto::AttrValue* value) {
  proto::AttrValue::ListValue* list = spec.is_list ? value->mutable_list() : nullptr;
  const DataTypes& allowed = spec.allowed_types;
  const bool is_any =
      allowed.empty() || std::find(allowed.begin(), allowed.end(), DT_FLOAT) != allowed.end();
  const bool is_of_elements = spec.name == "output_types" && allowed.empty();
  const DataType any = is_of_elements ? DT_STRING : DT_FLOAT;
  const auto type = static_cast<proto::DataType>(is_any ? any : allowed.front());
  switch (spec.kind) {
    case AttrSpec::Kind::kString:
      list != nullptr ? list->add_s("text") : value->set_s("text");
      break;
    case AttrSpec::Kind::kType:
      list != nullptr ? list->add_type(type) : value->set_type(type);
      break;
    case AttrSpec::Kind::kShape:
      if (list != nullptr) list->add_shape()->set_unknown_rank(true);
      if (list == nullptr) value->mutable_shape();  // a scalar's
      break;
    case AttrSpec::Kind::kInt:
      // There is one version of snapshots.
      list != nullptr ? list->add_i(1) : value->set_i(spec.name == "version" ? 2 : 1);
      break;
    default:
      break;
  }
}

// The only element has `rank` dimensions.
proto::NodeDef* AddConst(DataType type, proto::GraphDef* graph, const std::string& text = "",
                         int rank = 0) {
  proto::NodeDef* node = AddNode("Const", graph);
  const auto wire_type = static_cast<proto::DataType>(type);
  (*node->mutable_attr())["dtype"].set_type(wire_type);
  proto::TensorProto* value = (*node->mutable_attr())["value"].mutable_tensor();
  value->set_dtype(wire_type);
  for (int d = 0; d < rank; ++d) value->mutable_tensor_shape()->add_dim()->set_size(1);
  if (type == DT_STRING) value->add_string_val(text);
  if (type == DT_INT64) value->add_int64_val(1);
  return node;
}

std::string AddEmptyVector(proto::GraphDef* graph) {
  proto::NodeDef* node = AddConst(DT_INT64, graph);
  proto::TensorProto* value = (*node->mutable_attr())["value"].mutable_tensor();
  value->clear_int64_val();
  value->mutable_tensor_shape()->add_dim()->set_size(0);
  return node->name();
}

// Returns the name of a function of a dataset.
std::string AddFunction(proto::GraphDef* graph) {
  proto::FunctionDef* function = graph->mutable_library()->add_function();
  proto::OpDef* signature = function->mutable_signature();
  signature->set_name("same");
  for (auto* args : {signature->mutable_input_arg(), signature->mutable_output_arg()}) {
    proto::OpDef::ArgDef* arg = args->Add();
    arg->set_name(args == signature->mutable_input_arg() ? "x" : "y");
    arg->set_type(proto::DT_VARIANT);
  }
  (*function->mutable_ret())["y"] = "x";
  return signature->name();
}

// Returns the name of a node to be the input of a call: a constant, an empty dataset, or a
// resource.
std::string AddInput(const ArgSpec& arg, int rank, proto::GraphDef* graph) {
  const DataType type = arg.type;
  if (absl::EndsWith(arg.name, "_cols")) return AddEmptyVector(graph);
  if (arg.name == "field_delim") return AddConst(DT_STRING, graph, ",")->name();
  if (arg.name == "driver_name") return AddConst(DT_STRING, graph, "sqlite")->name();
  if (type == DT_RESOURCE) return AddNode("SummaryWriter", graph)->name();
  if (type != DT_VARIANT)
    return AddConst(type == DT_INVALID ? DT_FLOAT : type, graph, "", rank)->name();
  const std::string one = AddConst(DT_INT64, graph)->name();
  proto::NodeDef* range = AddNode("RangeDataset", graph);
  for (int i = 0; i < 3; ++i) range->add_input(one);
  (*range->mutable_attr())["output_types"].mutable_list()->add_type(proto::DT_INT64);
  (*range->mutable_attr())["output_shapes"].mutable_list()->add_shape();
  return range->name();
}

// Returns a graph that calls an op with the smallest values, of this rank.
proto::GraphDef SmallestCall(const OpSpec& op, int rank) {
  proto::GraphDef graph;
  std::vector<std::string> inputs;
  for (const ArgSpec& input : op.inputs()) inputs.push_back(AddInput(input, rank, &graph));
  proto::NodeDef* node = AddNode(op.name(), &graph);
  for (const std::string& input : inputs) node->add_input(input);
  for (const AttrSpec& attr : op.attrs()) {
    if (attr.default_value.has_value()) continue;
    proto::AttrValue* value = &(*node->mutable_attr())[attr.name];
    if (attr.kind == AttrSpec::Kind::kFunction) {
      value->mutable_func()->set_name(AddFunction(&graph));
    } else {
      SetSmallest(attr, value);
    }
  }
  return graph;
}

// Runs the steps of a graph, of which any may fail.
void RunGraph(const proto::GraphDef& def) {
  Graph graph;
  if (!ImportGraphDef(graph, def).ok()) return;
  absl::StatusOr<Session> session = Session::Create(graph, {.num_threads = 1});
  if (!session.ok()) return;
  constexpr std::chrono::milliseconds kLimit(50);
  for (const auto& [number, step] : fuzz::MarkedSteps(graph)) {
    session->Run(step.feeds, step.fetches, step.targets, {.timeout = kLimit})
        .status()
        .IgnoreError();
  }
}

class OpenedFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    valid_calls_ = ValidCalls();
    folder_ = testing::MakeTempDirectory("trapped");
    allowed_ = folder_ + "/allowed";
    mkdir(allowed_.c_str(), 0777);
    for (const char* name : {"/secret", "/allowed/file"})
      testing::WriteBytes(folder_ + name, "a line\n");
    symlink((folder_ + "/secret").c_str(), (allowed_ + "/link").c_str());
    auto files = rpc::RestrictFiles({allowed_});
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
    // The relative paths of the valid calls are allowed.
    before_ = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(chdir(allowed_.c_str()), 0);
    static CallTrap* const trap = CallTrap::Start();
    trap_ = trap;
    if (trap_ == nullptr) GTEST_SKIP() << "the system does not allow seccomp: " << strerror(errno);
    trap_->Take();  // what was before
    door_ = std::make_unique<Door>(*files_, *trap_, folder_);
    scope_ = std::make_unique<ScopedFileSystem>(door_.get());
  }

  void TearDown() override {
    ASSERT_EQ(fchdir(before_), 0);
    close(before_);
  }

  // Returns the paths that each string is replaced by; the others are tried if one of the first two
  // reaches the file system.
  std::vector<std::string> Paths() const {
    const std::string secret = folder_ + "/secret";
    return {allowed_ + "/file",
            "file://" + allowed_ + "/file",
            secret,
            "file://" + secret,
            allowed_ + "/../secret",
            allowed_ + "/link",
            allowed_ + "/missing/../../secret",
            folder_ + "/new",
            "/proc/self/root" + secret,
            absl::StrCat(allowed_, "/file", absl::string_view("\0/../../secret", 14)),
            folder_ + "/sec*"};
  }

  // Checks the calls since the last ones.
  void CheckCalls(const std::string& what) {
    for (const TrappedCall& call : trap_->Take()) {
      if (!call.from_door && !IsSystemFile(call.path))
        ADD_FAILURE() << what << ": " << call.name << " of " << call.path
                      << " does not use the FileSystem";
      const bool is_allowed = call.path == allowed_ || absl::StartsWith(call.path, allowed_ + "/");
      if (call.from_door && !call.only_looks && !is_allowed)
        ADD_FAILURE() << what << ": " << call.name << " of " << call.path << " is not allowed";
    }
  }

  // Runs the graph with each path in place of each string.
  void ReplaceStrings(const proto::GraphDef& def) {
    Graph graph;
    if (!ImportGraphDef(graph, def).ok()) return;
    for (const proto::NodeDef& node : def.node()) ops_.insert(node.op());
    for (const Site& site : Sites(def, graph)) {
      const std::string& op = def.node(site.node).op();
      bool is_path = false;
      int tried = 0;
      for (const std::string& path : Paths()) {
        if (!is_path && tried++ == 2) break;
        RunGraph(WithPath(def, site, path));
        const std::string uses = door_->TakeUses();
        is_path = is_path || !uses.empty();
        uses_[op].insert(uses.begin(), uses.end());
        CheckCalls(absl::StrCat(op, " with ", path));
      }
    }
  }

  std::vector<proto::GraphDef> valid_calls_;
  int before_ = -1;  // the working directory
  CallTrap* trap_ = nullptr;
  std::string folder_, allowed_;
  std::unique_ptr<FileSystem> files_;
  std::unique_ptr<Door> door_;
  std::unique_ptr<ScopedFileSystem> scope_;
  std::map<std::string, std::set<char>> uses_;  // by op
  std::set<std::string> ops_;                   // that are in the graphs
};

// What ops do with a path that they are given. A path in a queue is given to a reader.
const std::map<std::string, std::string>& ExpectedUses() {
  static const auto& uses = *new std::map<std::string, std::string>{
      {"CSVDataset", "r"},
      {"CSVDatasetV2", "r"},
      {"CacheDataset", "w"},
      {"CacheDatasetV2", "w"},
      {"CreateSummaryFileWriter", "w"},
      {"DatasetToTFRecord", "w"},
      {"ExperimentalCSVDataset", "r"},
      {"ExperimentalDatasetToTFRecord", "w"},
      {"ExperimentalMatchingFilesDataset", "l"},
      {"ExperimentalSqlDataset", "r"},
      {"FixedLengthRecordDataset", "r"},
      {"FixedLengthRecordDatasetV2", "r"},
      {"FixedUnigramCandidateSampler", "r"},
      {"GenerateVocabRemapping", "r"},
      {"ImmutableConst", "r"},
      {"InitializeTableFromTextFile", "r"},
      {"InitializeTableFromTextFileV2", "r"},
      {"LoadAndRemapMatrix", "r"},
      {"LoadDataset", "r"},
      {"MatchingFiles", "l"},
      {"MatchingFilesDataset", "l"},
      {"MergeV2Checkpoints", "rw"},
      {"PrintV2", "w"},
      {"QueueEnqueue", "r"},
      {"ReadFile", "r"},
      {"RecordInput", "r"},
      {"Restore", "r"},
      {"RestoreSlice", "r"},
      {"RestoreV2", "r"},
      {"Save", "w"},
      {"SaveDataset", "w"},
      {"SaveDatasetV2", "w"},
      {"SaveSlices", "w"},
      {"SaveV2", "rw"},
      {"Skipgram", "r"},
      {"SnapshotChunkDataset", "r"},
      {"SnapshotDataset", "rw"},
      {"SnapshotDatasetReader", "l"},
      {"SnapshotDatasetV2", "rw"},
      {"SqlDataset", "r"},
      {"TFRecordDataset", "r"},
      {"TFRecordDatasetV2", "r"},
      {"TextLineDataset", "r"},
      {"WriteFile", "w"},
  };
  return uses;
}

TEST_F(OpenedFilesTest, OpsOpenFilesThroughTheFileSystemOnly) {
  for (const proto::GraphDef& graph : valid_calls_) ReplaceStrings(graph);
  for (const OpSpec* op : BuiltinOps().All()) {
    for (int rank = 0; rank < 3 && !ops_.contains(op->name()); ++rank)
      ReplaceStrings(SmallestCall(*op, rank));
  }
  std::map<std::string, std::string> uses;
  for (const auto& [op, letters] : uses_) {
    std::string kinds(letters.begin(), letters.end());
    // Whether a step looks first may depend on when its time limit ends it.
    if (kinds.size() > 1) std::erase(kinds, kLooks);
    if (!kinds.empty()) uses[op] = kinds;
  }
  EXPECT_THAT(uses, ::testing::ContainerEq(ExpectedUses()));
  // Clients cannot call the runtime's own ops. This one takes a reference to a kind of array that
  // the later versions of the op share.
  ops_.insert("TensorArrayGrad");
  // A tag, the names of a padding, of kinds of arguments and of metadata, beside arguments of
  // several ranks.
  ops_.insert({"AudioSummary", "RaggedCross", "UniformQuantizedConvolution",
               "UniformQuantizedConvolutionHybrid", "WeightedFlatMapDataset"});
  for (const OpSpec* op : BuiltinOps().All()) {
    if (!HasStrings(*op) || op->name()[0] == '_') continue;
    EXPECT_TRUE(ops_.contains(op->name())) << op->name() << " was not called";
  }
}

// The trap itself notices what does not come through the door.
TEST_F(OpenedFilesTest, OtherCallsAreNoticed) {
  trap_->Take();
  std::thread([&] { std::ifstream(folder_ + "/secret").peek(); }).join();
  std::vector<std::string> opened;
  for (const TrappedCall& call : trap_->Take()) {
    EXPECT_FALSE(call.from_door);
    if (!call.only_looks) opened.push_back(call.path);
  }
  EXPECT_THAT(opened, ::testing::Contains(folder_ + "/secret"));
  EXPECT_TRUE(ReadFile(allowed_ + "/file").ok());
  EXPECT_EQ(door_->TakeUses(), "r");
  for (const TrappedCall& call : trap_->Take()) EXPECT_TRUE(call.from_door) << call.path;
}

}  // namespace
}  // namespace weir
