#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "weir/core/graph/closest_names.h"
#include "weir/core/io/bundle.h"
#include "weir/session/model/ancestors.h"
#include "weir/session/model/object_names.h"
#include "weir/session/model/restore.h"
#include "weir/session/model/restore_graph_info.h"
#include "weir/session/model/saver.h"
#include "weir/session/runtime/uninitialized.h"

namespace weir {

// Restores variables, all or nothing, and in the variables' existing memory. The restore op of a
// graph depends on one reading node (RestoreV2), or on several if the saver is sharded, and each
// assignment runs as soon as its value is available. If the step ran as it is, an error in the
// second node would come after the variables of the first have been overwritten, only the
// assignment itself would detect a mismatched shape, and all values would be in memory twice, the
// values read and those they replace.
//
// So the step does not do the reading. The inputs of the reading nodes (path, names, slices) are
// taken from constants, or else fetched. The checkpoint's index entries of the tensors are compared
// with the variables they flow to (restore_graph_info.h), and every byte is read and checked. Only
// then is anything written:
// - A value whose only path leads to a variable that nothing else here uses, and that has a value
//   of the same shape in host memory that is not shared, is at first only checked, in a small
//   buffer, and then read a second time into that memory. The files stay open from before the first
//   reading, and a file that a writer replaces keeps its contents for processes that have it open;
//   so the second reading finds the same bytes unless the disk fails. In that case the variable is
//   left without a value, and every use of it reports an error.
// - If the variable has no memory yet, or its memory is shared with a reader or with the constant
//   that initialized it, the value is kept, and becomes the variable's value.
// - Other values are kept, and the restore op runs with the outputs of the reading nodes fed; the
//   rest of the step consists of assignments that have been checked.
namespace {

// Returns whether a tensor is small enough to be read together with its neighbors
// (CheckpointReader::ReadMany).
bool IsSmall(DataType dtype, const Shape& shape) {
  constexpr int64_t kSmallBytes = int64_t{1} << 16;
  return IsPlain(dtype) &&
         shape.num_elements() <= kSmallBytes / static_cast<int64_t>(ElementSize(dtype));
}

// One output of a reading node.
struct RestoredTensor {
  Output output;
  DataType dtype = DT_INVALID;
  bool wanted = true;     // false: it is not restored
  bool is_small = false;  // and not a slice
  int value = -1;         // index in `kept_values_`; -1: it is read into the variable's memory
  absl::string_view name, slice;
  size_t checkpoint = 0;  // index in `checkpoints_`
  Shape shape;
  absl::Span<const RestoreGraphInfo::AssignPath> paths;
  VariableState* variable = nullptr;  // the variable whose value it becomes; null: it is fed
  absl::Status status;
};

absl::Status CheckAssignment(const Node& assign, const Shape& shape, absl::string_view name) {
  const Output& target = assign.input(0);
  const Shape* declared = &target.node->output_shape(target.index);
  if (!IsRef(assign.input_type(0))) {
    const HandleData* const handle = target.node->output_handle(target.index);
    if (handle == nullptr) return absl::OkStatus();
    declared = &handle->shape;
  } else if (!assign.attr_or<bool>("validate_shape", true)) {
    return absl::OkStatus();
  }
  if (declared->IsCompatibleWith(shape)) return absl::OkStatus();
  return InvalidArgument(
      "Assign requires shapes of both tensors to match. lhs shape= ", declared->ToString(),
      " rhs shape= ", shape.ToString(), ": variable ", target.node->name(), " cannot take tensor ",
      name, " of the checkpoint; nothing was restored");
}

// Checks that the value has a valid shape for the reshapes and the assignment of its path.
absl::Status CheckPath(const RestoredTensor& w, const RestoreGraphInfo::AssignPath& path) {
  const Shape* shape = &w.shape;
  for (const Node* reshape : path.reshapes) {
    const Shape& target = reshape->output_shape(0);
    if (target.IsFullyDefined() && target.num_elements() != shape->num_elements()) {
      return InvalidArgument("tensor ", w.name, " of the checkpoint has shape ", shape->ToString(),
                             ", which cannot be reshaped to ", target.ToString(),
                             "; nothing was restored");
    }
    shape = &target;
  }
  return CheckAssignment(*path.assign, *shape, w.name);
}

// Returns true if the variable has a value of this dtype and shape, or none yet.
bool CanHoldValue(const VariableState& variable, const RestoredTensor& w)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(variable.mutex()) {
  const Tensor& value = variable.value();
  return variable.on_host() && variable.dtype() == w.dtype &&
         (!value.initialized() || value.shape() == w.shape);
}

// Returns true if the variable also has a value, in memory that is not shared.
bool HasReusableMemory(const VariableState& variable, const RestoredTensor& w)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(variable.mutex()) {
  return CanHoldValue(variable, w) && variable.value().OwnsBufferAlone();
}

// Returns the value of an input that is a constant of the graph; null for others.
const Tensor* ConstantOf(const Output& input) {
  const Node& node = *input.node;
  if (node.op_name() != "Const" || !node.control_inputs().empty()) return nullptr;
  const AttrValue* value = node.FindAttr("value");
  return value == nullptr ? nullptr : value->get_if<Tensor>();
}

void CopyBytes(absl::string_view bytes, Tensor* to) {
  if (!bytes.empty()) std::memcpy(to->raw(), bytes.data(), bytes.size());
}

absl::StatusOr<Tensor> ToTensor(const RestoredTensor& w, absl::string_view bytes) {
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), w.dtype, w.shape));
  CopyBytes(bytes, &tensor);
  return tensor;
}

