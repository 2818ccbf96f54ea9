#include "weir/ops/data/reader.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/queue_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Reader Reader::Make(Graph& graph, absl::string_view op, Attrs attrs, absl::string_view name) {
  attrs.emplace_back("container", graph.context().container);
  return Reader(Output(AddNode(graph, op, {}, attrs, name)));
}

Reader Reader::TextLine(Graph& graph, int64_t skip_header_lines, absl::string_view name) {
  return Make(graph, "TextLineReaderV2", {{"skip_header_lines", skip_header_lines}}, name);
}

Reader Reader::TfRecord(Graph& graph, absl::string_view compression, absl::string_view name) {
  return Make(graph, "TFRecordReaderV2", {{"compression_type", compression}}, name);
}

Reader Reader::WholeFile(Graph& graph, absl::string_view name) {
  return Make(graph, "WholeFileReaderV2", {}, name);
}

Reader Reader::Identity(Graph& graph, absl::string_view name) {
  return Make(graph, "IdentityReaderV2", {}, name);
}

Reader Reader::FixedLengthRecords(Graph& graph, const FixedLength& layout, absl::string_view name) {
  return Make(graph, "FixedLengthRecordReaderV2",
              {{"header_bytes", layout.header_bytes},
               {"record_bytes", layout.record_bytes},
               {"footer_bytes", layout.footer_bytes},
               {"hop_bytes", layout.hop_bytes},
               {"encoding", layout.encoding}},
              name);
}

std::pair<Output, Output> Reader::Read(const Queue& queue, absl::string_view name) const {
  const Outputs out = AllOutputs(AddNode("ReaderReadV2", {handle_, queue.handle()}, {}, name), 2);
  return {out[0], out[1]};
}

std::pair<Output, Output> Reader::ReadUpTo(const Queue& queue, Output num_records,
                                           absl::string_view name) const {
  const Outputs out =
      AllOutputs(AddNode("ReaderReadUpToV2", {handle_, queue.handle(), num_records}, {}, name), 2);
  return {out[0], out[1]};
}

Output Reader::NumRecordsProduced(absl::string_view name) const {
  return AddOp("ReaderNumRecordsProducedV2", {handle_}, {}, name);
}

Output Reader::NumWorkUnitsCompleted(absl::string_view name) const {
  return AddOp("ReaderNumWorkUnitsCompletedV2", {handle_}, {}, name);
}

Output Reader::SerializeState(absl::string_view name) const {
  return AddOp("ReaderSerializeStateV2", {handle_}, {}, name);
}

Operation Reader::RestoreState(Output state, absl::string_view name) const {
  return Operation(AddNode("ReaderRestoreStateV2", {handle_, state}, {}, name));
}

Operation Reader::Reset(absl::string_view name) const {
  return Operation(AddNode("ReaderResetV2", {handle_}, {}, name));
}

namespace {

absl::Status ReadUpToShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  c.set_all_outputs(Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status RestoreShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }

void AddCreators(const HandleForm& form, OpRegistry* ops) {
  const auto maker = [&](const char* op) { return HandleCreatorSpec(op, form, "reader_handle"); };
  // TensorFlow has not deprecated the ref form of WholeFileReader.
  const auto add = [&](OpSpec& spec, const char* doc) {
    const bool is_deprecated = !form.is_resource && spec.name() != "WholeFileReader";
    if (is_deprecated) spec.Deprecated(26, absl::StrCat("Use ", spec.name(), "V2"));
    ops->Add(spec.Doc(doc));
  };
  OpSpec whole = maker("WholeFileReader"), text = maker("TextLineReader"),
         fixed = maker("FixedLengthRecordReader"), records = maker("TFRecordReader"),
         identity = maker("IdentityReader");
  add(AddSharingAttrs(whole), "Creates a reader of whole files.");
  add(AddSharingAttrs(text.Attr("skip_header_lines: int = 0")),
      "Creates a reader of the lines of files.");
  AddSharingAttrs(fixed.Attr("header_bytes: int = 0")
                      .Attr("record_bytes: int")
                      .Attr("footer_bytes: int = 0")
                      .Attr("hop_bytes: int = 0"));
  if (form.is_resource) fixed.Attr("encoding: string = ''");
  add(fixed, "Creates a reader of records of a fixed size.");
  add(AddSharingAttrs(records).Attr("compression_type: string = ''"),
      "Creates a reader of the records of TFRecord files.");
  add(AddSharingAttrs(identity), "Creates a reader that returns the elements of its queue.");
}

OpSpec UserSpec(const char* op, const HandleForm& form, absl::string_view inputs = {}) {
  return HandleUserSpec(op, form, "reader_handle", inputs);
}

void AddReads(const HandleForm& form, OpRegistry* ops) {
  const std::string queue = absl::StrCat("queue_handle: ", form.handle);
  ops->Add(UserSpec("ReaderRead", form, queue)
               .Out("key: string, value: string")
               .InferShape(RankedIfResource(form, "reader_handle: 0, queue_handle: 0", ScalarShape))
               .Doc("Returns the next record. Dequeues the next unit of work at the end of the "
                    "current one."));
  ops->Add(
      UserSpec("ReaderReadUpTo", form, queue + ", num_records: int64")
          .Out("keys: string, values: string")
          .InferShape(RankedIfResource(form, "reader_handle: 0, queue_handle: 0", ReadUpToShape))
          .Doc("Returns up to `num_records` records, all from one unit of work."));
}

void AddStateOps(const HandleForm& form, OpRegistry* ops) {
  ops->Add(UserSpec("ReaderNumRecordsProduced", form)
               .Out("records_produced: int64")
               .InferShape(RankedIfResource(form, "reader_handle: 0", ScalarShape))
               .Doc("Returns the number of records that a reader has produced."));
  ops->Add(UserSpec("ReaderNumWorkUnitsCompleted", form)
               .Out("units_completed: int64")
               .InferShape(RankedIfResource(form, "reader_handle: 0", ScalarShape))
               .Doc("Returns the number of units of work that a reader has completed."));
  ops->Add(UserSpec("ReaderSerializeState", form)
               .Out("state: string")
               .InferShape(RankedIfResource(form, "reader_handle: 0", ScalarShape))
               .Doc("Returns the state of a reader as a string."));
  ops->Add(UserSpec("ReaderRestoreState", form, "state: string")
               .InferShape(RankedIfResource(form, "reader_handle: 0", RestoreShape))
               .Doc("Restores a reader to a serialized state."));
  ops->Add(UserSpec("ReaderReset", form)
               .InferShape(RankedIfResource(form, "reader_handle: 0", NoOutputs))
               .Doc("Resets a reader to its initial state."));
}

}  // namespace

void AddReaderOps(OpRegistry* ops) {
  for (const HandleForm& form : kHandleForms) {
    AddCreators(form, ops);
    AddReads(form, ops);
    AddStateOps(form, ops);
  }
  ops->Add(OpSpec("RecordInput")
               .Out("records: string")
               .Attr("file_pattern: string")
               .Attr("file_random_seed: int = 301")
               .Attr("file_shuffle_shift_ratio: float = 0")
               .Attr("file_buffer_size: int = 10000")
               .Attr("file_parallelism: int = 16")
               .Attr("batch_size: int = 32")
               .Attr("compression_type: string = ''")
               .Stateful()
               .InferShape(UnknownShape)
               .NotDifferentiable()
               .Doc("Returns records of all files that match a pattern in random order, for an "
                    "unlimited number of epochs."));
}

}  // namespace weir
