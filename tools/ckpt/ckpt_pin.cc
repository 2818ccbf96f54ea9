#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/formats.h"

// weir ckpt pin: keeps a checkpoint from being removed by savers and by weir ckpt gc.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct PinOptions {
  std::string path, note;
  bool remove = false, dry_run = false, json = false;
};

absl::Status Pin(const PinOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointLocation location,
                        LocateCheckpoint(options.path, &console.err));
  const std::string& prefix = location.path;
  if (location.format->name != "v1" && location.format->name != "v2")
    return InvalidArgument(prefix, " is no checkpoint of a saver");
  if (!CheckpointExists(prefix)) return NotFound(prefix, ": no such checkpoint");
  const std::string pin = PinPath(prefix);
  if (options.remove) {
    if (!IsPinned(prefix)) return NotFound(prefix, " is not pinned");
    if (!options.dry_run) WEIR_RETURN_IF_ERROR(Files().Remove(pin));
  } else {
    if (location.format->name == "v2") WEIR_RETURN_IF_ERROR(CheckBundleIsComplete(prefix));
    if (!options.dry_run)
      WEIR_RETURN_IF_ERROR(WriteFileAtomically(pin, absl::StrCat(options.note, "\n")));
  }
  if (options.json) {
    const Json json = {
        {"checkpoint", prefix}, {"pinned", !options.remove}, {"dry_run", options.dry_run}};
    console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  console.out << prefix << (options.dry_run ? " would be " : " is ")
              << (options.remove ? "no longer pinned" : "pinned") << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddPinCommand(Command& ckpt) {
  auto options = std::make_shared<PinOptions>();
  Command pin = ckpt.Add("pin", "Keep a checkpoint from being removed by savers and gc",
                         "  weir ckpt pin runs/model-500 --note 'best so far'");
  pin.Argument("CHECKPOINT", &options->path, kCheckpointHelp).Required();
  pin.Value("--note", &options->note, "a text that weir ckpt gc prints").Word("TEXT");
  pin.Flag("--remove", &options->remove, "remove the pin");
  pin.Flag("--dry-run", &options->dry_run, "change nothing");
  pin.Flag("--json", &options->json, "print JSON");
  pin.Do([options](Console& console) { return Finish(console, Pin(*options, console)); });
}

}  // namespace weir::tools