class Restorer {
 public:
  Restorer(Session& session, const RestoreGraphInfo& info, Output filename, const std::string& path,
           const RestoreOptions& options, RestoreReport* report)
      : session_(session),
        info_(info),
        filename_(filename),
        path_(Tensor::Scalar(path)),
        options_(options),
        report_(*report) {}

  std::vector<std::string> RestoredKeys() const {
    std::vector<std::string> keys;
    for (const RestoredTensor& w : tensors_) {
      if (w.wanted) keys.emplace_back(w.name);
    }
    return keys;
  }

  // The nodes whose variables are assigned.
  std::shared_ptr<const std::vector<std::string>> Assigned() const {
    if (std::all_of(tensors_.begin(), tensors_.end(), [](const auto& w) { return w.wanted; }))
      return info_.assigned;
    auto names = std::make_shared<std::vector<std::string>>();
    for (const RestoredTensor& w : tensors_) {
      for (const RestoreGraphInfo::AssignPath& path : w.paths) {
        if (w.wanted) names->push_back(path.assign->input(0).node->name());
      }
    }
    return names;
  }

  // Nothing is written before all checks have passed.
  absl::Status Prepare() {
    WEIR_RETURN_IF_ERROR(FetchInputs());
    WEIR_RETURN_IF_ERROR(ListTensors());
    SkipUnneeded();
    WEIR_RETURN_IF_ERROR(OpenCheckpoints());
    WEIR_RETURN_IF_ERROR(CheckPaths());
    ChooseMemory();
    return ReadAll();
  }

  absl::Status Write() {
    WEIR_RETURN_IF_ERROR(RunRemainingNodes());
    for (RestoredTensor& w : tensors_) {
      if (w.variable == nullptr || w.value < 0) continue;
      const MutexLock lock(w.variable->mutex());
      w.variable->Set(std::move(kept_values_[w.value]));
    }
    ReadSmall([](const RestoredTensor& w) { return w.value < 0; },
              [](RestoredTensor& w, const absl::StatusOr<absl::string_view>& bytes) {
                return SetVariable(w, [&](Tensor* memory) -> absl::Status {
                  WEIR_RETURN_IF_ERROR(bytes.status());
                  CopyBytes(*bytes, memory);
                  return absl::OkStatus();
                });
              });
    ReadOthers([](const RestoredTensor& w) { return w.value < 0; },
               [&](RestoredTensor& w) {
                 return SetVariable(w, [&](Tensor* memory) {
                   return checkpoints_[w.checkpoint]->ReadInto(w.name, memory);
                 });
               });
    return FirstError();
  }

