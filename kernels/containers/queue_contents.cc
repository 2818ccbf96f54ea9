#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/graph.h"
#include "weir/kernels/containers/queue.h"
#include "weir/kernels/lib/resumable.h"

// The contents of queues, for runs that are resumed.
namespace weir {

QueueState::Contents QueueState::contents() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {order_->Elements(), order_->Draws(), closed_, waiting_};
}

absl::Status QueueState::Restore(Contents contents) {
  for (const Tensors& element : contents.elements) WEIR_RETURN_IF_ERROR(CheckElement(element));
  std::unique_ptr<QueueOrder> order = QueueOrder::Make(spec_);
  if (contents.draws.size() != order->Draws().size())
    return InvalidArgument("it is not the contents of a ", spec_.kind);
  for (Tensors& element : contents.elements) order->Put(std::move(element));
  order->RestoreDraws(contents.draws);
  Change([&] {
    order_ = std::move(order);
    closed_ = contents.closed;
  });
  return absl::OkStatus();
}

namespace {

// The first value says whether the queue is closed and how many elements follow; the second has the
// draws, and then come the components of the elements.
constexpr size_t kBeforeElements = 2;

void TakeQueues(ResourceMap& resources, std::vector<ResumableState>* states,
                std::vector<std::string>* lost) {
  for (const std::shared_ptr<QueueState>& queue : resources.All<QueueState>()) {
    QueueState::Contents contents = queue->contents();
    const QueueSpec& spec = queue->spec();
    if (contents.waiting > 0) {
      lost->push_back(absl::StrCat(queue->Describe(), ": the elements of ", contents.waiting,
                                   " calls that wait for it"));
    }
    const auto is_opaque = [](DataType type) { return type == DT_VARIANT || type == DT_RESOURCE; };
    if (absl::c_any_of(spec.types, is_opaque) && !contents.elements.empty()) {
      lost->push_back(absl::StrCat(queue->Describe(), ": its elements, which have the types ",
                                   TypeList(spec.types)));
      continue;
    }
    ResumableState state = {
        .kind = "queue", .container = spec.container, .name = spec.name, .is_own = spec.is_own};
    state.values = {Tensor::Vector<int64_t>(
                        {contents.closed ? 1 : 0, static_cast<int64_t>(contents.elements.size())}),
                    Tensor::Vector<uint64_t>(contents.draws)};
    for (Tensors& element : contents.elements)
      std::move(element.begin(), element.end(), std::back_inserter(state.values));
    states->push_back(std::move(state));
  }
}

bool MakesQueue(const Node& node) {
  return absl::EndsWith(absl::StripSuffix(node.op_name(), "V2"), "Queue");
}

absl::Status RestoreQueue(ResourceMap& resources, const ResumableState& state) {
  const ResourceName name = {state.container, state.name, state.is_own};
  const auto queue = name.SelectMap(resources).Lookup<QueueState>(name.container, name.name);
  if (queue == nullptr) return NotFound("there is no queue '", name.name, "'");
  const Tensors& values = state.values;
  const bool fits = values.size() >= kBeforeElements && values[0].dtype() == DT_INT64 &&
                    values[0].shape() == Shape({2}) && values[1].dtype() == DT_UINT64 &&
                    values[1].rank() == 1;
  if (!fits) return DataLoss("it is not the contents of a queue");
  const size_t width = queue->spec().types.size();
  const auto count = static_cast<uint64_t>(values[0].IntAt(1));
  if ((values.size() - kBeforeElements) % width != 0 ||
      (values.size() - kBeforeElements) / width != count) {
    return InvalidArgument("its ", count, " elements do not have the ", width,
                           " components of this queue");
  }
  QueueState::Contents contents;
  contents.closed = values[0].IntAt(0) != 0;
  const absl::Span<const uint64_t> draws = values[1].flat<uint64_t>();
  contents.draws.assign(draws.begin(), draws.end());
  for (auto it = values.begin() + kBeforeElements; it != values.end(); it += width)
    contents.elements.emplace_back(it, it + width);
  return queue->Restore(std::move(contents));
}

}  // namespace

ResumableKind Queues() {
  return {.name = "queue",
          .makes = MakesQueue,
          .take = TakeQueues,
          .restore = RestoreQueue,
          .needs_node = true};
}

}  // namespace weir
