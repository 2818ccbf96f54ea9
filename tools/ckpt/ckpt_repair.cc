#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt repair: writes a new checkpoint from the intact tensors of a damaged one and from other
// checkpoints.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct RepairOptions {
  std::string damaged;
  std::vector<std::string> others;
  RewriteOptions rewrite;
};

// Another checkpoint of the same model.
struct Donor {
  std::string path;
  std::unique_ptr<CheckpointReader> reader;
};

// The sources of the new checkpoint's tensors, sorted by name as TensorFlow writes them.
class Repair {
 public:
  static absl::StatusOr<Repair> Plan(const RepairOptions& options) {
    Repair repair;
    WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(options.damaged));
    const std::string& out = options.rewrite.out;
    WEIR_RETURN_IF_ERROR(CheckNotOverwriting(out, prefix));
    WEIR_ASSIGN_OR_RETURN(repair.salvaged_, SalvagedBundle::Open(prefix));
    for (const std::string& name : repair.salvaged_->names()) repair.sources_[name] = nullptr;
    for (const std::string& path : options.others) {
      WEIR_ASSIGN_OR_RETURN(const std::string other, CheckpointPrefix(path));
      WEIR_RETURN_IF_ERROR(CheckNotOverwriting(out, other));
      auto donor = std::make_unique<Donor>(Donor{other, nullptr});
      WEIR_ASSIGN_OR_RETURN(donor->reader, CheckpointReader::Open(other));
      repair.donors_.push_back(std::move(donor));
    }
    Output none;
    WEIR_RETURN_IF_ERROR(CheckOutput(options.rewrite, {}, &none).status());
    WEIR_RETURN_IF_ERROR(repair.AssignDonors());
    return repair;
  }

  absl::Status Write(const RewriteOptions& options, Console& console) {
    if (sources_.empty())
      return DataLoss(
          "no tensor of the checkpoint is intact; pass another checkpoint of the model with "
          "--from");
    if (options.dry_run) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(auto writer, BundleWriter::Create(options.out));
    ProgressBar progress(console, "Copying", "tensors", static_cast<double>(sources_.size()));
    for (const auto& [name, donor] : sources_) {
      WEIR_ASSIGN_OR_RETURN(const Tensor tensor,
                            donor == nullptr ? salvaged_->Read(name) : donor->reader->Read(name));
      WEIR_RETURN_IF_ERROR(writer->Add(name, tensor));
      progress.Add(1);
    }
    return writer->Finish();
  }

  const BundleReport& report() const { return salvaged_->report(); }
  // Maps a tensor's name to its donor, or to null if the damaged checkpoint has the tensor.
  const std::map<std::string, Donor*>& sources() const { return sources_; }
  // Names of tensors that are lost, and why no donor has them.
  const std::vector<std::pair<std::string, std::string>>& lost() const { return lost_; }

 private:
  // Assigns each missing tensor to the first donor that has it. If the index is damaged, names may
  // be missing as well: then every tensor of the donors counts as missing, except a tensor that can
  // still be read and whose name a donor confirms.
  absl::Status AssignDonors() {
    std::map<std::string, const CheckpointTensor*> missed;
    for (const CheckpointTensor& tensor : report().lost) missed[tensor.name] = &tensor;
    const std::vector<CheckpointTensor> doubtful = salvaged_->doubtful();
    for (const CheckpointTensor& tensor : doubtful) missed[tensor.name] = &tensor;
    if (!report().index_is_sound) {
      for (const auto& donor : donors_) {
        WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, donor->reader->List());
        for (const CheckpointTensor& tensor : tensors) {
          if (!sources_.contains(tensor.name)) missed.emplace(tensor.name, nullptr);
        }
      }
    }
    for (const CheckpointTensor& tensor : doubtful) {
      const bool is_known = std::any_of(donors_.begin(), donors_.end(), [&](const auto& donor) {
        return CheckMatches(*donor, tensor.name, &tensor).ok();
      });
      if (!is_known) continue;
      sources_[tensor.name] = nullptr;
      missed.erase(tensor.name);
    }
    for (const auto& [name, tensor] : missed) {
      std::string why = donors_.empty() ? "pass a checkpoint that has it with --from" : "";
      for (const auto& donor : donors_) {
        const absl::Status gives = CheckDonor(*donor, name, tensor);
        if (gives.ok()) {
          sources_[name] = donor.get();
          break;
        }
        absl::StrAppend(&why, why.empty() ? "" : "; ", gives.message());
      }
      if (!sources_.contains(name)) lost_.emplace_back(name, why);
    }
    return absl::OkStatus();
  }

  // `tensor` is the entry in the damaged index; null if there is none.
  static absl::Status CheckMatches(const Donor& donor, const std::string& name,
                                   const CheckpointTensor* tensor) {
    WEIR_ASSIGN_OR_RETURN(const CheckpointTensor found, donor.reader->Find(name));
    if (tensor != nullptr && (found.dtype != tensor->dtype || found.shape != tensor->shape)) {
      return InvalidArgument(donor.path, " has ", DataTypeName(found.dtype), found.shape.ToString(),
                             ", expected ", DataTypeName(tensor->dtype), tensor->shape.ToString());
    }
    return absl::OkStatus();
  }
  static absl::Status CheckDonor(const Donor& donor, const std::string& name,
                                 const CheckpointTensor* tensor) {
    WEIR_RETURN_IF_ERROR(CheckMatches(donor, name, tensor));
    return donor.reader->Check(name);
  }

  std::unique_ptr<SalvagedBundle> salvaged_;
  std::vector<std::unique_ptr<Donor>> donors_;
  std::map<std::string, Donor*> sources_;
  std::vector<std::pair<std::string, std::string>> lost_;
};

