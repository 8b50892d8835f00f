#include <filesystem>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/id_list.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/file_map.h"
#include "engine/evaluate.h"
#include "tensor/npy.h"

namespace crest::cli {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids, output;
  std::optional<std::string> hidden, mtp;
  int64_t chunk = 0;
};

/// A list on the command line, or a file with one (text, JSON or .npy).
Result<std::vector<int32_t>> read_ids(const std::string& argument, int64_t vocab_size) {
  std::error_code code;
  if (!std::filesystem::exists(argument, code)) {
    if (argument.find_first_not_of("0123456789, ") != std::string::npos) return make_error(ErrorCode::kNotFound, "--ids: '{}' is neither a file nor a list like 1,2,3", argument);
    return parse_id_list(argument, vocab_size);
  }
  constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
  CREST_TRY(const std::string bytes, core::read_file(argument, kMaxBytes));
  if (!bytes.starts_with("\x93NUMPY")) return parse_id_list(bytes, vocab_size);
  CREST_TRY(const tensor::NpyArray array, tensor::read_npy(argument));
  CREST_TRY(const auto values, array.to_i64());
  std::vector<int32_t> ids;
  for (const int64_t value : values) {
    if (value < 0 || value >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument, "{}: token id {} is {}; allowed: 0 to {}", argument, ids.size(), value, vocab_size - 1);
    }
    ids.push_back(static_cast<int32_t>(value));
  }
  return ids;
}

Status write_floats(const std::string& path, std::vector<int64_t> shape, const std::vector<float>& values) {
  return tensor::write_npy(path, tensor::DType::kF32, shape, std::as_bytes(std::span(values)));
}

Result<int> logits(const LogitsOptions& o) {
  const InterruptGuard guard;
  engine::EngineOptions wanted;
  wanted.mtp_cache = o.mtp.has_value();
  CREST_TRY(const auto engine, load_engine(o.model, wanted));
  const std::vector<std::filesystem::path> outputs{o.output, o.hidden.value_or(""), o.mtp.value_or("")};
  const std::filesystem::path ids_file(o.ids);
  CREST_RETURN_IF_ERROR(refuse_overwriting(outputs, engine->model().file(), std::span(&ids_file, 1)));
  CREST_TRY(const auto ids, read_ids(o.ids, engine->model().vocab_size()));
  ops::KernelLog log;
  if (o.model.explain) engine->set_kernel_log(&log);
  ProgressBar bar("Evaluating", ProgressBar::Unit::kItems);
  engine::EvaluateOptions options;
  options.chunk_size = o.chunk;
  options.hidden = o.hidden.has_value();
  options.mtp = o.mtp.has_value();
  options.cancel = &InterruptGuard::token();
  options.progress = [&bar](int64_t done, int64_t total) { bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total)); };
  CREST_TRY(const engine::Evaluation result, engine::evaluate(*engine, ids, options));
  bar.finish();
  const int64_t vocab = engine->model().vocab_size();
  const auto& config = engine->model().config();
  CREST_RETURN_IF_ERROR(write_floats(o.output, {result.tokens, vocab}, result.logits));
  if (o.hidden) {
    CREST_RETURN_IF_ERROR(write_floats(*o.hidden, {static_cast<int64_t>(config.layers.size()) + 1, result.tokens, config.hidden}, result.hidden));
  }
  if (o.mtp) CREST_RETURN_IF_ERROR(write_floats(*o.mtp, {result.tokens - 1, vocab}, result.mtp_logits));
  if (o.model.explain) print_kernel_log(log);
  return kExitOk;
}

}  // namespace

void add_logits_command(Application& application) {
  auto o = std::make_shared<LogitsOptions>();
  o->model.kv_type = "f32";
  Command command = application.add_command("logits", "Write a model's logits for given token ids",
                                            {"crest logits -m model.gguf --ids 1,2,3 -o logits.npy", "crest logits -m folder --ids ids.txt -o l.npy --hidden h.npy --mtp m.npy"},
                                            [o] { return logits(*o); });
  add_model_options(command, o->model);
  command.option("--ids", o->ids, "IDS", "1,2,3 or a file: a list, a JSON array or .npy").required();
  command.option("-o,--output", o->output, "OUT.npy", "fp32 [tokens, vocab]").required();
  command.option("--hidden", o->hidden, "OUT.npy", "Also fp32 [layers + 1, tokens, hidden]: the embedding and each layer's output, the last after the final norm");
  command.option("--mtp", o->mtp, "OUT.npy", "Also fp32 [tokens - 1, vocab]: logits of the multi-token prediction head");
  command.option("--chunk", o->chunk, Range<int64_t>{0, 1 << 20}, "Tokens of one forward; 0: 512");
}

}  // namespace crest::cli
