#ifndef WEIR_KERNELS_TEXT_PROTO_SANITIZER_H_
#define WEIR_KERNELS_TEXT_PROTO_SANITIZER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
}

namespace weir {

// Parses messages of one type, text or binary, and serializes them again. Thread-safe.
class ProtoSanitizer {
 public:
  // `type` outlives this object.
  ProtoSanitizer(const google::protobuf::Descriptor* type, bool text);
  ~ProtoSanitizer();

  // Returns a message in binary form. DATA_LOSS if it cannot be parsed. RESOURCE_EXHAUSTED if the
  // parsed message may take too much memory.
  absl::StatusOr<std::string> Reserialized(const std::string& message) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_TEXT_PROTO_SANITIZER_H_
