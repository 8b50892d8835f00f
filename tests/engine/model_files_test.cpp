#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "engine/session.h"
#include "format/convert.h"
#include "testing/gguf_rewrite.h"
#include "testing/model_data.h"
#include "testing/temporary_folder.h"

// Model files that are converted, written by other programs, incomplete or contradictory.
namespace crest::engine {
namespace {

using format::Value;
using testing::GgufCopy;

constexpr double kTolerance = 1e-4;  // of the logits' standard deviation

EngineOptions exact() { return {.context_length = 256, .kv_type = KvType::kF32}; }

class ModelFiles : public ::testing::Test {
 protected:
  std::filesystem::path convert(const std::string& name, const std::string& type) {
    const auto target = temporary_.path() / (name + "-" + type + ".gguf");
    core::ThreadPool pool(2);
    const auto report = format::convert(testing::test_data("micro/" + name), target, {.type = type}, pool);
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    return target;
  }
  std::filesystem::path rewrite(const std::filesystem::path& source, const std::function<void(GgufCopy&)>& change) {
    GgufCopy copy(source);
    change(copy);
    const auto target = temporary_.path() / "rewritten.gguf";
    copy.write(target);
    return target;
  }
  static std::vector<float> logits(const std::filesystem::path& path, EngineOptions options = exact()) {
    auto engine = Engine::load(path, options);
    EXPECT_TRUE(engine.ok()) << (engine.ok() ? "" : engine.error().message);
    if (!engine.ok()) return {};
    const auto ids = testing::OracleFolder(testing::test_data("micro/llama/oracle")).ids("ids");
    auto result = evaluate(**engine, ids, {});
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? std::move(result->logits) : std::vector<float>{};
  }
  static std::string failure(const std::filesystem::path& path) {
    const auto engine = Engine::load(path, exact());
    EXPECT_FALSE(engine.ok());
    return engine.ok() ? std::string() : engine.error().message;
  }
  static void expect_parts(const std::string& message, std::initializer_list<std::string_view> parts) {
    for (const auto part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  }
  testing::TemporaryFolder temporary_;
};

class Converted : public ModelFiles, public ::testing::WithParamInterface<const char*> {};

// Through convert to GGUF (V heads tiled, norms 1 + w, rows permuted, experts split) the logits are still the oracle's.
TEST_P(Converted, GgufGivesTheOraclesLogits) {
  const std::string name = GetParam();
  const testing::OracleFolder oracle(testing::test_data("micro/" + name + "/oracle"));
  const auto wanted = oracle.floats("logits");
  const auto ids = oracle.ids("ids");
  for (const std::string type : {"f32", "bf16"}) {
    auto options = exact();
    options.mtp_cache = true;
    auto engine = Engine::load(convert(name, type), options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const bool mtp = oracle.has("mtp_logits");
    EXPECT_EQ((*engine)->model().has_mtp(), mtp);
    const auto result = evaluate(**engine, ids, {.mtp = mtp});
    ASSERT_TRUE(result.ok()) << result.error().message;
    const auto expect_close = [&](const std::vector<float>& found, const std::vector<float>& expected) {
      ASSERT_EQ(found.size(), expected.size());
      for (int64_t t = 0; t * 512 < std::ssize(expected); ++t) {
        const auto row = testing::row(expected, t, 512);
        EXPECT_LE(testing::largest_difference(testing::row(found, t, 512), row),
                  kTolerance * testing::standard_deviation(row))
            << type << ", row " << t;
      }
    };
    expect_close(result->logits, wanted);
    if (mtp) expect_close(result->mtp_logits, oracle.floats("mtp_logits"));
  }
}
INSTANTIATE_TEST_SUITE_P(Models, Converted,
                         ::testing::Values("llama", "qwen2", "qwen3", "qwen3_moe", "gemma3", "qwen3_5", "qwen3_5_moe"),
                         [](const auto& info) { return std::string(info.param); });

// Quantised weights stay in the neighbourhood of the exact ones, the better the more bits: every type is wired up.
TEST_F(ModelFiles, QuantisedTypesRunAndDegradeInOrder) {
  const auto exact_logits = logits(convert("qwen3_5_moe", "f32"));
  const double deviation = testing::standard_deviation(exact_logits);
  double last = 0;
  for (const std::string type : {"q8_0", "q5_0", "q4_0"}) {
    const auto found = logits(convert("qwen3_5_moe", type));
    ASSERT_EQ(found.size(), exact_logits.size());
    double squares = 0;
    for (size_t i = 0; i < found.size(); ++i) squares += std::pow(found[i] - exact_logits[i], 2);
    const double error = std::sqrt(squares / static_cast<double>(found.size())) / deviation;
    EXPECT_GT(error, last) << type;
    EXPECT_LT(error, 1.0) << type;
    last = error;
  }
}

// llama.cpp PR#25334 and table row 23: what Ollama and other writers do differently.
TEST_F(ModelFiles, VariantsOfOtherWritersAreAccepted) {
  const auto source = convert("qwen3_5", "bf16");
  const auto wanted = logits(source);
  const auto variant = rewrite(source, [](GgufCopy& copy) {
    copy.metadata.set("qwen35.rope.dimension_sections", Value::i32s(std::vector<int32_t>{11, 11, 10}));
    copy.metadata.set("qwen35.attention.head_count_kv", Value::i32s(std::vector<int32_t>{0, 0, 0, 1, 1}));
    copy.metadata.set("qwen35.attention.recurrent_layers", Value::bools({true, true, true, false}));
    copy.metadata.erase("qwen35.full_attention_interval");
    for (auto& tensor : copy.tensors) {
      if (tensor.spec.name.ends_with("ssm_dt.bias")) tensor.spec.name.resize(tensor.spec.name.size() - 5);
    }
  });
  EXPECT_EQ(logits(variant), wanted);
}

// Valid metadata in another order, other widths, unknown keys of every type.
TEST_F(ModelFiles, MetadataOrderAndUnknownKeysDoNotMatter) {
  const auto source = convert("qwen3", "bf16");
  const auto wanted = logits(source);
  const auto variant = rewrite(source, [](GgufCopy& copy) {
    format::Metadata reversed(copy.metadata.source());
    reversed.set("other.flag", Value::boolean(true));
    reversed.set("other.small", Value::u16(3));
    reversed.set("other.list", Value::strings({"a", "b"}));
    reversed.set("other.number", Value::raw(format::ValueType::kF64, std::string(24, '\1'), true));
    const auto entries = copy.metadata.entries();
    for (size_t i = entries.size(); i-- > 0;) reversed.set(entries[i].first, entries[i].second);
    reversed.set("qwen3.block_count", Value::u64(2));
    copy.metadata = reversed;
  });
  EXPECT_EQ(logits(variant), wanted);
}

// z-lab/paroquant#47, table row 31: a head for multi-token prediction is announced, but its tensors are missing.
TEST_F(ModelFiles, AnnouncedButMissingMtpHeadIsAWarning) {
  const auto source = convert("qwen3_5", "bf16");
  const auto wanted = logits(source);
  const auto variant = rewrite(
      source, [](GgufCopy& copy) { copy.drop([](const std::string& name) { return name.starts_with("blk.4."); }); });
  ::testing::internal::CaptureStderr();
  auto options = exact();
  options.mtp_cache = true;
  const auto found = logits(variant, options);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("blk.4.nextn.eh_proj.weight"), std::string::npos);
  EXPECT_EQ(found, wanted);
  auto engine = Engine::load(variant, options);
  ASSERT_TRUE(engine.ok());
  const auto refused = evaluate(**engine, std::vector<int32_t>{1, 2, 3}, {.mtp = true});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("no multi-token prediction head"), std::string::npos);
}

TEST_F(ModelFiles, UnknownTensorsAreAWarning) {
  const auto source = convert("qwen3", "bf16");
  const auto wanted = logits(source);
  const auto variant = rewrite(source, [](GgufCopy& copy) {
    copy.tensors.push_back({{"v.patch_embd.weight", tensor::DType::kF32, {2}}, std::string(8, '\0')});
  });
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(logits(variant), wanted);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("v.patch_embd.weight"), std::string::npos);
}

// Checks of the whole model: each contradiction is an error that names the tensor or key, what was found and expected.
TEST_F(ModelFiles, ContradictionsAreNamed) {
  const auto source = convert("qwen3", "bf16");
  const auto with = [&](const std::function<void(GgufCopy&)>& change) { return failure(rewrite(source, change)); };
  for (const std::string name :
       {"blk.1.attn_k.weight", "token_embd.weight", "output_norm.weight", "blk.0.ffn_norm.weight"}) {
    expect_parts(with([&](GgufCopy& copy) { copy.drop([&](const std::string& n) { return n == name; }); }), {name});
  }
  expect_parts(with([](GgufCopy& copy) {
                 auto& tensor = copy.at("blk.1.ffn_down.weight");
                 std::swap(tensor.spec.shape.ne[0], tensor.spec.shape.ne[1]);
               }),
               {"blk.1.ffn_down.weight", "[128, 256]", "[256, 128]"});
  expect_parts(with([](GgufCopy& copy) { copy.metadata.set("qwen3.feed_forward_length", Value::u32(200)); }),
               {"blk.0.ffn_gate.weight", "[128, 256]", "[128, 200]"});
  expect_parts(with([](GgufCopy& copy) { copy.metadata.set("qwen3.block_count", Value::u32(3)); }), {"blk.2."});
  expect_parts(with([](GgufCopy& copy) { copy.metadata.set("tokenizer.ggml.eos_token_id", Value::u32(512)); }),
               {"rewritten.gguf", "EOS id", "512"});
  expect_parts(with([](GgufCopy& copy) {
                 auto& tensor = copy.at("blk.0.attn_q.weight");
                 tensor.spec.dtype = tensor::DType::kI16;
               }),
               {"blk.0.attn_q.weight", "I16"});
  expect_parts(with([](GgufCopy& copy) {
                 auto& tensor = copy.at("token_embd.weight");
                 tensor.spec.shape.ne[1] = 500;
                 tensor.bytes.resize(500 * 128 * 2);
               }),
               {"512", "500"});
  expect_parts(with([](GgufCopy& copy) { copy.tensors.clear(); }), {"no weights"});
}

// Hostile input 9: NaN in the weights runs, and the sampler says so instead of choosing something.
TEST_F(ModelFiles, NanWeightsAreReportedBySampling) {
  const auto source = convert("qwen3", "f32");
  const auto variant = rewrite(source, [](GgufCopy& copy) {
    auto& norm = copy.at("output_norm.weight");
    const float nan = std::nanf("");
    std::memcpy(norm.bytes.data(), &nan, sizeof nan);
  });
  auto engine = Engine::load(variant, exact());
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto session = std::move(*Session::create(**engine));
  GenerateOptions options;
  options.sampling.temperature = 0;
  const auto result = session->generate(std::vector<int32_t>{1, 2, 3}, options);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("nan"), std::string::npos) << result.error().message;
}

