#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

OpSpec WriterOp(absl::string_view name, absl::string_view in, absl::string_view doc) {
  OpSpec op(name);
  op.In(in).Stateful().InferShape(NoOutputs).NotDifferentiable().Doc(doc);
  return op;
}

}  // namespace

void AddSummaryWriterOps(OpRegistry* ops) {
  ops->Add(OpSpec("SummaryWriter")
               .Out("writer: resource")
               .Attr("shared_name: string = ''")
               .Attr("container: string = ''")
               .Stateful()
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns a writer of event files. CreateSummaryFileWriter opens its file."));
  ops->Add(
      WriterOp("CreateSummaryFileWriter",
               "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, "
               "filename_suffix: string",
               "Opens an event file for a writer, unless it has one. The file is flushed when more "
               "than `max_queue` events are pending or after `flush_millis` milliseconds."));
  ops->Add(WriterOp("CreateSummaryDbWriter",
                    "writer: resource, db_uri: string, experiment_name: string, run_name: string, "
                    "user_name: string",
                    "UNIMPLEMENTED: writing summaries to databases is not supported."));
  ops->Add(WriterOp("FlushSummaryWriter", "writer: resource", "Flushes all events to the file."));
  ops->Add(WriterOp("CloseSummaryWriter", "writer: resource", "Closes a writer's file."));
  ops->Add(
      WriterOp("ImportEvent", "writer: resource, event: string", "Writes a serialized Event."));
  ops->Add(WriterOp("WriteSummary",
                    "writer: resource, step: int64, tensor: T, tag: string, "
                    "summary_metadata: string",
                    "Writes a tensor, with metadata for the plugin that displays it.")
               .Attr("T: type"));
  ops->Add(WriterOp("WriteRawProtoSummary", "writer: resource, step: int64, tensor: string",
                    "Writes the values of serialized Summaries."));
  ops->Add(WriterOp("WriteGraphSummary", "writer: resource, step: int64, tensor: string",
                    "Writes a serialized GraphDef."));
  ops->Add(WriterOp("WriteScalarSummary", "writer: resource, step: int64, tag: string, value: T",
                    "Writes a number.")
               .Attr("T: realnumbertype"));
  ops->Add(WriterOp("WriteHistogramSummary",
                    "writer: resource, step: int64, tag: string, values: T",
                    "Writes the distribution of values.")
               .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64, bool} = DT_FLOAT"));
  ops->Add(WriterOp("WriteImageSummary",
                    "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8",
                    "Writes images as PNG, like ImageSummary.")
               .Attr("max_images: int >= 1 = 3")
               .Attr("T: {uint8, double, float, half} = DT_FLOAT"));
  ops->Add(WriterOp("WriteAudioSummary",
                    "writer: resource, step: int64, tag: string, tensor: float, "
                    "sample_rate: float",
                    "Writes audio clips as WAV, like AudioSummaryV2.")
               .Attr("max_outputs: int >= 1 = 3"));
}

}  // namespace weir
