#include "weir/kernels/data/reader.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Readers, by a resource handle or a reference: both are the same scalar handle here.
namespace weir {

namespace {

absl::StatusOr<Kernel> MakeReader(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(init.node));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<RecordSource> source, MakeRecordSource(init.node));
  const auto reader =
      name.SelectMap(init.resources).LookupOrCreate<ReaderState>(name.container, name.name, [&] {
        return std::make_shared<ReaderState>(
            absl::StrCat(init.node.op_name(), " '", name.name, "'"), std::move(source));
      });
  return Kernel::Constant(HandleTo(init.device, name, reader));
}

// Writes vectors of strings, or scalars if there is one record and `is_list` is false.
absl::Status WriteRecords(KernelContext& c, ReaderState::Records records, bool is_list) {
  const Shape shape = is_list ? Shape({static_cast<int64_t>(records.size())}) : Shape();
  WEIR_ASSIGN_OR_RETURN(Tensor * keys, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, shape));
  for (size_t i = 0; i < records.size(); ++i) {
    keys->data<std::string>()[i] = std::move(records[i].key);
    values->data<std::string>()[i] = std::move(records[i].value);
  }
  return absl::OkStatus();
}

void Read(KernelContext& c, bool is_list, Kernel::Done done) {
  const auto reader = c.resource<ReaderState>(0);
  const auto queue = c.resource<QueueState>(1);
  if (!reader.ok() || !queue.ok()) return done(reader.ok() ? queue.status() : reader.status());
  auto put_out = [&c, is_list, keep = *reader,
                  done = std::move(done)](absl::StatusOr<ReaderState::Records> records) {
    done(records.ok() ? WriteRecords(c, *std::move(records), is_list) : records.status());
  };
  if (!is_list) return (*reader)->Read(*queue, c.step(), std::move(put_out));
  absl::StatusOr<int64_t> count = ReadOneInt(c.input(2), "num_records");
  if (count.ok() && *count < 0)
    count = InvalidArgument("num_records must not be negative, got ", *count);
  if (!count.ok()) return put_out(count.status());
  (*reader)->ReadUpTo(*count, *queue, c.step(), std::move(put_out));
}

template <bool kIsList>
absl::StatusOr<Kernel> MakeRead(const KernelInit&) {
  return Kernel(
      [](KernelContext& c, Kernel::Done done) -> void { Read(c, kIsList, std::move(done)); });
}

template <int64_t (ReaderState::*kCount)()>
absl::Status WriteCount(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto reader, c.resource<ReaderState>(0));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape()));
  *out->data<int64_t>() = (*reader.*kCount)();
  return absl::OkStatus();
}

// A kernel that waits for its turn on the reader at input 0.
using WithReader = void (*)(KernelContext&, const std::shared_ptr<ReaderState>&, Kernel::Done);
template <WithReader kRun>
absl::StatusOr<Kernel> MakeWithReader(const KernelInit&) {
  return Kernel([](KernelContext& c, Kernel::Done done) -> void {
    const auto reader = c.resource<ReaderState>(0);
    if (!reader.ok()) return done(reader.status());
    kRun(c, *reader, std::move(done));
  });
}

void Serialize(KernelContext& c, const std::shared_ptr<ReaderState>& reader, Kernel::Done done) {
  reader->Serialize(c.cancellation(),
                    [&c, keep = reader, done = std::move(done)](absl::StatusOr<std::string> state) {
                      const absl::Status status = state.status();
                      if (status.ok()) c.SetOutput(0, Tensor::Scalar(*std::move(state)));
                      done(status);
                    });
}

void Restore(KernelContext& c, const std::shared_ptr<ReaderState>& reader, Kernel::Done done) {
  if (!c.input(1).shape().IsScalar()) {
    return done(InvalidArgument("Reader state must be scalar, but had shape: ",
                                c.input(1).shape().ToString()));
  }
  reader->Restore(c.input(1).scalar<std::string>(), c.cancellation(),
                  [keep = reader, done = std::move(done)](absl::Status s) { done(std::move(s)); });
}

void Reset(KernelContext& c, const std::shared_ptr<ReaderState>& reader, Kernel::Done done) {
  reader->Reset(c.cancellation(),
                [keep = reader, done = std::move(done)](absl::Status s) { done(std::move(s)); });
}

}  // namespace

void AddReaderKernels(KernelRegistry* r) {
  for (const char* version : {"", "V2"}) {
    const auto name = [&](const char* op) { return absl::StrCat(op, version); };
    for (const char* kind : {"FixedLengthRecordReader", "IdentityReader", "TFRecordReader",
                             "TextLineReader", "WholeFileReader"})
      r->Add(name(kind), kCpu, MakeReader);
    r->Add(name("ReaderRead"), kCpu, MakeRead<false>);
    r->Add(name("ReaderReadUpTo"), kCpu, MakeRead<true>);
    r->Add(name("ReaderNumRecordsProduced"), kCpu, WriteCount<&ReaderState::records_produced>);
    r->Add(name("ReaderNumWorkUnitsCompleted"), kCpu, WriteCount<&ReaderState::units_completed>);
    r->Add(name("ReaderSerializeState"), kCpu, MakeWithReader<Serialize>);
    r->Add(name("ReaderRestoreState"), kCpu, MakeWithReader<Restore>);
    r->Add(name("ReaderReset"), kCpu, MakeWithReader<Reset>);
  }
  AddRecordInputKernel(r);
}

}  // namespace weir
