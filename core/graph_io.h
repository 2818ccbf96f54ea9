#ifndef WEIR_CORE_GRAPH_IO_H_
#define WEIR_CORE_GRAPH_IO_H_

#include <map>
#include <string>
#include <vector>

#include "weir/core/graph.h"

// Graphs to and from the wire: GraphDef, as binary bytes or as protobuf text. Beside each function
// of a message stands one of the message's serialized bytes: it needs no protobuf header. The
// messages' types are in weir/proto.h.
namespace weir::proto {
class AttrValue;
class GraphDef;
class OpDef;
class TensorProto;
class TensorShapeProto;
}  // namespace weir::proto

namespace weir {

struct ImportOptions {
  std::string prefix = {};  // put before every name, with a '/' between; a name that is then taken
                            // is ALREADY_EXISTS
  // "name:0" or "name" in the imported graph -> an existing output to use instead.
  std::map<std::string, Output> input_map = {};
  // Tensors and nodes to return, by their names in the imported graph.
  std::vector<std::string> return_elements = {};
  // The bytes of an OpList: definitions of ops that the graph's registry may lack
  // (MetaGraphDef.meta_info_def.stripped_op_list).
  std::string op_list = {};
};

// Adds the nodes of a GraphDef: any order of nodes, cycles only through NextIteration. Missing
// default attributes are filled in, attributes checked, shapes inferred (a shape rule that refuses
// is an error, with the node's name). A Const whose bytes make no tensor gets an uninitialized
// value and the reason in the attribute `_value_error`: runs that need it fail. A function of the
// library may be called as if it were an op; two that have one name and differ are an error. A node
// of an op that the graph's registry lacks is kept, and exported with the same attributes; a step
// that needs it is NOT_FOUND (core/unknown_op.h). On an error the graph keeps the nodes it had:
// nothing is half imported. Returns `return_elements` (nodes as output 0). Codes: INVALID_ARGUMENT
// malformed (with node, missing inputs as well), ALREADY_EXISTS, UNIMPLEMENTED for an op that
// graphs of that version may no longer use, RESOURCE_EXHAUSTED for tensors or outputs out of all
// proportion to the bytes.
absl::StatusOr<Outputs> ImportGraphDef(Graph& graph, const proto::GraphDef& def,
                                       const ImportOptions& options = {});
// The same from a GraphDef's bytes, of which one node after another is parsed: in half the time,
// and without a message of the whole graph. INVALID_ARGUMENT as well for what is no GraphDef, or
// has a node of 2 GiB.
absl::StatusOr<Outputs> ImportGraph(Graph& graph, absl::string_view bytes,
                                    const ImportOptions& options = {});
// What a file holds: binary GraphDef, of any size as long as no node has 2 GiB, or text if the name
// ends in ".pbtxt". Nothing is checked but that it is a GraphDef.
absl::Status ReadGraphFile(const std::string& path, proto::GraphDef* def);
// The GraphDef's bytes, whichever form the file has. RESOURCE_EXHAUSTED for 2 GiB or more.
absl::StatusOr<std::string> ReadGraphFile(const std::string& path);
// Both.
absl::StatusOr<Outputs> ImportGraphFile(Graph& graph, const std::string& path,
                                        const ImportOptions& options = {});

// The whole graph, nodes in order of creation, every attribute explicit as TensorFlow's
// Graph.as_graph_def.
void ExportGraphDef(const Graph& graph, proto::GraphDef* def);
std::string SerializeGraph(const Graph& graph);
// Text form, as tf.io.write_graph.
std::string GraphToText(const Graph& graph);
// Either in a file, which is replaced in one step: text if the name ends in ".pbtxt". A graph may
// be of any size, as ReadGraphFile takes it; other programs take up to 2 GiB. INVALID_ARGUMENT for
// a node of 2 GiB.
absl::Status WriteGraphFile(const Graph& graph, const std::string& path);

// Values on the wire. From: INVALID_ARGUMENT for what cannot be a tensor (lengths that do not fit,
// unknown dims).
absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto);
// The same for a message that is not needed any more: large raw elements stay where they are, and
// the tensor, 16-byte aligned, takes over that memory.
absl::StatusOr<Tensor> TensorFromProto(proto::TensorProto&& proto);
// As TensorFlow's make_tensor_proto writes: typed fields for a single element and for strings,
// tensor_content for the rest.
void TensorToProto(const Tensor& tensor, proto::TensorProto* proto);
absl::StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& proto);
void ShapeToProto(const Shape& shape, proto::TensorShapeProto* proto);
absl::StatusOr<AttrValue> AttrFromProto(const proto::AttrValue& proto);
void AttrToProto(const AttrValue& value, proto::AttrValue* proto);
void OpToProto(const OpSpec& op, proto::OpDef* def);
// The same with serialized bytes. From: INVALID_ARGUMENT as well for what is no such message.
absl::StatusOr<Tensor> TensorFromBytes(absl::string_view bytes);
std::string TensorToBytes(const Tensor& tensor);
absl::StatusOr<Shape> ShapeFromBytes(absl::string_view bytes);
std::string ShapeToBytes(const Shape& shape);
absl::StatusOr<AttrValue> AttrFromBytes(absl::string_view bytes);
std::string AttrToBytes(const AttrValue& value);
std::string OpToBytes(const OpSpec& op);

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_IO_H_
