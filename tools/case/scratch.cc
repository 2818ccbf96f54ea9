#include "weir/tools/case/scratch.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace weir::tools {

absl::Status ScratchFolder::Create() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "weir_XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return FailedPrecondition("cannot create a temporary folder ", name, ": ",
                              error ? error.message() : std::strerror(errno),
                              "; set TMPDIR to a writable folder");
  }
  path_ = name;
  return absl::OkStatus();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace weir::tools
