#include "weir/kernels/lib/variable_access.h"

namespace weir {

namespace {

// A separate container, which no reset clears.
constexpr char kContainer[] = "shared state";

class Shared final : public Resource {
 public:
  explicit Shared(std::shared_ptr<ResourceMap> map) : map_(std::move(map)) {}
  std::string Describe() const override { return "the state that sessions share"; }
  ResourceMap& map() { return *map_; }

 private:
  const std::shared_ptr<ResourceMap> map_;
};

}  // namespace

void ShareState(ResourceMap& session, std::shared_ptr<ResourceMap> shared) {
  session.LookupOrCreate<Shared>(kContainer, "", [&] { return std::make_shared<Shared>(shared); });
}

ResourceMap& SharedState(ResourceMap& session) {
  const std::shared_ptr<Shared> shared = session.Lookup<Shared>(kContainer, "");
  return shared == nullptr ? session : shared->map();
}

}  // namespace weir
