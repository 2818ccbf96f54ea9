// Trains a small convolutional network on handwritten digits, saves checkpoints, and shows the
// misclassified digits.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "weir/examples/digits/dataset.h"
#include "weir/examples/digits/network.h"
#include "weir/examples/digits/report.h"
#include "weir/weir.h"

namespace digits {
namespace {

struct Flags {
  std::string data = "examples/data/digits/digits.csv.gz";
  std::string directory = "runs/digits";
  std::string device;
  int64_t epochs = 60, batch = 64, summary_every = 100;
  int64_t save_every = 0;  // steps; 0: ten epochs
  float dropout = 0.3f;
  uint64_t seed = 1;
  bool resume = false, evaluate = false;
};

struct Evaluation {
  weir::Tensor predictions;
  float accuracy = 0;
};

absl::StatusOr<Evaluation> Evaluate(weir::Session& session, const Network& net,
                                    const Examples& test) {
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors out,
                        session.Run({{net.image, test.images}, {net.label, test.labels}},
                                    {net.prediction, net.accuracy}));
  return Evaluation{out[0], out[1].scalar<float>()};
}

// Trains from the session's current step to the last one.
absl::Status Train(weir::Session& session, const Network& net, const Flags& flags,
                   const Examples& train, int64_t last_step, weir::Saver& saver) {
  WEIR_ASSIGN_OR_RETURN(const auto events, weir::EventWriter::Create(flags.directory));
  WEIR_RETURN_IF_ERROR(events->AddGraph(weir::SerializeGraph(session.graph())));
  WEIR_ASSIGN_OR_RETURN(
      const weir::Step step,
      session.Prepare({net.image, net.label, net.dropout}, {net.loss, net.accuracy}, {net.train}));
  WEIR_ASSIGN_OR_RETURN(const weir::Tensors start, session.Run({net.global_step.value()}));
  const int64_t first_step = start[0].scalar<int64_t>(),
                steps_per_epoch = train.size() / flags.batch,
                save_every = flags.save_every > 0 ? flags.save_every : 10 * steps_per_epoch;
  Progress progress(first_step, last_step);
  weir::Tensors out;
  for (int64_t s = first_step; s < last_step;) {
    const std::vector<int64_t> order = EpochOrder(train.size(), s / steps_per_epoch);
    for (int64_t b = s % steps_per_epoch; b < steps_per_epoch && s < last_step; ++b) {
      const Examples batch =
          train.Pick({order.begin() + b * flags.batch, order.begin() + (b + 1) * flags.batch});
      WEIR_RETURN_IF_ERROR(
          step.Run({batch.images, batch.labels, weir::Tensor::Scalar(flags.dropout)}, &out));
      progress.Show(++s, out[0].scalar<float>(), out[1].scalar<float>());
      if (s % flags.summary_every == 0 || s == last_step) {
        WEIR_ASSIGN_OR_RETURN(
            const weir::Tensors summary,
            session.Run({{net.image, batch.images}, {net.label, batch.labels}}, {net.summaries}));
        WEIR_RETURN_IF_ERROR(events->AddSummary(summary[0].scalar<std::string>(), s));
      }
      if (s % save_every == 0 || s == last_step) {
        WEIR_RETURN_IF_ERROR(
            saver
                .Save(session, flags.directory + "/model", {.global_step = s, .exact_resume = true})
                .status());
      }
    }
  }
  progress.Finish();
  return events->Close();
}

// Rejects a missing device, for which a session would fall back to the CPU.
absl::Status CheckDevice(const weir::Session& session, absl::string_view wanted) {
  WEIR_ASSIGN_OR_RETURN(const weir::DeviceName name, weir::DeviceName::Parse(wanted));
  std::string devices;
  for (const weir::Device* device : session.devices()) {
    if (name.Matches(device->name())) return absl::OkStatus();
    absl::StrAppend(&devices, devices.empty() ? "" : ", ", device->text());
  }
  return weir::InvalidArgument("--device ", wanted, ": no such device; available: ", devices,
                               "; a GPU needs its driver and a build with --config=cuda");
}

absl::Status Run(const Flags& flags) {
  WEIR_ASSIGN_OR_RETURN(const Dataset data, LoadDigits(flags.data));
  if (flags.batch < 1 || flags.batch > data.train.size()) {
    return weir::InvalidArgument("--batch must be between 1 and ", data.train.size());
  }
  const int64_t last_step = flags.epochs * (data.train.size() / flags.batch);
  weir::Graph graph;
  graph.set_seed(static_cast<int64_t>(flags.seed));
  const weir::DeviceScope device(graph, flags.device);
  const Network net = BuildNetwork(graph, last_step);
  WEIR_ASSIGN_OR_RETURN(weir::Saver saver, weir::Saver::Create(graph, {.max_to_keep = 3}));
  WEIR_ASSIGN_OR_RETURN(weir::Session session, weir::Session::Create(graph));
  WEIR_RETURN_IF_ERROR(CheckDevice(session, flags.device));

  if (flags.resume || flags.evaluate) {
    WEIR_ASSIGN_OR_RETURN(const std::string checkpoint, weir::LatestCheckpoint(flags.directory));
    WEIR_RETURN_IF_ERROR(saver.Restore(session, checkpoint));
    WEIR_ASSIGN_OR_RETURN(const weir::CheckpointState state,
                          weir::ReadCheckpointState(flags.directory));
    saver.RecoverLastCheckpoints(state.all_model_checkpoint_paths);
    // The masks of dropout go on where they were.
    if (flags.resume) WEIR_RETURN_IF_ERROR(weir::ResumeExactly(session, checkpoint));
    std::printf("Restored %s\n", checkpoint.c_str());
  } else {
    WEIR_RETURN_IF_ERROR(session.Run(net.init));
  }
  if (!flags.evaluate) {
    std::printf("Training on %lld images, testing on %lld\n",
                static_cast<long long>(data.train.size()),
                static_cast<long long>(data.test.size()));
    WEIR_RETURN_IF_ERROR(Train(session, net, flags, data.train, last_step, saver));
    WEIR_RETURN_IF_ERROR(
        weir::WriteFileAtomically(flags.directory + "/graph.pbtxt", weir::GraphToText(graph)));
  }
  WEIR_ASSIGN_OR_RETURN(const Evaluation result, Evaluate(session, net, data.test));
  PrintConfusion(data.test.labels, result.predictions);
  PrintMisclassified(data.test, result.predictions);
  std::printf("\nAccuracy on %lld held-out images: %.4f%%\n",
              static_cast<long long>(data.test.size()), 100 * result.accuracy);
  if (flags.evaluate) return absl::OkStatus();
  std::printf(
      "\nNext:\n"
      "  bazel-bin/examples/digits/digits --evaluate              the same accuracy, from the "
      "checkpoint\n"
      "  bazel-bin/examples/digits/digits --resume --epochs %lld  continue training\n"
      "  bazel-bin/tools/weir events plot %s              the loss curve\n"
      "  bazel-bin/tools/weir ckpt ls %s/model-%lld     the saved tensors\n"
      "  tensorboard --logdir %s                          curves, histograms, the graph\n",
      static_cast<long long>(2 * flags.epochs), flags.directory.c_str(), flags.directory.c_str(),
      static_cast<long long>(last_step), flags.directory.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  digits::Flags flags;
  CLI::App app(
      "Trains a convolutional network on 1,797 handwritten digits.\nExample: digits --epochs 20 "
      "--dir /tmp/digits");
  app.add_option("--data", flags.data, "gzipped CSV file of images and labels")
      ->capture_default_str();
  app.add_option("--dir", flags.directory, "folder for checkpoints and events")
      ->capture_default_str();
  app.add_option("--epochs", flags.epochs, "total passes over the training images")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--batch", flags.batch, "images per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--dropout", flags.dropout, "fraction of units dropped in a training step")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--summary-every", flags.summary_every, "steps between two points of the curves")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--save-every", flags.save_every,
                 "steps between two checkpoints; default: ten epochs")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", flags.seed, "random seed of initial values and dropout")
      ->capture_default_str();
  app.add_option("--device", flags.device,
                 "device such as \"/gpu:0\"; default: the best available");
  app.add_flag("--resume", flags.resume, "continue from the last checkpoint in --dir");
  app.add_flag("--evaluate", flags.evaluate, "only evaluate the last checkpoint in --dir");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = digits::Run(flags);
  if (!status.ok()) std::fprintf(stderr, "digits: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
