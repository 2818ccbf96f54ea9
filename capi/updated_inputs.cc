#include "weir/capi/updated_inputs.h"

#include "weir/core/tensor/mutex.h"

namespace weir::capi {

struct UpdatedInputs::Record {
  Mutex mutex;
  Inputs inputs ABSL_GUARDED_BY(mutex);
};

// Never deleted: graphs may be deleted later than any object with a destructor.
UpdatedInputs::Record& UpdatedInputs::All() {
  static Record* const record = new Record;
  return *record;
}

UpdatedInputs::~UpdatedInputs() {
  Record& all = All();
  const MutexLock lock(all.mutex);
  for (const auto& input : own_) all.inputs.erase(input);
}

void UpdatedInputs::Add(const Node* node, int index) {
  own_.emplace(node, index);
  Record& all = All();
  const MutexLock lock(all.mutex);
  all.inputs.emplace(node, index);
}

bool UpdatedInputs::Has(const Node* node, int index) {
  Record& all = All();
  const MutexLock lock(all.mutex);
  return all.inputs.count({node, index}) > 0;
}

}  // namespace weir::capi
