#include "weir/serving/model_config.h"
#include "weir/tests/fuzz/targets.h"

// The configuration files of a server of models. An error names a line, or says that nothing is
// configured; a configuration that is read is valid.
namespace weir::fuzz {

void Configs(absl::string_view bytes) {
  const auto models = serving::ParseModelConfigs(bytes);
  if (models.ok()) {
    Require(serving::CheckModelConfigs(*models).ok(), "what is read is valid");
  } else {
    Require(models.status().message().substr(0, 5) == "line ", "an error names the line");
  }
  const auto batching = serving::ParseBatchingOptions(bytes);
  if (batching.ok())
    Require(serving::CheckBatchingOptions(*batching).ok(), "what is read is valid");
}

std::vector<Row> Rows() { return {{"configs", Configs, 2000}}; }

}  // namespace weir::fuzz
