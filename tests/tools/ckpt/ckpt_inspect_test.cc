// `weir ckpt ls`, `show` and `diff`: what they say of a checkpoint is true.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class WeirCkptInspect : public WeirCkpt {
 protected:
  // Writes a checkpoint with these tensors, sorted by name.
  std::string WriteTensors(const std::string& name,
                           const std::vector<std::pair<std::string, Tensor>>& tensors) const {
    const auto writer = BundleWriter::Create(At(name));
    for (const auto& [tensor_name, value] : tensors)
      EXPECT_TRUE((*writer)->Add(tensor_name, value).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return At(name);
  }
  static json Json(const std::vector<std::string>& args, int status = kOk) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, status) << result.err;
    return json::parse(result.out);
  }
};

using WeirCkptLs = WeirCkptInspect;
using WeirCkptShow = WeirCkptInspect;
using WeirCkptDiff = WeirCkptInspect;

std::vector<std::string> NamesOf(const json& list) {
  std::vector<std::string> names;
  for (const json& tensor : list) names.push_back(tensor["name"]);
  return names;
}

TEST_F(WeirCkptLs, RolesFollowTheNames) {
  const Tensor one = Tensor::Scalar(1.f);
  const std::string prefix =
      WriteTensors("roles", {{"Adam", one},  // no optimizer's variable: nothing is named ""
                             {"beta1_power", one},
                             {"bn/moving_mean", one},
                             {"w", one},
                             {"w/Adam", one},
                             {"w/Adam_1", one},
                             {"w/ExponentialMovingAverage", one},
                             {"w/adapter", one}});
  std::vector<std::string> roles;
  for (const json& tensor : Json({"ckpt", "ls", prefix, "--json"})) roles.push_back(tensor["role"]);
  EXPECT_THAT(roles, ElementsAre("variable", "slot", "moving average", "variable", "slot", "slot",
                                 "moving average", "variable"));
  EXPECT_THAT(Weir({"ckpt", "ls", prefix}).out,
              HasSubstr("8 tensors, 8 elements, 32 B: variable 12 B, slot 12 B, moving average"));
}

TEST_F(WeirCkptLs, PatternsChooseAndSizesSort) {
  EXPECT_THAT(NamesOf(Json({"ckpt", "ls", model_, "hidden/[bw]", "st*", "--json"})),
              ElementsAre("hidden/b", "hidden/w", "step"));
  EXPECT_THAT(NamesOf(Json({"ckpt", "ls", model_, "--sort", "size", "--json"})),
              ElementsAre("hidden/w", "hidden/b", "hidden/b/Adam", "step", "words"));
  EXPECT_THAT(Error({"ckpt", "ls", model_, "nothing*"}), HasSubstr("none of the 5 tensors"));
  EXPECT_THAT(Error({"ckpt", "ls", model_, "--sort", "color"}), HasSubstr("name, size or role"));
}

TEST_F(WeirCkptLs, TreesSumScopes) {
  EXPECT_THAT(Weir({"ckpt", "ls", model_, "--tree"}).out,
              AllOf(HasSubstr("\nhidden/                     3 tensors     56\n  b  "),
                    HasSubstr("\n    Adam  slot ")));
  const std::string cut = Weir({"ckpt", "ls", model_, "--depth", "1"}).out;
  EXPECT_THAT(cut, AllOf(HasSubstr("hidden/"), HasSubstr("3 tensors"), Not(HasSubstr("Adam"))));
}

TEST_F(WeirCkptShow, StatisticsAreThoseOfTheElements) {
  const std::string prefix =
      WriteTensors("stats", {{"t", Tensor::Vector<float>({0, 1, 2, 3, 4, kNan, kInf, -kInf, 0})},
                             {"whole", Tensor::Vector<int64_t>({-3, 5, 5})}});
  const json t = Json({"ckpt", "show", prefix, "t", "--json"});
  EXPECT_EQ(t["elements"], 9);
  EXPECT_EQ(t["nan"], 1);
  EXPECT_EQ(t["positive_infinity"], 1);
  EXPECT_EQ(t["negative_infinity"], 1);
  EXPECT_EQ(t["zeros"], 2);
  EXPECT_EQ(t["min"], 0);
  EXPECT_EQ(t["max"], 4);
  EXPECT_NEAR(t["mean"], 10. / 6, 1e-12);
  EXPECT_NEAR(t["deviation"], std::sqrt(30. / 6 - 100. / 36), 1e-12);
  const json& bins = t["histogram"];
  ASSERT_EQ(bins.size(), 20u);
  EXPECT_EQ(bins[0], 2);
  EXPECT_EQ(bins[5], 1);
  EXPECT_EQ(bins[10], 1);
  EXPECT_EQ(bins[19], 1);
  EXPECT_EQ(Json({"ckpt", "show", prefix, "whole", "--json"})["min"], -3);
  EXPECT_THAT(Weir({"ckpt", "show", prefix, "t", "--stats"}).out,
              HasSubstr("9 elements: 6 finite, 2 zero, 1 NaN, 1 +Inf, 1 -Inf"));
}

// More elements than one piece has; the mean of a large offset is exact enough.
TEST_F(WeirCkptShow, StatisticsOfManyPiecesCombine) {
  Tensor many(DT_DOUBLE, {1000003});
  for (int64_t i = 0; i < many.num_elements(); ++i)
    many.data<double>()[i] = 1e9 + static_cast<double>(i % 2);
  const json t = Json({"ckpt", "show", WriteTensors("many", {{"t", many}}), "t", "--json"});
  EXPECT_NEAR(t["mean"].get<double>() - 1e9, 500001. / 1000003, 1e-6);
  EXPECT_NEAR(t["deviation"], 0.5, 1e-6);
}

