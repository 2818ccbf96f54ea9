#ifndef WEIR_CORE_GRAPH_COLLECTION_H_
#define WEIR_CORE_GRAPH_COLLECTION_H_

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "weir/core/graph/output.h"
#include "weir/core/tensor/api.h"

// The elements of a graph's collections (Graph::AddToCollection).
namespace WEIR_API weir {

// An object in a collection, other than numbers, strings, tensors and ops: variables, savers,
// users' objects.
class CollectionObject {
 public:
  virtual ~CollectionObject() = default;
  // The name that `collection(key, scope)` filters by; "" if it has none.
  virtual std::string name() const { return ""; }
};
// A handle type that is stored in a collection as its object and constructed from it again:
// Variable.
template <class T>
concept CollectionHandle = requires(const T& handle) {
  { handle.info() } -> std::convertible_to<std::shared_ptr<CollectionObject>>;
};

// An element of a collection. A handle is stored as its object, not converted to a tensor.
class CollectionItem : public std::variant<int64_t, float, std::string, Output, Operation,
                                           std::shared_ptr<CollectionObject>> {
 public:
  // Converts a value of one of these types, or a handle.
  template <class T>
  requires(!std::derived_from<std::remove_cvref_t<T>, CollectionItem>) CollectionItem(T&& value)
      : variant(Alternative(std::forward<T>(value))) {}

 private:
  template <class T>
  static variant Alternative(T&& value) {
    if constexpr (CollectionHandle<std::remove_cvref_t<T>>) {
      return std::shared_ptr<CollectionObject>(value.info());
    } else {
      return std::forward<T>(value);
    }
  }
};

}  // namespace weir

#endif  // WEIR_CORE_GRAPH_COLLECTION_H_