// llama.cpp #23606 and #27556: NaN after a long prefill, and a forgotten beginning. With strong decay (exp(g) vanishes
// within a few tokens) and without any (the state remembers everything), thousands of tokens give finite logits that do
// not depend on the chunks.
TEST_F(ModelFiles, LongPromptsStayFiniteAndWhole) {
  const auto source = convert("qwen3_5", "bf16");
  for (const float shift : {-30.0f, 0.0f, 60.0f}) {
    const auto variant = rewrite(source, [&](GgufCopy& copy) {
      for (auto& tensor : copy.tensors) {
        if (!tensor.spec.name.ends_with("ssm_dt.bias")) continue;
        for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(float)) {
          float bias = 0;
          std::memcpy(&bias, tensor.bytes.data() + at, sizeof bias);
          bias += shift;
          std::memcpy(tensor.bytes.data() + at, &bias, sizeof bias);
        }
      }
    });
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 3000; ++i) ids.push_back((i * 37 + i / 11) % 510);
    std::vector<std::vector<float>> found;
    for (const int64_t chunk : {3000, 77}) {
      auto engine = Engine::load(variant, {.context_length = 3000, .kv_type = KvType::kF32, .chunk_size = chunk});
      ASSERT_TRUE(engine.ok()) << engine.error().message;
      const auto sequence = std::move(*(*engine)->create_sequence());
      std::vector<float> logits(512);
      for (const int64_t end : chunk_ends(0, 3000, chunk, {})) {
        const auto begin = static_cast<size_t>(sequence->length());
        const StepItem item{.sequence = sequence.get(),
                            .tokens = std::span(ids).subspan(begin, static_cast<size_t>(end) - begin),
                            .logits = logits.data()};
        ASSERT_TRUE((*engine)->step({&item, 1}).ok());
      }
      for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit)) << shift;
      found.push_back(logits);
    }
    EXPECT_LE(testing::largest_difference(found[0], found[1]), kTolerance * testing::standard_deviation(found[0]))
        << shift;
  }
}

