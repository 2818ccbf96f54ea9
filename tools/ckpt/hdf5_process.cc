#include "weir/tools/ckpt/hdf5_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "weir/core/io/coding.h"

// The messages. The child first sends the contents of the file. The parent then sends requests:
// tensor, first element, number of elements; the child sends the elements. An answer is a code of
// absl::StatusCode and a size, and then as many bytes: the elements, or the message of an error.
namespace weir::tools {

namespace {

constexpr uint64_t kMaxContentsBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxErrorBytes = 4096;
// What the library may allocate: two chunks of the largest size, their compressed bytes, its
// caches.
constexpr uint64_t kMemoryBytes = uint64_t{320} << 20;
constexpr rlim_t kSecondsPerRequest = 10;  // of processor time
constexpr size_t kNumbers = 3;             // of a request
constexpr size_t kHeadBytes = 2 * sizeof(uint64_t);

// Returns false at the end of the stream.
template <class Call>
bool TransferAll(char* bytes, uint64_t size, Call call) {
  while (size > 0) {
    const ssize_t n = call(bytes, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<uint64_t>(n);
  }
  return true;
}

bool SendAll(int socket, const char* bytes, uint64_t size) {
  return TransferAll(const_cast<char*>(bytes), size,
                     [&](char* at, uint64_t left) { return send(socket, at, left, MSG_NOSIGNAL); });
}

bool ReceiveAll(int socket, char* bytes, uint64_t size) {
  return TransferAll(bytes, size,
                     [&](char* at, uint64_t left) { return recv(socket, at, left, 0); });
}

void PutText(std::string* out, absl::string_view text) {
  PutFixed64(out, text.size());
  out->append(text.data(), text.size());
}

bool GetNumber(absl::string_view* in, uint64_t* number) {
  if (in->size() < sizeof(*number)) return false;
  *number = LoadFixed64(in->data());
  in->remove_prefix(sizeof(*number));
  return true;
}

bool GetText(absl::string_view* in, std::string* text) {
  uint64_t size = 0;
  if (!GetNumber(in, &size) || size > in->size()) return false;
  *text = std::string(in->substr(0, size));
  in->remove_prefix(size);
  return true;
}

std::string SerializeContents(const Hdf5Contents& contents) {
  std::string out;
  PutFixed64(&out, contents.tensors.size());
  for (const CheckpointTensor& tensor : contents.tensors) {
    PutText(&out, tensor.name);
    PutFixed64(&out, static_cast<uint64_t>(tensor.dtype));
    PutFixed64(&out, static_cast<uint64_t>(tensor.shape.rank()));
    for (const int64_t dim : tensor.shape.dims()) PutFixed64(&out, static_cast<uint64_t>(dim));
  }
  for (const MetadataEntry& entry : contents.metadata) {
    PutText(&out, entry.key);
    PutText(&out, entry.type);
    PutText(&out, entry.json);
  }
  return out;
}

bool ParseTensor(absl::string_view* in, CheckpointTensor* tensor) {
  uint64_t dtype = 0, rank = 0;
  if (!GetText(in, &tensor->name) || !GetNumber(in, &dtype) || !GetNumber(in, &rank) ||
      dtype > DT_FLOAT8_E5M2FNUZ || rank > in->size())
    return false;
  std::vector<int64_t> dims;
  for (uint64_t d = 0, dim = 0; d < rank; ++d) {
    if (!GetNumber(in, &dim)) return false;
    dims.push_back(static_cast<int64_t>(dim));
  }
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok() || !shape->IsFullyDefined()) return false;
  tensor->dtype = static_cast<DataType>(dtype);
  tensor->shape = *std::move(shape);
  return Hdf5Holds(tensor->dtype);
}

bool ParseContents(absl::string_view in, Hdf5Contents* contents) {
  uint64_t count = 0;
  if (!GetNumber(&in, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!ParseTensor(&in, &contents->tensors.emplace_back())) return false;
  }
  while (!in.empty()) {
    MetadataEntry& entry = contents->metadata.emplace_back();
    if (!GetText(&in, &entry.key) || !GetText(&in, &entry.type) || !GetText(&in, &entry.json))
      return false;
  }
  return true;
}

// ---- the child

void SetLimit(int resource, rlim_t limit) {
  rlimit limits{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limits);
  limits.rlim_cur = std::min(limit, limits.rlim_max);
  setrlimit(static_cast<__rlimit_resource>(resource), &limits);
}

// Returns the size of the memory that counts for the limit of data.
uint64_t DataBytes() {
  uint64_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) != 1) pages = 0;
  std::fclose(file);
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// A crash shall leave no core file, and say nothing: the parent reports it.
void BeQuiet() {
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM, SIGINT})
    signal(number, SIG_DFL);
  SetLimit(RLIMIT_CORE, 0);
  const int nowhere = open("/dev/null", O_RDWR);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

void LimitRequest() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  SetLimit(RLIMIT_CPU,
           static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kSecondsPerRequest);
}