 private:
  // Fetches the inputs of the reading nodes, in the order of their inputs. A step is run even if
  // all of them are constants: it fails if the session is closed, or if a node of the graph was
  // changed after it had run.
  absl::Status FetchInputs() {
    Outputs fetches;
    std::vector<Operation> targets;
    for (const Node* node : info_.readers) {
      for (const Output& input : node->inputs()) {
        if (input == filename_) continue;
        if (ConstantOf(input) == nullptr) {
          fetches.push_back(input);
        } else if (targets.empty()) {
          targets.emplace_back(input);
        }
      }
    }
    Tensors fetched;
    if (!fetches.empty() || !targets.empty()) {
      WEIR_ASSIGN_OR_RETURN(fetched, session_.Run({{filename_, path_}}, fetches, targets));
    }
    size_t next = 0;
    for (const Node* node : info_.readers) {
      for (const Output& input : node->inputs()) {
        const Tensor* const constant = ConstantOf(input);
        inputs_.push_back(input == filename_    ? path_
                          : constant != nullptr ? *constant
                                                : fetched[next++]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ListTensors() {
    const Tensor* in = inputs_.data();
    tensors_.reserve(info_.first_path.size() - 1);
    for (const Node* node : info_.readers) {
      for (int i = 0; i < node->num_inputs(); ++i) {
        if (in[i].dtype() != DT_STRING ||
            in[i].num_elements() != (i == 0 ? 1 : node->num_outputs())) {
          return InvalidArgument(node->Label(), ": input ", i, " is ", in[i].Description(), " for ",
                                 node->num_outputs(), " tensors");
        }
      }
      const size_t checkpoint = CheckpointIndex(in[0].scalar<std::string>());
      for (int k = 0; k < node->num_outputs(); ++k) {
        RestoredTensor& w = tensors_.emplace_back();
        w.output = node->output(k);
        w.dtype = w.output.dtype();
        w.name = Renamed(in[1].data<std::string>()[k]);
        if (node->num_inputs() > 2) w.slice = in[2].data<std::string>()[k];
        w.checkpoint = checkpoint;
        const int* const first = &info_.first_path[tensors_.size() - 1];
        w.paths = absl::MakeConstSpan(info_.paths).subspan(first[0], first[1] - first[0]);
      }
      in += node->num_inputs();
    }
    return absl::OkStatus();
  }

  absl::string_view Renamed(const std::string& key) {
    if (options_.rename == nullptr) return key;
    return renamed_.emplace_back(options_.rename(key));
  }

  void SkipUnneeded() {
    if (options_.mode != RestoreMode::kNeeded) return;
    std::vector<const Node*> needed;
    for (const Operation& operation : options_.needed) needed.push_back(operation.node);
    const absl::flat_hash_set<const Node*> used = Ancestors(needed);
    for (RestoredTensor& w : tensors_) {
      w.wanted = std::any_of(w.paths.begin(), w.paths.end(), [&](const auto& path) {
        return used.contains(path.variable < 0 ? path.assign->input(0).node
                                               : info_.variables[path.variable]);
      });
      if (!w.wanted) report_.not_needed.emplace_back(w.name);
    }
  }

  size_t CheckpointIndex(const std::string& path) {
    const auto found = std::find(paths_.begin(), paths_.end(), path);
    if (found == paths_.end()) {
      paths_.push_back(path);
      return paths_.size() - 1;
    }
    return static_cast<size_t>(found - paths_.begin());
  }

  // The values of one checkpoint for which `predicate` holds, and their names.
  struct Selection {
    std::vector<RestoredTensor*> tensors;
    std::vector<absl::string_view> names;
  };
  template <class Predicate>
  Selection SelectTensors(size_t checkpoint, const Predicate& predicate) {
    Selection selection;
    for (RestoredTensor& w : tensors_) {
      if (w.checkpoint != checkpoint || !w.wanted || !predicate(w)) continue;
      selection.tensors.push_back(&w);
      selection.names.push_back(w.name);
    }
    return selection;
  }

  // Opens the checkpoints, and looks up the tensors in their indexes.
  absl::Status OpenCheckpoints() {
    for (size_t i = 0; i < paths_.size(); ++i) {
      WEIR_ASSIGN_OR_RETURN(checkpoints_.emplace_back(), CheckpointReader::Open(paths_[i]));
      WEIR_RETURN_IF_ERROR(UseFullNames(i));
      if (options_.mode != RestoreMode::kStrict) WEIR_RETURN_IF_ERROR(DropMissing(i));
      const Selection selection = SelectTensors(i, [](const RestoredTensor&) { return true; });
      const absl::Status found = checkpoints_[i]->FindMany(
          selection.names, [&](size_t k, DataType dtype, const Shape& shape) -> absl::Status {
            RestoredTensor& w = *selection.tensors[k];
            absl::StatusOr<Shape> whole = ShapeInCheckpoint(w.name, dtype, shape, w.slice, w.dtype);
            if (!whole.ok()) return Mismatch(w, whole.status());
            w.shape = *std::move(whole);
            w.is_small = w.slice.empty() && IsSmall(w.dtype, w.shape);
            return absl::OkStatus();
          });
      if (absl::IsNotFound(found)) WEIR_RETURN_IF_ERROR(DropMissing(i));
      WEIR_RETURN_IF_ERROR(found);
    }
    return absl::OkStatus();
  }

  // Names in a checkpoint of objects are paths, and its variables have the saver's names besides:
  // replaces those names of the saver that are not keys of checkpoint i.
  absl::Status UseFullNames(size_t i) {
    CheckpointReader& reader = *checkpoints_[i];
    if (!reader.Find(kObjectGraphKey).ok()) return absl::OkStatus();
    std::vector<RestoredTensor*> missing;
    for (RestoredTensor& w : tensors_) {
      if (w.checkpoint == i && w.wanted && absl::IsNotFound(reader.Find(w.name).status()))
        missing.push_back(&w);
    }
    if (missing.empty()) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const auto names, FullNamesOf(reader));
    std::map<absl::string_view, std::vector<absl::string_view>> keys;
    for (const auto& [key, name] : names) keys[name].push_back(key);
    for (RestoredTensor* w : missing) {
      const auto found = keys.find(w->name);
      if (found == keys.end()) continue;
      if (found->second.size() > 1) {
        WEIR_RETURN_IF_ERROR(Mismatch(
            *w, InvalidArgument(w->name, " is the full name of several tensors of checkpoint ",
                                paths_[i], ": ", absl::StrJoin(found->second, ", "),
                                "; name one of them with a rule that renames")));
        continue;
      }
      const std::string& key = renamed_.emplace_back(found->second[0]);
      report_.by_full_name.push_back({std::string(w->name), key});
      w->name = key;
    }
    return absl::OkStatus();
  }

  // Reports what checkpoint i lacks, and what it has besides. NOT_FOUND unless that is allowed.
  absl::Status DropMissing(size_t i) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> listed, checkpoints_[i]->List());
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : listed) names.push_back(tensor.name);
    const absl::flat_hash_set<absl::string_view> known(names.begin(), names.end());
    absl::flat_hash_set<absl::string_view> named;
    for (RestoredTensor& w : tensors_) {
      if (w.checkpoint != i) continue;
      named.insert(w.name);
      if (!w.wanted || known.contains(w.name)) continue;
      w.wanted = false;
      report_.missing.push_back({std::string(w.name), Like(w.name, names)});
    }
    for (const std::string& name : names) {
      if (!named.contains(name) && name != kObjectGraphKey) report_.unexpected.push_back(name);
    }
    if (options_.mode == RestoreMode::kAvailable || report_.missing.empty())
      return absl::OkStatus();
    std::vector<std::string> others;
    for (size_t k = 1; k < report_.missing.size() && k <= kMaxNamed; ++k)
      others.push_back(absl::StrCat(report_.missing[k].key, report_.missing[k].reason));
    return NotFound("Key ", report_.missing[0].key, " not found in checkpoint ", paths_[i],
                    report_.missing[0].reason,
                    others.empty()
                        ? ""
                        : absl::StrCat("; ", report_.missing.size() - 1, " others are missing: "),
                    absl::StrJoin(others, ", "));
  }

