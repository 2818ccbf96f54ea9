#ifndef WEIR_SESSION_WEIR_H_
#define WEIR_SESSION_WEIR_H_

// All that a program needs to build graphs, train, save and run them.

#include "weir/core/checkpoint_state.h"
#include "weir/core/event_writer.h"
#include "weir/core/file.h"
#include "weir/core/graph.h"
#include "weir/core/graph_io.h"
#include "weir/core/scope.h"
#include "weir/core/tensor.h"
#include "weir/ops/array.h"
#include "weir/ops/clip.h"
#include "weir/ops/cond.h"
#include "weir/ops/control_flow.h"
#include "weir/ops/data_flow.h"
#include "weir/ops/device_setter.h"
#include "weir/ops/gradients.h"
#include "weir/ops/initializers.h"
#include "weir/ops/layers.h"
#include "weir/ops/losses.h"
#include "weir/ops/math.h"
#include "weir/ops/metrics.h"
#include "weir/ops/mirrored_variable.h"
#include "weir/ops/moving_averages.h"
#include "weir/ops/nn.h"
#include "weir/ops/optimizers.h"
#include "weir/ops/random.h"
#include "weir/ops/schedules.h"
#include "weir/ops/summary.h"
#include "weir/ops/variables.h"
#include "weir/session/meta_graph.h"
#include "weir/session/monitored_session.h"
#include "weir/session/saver.h"
#include "weir/session/session.h"
#include "weir/session/variable_io.h"

#endif  // WEIR_SESSION_WEIR_H_
