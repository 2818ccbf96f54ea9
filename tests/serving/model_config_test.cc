#include "weir/serving/model_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/proto/model_server_config.pb.h"

namespace weir::serving {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(ModelConfig, ReadsWhatTensorFlowServingsGuideShows) {
  const auto models = ParseModelConfigs(R"(
    # Two models.
    model_config_list {
      config {
        name: 'my_first_model'
        base_path: '/tmp/my_first_model/'
        model_platform: 'tensorflow'
        model_version_policy { specific { versions: 42 versions: 43 } }
        version_labels { key: 'stable' value: 42 }
        version_labels { key: 'canary' value: 43 }
      }
      config: {
        name: "second", base_path: "/tmp/second", model_type: TENSORFLOW,
        model_version_policy: { latest { num_versions: 2 } },
        logging_config {
          log_collector_config { type: "tfrecord" filename_prefix: "/var/log/second" }
          sampling_config { sampling_rate: 0.5 }
        }
      }
      config { name: "third" base_path: "/tmp/third" model_platform: "tensorflow"
               model_version_policy { all {} } }
    })");
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->size(), 3u);
  const ModelConfig& first = (*models)[0];
  EXPECT_EQ(first.name, "my_first_model");
  EXPECT_EQ(first.base_path, "/tmp/my_first_model/");
  EXPECT_EQ(first.versions.kind, VersionPolicy::Kind::kSpecific);
  EXPECT_THAT(first.versions.versions, ElementsAre(42, 43));
  EXPECT_THAT(first.labels, ElementsAre(Pair("canary", 43), Pair("stable", 42)));
  EXPECT_FALSE(first.logging);
  EXPECT_EQ((*models)[1].versions.num_versions, 2);
  ASSERT_TRUE((*models)[1].logging);
  EXPECT_EQ((*models)[1].logging->filename_prefix, "/var/log/second");
  EXPECT_EQ((*models)[1].logging->sampling_rate, 0.5);
  EXPECT_EQ(first.line, 6);
  EXPECT_EQ((*models)[1].line, 13);
  EXPECT_EQ((*models)[1].logging->line, 16);
  EXPECT_EQ((*models)[2].versions.kind, VersionPolicy::Kind::kAll);
}

TEST(ModelConfig, ServesTheLatestVersionByDefault) {
  for (const char* policy : {"", "model_version_policy {}", "model_version_policy { latest {} }"}) {
    const auto models = ParseModelConfigs(
        absl::StrCat("model_config_list { config { name: 'm' base_path: '/m' model_platform: "
                     "'tensorflow' ",
                     policy, " } }"));
    ASSERT_TRUE(models.ok()) << models.status();
    EXPECT_EQ((*models)[0].versions, VersionPolicy());
  }
}

// A configuration of one model, with one of its lines replaced: the lines of a model begin at 3.
std::string Config(int line, const std::string& text) {
  std::vector<std::string> lines = {"model_config_list {",
                                    "config {",
                                    "name: 'm'",
                                    "base_path: '/m'",
                                    "model_platform: 'tensorflow'",
                                    "",
                                    "",
                                    "}",
                                    "}"};
  lines[line - 1] = text;
  std::string all;
  for (const std::string& one : lines) absl::StrAppend(&all, one, "\n");
  return all;
}

struct Mistake {
  int line;
  std::string text;  // of the line
  std::vector<std::string> message;
};