TEST_F(ModelFiles, LoadingReportsProgressAndCanBeStopped) {
  std::vector<uint64_t> steps;
  uint64_t total = 0;
  auto options = exact();
  options.progress = [&](uint64_t done, uint64_t all) {
    steps.push_back(done);
    total = all;
    return true;
  };
  const auto folder = testing::test_data("micro/qwen3");
  ASSERT_TRUE(Engine::load(folder, options).ok());
  ASSERT_GT(steps.size(), 10u);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.back(), total);
  options.progress = [](uint64_t, uint64_t) { return false; };
  const auto stopped = Engine::load(folder, options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

TEST_F(ModelFiles, OptionsOutOfRangeAreNamed) {
  const auto folder = testing::test_data("micro/qwen3");
  const auto message = [&](EngineOptions options) {
    const auto engine = Engine::load(folder, options);
    EXPECT_FALSE(engine.ok());
    return engine.ok() ? std::string() : engine.error().message;
  };
  expect_parts(message({.context_length = -1}), {"context_length", "-1"});
  expect_parts(message({.context_length = int64_t{1} << 40}), {"context_length"});
  expect_parts(message({.sequences = 0}), {"sequences", "0"});
  expect_parts(message({.page_size = 17}), {"page size", "17", "16"});
  expect_parts(message({.chunk_size = 0}), {"chunk_size", "0"});
  expect_parts(failure(temporary_.path() / "missing.gguf"), {"missing.gguf"});
}

}  // namespace
}  // namespace crest::engine
