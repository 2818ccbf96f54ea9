#ifndef WEIR_KERNELS_DATA_ITERATOR_HANDLE_H_
#define WEIR_KERNELS_DATA_ITERATOR_HANDLE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/waiter_queue.h"

// Handles of iterators: those of named ones, those that nobody else can find, and their text.
namespace weir {

// Returns a constant kernel with the handle of a node's resource, a T made from its ResourceName.
// It is shared by name like all of a session's resources.
template <class T, class Make>
absl::StatusOr<Kernel> MakeHandleKernel(const KernelInit& init, const Make& make) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameOfResource(init.node));
  auto resource = name.SelectMap(init.resources).LookupOrCreate<T>(name.container, name.name, [&] {
    return make(name);
  });
  return Kernel::Constant(HandleTo(init.device, name, std::move(resource)));
}

// Sets output 0 to the handle of a resource that lives as long as its handles. Output 1, where
// there is one, stands for what deletes it.
inline absl::Status SetAnonymous(KernelContext& c, std::string name,
                                 std::shared_ptr<Resource> resource) {
  c.SetOutput(
      0, HandleTo(c.device(), {.container = "", .name = std::move(name)}, std::move(resource)));
  if (c.num_outputs() > 1) c.SetOutput(1, Tensor::Scalar(Variant()));
  return absl::OkStatus();
}

// Forgets what the resource at input 0 iterates over, whoever still has its handle.
template <class T>
absl::Status DeleteResource(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<T> resource, c.resource<T>(0));
  resource->Clear();
  return absl::OkStatus();
}

// Sets output 0 to a text that identifies the resource at input 0 within its session, so that a
// feed can select one. `prefix` tells the kinds of resources apart.
template <class T>
absl::Status HandleToText(KernelContext& c, absl::string_view prefix) {
  WEIR_RETURN_IF_ERROR(c.resource<T>(0).status());
  const ResourceHandle& handle = *c.input_data<ResourceHandle>(0);
  c.SetOutput(0, Tensor::Scalar(absl::StrCat(prefix, "\n", handle.container, "\n", handle.name)));
  return absl::OkStatus();
}

// Sets output 0 to the handle for such a text. INVALID_ARGUMENT if it is none; NOT_FOUND if the
// session has no such resource.
template <class T>
absl::Status HandleFromText(KernelContext& c, absl::string_view prefix) {
  WEIR_ASSIGN_OR_RETURN(const std::string text, ReadString(c.input(0), "string_handle"));
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  if (parts.size() != 3 || parts[0] != prefix) {
    return InvalidArgument(
        "Could not parse string_handle as a valid ResourceHandle: it is not an iterator handle");
  }
  const ResourceName name{.container = parts[1], .name = parts[2]};
  std::shared_ptr<T> resource;
  for (ResourceMap* map : {&c.resources(), &SharedState(c.resources())}) {
    if (resource == nullptr) resource = map->Lookup<T>(name.container, name.name);
  }
  if (resource == nullptr) return NotFound("iterator '", name.name, "' not found");
  c.SetOutput(0, HandleTo(c.device(), name, std::move(resource)));
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT unless a node has as many types as shapes, or none of one kind.
inline absl::Status CheckTypesAndShapes(const KernelInit& init) {
  const size_t types = init.attr<DataTypes>("output_types").size();
  const size_t shapes = init.attr<std::vector<Shape>>("output_shapes").size();
  if (types == shapes || types == 0 || shapes == 0) return absl::OkStatus();
  return InvalidArgument(
      "If both 'output_types' and 'output_shapes' are set, they must have the same length, not ",
      types, " and ", shapes);
}

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_ITERATOR_HANDLE_H_
