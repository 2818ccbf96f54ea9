#include <algorithm>

#include "weir/kernels/containers/staging.h"

namespace weir {

namespace {

constexpr char kPutCancelled[] = "Stage operation was cancelled";
constexpr char kTakeCancelled[] = "Unstage operation was cancelled";

// Returns a callback that passes on the result that the attempt leaves in `result`.
template <class T, class TakeCallback>
WaitableResource::Done TakeResult(std::shared_ptr<T> result, TakeCallback done) {
  return [result, done = std::move(done)](absl::Status status) {
    if (status.ok()) {
      done(std::move(*result));
    } else {
      done(std::move(status));
    }
  };
}

absl::Status CheckOrder(const StagingMap::Indices& indices) {
  if (indices.empty()) return InvalidArgument("Indices are empty");
  const bool ascending =
      std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
  return ascending ? absl::OkStatus() : InvalidArgument("Indices are not strictly ordered");
}

absl::Status CheckIndex(int64_t key, int64_t index, size_t arity) {
  if (index >= 0 && index < static_cast<int64_t>(arity)) return absl::OkStatus();
  return InvalidArgument("Index '", index, "' for key '", key, "' was out of bounds '", arity,
                         "'.");
}

}  // namespace

absl::Status StagingLimits::Check(int64_t bytes) const {
  if (memory_limit == 0 || bytes <= memory_limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("Attempted to insert tensors with combined size of '", bytes,
                   "' bytes into Staging Area with a memory limit of '", memory_limit, "'."));
}

int64_t BytesOf(const Tensors& tuple) {
  int64_t bytes = 0;
  for (const Tensor& t : tuple) bytes += static_cast<int64_t>(t.num_bytes());
  return bytes;
}

// ---- queue of tuples

void StagingArea::Put(Tensors tuple, Cancellation* cancellation, Done done) {
  const int64_t bytes = BytesOf(tuple);
  if (const absl::Status fits = limits_.Check(bytes); !fits.ok()) return done(fits);
  const auto put = [this, bytes,
                    tuple = std::move(tuple)]() mutable -> std::optional<absl::Status> {
    if (!limits_.HasRoom(static_cast<int64_t>(tuples_.size()), bytes_, bytes)) return std::nullopt;
    tuples_.push_back(std::move(tuple));
    bytes_ += bytes;
    return absl::OkStatus();
  };
  Wait(kPut, {.attempt = put,
              .roll_back = nullptr,
              .cancelled = kPutCancelled,
              .cancellation = cancellation,
              .done = std::move(done)});
}

void StagingArea::Take(Cancellation* cancellation, TakeCallback done) {
  auto taken = std::make_shared<Tensors>();
  const auto take = [this, taken]() -> std::optional<absl::Status> {
    if (tuples_.empty()) return std::nullopt;
    *taken = std::move(tuples_.front());
    tuples_.pop_front();
    bytes_ -= BytesOf(*taken);
    return absl::OkStatus();
  };
  Wait(kTake, {.attempt = take,
               .roll_back = nullptr,
               .cancelled = kTakeCancelled,
               .cancellation = cancellation,
               .done = TakeResult(taken, std::move(done))});
}

void StagingArea::Peek(int64_t index, Cancellation* cancellation, TakeCallback done) {
  auto seen = std::make_shared<Tensors>();
  const auto peek = [this, index, seen]() -> std::optional<absl::Status> {
    if (index >= static_cast<int64_t>(tuples_.size())) return std::nullopt;
    *seen = tuples_[static_cast<size_t>(index)];
    return absl::OkStatus();
  };
  Wait(kTake, {.attempt = peek,
               .roll_back = nullptr,
               .cancelled = kTakeCancelled,
               .cancellation = cancellation,
               .done = TakeResult(seen, std::move(done))});
}

int64_t StagingArea::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(tuples_.size());
}

void StagingArea::Empty() {
  Change([this] { ResetState(); });
}

void StagingArea::ResetState() {
  tuples_.clear();
  bytes_ = 0;
}

// ---- map of tuples

void StagingMap::Put(int64_t key, Indices indices, Tensors parts, size_t arity,
                     Cancellation* cancellation, Done done) {
  absl::Status fits = CheckOrder(indices);
  if (fits.ok()) fits = limits_.Check(BytesOf(parts));
  if (fits.ok() && indices.size() != parts.size()) {
    fits = InvalidArgument("There are ", indices.size(), " indices for ", parts.size(), " values");
  }
  for (size_t i = 0; fits.ok() && i < indices.size(); ++i)
    fits = CheckIndex(key, indices[i], arity);
  if (!fits.ok()) return done(fits);
  Wait(kPut, {.attempt = [this, key, indices = std::move(indices), parts = std::move(parts),
                          arity] { return TryPut(key, indices, parts, arity); },
              .roll_back = nullptr,
              .cancelled = kPutCancelled,
              .cancellation = cancellation,
              .done = std::move(done)});
}