  // At most so many names are compared and printed.
  static constexpr size_t kMaxNamed = 20;

  std::string Like(absl::string_view name, const std::vector<std::string>& names) const {
    if (report_.missing.size() > kMaxNamed) return "";
    const std::vector<std::string> close = ClosestNames(name, names);
    return close.empty() ? "" : absl::StrCat(" (did you mean ", close.front(), "?)");
  }

  // Drops a tensor that does not fit, or returns the reason.
  absl::Status Mismatch(RestoredTensor& w, const absl::Status& reason) {
    report_.mismatched.push_back({std::string(w.name), std::string(reason.message())});
    if (options_.mode != RestoreMode::kAvailable) return reason;
    w.wanted = false;
    return absl::OkStatus();
  }

  // The error is of the first tensor that does not fit; the report has all.
  absl::Status CheckPaths() {
    absl::Status error;
    for (RestoredTensor& w : tensors_) {
      for (const RestoreGraphInfo::AssignPath& path : w.paths) {
        if (!w.wanted) break;
        const absl::Status fits = CheckPath(w, path);
        if (!fits.ok()) error.Update(Mismatch(w, fits));
      }
    }
    return error;
  }

  // Determines which values become a variable's value, and which of them are read into its memory.
  void ChooseMemory() {
    for (RestoredTensor& w : tensors_) {
      if (!w.wanted) continue;
      if (VariableState* const variable = SoleVariable(w); variable != nullptr) {
        const MutexLock lock(variable->mutex());
        if (CanHoldValue(*variable, w)) w.variable = variable;
        if (HasReusableMemory(*variable, w)) continue;
      }
      w.value = static_cast<int>(kept_values_.size());
      kept_values_.emplace_back();
    }
  }

