#ifndef WEIR_PROTO_PROTO_H_
#define WEIR_PROTO_PROTO_H_

// The types of the messages that graphs, checkpoints, events and examples are on the wire, all in
// namespace weir::proto: #include "weir/proto.h". Only programs that look into messages need it,
// and with it protobuf's headers and the library that Weir was built with (libprotobuf-dev). Beside
// each function of a message is one of its serialized bytes.

#include "weir/proto/attr_value.pb.h"
#include "weir/proto/checkpoint_state.pb.h"
#include "weir/proto/control_flow.pb.h"
#include "weir/proto/event.pb.h"
#include "weir/proto/example.pb.h"
#include "weir/proto/feature.pb.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/node_def.pb.h"
#include "weir/proto/op_def.pb.h"
#include "weir/proto/queue_runner.pb.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/proto/saver.pb.h"
#include "weir/proto/step_stats.pb.h"
#include "weir/proto/summary.pb.h"
#include "weir/proto/tensor.pb.h"
#include "weir/proto/tensor_bundle.pb.h"
#include "weir/proto/tensor_shape.pb.h"
#include "weir/proto/variable.pb.h"

#endif  // WEIR_PROTO_PROTO_H_
