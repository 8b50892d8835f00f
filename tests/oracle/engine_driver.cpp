// Greedy continuations for tests/oracle/llama_cpp_greedy.py: reads lines {"text": ..., "ids": [...] or null, "count":
// n}, writes lines {"prompt": ids, "ids": [...], "top": [[id, logit, id, logit, ...], ...]}: the 10 best of each step.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/engine.h"

namespace {

using crest::Result;
using crest::engine::Engine;
using nlohmann::json;

Result<json> continue_greedily(Engine& engine, const json& request) {
  std::vector<int32_t> ids;
  if (request["ids"].is_null()) {
    CREST_TRY(ids, engine.tokenizer().encode(request["text"].get<std::string>(), {.add_special = true}));
  } else {
    ids = request["ids"].get<std::vector<int32_t>>();
  }
  json answer = {{"prompt", ids}, {"ids", json::array()}, {"top", json::array()}};
  CREST_TRY(const auto sequence, engine.create_sequence());
  std::vector<float> logits(static_cast<size_t>(engine.model().vocab_size()));
  for (int i = 0; i < request["count"].get<int>(); ++i) {
    const crest::engine::StepItem item{.sequence = sequence.get(), .tokens = ids, .logits = logits.data()};
    CREST_RETURN_IF_ERROR(engine.step({&item, 1}));
    const auto top = crest::ops::top_logprobs(logits, 10);
    if (!top.ok()) return top.error();
    json best = json::array();
    for (const auto& entry : *top) {
      best.push_back(entry.token);
      best.push_back(logits[static_cast<size_t>(entry.token)]);
    }
    ids = {(*top)[0].token};
    answer["ids"].push_back(ids[0]);
    answer["top"].push_back(std::move(best));
    if (engine.tokenizer().is_end_of_generation(ids[0])) break;
  }
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: crest_oracle_engine MODEL KV_TYPE < requests\n"), 2;
  const auto kv_type = crest::engine::parse_kv_type(argv[2]);
  if (!kv_type.ok()) return std::fprintf(stderr, "%s\n", kv_type.error().message.c_str()), 2;
  auto engine = Engine::load(argv[1], {.context_length = 2048, .kv_type = *kv_type});
  if (!engine.ok()) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = continue_greedily(**engine, json::parse(line));
    if (!answer.ok()) return std::fprintf(stderr, "%s\n", answer.error().message.c_str()), 1;
    std::printf("%s\n", answer->dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}
