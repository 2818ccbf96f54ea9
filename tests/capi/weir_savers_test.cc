#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "weir/tests/capi/weir_api.h"

namespace weir::capi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Savers : public Line {
 protected:
  Savers() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "weir_savers_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Run(init_);
  }
  SaverPtr Make(const char* options = nullptr) {
    return SaverPtr(weir_new_saver(graph(), nullptr, 0, options, status()));
  }
  std::string Save(const SaverPtr& saver, int64_t step, const char* options = nullptr) {
    const BufferPtr path(TF_NewBuffer());
    weir_saver_save(saver.get(), session_, (folder_ + "/m").c_str(), step, options, path.get(),
                    status());
    return api_.code() == TF_OK ? TextOf(path) : api_.message();
  }

  std::string folder_;
};

TEST_F(Savers, KeepTheNewestAndRestoreThem) {
  const SaverPtr saver = Make("max_to_keep=2 synced=false");
  ASSERT_NE(saver, nullptr) << api_.message();
  for (int step = 1; step <= 3; ++step) {
    SetSlope(step);
    EXPECT_EQ(Save(saver, step), folder_ + "/m-" + std::to_string(step));
  }
  const BufferPtr paths(TF_NewBuffer());
  weir_saver_checkpoints(saver.get(), paths.get(), status());
  EXPECT_THAT(ListOf(paths), ElementsAre(folder_ + "/m-2", folder_ + "/m-3"));
  weir_saver_restore(saver.get(), session_, (folder_ + "/m-2").c_str(), status());
  EXPECT_EQ(Slope(), 2) << api_.message();
  weir_saver_restore(saver.get(), session_, (folder_ + "/m-1").c_str(), status());
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  weir_latest_checkpoint(folder_.c_str(), paths.get(), status());
  EXPECT_EQ(TextOf(paths), folder_ + "/m-3");
}

TEST_F(Savers, SaveWhileTrainingGoesOn) {
  const SaverPtr saver = Make("synced=false");
  SetSlope(5);
  EXPECT_EQ(Save(saver, -1, "mode=async"), folder_ + "/m");
  SetSlope(6);
  weir_saver_wait(saver.get(), status());
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  weir_saver_restore(saver.get(), session_, (folder_ + "/m").c_str(), status());
  EXPECT_EQ(Slope(), 5);
}

TEST_F(Savers, GoOnAfterDamage) {
  const SaverPtr saver = Make("synced=false");
  SetSlope(1);
  Save(saver, 1);
  SetSlope(2);
  Save(saver, 2);
  {
    std::fstream data(folder_ + "/m-2.data-00000-of-00001", std::ios::in | std::ios::out);
    data.put('\x55');
  }
  const BufferPtr text(TF_NewBuffer());
  EXPECT_EQ(weir_checkpoint_verify((folder_ + "/m-1").c_str(), text.get(), status()), 1);
  EXPECT_THAT(TextOf(text), HasSubstr("\"sound\":true,\"tensors\":1"));
  EXPECT_EQ(weir_checkpoint_verify((folder_ + "/m-2").c_str(), text.get(), status()), 0);
  EXPECT_THAT(TextOf(text), HasSubstr("\"tensor\":\"slope\""));
  EXPECT_EQ(weir_checkpoint_verify((folder_ + "/m-9").c_str(), nullptr, status()), -1);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);

  const SaverPtr other = Make("synced=false name=other");
  weir_saver_restore_latest(other.get(), session_, folder_.c_str(), 0, text.get(), status());
  EXPECT_EQ(api_.code(), TF_DATA_LOSS) << api_.message();
  weir_saver_restore_latest(other.get(), session_, folder_.c_str(), 1, text.get(), status());
  EXPECT_EQ(api_.code(), TF_OK) << api_.message();
  EXPECT_EQ(TextOf(text), folder_ + "/m-1");
  EXPECT_EQ(Slope(), 1);
}