  // Returns the variable to which this value is assigned as a whole; null if it has other uses too.
  VariableState* SoleVariable(const RestoredTensor& w) const {
    if (!w.slice.empty() || w.paths.size() != 1) return nullptr;
    const RestoreGraphInfo::AssignPath& path = w.paths[0];
    return path.is_sole_use && path.reshapes.empty() ? info_.states[path.variable].get() : nullptr;
  }

  absl::Status ReadAll() {
    ReadSmall(
        [](const RestoredTensor&) { return true; },
        [&](RestoredTensor& w, const absl::StatusOr<absl::string_view>& bytes) -> absl::Status {
          WEIR_RETURN_IF_ERROR(bytes.status());
          if (w.value < 0) return absl::OkStatus();
          WEIR_ASSIGN_OR_RETURN(kept_values_[w.value], ToTensor(w, *bytes));
          return absl::OkStatus();
        });
    ReadOthers([](const RestoredTensor&) { return true; },
               [&](RestoredTensor& w) -> absl::Status {
                 CheckpointReader& reader = *checkpoints_[w.checkpoint];
                 if (w.value < 0) return reader.Check(w.name);
                 WEIR_ASSIGN_OR_RETURN(kept_values_[w.value],
                                       ReadFromCheckpoint(reader, std::string(w.name),
                                                          std::string(w.slice), w.dtype));
                 return absl::OkStatus();
               });
    return FirstError();
  }

  // Calls take(tensor, bytes or error) on all threads for the small tensors for which `predicate`
  // holds.
  template <class Predicate, class Take>
  void ReadSmall(const Predicate& predicate, const Take& take) {
    for (size_t i = 0; i < checkpoints_.size(); ++i) {
      const Selection selection =
          SelectTensors(i, [&](const RestoredTensor& w) { return w.is_small && predicate(w); });
      checkpoints_[i]->ReadMany(selection.names, session_.pool(),
                                [&](size_t k, const absl::StatusOr<absl::string_view>& bytes) {
                                  selection.tensors[k]->status = take(*selection.tensors[k], bytes);
                                });
    }
  }

  // Calls read(tensor) on all threads for the other tensors for which `predicate` holds.
  template <class Predicate, class Read>
  void ReadOthers(const Predicate& predicate, const Read& read) {
    std::vector<RestoredTensor*> others;
    for (RestoredTensor& w : tensors_) {
      if (w.wanted && !w.is_small && predicate(w)) others.push_back(&w);
    }
    session_.pool().ForEach(static_cast<int>(others.size()),
                            [&](int i) { others[i]->status = read(*others[i]); });
  }

  absl::Status FirstError() const {
    for (const RestoredTensor& w : tensors_) WEIR_RETURN_IF_ERROR(w.status);
    return absl::OkStatus();
  }