void PrintJson(const Repair& repair, const RewriteOptions& options, Console& console) {
  Json taken = Json::object(), lost = Json::object();
  for (const auto& [name, donor] : repair.sources()) {
    if (donor != nullptr) taken[name] = donor->path;
  }
  for (const auto& [name, why] : repair.lost()) lost[name] = why;
  const Json json = {{"checkpoint", options.out},
                     {"dry_run", options.dry_run},
                     {"tensors", repair.sources().size()},
                     {"taken", std::move(taken)},
                     {"lost", std::move(lost)},
                     {"index_is_sound", repair.report().index_is_sound}};
  console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintText(const Repair& repair, const RewriteOptions& options, Console& console) {
  size_t num_taken = 0;
  for (const auto& [name, donor] : repair.sources()) {
    if (donor == nullptr) continue;
    ++num_taken;
    console.out << console.Paint(Style::kNote, "TAKEN") << " " << name << " from " << donor->path
                << "\n";
  }
  for (const auto& [name, why] : repair.lost())
    console.out << console.Paint(Style::kBad, "LOST") << "  " << name << ": " << why << "\n";
  if (!repair.report().index_is_sound) {
    console.out << console.Paint(Style::kNote, "NOTE")
                << "  the index was damaged: tensors whose names are lost are missing, unless a "
                   "checkpoint passed with --from has them\n";
  }
  console.out << options.out << ": "
              << WithCommas(static_cast<int64_t>(repair.sources().size() - num_taken))
              << " tensors intact, " << num_taken << " taken from other checkpoints, "
              << repair.lost().size() << " lost" << (options.dry_run ? "; nothing was written" : "")
              << "\n";
}

absl::StatusOr<bool> RepairCheckpoint(const RepairOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(Repair repair, Repair::Plan(options));
  WEIR_RETURN_IF_ERROR(repair.Write(options.rewrite, console));
  (options.rewrite.json ? PrintJson : PrintText)(repair, options.rewrite, console);
  return repair.lost().empty();
}

}  // namespace

void AddRepairCommand(Command& ckpt) {
  auto options = std::make_shared<RepairOptions>();
  options->rewrite.format = "v2";
  Command repair = ckpt.Add(
      "repair",
      "Write a new checkpoint from the intact tensors of a damaged one and from other checkpoints "
      "(exit status 1 if a tensor is lost)",
      "  weir ckpt repair runs/model-500 runs/repaired --from runs/model-400");
  repair
      .Argument("CHECKPOINT", &options->damaged,
                "the damaged checkpoint's prefix, or a folder: its newest checkpoint")
      .Required();
  repair.Argument("OUT", &options->rewrite.out, "the prefix of the new checkpoint").Required();
  repair.Repeated("--from", &options->others,
                  "another checkpoint of the model, for lost tensors; repeatable");
  AddForceOption(repair, &options->rewrite);
  repair.Flag("--dry-run", &options->rewrite.dry_run, "print what would be saved; write nothing");
  repair.Flag("--json", &options->rewrite.json, "print JSON");
  repair.Do([options](Console& console) {
    const absl::StatusOr<bool> whole = RepairCheckpoint(*options, console);
    if (!whole.ok()) return Fail(console, whole.status());
    return *whole ? kOk : kFailure;
  });
}

}  // namespace weir::tools