TEST_F(Savers, TensorsOfCheckpointsAreRead) {
  const SaverPtr saver = Make("synced=false");
  SetSlope(7);
  const std::string path = Save(saver, 1);
  const BufferPtr tensors(TF_NewBuffer());
  weir_checkpoint_tensors(path.c_str(), tensors.get(), status());
  EXPECT_EQ(TextOf(tensors), R"([{"name":"slope","dtype":"float","shape":[]}])");
  const TensorPtr slope(weir_checkpoint_read(path.c_str(), "slope", status()));
  ASSERT_NE(slope, nullptr) << api_.message();
  EXPECT_EQ(FloatAt(slope), 7);
  EXPECT_EQ(weir_checkpoint_read(path.c_str(), "w", status()), nullptr);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
}

TEST_F(Savers, MetaGraphsTrainInAnotherGraph) {
  const OptimizerPtr sgd(
      weir_new_optimizer(graph(), "GradientDescent", "learning_rate=0.01", status()));
  weir_optimizer_minimize(sgd.get(), &loss_, nullptr, nullptr, 0, status());
  const SaverPtr saver = Make("synced=false");
  SetSlope(2);
  const std::string path = Save(saver, 1);
  std::ifstream file(path + ".meta", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});

  Api copy;
  const BufferPtr meta(TF_NewBufferFromString(bytes.data(), bytes.size())), def(TF_NewBuffer());
  weir_graph_import_meta_graph(copy.graph(), meta.get(), nullptr, def.get(), copy.status());
  ASSERT_EQ(copy.code(), TF_OK) << copy.message();
  const SaverPtr again(weir_new_saver_from_def(def.get(), copy.status()));
  ASSERT_NE(again, nullptr) << copy.message();
  TF_Session* const session = TF_NewSession(copy.graph(), nullptr, copy.status());
  weir_saver_restore(again.get(), session, path.c_str(), copy.status());
  EXPECT_EQ(copy.code(), TF_OK) << copy.message();
  TF_Output train, value;
  EXPECT_EQ(weir_collection_items(copy.graph(), "train_op", &train, 1, copy.status()), 1);
  EXPECT_EQ(train.index, -1);
  EXPECT_EQ(weir_collection_items(copy.graph(), "variables", &value, 1, copy.status()), 1);
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &train.oper, 1, nullptr,
                copy.status());
  EXPECT_FLOAT_EQ(FloatAt(copy.Run(session, {}, {}, value)), 2.08f);  // the gradient is -8
  TF_DeleteSession(session, copy.status());
}

TEST_F(Savers, MistakesAreErrors) {
  EXPECT_EQ(Make("max_to_keep=-1"), nullptr);
  EXPECT_EQ(Make("better=worse"), nullptr);
  EXPECT_EQ(api_.message(), "option better=worse: expected one of: higher, lower");
  EXPECT_EQ(Make("write_version=3"), nullptr);
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  const SaverPtr saver = Make();
  EXPECT_THAT(Save(saver, 1, "mode=later"), HasSubstr("expected one of: sync"));
  folder_ += "/absent/deeper";
  Save(saver, 1);
  EXPECT_EQ(api_.code(), TF_NOT_FOUND);
  weir_saver_save(saver.get(), nullptr, "m", 1, nullptr, nullptr, status());
  EXPECT_EQ(api_.message(), "weir_saver_save: an argument is null");
  weir_saver_restore(nullptr, session_, "m", status());
  EXPECT_EQ(api_.code(), TF_INVALID_ARGUMENT);
  const BufferPtr junk(TF_NewBufferFromString("\xff\xff", 2)), empty(TF_NewBuffer());
  EXPECT_EQ(weir_new_saver_from_def(junk.get(), status()), nullptr);
  EXPECT_EQ(weir_new_saver_from_def(empty.get(), status()), nullptr);
  EXPECT_EQ(api_.message(), "the SaverDef names no nodes");
  Api other;
  EXPECT_EQ(weir_new_saver(other.graph(), nullptr, 0, nullptr, other.status()), nullptr);
  EXPECT_EQ(other.code(), TF_INVALID_ARGUMENT) << other.message();
  weir_delete_saver(nullptr);
}

}  // namespace
}  // namespace weir::capi_test