  // Sets the variable's value; read(Tensor*) fills the memory.
  template <class Read>
  static absl::Status SetVariable(RestoredTensor& w, const Read& read) {
    VariableState& variable = *w.variable;
    const MutexLock lock(variable.mutex());
    absl::Status status;
    if (HasReusableMemory(variable, w)) {
      Tensor memory = variable.value();
      status = read(&memory);
    } else {  // the memory has become shared in the meantime
      absl::StatusOr<Tensor> memory = Tensor::Allocate(HostAllocator(), w.dtype, w.shape);
      status = memory.ok() ? read(&*memory) : memory.status();
      if (status.ok()) variable.Set(*std::move(memory));
    }
    if (status.ok()) return status;
    variable.Set(Tensor());
    return Annotate(
        status, absl::StrCat(variable.Describe(), ", and perhaps other variables, has no value ",
                             "any more: the second reading of the checkpoint failed"));
  }

  // Runs the final nodes of the restore op, except the assignments that are made here.
  absl::Status RunRemainingNodes() {
    std::vector<bool> is_done(info_.paths.size());
    for (const RestoredTensor& w : tensors_) {
      if (w.variable == nullptr && w.wanted) continue;
      for (const RestoreGraphInfo::AssignPath& path : w.paths)
        is_done[&path - info_.paths.data()] = true;
    }
    std::vector<Operation> targets;
    for (const RestoreGraphInfo::FinalNode& last : info_.final_nodes) {
      if (last.path < 0 || !is_done[last.path]) targets.emplace_back(last.node);
    }
    if (targets.empty()) return absl::OkStatus();
    Feeds feeds = {{filename_, path_}};
    for (RestoredTensor& w : tensors_) {
      if (w.variable == nullptr && w.wanted)
        feeds.emplace_back(w.output, std::move(kept_values_[w.value]));
    }
    return session_.Run(feeds, {}, targets).status();
  }

  Session& session_;
  const RestoreGraphInfo& info_;
  const Output filename_;
  const Tensor path_;
  const RestoreOptions& options_;
  RestoreReport& report_;
  std::deque<std::string> renamed_;  // the keys that tensors_ names, if they are renamed
  Tensors inputs_;                   // of the reading nodes
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<CheckpointReader>> checkpoints_;  // by path
  std::vector<RestoredTensor> tensors_;
  Tensors kept_values_;  // values that are kept in memory of their own
};

}  // namespace

absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path) {
  return RestoreVariables(session, def, path, RestoreOptions());
}

absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path,
                              const RestoreOptions& options, RestoreReport* report) {
  RestoreReport found;
  if (path.empty()) return InvalidArgument("Can't load save_path when it is empty");
  std::string pattern = path;
  if (def.version < 2 && def.sharded && !CheckpointExists(pattern))
    pattern +=
        "-?????"
        "-of-?????";
  if (!CheckpointExists(pattern))
    return NotFound("The passed save_path is not a valid checkpoint: ", path);
  const Graph& graph = session.graph();
  WEIR_ASSIGN_OR_RETURN(const Output filename, graph.FindOutput(def.filename_tensor_name));
  Node* restore = graph.FindNode(def.restore_op_name);
  if (restore == nullptr)
    return NotFound("the graph has no restore op '", def.restore_op_name, "'");
  WEIR_ASSIGN_OR_RETURN(
      const auto info,
      RestoreGraphInfo::Of(graph, restore, session.resources(),
                           [&](const std::vector<Operation>& nodes) {
                             return session.Run(Feeds{}, Outputs{}, nodes).status();
                           }));
  Restorer restorer(session, *info, filename, pattern, options, &found);
  const absl::Status prepared = restorer.Prepare();
  if (report != nullptr) {
    if (prepared.ok()) found.restored = restorer.RestoredKeys();
    *report = std::move(found);
  }
  WEIR_RETURN_IF_ERROR(prepared);
  WEIR_RETURN_IF_ERROR(restorer.Write());
  RestoredCheckpoint::Of(session.resources())->Set(path, restorer.Assigned());
  return absl::OkStatus();
}

}  // namespace weir
