#ifndef WEIR_CAPI_EXTENSIONS_OPTIONS_H_
#define WEIR_CAPI_EXTENSIONS_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/capi/objects.h"
#include "weir/core/io/file.h"
#include "weir/ops/lib/literal.h"

// What the functions of weir/c_api.h share: options as text, and lists of strings in buffers.
namespace weir::capi {

// Returns the pairs of a text, in order. INVALID_ARGUMENT for a word that is no pair, a quote that
// does not end, and a key that occurs twice.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParsePairs(absl::string_view text);

// Reads options from a text, which may be null:
//
//   OptionReader options(text);
//   options.Read("max_to_keep", &saver.max_to_keep);
//   WEIR_RETURN_IF_ERROR(options.Finish());
//
// A value that is absent leaves what is read into unchanged. The first error is that of Finish.
class OptionReader {
 public:
  explicit OptionReader(const char* text);

  void Read(absl::string_view key, std::string* value);
  void Read(absl::string_view key, bool* value);
  void Read(absl::string_view key, int* value);
  void Read(absl::string_view key, double* value);
  void Read(absl::string_view key, float* value);
  void Read(absl::string_view key, std::optional<int64_t>* value);
  void Read(absl::string_view key, std::optional<double>* value);
  // Whether a writer waits for the disk, as a truth value.
  void Read(absl::string_view key, Durability* value);
  // A list.
  void Read(absl::string_view key, std::vector<std::string>* value);
  // A number, or the name of a tensor of the graph.
  void Read(absl::string_view key, const Graph& graph, std::optional<TensorArg>* value);
  // One of the words, as its number.
  template <class T>
  void ReadChoice(absl::string_view key, std::initializer_list<absl::string_view> words, T* value) {
    const int choice = Choice(key, words);
    if (choice >= 0) *value = static_cast<T>(choice);
  }

  // Returns the first error: of the text, a value, or a key that nobody has read.
  absl::Status Finish() const;

 private:
  const std::string* Find(absl::string_view key);
  int Choice(absl::string_view key, std::initializer_list<absl::string_view> words);
  void Fail(absl::string_view key, absl::string_view value, absl::string_view wanted);

  absl::Status error_;
  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::string> known_;
};

// Replaces the contents of a buffer by strings that each end with a zero byte.
void SetList(const std::vector<std::string>& strings, TF_Buffer* buffer);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EXTENSIONS_OPTIONS_H_