TEST(ModelConfig, NamesTheLineAndWhatWasExpected) {
  const std::vector<Mistake> mistakes = {
      {3, "nam: 'm'", {"has no field named \"nam\"", "Expected one of: name, base_path,"}},
      {3, "name: m'", {"line 3"}},
      {3, "name: 7", {"Expected string"}},
      {3, "name: ''", {"a model has no name"}},
      {3, "name: 'a/b'", {"'a/b'", "expected printable characters without space, '/' and ':'"}},
      {3, "name: 'a\\n'", {"'a\\n'"}},
      {4, "base_path: 'models/m'", {"'models/m'", "expected an absolute path"}},
      {4, "base_path: '/m\\000x'", {"'/m\\x00x'", "expected an absolute path"}},
      {5, "model_platform: 'pytorch'", {"'pytorch'", "expected \"tensorflow\""}},
      {5, "model_type: OTHER", {"model_type OTHER"}},
      {5, "model_type: TORCH", {"TORCH"}},
      {6, "model_type: TENSORFLOW", {"Illegal setting both model_type(deprecated)"}},
      {6, "name: 'n'", {"specified multiple times"}},
      {6, "model_version_policy { specific {} }", {"specific names no version"}},
      {6, "model_version_policy { specific { versions: 1 versions: 1 } }", {"named twice"}},
      {6, "model_version_policy { specific { versions: -1 } }", {"expected 0 or more"}},
      {6, "model_version_policy { latest { num_versions: -1 } }", {"line 6"}},
      {6, "version_labels { key: '' value: 1 }", {"label ''"}},
      {6, "version_labels { key: 'a' value: -2 }", {"label 'a'", "version -2"}},
      {6, "logging_config { log_collector_config { filename_prefix: 'x' } }", {"absolute path"}},
      {6,
       "logging_config { log_collector_config { filename_prefix: '/x' } sampling_config { "
       "sampling_rate: 2 } }",
       {"from 0 to 1"}},
      {6, "logging_config { log_collector_config { type: 'x' } }", {"expected \"tfrecord\""}},
      {6, "unknown { }", {"has no field named \"unknown\""}},
  };
  for (const Mistake& mistake : mistakes) {
    const absl::Status status = ParseModelConfigs(Config(mistake.line, mistake.text)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << mistake.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("line ", mistake.line)))
        << mistake.text;
    for (const std::string& text : mistake.message)
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST(ModelConfig, NamesTheLineOfAMistakeAcrossLines) {
  const std::string two = Config(6,
                                 "version_labels { key: 'b' value: 1 }\n"
                                 "version_labels { key: 'a' value: -1 }");
  EXPECT_THAT(std::string(ParseModelConfigs(two).status().message()),
              HasSubstr("line 7: label 'a'"));
  const std::string twice = Config(6,
                                   "version_labels { key: 'a' value: 1 }\n"
                                   "version_labels { key: 'a' value: 2 }");
  EXPECT_THAT(std::string(ParseModelConfigs(twice).status().message()),
              HasSubstr("line 7: label 'a' is given twice"));
  const std::string unserved = Config(6,
                                      "version_labels { key: 'a' value: 1 }\n"
                                      "model_version_policy { specific { versions: 2 } }");
  EXPECT_THAT(std::string(ParseModelConfigs(unserved).status().message()),
              HasSubstr("line 6: label 'a' is for version 1, which the policy does not serve"));
  const std::string same = Config(9, R"(
    config {
      base_path: '/other'
      model_platform: 'tensorflow'
      name: 'm'
    } })");
  EXPECT_THAT(std::string(ParseModelConfigs(same).status().message()),
              HasSubstr("line 13: two models have the name 'm'"));
  EXPECT_THAT(std::string(ParseModelConfigs(Config(5, "")).status().message()),
              HasSubstr("line 2: Illegal setting neither"));
}

TEST(ModelConfig, NeedsAList) {
  EXPECT_THAT(std::string(ParseModelConfigs("").status().message()),
              HasSubstr("expected model_config_list"));
  EXPECT_THAT(std::string(ParseModelConfigs("custom_model_config {}").status().message()),
              HasSubstr("custom_model_config is not supported"));
  const auto none = ParseModelConfigs("model_config_list {}");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
}

TEST(ModelConfig, OfAMessageNamesTheModel) {
  proto::serving::ModelServerConfig config;
  config.mutable_model_config_list()->add_config()->set_name("m");
  const absl::Status status = ModelConfigsFromProto(config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model 0, 'm': Illegal setting neither"));
}

TEST(ModelConfig, IsNotNestedWithoutLimit) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "model_config_list { config { ";
  EXPECT_FALSE(ParseModelConfigs(text).ok());
}

}  // namespace
}  // namespace weir::serving