// Incomplete tuples do not count as elements.
std::optional<absl::Status> StagingMap::TryPut(int64_t key, const Indices& indices,
                                               const Tensors& parts, size_t arity) {
  const bool is_whole = indices.size() == arity;
  const int64_t elements = is_whole ? static_cast<int64_t>(whole_.size()) : -1;
  if (!limits_.HasRoom(elements, bytes_, BytesOf(parts))) return std::nullopt;
  return PutParts(key, indices, parts, arity);
}

absl::Status StagingMap::PutParts(int64_t key, const Indices& indices, const Tensors& parts,
                                  size_t arity) {
  Parts& tuple = incomplete_.try_emplace(key, arity).first->second;
  if (tuple.size() != arity)
    return InvalidArgument("Key '", key, "' has ", tuple.size(), " parts, not ", arity);
  for (const int64_t index : indices) {
    if (!tuple[index]) continue;
    return InvalidArgument("The tensor for index '", index, "' for key '", key,
                           "' was already initialized '", arity, "'.");
  }
  for (size_t i = 0; i < indices.size(); ++i) tuple[indices[i]] = parts[i];
  bytes_ += BytesOf(parts);
  const bool is_whole =
      std::all_of(tuple.begin(), tuple.end(), [](const auto& part) { return part.has_value(); });
  if (!is_whole) return absl::OkStatus();
  auto whole = incomplete_.extract(key);
  const auto put = whole_.insert(std::move(whole));
  if (!put.inserted) {
    for (const auto& part : put.node.mapped()) bytes_ -= BytesOf({*part});
  }
  return absl::OkStatus();
}

std::optional<absl::Status> StagingMap::TryTake(std::optional<int64_t> key, const Indices& indices,
                                                bool remove, Part* part) {
  const auto it = key ? whole_.find(*key) : whole_.begin();
  if (it == whole_.end()) return std::nullopt;
  Parts& tuple = it->second;
  part->first = it->first;
  for (const int64_t index : indices) {
    WEIR_RETURN_IF_ERROR(CheckIndex(it->first, index, tuple.size()));
    if (!tuple[index]) {
      return InvalidArgument("Tensor at index '", index, "' for key '", it->first,
                             "' has already been removed.");
    }
    part->second.push_back(*tuple[index]);
  }
  if (!remove) return absl::OkStatus();
  for (const int64_t index : indices) tuple[index].reset();
  bytes_ -= BytesOf(part->second);
  const bool is_empty =
      std::none_of(tuple.begin(), tuple.end(), [](const auto& left) { return left.has_value(); });
  if (is_empty) whole_.erase(it);
  return absl::OkStatus();
}

void StagingMap::WaitForPart(std::optional<int64_t> key, Indices indices, bool remove,
                             Cancellation* cancellation, TakeCallback done) {
  if (const absl::Status ordered = CheckOrder(indices); !ordered.ok()) return done(ordered);
  auto part = std::make_shared<Part>();
  Wait(kTake, {.attempt = [this, key, indices = std::move(indices), remove,
                           part] { return TryTake(key, indices, remove, part.get()); },
               .roll_back = nullptr,
               .cancelled = kTakeCancelled,
               .cancellation = cancellation,
               .done = TakeResult(part, std::move(done))});
}

void StagingMap::Take(std::optional<int64_t> key, Indices indices, Cancellation* cancellation,
                      TakeCallback done) {
  WaitForPart(key, std::move(indices), /*remove=*/true, cancellation, std::move(done));
}

void StagingMap::Peek(int64_t key, Indices indices, Cancellation* cancellation, TakeCallback done) {
  WaitForPart(key, std::move(indices), /*remove=*/false, cancellation, std::move(done));
}

int64_t StagingMap::size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(whole_.size());
}

int64_t StagingMap::incomplete_size() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(incomplete_.size());
}

void StagingMap::Empty() {
  Change([this] { ResetState(); });
}

void StagingMap::ResetState() {
  whole_.clear();
  incomplete_.clear();
  bytes_ = 0;
}

}  // namespace weir
