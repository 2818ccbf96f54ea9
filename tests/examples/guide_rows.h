#ifndef WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_
#define WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "weir/weir.h"

// What the guides to TensorFlow 1's variables promise, a row each: a sentence, and a function that
// builds it in an empty graph and says whether it holds. Every row is tried with resource variables
// and with reference variables. own_project_test.sh builds them with an installed tree.
namespace weir::guide {

struct Row {
  const char* text;
  std::function<bool(Graph& g)> holds;
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

// The graph's error, which is taken from it, has this code and these words.
bool Fails(Graph& g, absl::StatusCode code, std::initializer_list<const char*> words = {});
bool Fails(const absl::Status& status, absl::StatusCode code,
           std::initializer_list<const char*> words = {});

// A session of the graph whose global and local variables are initialized.
absl::StatusOr<Session> Started(Graph& g);
// The values, as float, of a tensor of such a session; empty if that fails.
std::vector<float> Values(Graph& g, const Output& x);
std::vector<float> Values(Session& session, const Output& x);

using Floats = std::vector<float>;

}  // namespace weir::guide

#endif  // WEIR_TESTS_EXAMPLES_GUIDE_ROWS_H_
