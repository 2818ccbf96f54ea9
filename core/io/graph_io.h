#ifndef WEIR_CORE_IO_GRAPH_IO_H_
#define WEIR_CORE_IO_GRAPH_IO_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Graph serialization: GraphDef, in binary or protobuf text format. Each function that takes a
// message has a counterpart that takes the message's serialized bytes, which needs no protobuf
// header. The message types are in weir/proto.h.
namespace weir::proto {
class AttrValue;
class GraphDef;
class OpDef;
class TensorProto;
class TensorShapeProto;
}  // namespace weir::proto

namespace WEIR_API weir {

// What an import does with ops and attributes that this program does not know.
enum class UnknownParts : uint8_t {
  kKeep,         // keeps them; one line on stderr says that there are such attributes
  kKeepQuietly,  // keeps them without that line
  kReject,       // returns an error, as TensorFlow does
};

// How a graph is imported.
struct ImportOptions {
  std::string prefix = {};  // prepended to every name, with a '/'; an existing name then
                            // is ALREADY_EXISTS
  // Maps "name:0" or "name" in the imported graph to an existing output that replaces it.
  std::map<std::string, Output> input_map = {};
  // Names, in the imported graph, of tensors and nodes to return.
  std::vector<std::string> return_elements = {};
  // A serialized OpList: definitions of ops that the graph's registry may lack
  // (MetaGraphDef.meta_info_def.stripped_op_list).
  std::string op_list = {};
  // For nodes of the graph and of its functions.
  UnknownParts unknown = UnknownParts::kKeep;
};

// Adds the nodes of a GraphDef to the graph. Nodes may be in any order; cycles are allowed only
// through NextIteration. The import fills in default attributes, checks attributes, and infers
// shapes (an error of a shape function is returned with the node's name). A Const whose bytes are
// not a valid tensor gets an uninitialized value and the reason in the attribute `_value_error`;
// steps that need it fail. A node may call a function of the library as if it were an op; two
// different functions with the same name are an error. A node whose op is not in the graph's
// registry is kept, and exported with the same attributes; a step that needs it returns NOT_FOUND
// (core/graph/unknown_op.h). So is an attribute that an op does not have; it has no effect. With
// UnknownParts::kReject, the import returns NOT_FOUND or INVALID_ARGUMENT instead. On an error the
// graph is unchanged. Returns `return_elements` (nodes as output 0). Errors: INVALID_ARGUMENT for a
// malformed GraphDef (with the node; includes missing inputs), ALREADY_EXISTS, UNIMPLEMENTED for an
// op that was removed before the graph's version, RESOURCE_EXHAUSTED for tensors or numbers of
// outputs out of proportion to the size of the GraphDef.
absl::StatusOr<Outputs> ImportGraphDef(Graph& graph, const proto::GraphDef& def,
                                       const ImportOptions& options = {});
// Same, for a serialized GraphDef. Parses one node at a time: takes half the time, and avoids a
// message of the whole graph. Also returns INVALID_ARGUMENT if `bytes` is not a GraphDef or has a
// node of 2 GiB or more.
absl::StatusOr<Outputs> ImportGraph(Graph& graph, absl::string_view bytes,
                                    const ImportOptions& options = {});
// Reads a file, whose contents tell its form: a binary GraphDef, of any size as long as no node has
// 2 GiB, protobuf text, or either compressed by gzip. Checks only that it is a GraphDef.
absl::Status ReadGraphFile(const std::string& path, proto::GraphDef* def);
// Returns the serialized GraphDef, regardless of the file's format. Returns RESOURCE_EXHAUSTED for
// 2 GiB or more.
absl::StatusOr<std::string> ReadGraphFile(const std::string& path);
// Reads and imports a file.
absl::StatusOr<Outputs> ImportGraphFile(Graph& graph, const std::string& path,
                                        const ImportOptions& options = {});

// Exports the whole graph: nodes in creation order, every attribute explicit, like TensorFlow's
// Graph.as_graph_def.
void ExportGraphDef(const Graph& graph, proto::GraphDef* def);
std::string SerializeGraph(const Graph& graph);
// Returns the protobuf text, like tf.io.write_graph.
std::string GraphToText(const Graph& graph);
// Writes a graph file atomically, as protobuf text if the name ends in ".pbtxt". A binary file may
// have any size, and ReadGraphFile can read it; other programs read at most 2 GiB. Returns
// INVALID_ARGUMENT for a node of 2 GiB or more.
absl::Status WriteGraphFile(const Graph& graph, const std::string& path);

// Conversion of values. The From functions return INVALID_ARGUMENT for invalid messages (wrong
// lengths, unknown dimensions).
absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto);
// Same, for a message that is no longer needed: the tensor takes ownership of large raw elements
// without copying them. Such a tensor is 16-byte aligned.
absl::StatusOr<Tensor> TensorFromProto(proto::TensorProto&& proto);
// Writes the same encoding as TensorFlow's make_tensor_proto: typed fields for a single element and
// for strings, tensor_content for the rest.
void TensorToProto(const Tensor& tensor, proto::TensorProto* proto);
// Same, with tensor_content for all numbers, as TensorFlow's kernels write tensors.
void TensorToProtoContent(const Tensor& tensor, proto::TensorProto* proto);
absl::StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& proto);
void ShapeToProto(const Shape& shape, proto::TensorShapeProto* proto);
absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto);
void AttrToProto(const AttrValue& value, proto::AttrValue* proto);
void OpToProto(const OpSpec& op, proto::OpDef* def);
// Same, for serialized messages. The From functions also return INVALID_ARGUMENT if the bytes are
// not such a message.
absl::StatusOr<Tensor> TensorFromBytes(absl::string_view bytes);
std::string TensorToBytes(const Tensor& tensor);
absl::StatusOr<Shape> ShapeFromBytes(absl::string_view bytes);
std::string ShapeToBytes(const Shape& shape);
absl::StatusOr<AttrValue> AttrFromBytes(absl::string_view bytes);
std::string AttrToBytes(const AttrValue& value);
std::string OpToBytes(const OpSpec& op);

}  // namespace weir

#endif  // WEIR_CORE_IO_GRAPH_IO_H_
