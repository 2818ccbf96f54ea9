#ifndef WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_
#define WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "weir/weir.h"

// The claims of the guides to TensorFlow 1's variables, one row each: a sentence, and a function
// that builds the case in an empty graph and returns whether the claim is true. Every row runs with
// resource variables and with ref variables. own_project_test.sh builds them with an installed
// tree.
namespace guide {

struct Row {
  const char* text;
  std::function<bool(weir::Graph& g)> holds;
};
using Rows = std::vector<Row>;

Rows CreationRows();
Rows SharingRows();
Rows CollectionRows();
Rows DeviceRows();
Rows InitializationRows();
Rows UseRows();
Rows TrainingRows();
Rows SavingRows();

// A folder for the rows that write files.
std::string& Folder();

// Takes the graph's error and checks that it has this code and contains these words.
bool Fails(weir::Graph& g, absl::StatusCode code, std::initializer_list<const char*> words = {});
bool Fails(const absl::Status& status, absl::StatusCode code,
           std::initializer_list<const char*> words = {});

// Returns a session of the graph with initialized global and local variables.
absl::StatusOr<weir::Session> Started(weir::Graph& g);
// Returns the values of a tensor of such a session as float; empty on failure.
std::vector<float> Values(weir::Graph& g, const weir::Output& x);
std::vector<float> Values(weir::Session& session, const weir::Output& x);

using Floats = std::vector<float>;

}  // namespace guide

#endif  // WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_