bool Answer(int socket, const absl::Status& status, absl::string_view bytes) {
  if (!status.ok()) bytes = absl::string_view(status.message()).substr(0, kMaxErrorBytes);
  std::string head;
  PutFixed64(&head, static_cast<uint64_t>(status.raw_code()));
  PutFixed64(&head, bytes.size());
  return SendAll(socket, head.data(), head.size()) && SendAll(socket, bytes.data(), bytes.size());
}

// Serves requests until the parent closes its end.
void Serve(int socket, const FilePart& part) {
  BeQuiet();
  SetLimit(RLIMIT_DATA, DataBytes() + kMemoryBytes);
  LimitRequest();
  const auto reader = Hdf5Reader::Open(part);
  if (!reader.ok()) {
    Answer(socket, reader.status(), "");
    return;
  }
  const Hdf5Contents& contents = (*reader)->contents();
  if (!Answer(socket, absl::OkStatus(), SerializeContents(contents))) return;
  std::vector<char> elements(kPieceBytes);
  std::string request(kNumbers * sizeof(uint64_t), '\0');
  while (ReceiveAll(socket, request.data(), request.size())) {
    LimitRequest();
    absl::string_view in = request;
    uint64_t tensor = 0, first = 0, count = 0;
    GetNumber(&in, &tensor);
    GetNumber(&in, &first);
    GetNumber(&in, &count);
    const absl::Status status = (*reader)->Read(tensor, first, count, elements.data());
    const size_t size = count * ElementSize(contents.tensors[tensor].dtype);
    if (!Answer(socket, status, absl::string_view(elements.data(), size))) return;
  }
}

}  // namespace

// ---- the parent

absl::StatusOr<std::unique_ptr<Hdf5Process>> Hdf5Process::Start(const FilePart& part,
                                                                const std::string& what) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return absl::ErrnoToStatus(errno, "cannot create a socket");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Serve(ends[1], part);
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    const absl::Status status = absl::ErrnoToStatus(errno, "cannot start a process");
    close(ends[0]);
    return status;
  }
  std::unique_ptr<Hdf5Process> process(new Hdf5Process(what, child, ends[0]));
  const MutexLock lock(process->mutex_);
  WEIR_ASSIGN_OR_RETURN(const std::string contents, process->ReceiveContents());
  if (!ParseContents(contents, &process->contents_))
    return DataLoss(what, ": HDF5's library failed on it");
  return process;
}

Hdf5Process::~Hdf5Process() {
  const MutexLock lock(mutex_);
  if (child_ != 0) kill(child_, SIGKILL);
  Death().IgnoreError();
  close(socket_);
}

absl::Status Hdf5Process::Read(size_t tensor, uint64_t first, uint64_t count, char* out) {
  std::string request;
  for (const uint64_t number : {uint64_t{tensor}, first, count}) PutFixed64(&request, number);
  const MutexLock lock(mutex_);
  if (child_ == 0) return death_;
  if (!SendAll(socket_, request.data(), request.size())) return Death();
  uint64_t size = 0;
  WEIR_RETURN_IF_ERROR(ReceiveStatus(&size));
  if (size != count * ElementSize(contents_.tensors[tensor].dtype))
    return DataLoss(what_, ": HDF5's library failed on it");
  return ReceiveAll(socket_, out, size) ? absl::OkStatus() : Death();
}

absl::StatusOr<std::string> Hdf5Process::ReceiveContents() {
  uint64_t size = 0;
  WEIR_RETURN_IF_ERROR(ReceiveStatus(&size));
  if (size > kMaxContentsBytes)
    return DataLoss(what_, ": the names of its datasets and its texts have ", size, " bytes");
  std::string contents(size, '\0');
  if (!ReceiveAll(socket_, contents.data(), size)) return Death();
  return contents;
}

absl::Status Hdf5Process::ReceiveStatus(uint64_t* size) {
  std::string head(kHeadBytes, '\0');
  if (!ReceiveAll(socket_, head.data(), head.size())) return Death();
  const uint64_t code = LoadFixed64(head.data());
  *size = LoadFixed64(head.data() + sizeof(uint64_t));
  if (code == 0) return absl::OkStatus();
  std::string message(std::min(*size, kMaxErrorBytes), '\0');
  if (!ReceiveAll(socket_, message.data(), message.size())) return Death();
  return absl::Status(static_cast<absl::StatusCode>(code), absl::StrCat(what_, ": ", message));
}

absl::Status Hdf5Process::Death() {
  if (child_ == 0) return death_;
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) continue;
  child_ = 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  death_ = signal == SIGXCPU
               ? DataLoss(what_, ": it is damaged: HDF5's library did not return from it in ",
                          kSecondsPerRequest, " seconds")
               : DataLoss(what_, ": it is damaged: HDF5's library crashed on it (",
                          signal != 0 ? strsignal(signal) : "it ended", ")");
  return death_;
}

}  // namespace weir::tools
