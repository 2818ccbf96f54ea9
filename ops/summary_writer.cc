#include "weir/core/shape_context.h"
#include "weir/ops/registry.h"

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
               .Doc("A writer of event files; CreateSummaryFileWriter gives it one."));
  ops->Add(WriterOp("CreateSummaryFileWriter",
                    "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, "
                    "filename_suffix: string",
                    "Gives a writer an event file, unless it has one. It is flushed when more than "
                    "`max_queue` events or `flush_millis` are waiting."));
  ops->Add(WriterOp("CreateSummaryDbWriter",
                    "writer: resource, db_uri: string, experiment_name: string, run_name: string, "
                    "user_name: string",
                    "UNIMPLEMENTED: summaries are not written to databases."));
  ops->Add(WriterOp("FlushSummaryWriter", "writer: resource", "Hands all events to the system."));
  ops->Add(WriterOp("CloseSummaryWriter", "writer: resource", "Closes a writer's file."));
  ops->Add(
      WriterOp("ImportEvent", "writer: resource, event: string", "Writes a serialized Event."));
  ops->Add(WriterOp("WriteSummary",
                    "writer: resource, step: int64, tensor: T, tag: string, "
                    "summary_metadata: string",
                    "Writes a tensor, with metadata for the one who shows it.")
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
                    "Writes images as PNG, as ImageSummary.")
               .Attr("max_images: int >= 1 = 3")
               .Attr("T: {uint8, double, float, half} = DT_FLOAT"));
  ops->Add(WriterOp("WriteAudioSummary",
                    "writer: resource, step: int64, tag: string, tensor: float, "
                    "sample_rate: float",
                    "Writes sounds as WAV, as AudioSummaryV2.")
               .Attr("max_outputs: int >= 1 = 3"));
}

}  // namespace weir