TEST_F(WeirCkptShow, ALargeTensorIsShownInSlices) {
  Tensor large(DT_INT32, {4500000, 4});
  for (int32_t i = 0; i < large.num_elements(); ++i) large.data<int32_t>()[i] = i;
  const std::string prefix = WriteTensors("large", {{"t", large}});
  EXPECT_THAT(Error({"ckpt", "show", prefix, "t"}), HasSubstr("--slice"));
  const std::vector<std::string> show = {"ckpt", "show", prefix, "t", "--slice", "1000000,2:1,2"};
  CommandResult slice = Weir(show);
  EXPECT_THAT(slice.out, HasSubstr("[[4000001 4000002]\n [4000005 4000006]]"));
  EXPECT_THAT(slice.err, HasSubstr("is not verified for a slice"));
  Damage(DataOf(prefix), 0);
  EXPECT_EQ(Weir(show).out, slice.out) << "other bytes are not read";
}

TEST_F(WeirCkptDiff, EqualCheckpointsAreEqual) {
  MustDo({"ckpt", "convert", model_, At("v1"), "--format", "v1"});
  const CommandResult result = Weir({"ckpt", "diff", model_, At("v1")});
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_EQ(result.out, "5 tensors equal, 0 differ, 0 only in a, 0 only in b\n");
}

TEST_F(WeirCkptDiff, DistancesAreTheGreatest) {
  const std::string a =
      WriteTensors("a", {{"big", Tensor::Vector<int64_t>({int64_t{1} << 60, -5, INT64_MIN})},
                         {"f", Tensor::Vector<float>({1, 2, -4, 0, kNan, kNan, kInf})},
                         {"s", Tensor::Vector<std::string>({"x", "y"})},
                         {"same", Tensor::Vector<float>({0.f, kNan})}});
  const std::string b =
      WriteTensors("b", {{"big", Tensor::Vector<int64_t>({(int64_t{1} << 60) + 1, -5, INT64_MAX})},
                         {"f", Tensor::Vector<float>({1, 2.5, -3, 0, kNan, 7, kInf})},
                         {"s", Tensor::Vector<std::string>({"x", "z"})},
                         {"same", Tensor::Vector<float>({-0.f, kNan})}});
  const json diff = Json({"ckpt", "diff", a, b, "--json"}, kFailure);
  EXPECT_EQ(diff["equal"], false);
  ASSERT_THAT(NamesOf(diff["tensors"]), ElementsAre("big", "f", "s"));
  const json& big = diff["tensors"][0];
  EXPECT_EQ(big["different"], 2);
  EXPECT_EQ(big["max_absolute"], 0x1p64);
  const json& f = diff["tensors"][1];
  EXPECT_EQ(f["different"], 3);
  EXPECT_EQ(f["first"], 1);
  EXPECT_EQ(f["max_absolute"], 1);
  EXPECT_EQ(f["max_relative"], 0.25);
  EXPECT_EQ(f["nan_only_in_a"], 1);
  EXPECT_EQ(f["nan_only_in_b"], 0);
  EXPECT_EQ(diff["tensors"][2]["different"], 1);
}

TEST_F(WeirCkptDiff, StructureIsReported) {
  const std::string a = WriteTensors("a", {{"dtype", Tensor::Vector<float>({1, 2})},
                                           {"only_a", Tensor::Scalar(1.f)},
                                           {"shape", Tensor::Vector<float>({1, 2})}});
  const std::string b = WriteTensors("b", {{"dtype", Tensor::Vector<int64_t>({1, 2})},
                                           {"only_b", Tensor::Scalar(1.f)},
                                           {"shape", Tensor::Vector<float>({1, 2, 3})}});
  const json diff = Json({"ckpt", "diff", a, b, "--json"}, kFailure);
  EXPECT_THAT(diff["only_a"], ElementsAre("only_a"));
  EXPECT_THAT(diff["only_b"], ElementsAre("only_b"));
  ASSERT_THAT(NamesOf(diff["tensors"]), ElementsAre("dtype", "shape"));
  EXPECT_EQ(diff["tensors"][0]["different"], 0) << "compared as numbers, but another type";
  EXPECT_EQ(diff["tensors"][0]["equal"], false);
  EXPECT_FALSE(diff["tensors"][1].contains("different"));
  EXPECT_EQ(Weir({"ckpt", "diff", a, b, "--keep", "nothing"}).status, kFailure);
}

TEST_F(WeirCkptDiff, AToleranceForgives) {
  const std::string other = Write("other", 1.001f);
  EXPECT_EQ(Weir({"ckpt", "diff", model_, other}).status, kFailure);
  EXPECT_EQ(Weir({"ckpt", "diff", model_, other, "--rtol", "0.01"}).status, kOk);
  EXPECT_EQ(Weir({"ckpt", "diff", model_, other, "--atol", "0.001"}).status, kFailure);
  EXPECT_EQ(Weir({"ckpt", "diff", model_, other, "--rtol", "-1"}).status, kUsage);
}

TEST_F(WeirCkptDiff, DamageIsAnError) {
  const std::string other = Write("other", 1);
  Damage(DataOf(other), 0);
  EXPECT_THAT(Error({"ckpt", "diff", model_, other}), HasSubstr("DATA_LOSS"));
}

}  // namespace
}  // namespace weir::tools
