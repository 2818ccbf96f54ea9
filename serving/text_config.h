#ifndef WEIR_SERVING_TEXT_CONFIG_H_
#define WEIR_SERVING_TEXT_CONFIG_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Files in protobuf's text format that an operator writes.
namespace weir::serving {

// A parsed text, which knows the lines of the fields. Movable.
class TextConfig {
 public:
  // Parses `text` into `message`. Returns INVALID_ARGUMENT with the line of the first mistake; for
  // a field that does not exist, with the names of those that do.
  static absl::StatusOr<TextConfig> Parse(absl::string_view text,
                                          google::protobuf::Message* message);
  TextConfig(TextConfig&&) noexcept;
  TextConfig& operator=(TextConfig&&) noexcept;
  ~TextConfig();

  // One step from a message to a field of it; `index` counts the values of a repeated field.
  struct Field {
    std::string name;
    int index = 0;
  };
  // Returns the line of a field, counted from 1. A field that the text does not have, a default,
  // has the line of the innermost message around it that the text has.
  int Line(const std::vector<Field>& path) const;

 private:
  struct Impl;
  explicit TextConfig(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::serving

#endif  // WEIR_SERVING_TEXT_CONFIG_H_
