#include "engine/sequence.h"

#include <algorithm>

#include "engine/session_file.h"

namespace crest::engine {

Result<std::unique_ptr<Sequence>> Sequence::create(CacheStorage& storage, int64_t max_tokens, uint64_t snapshot_bytes) {
  const auto slot = storage.slots().allocate();
  if (!slot) {
    return make_error(ErrorCode::kResourceExhausted, "all {} sequences are in use", storage.slots().total());
  }
  return std::unique_ptr<Sequence>(new Sequence(storage, max_tokens, snapshot_bytes, *slot));
}

Sequence::~Sequence() {
  clear();
  storage_.slots().release(slot_);
}

Status Sequence::reserve(int64_t count) {
  const int64_t wanted = length() + count;
  if (wanted > max_tokens_) {
    return make_error(ErrorCode::kResourceExhausted, "{} tokens do not fit the context of {}", wanted, max_tokens_);
  }
  const int64_t page_size = storage_.sizes().page_size;
  while (static_cast<int64_t>(pages_.size()) * page_size < wanted) {
    const auto page = storage_.pages().allocate();
    if (!page) {
      return make_error(ErrorCode::kResourceExhausted, "the KV cache of {} tokens is full",
                        storage_.sizes().pages * page_size);
    }
    pages_.push_back(*page);
  }
  return {};
}

int64_t Sequence::reuse(std::span<const int32_t> prompt) {
  const int64_t common = common_prefix(tokens_, prompt);
  const auto size = static_cast<int64_t>(prompt.size());
  snapshots_.drop_after(common);
  const Snapshot* snapshot = snapshots_.newest_up_to(common);
  if (snapshot != nullptr && snapshot->position == size && snapshot->logits.empty()) {
    snapshot = snapshots_.newest_up_to(size - 1);
  }
  const bool whole = snapshot != nullptr && snapshot->position == size;
  if (storage_.state_size() == 0) {
    truncate(whole ? size : std::min(common, std::max<int64_t>(size - 1, 0)));
  } else if (common == length() && common < size) {
    // The live state is a beginning of the prompt, and at least as long as any snapshot.
  } else {
    if (snapshot != nullptr) storage_.write_state(slot_, snapshot->state.data());
    truncate(snapshot != nullptr ? snapshot->position : 0);
  }
  return length();
}

std::span<const float> Sequence::kept_logits() const {
  const Snapshot* snapshot = snapshots_.newest_up_to(length());
  if (snapshot == nullptr || snapshot->position != length()) return {};
  return snapshot->logits;
}

void Sequence::take_snapshot(std::span<const float> logits) {
  Snapshot snapshot{length(), std::vector<float>(static_cast<size_t>(storage_.state_size())),
                    std::vector<float>(logits.begin(), logits.end())};
  if (snapshot.bytes() == 0) return;
  if (!snapshot.state.empty()) storage_.read_state(slot_, snapshot.state.data());
  snapshots_.add(std::move(snapshot));
}

void Sequence::truncate(int64_t length) {
  tokens_.resize(static_cast<size_t>(length));
  snapshots_.drop_after(length);
  const int64_t page_size = storage_.sizes().page_size;
  while (static_cast<int64_t>(pages_.size()) * page_size >= length + page_size) {
    storage_.pages().release(pages_.back());
    pages_.pop_back();
  }
}

void Sequence::clear() { truncate(0); }

Status Sequence::save(SessionWriter& writer) const {
  CREST_RETURN_IF_ERROR(writer.values<int32_t>(tokens_));
  std::vector<std::byte> page(static_cast<size_t>(storage_.page_bytes()));
  const int64_t page_size = storage_.sizes().page_size;
  for (int64_t i = 0; i * page_size < length(); ++i) {
    storage_.read_page(pages_[static_cast<size_t>(i)], page.data());
    CREST_RETURN_IF_ERROR(writer.bytes(page));
  }
  std::vector<float> state(static_cast<size_t>(length() > 0 ? storage_.state_size() : 0));
  if (!state.empty()) storage_.read_state(slot_, state.data());
  CREST_RETURN_IF_ERROR(writer.values<float>(state));
  CREST_RETURN_IF_ERROR(writer.number(snapshots_.all().size()));
  for (const auto& snapshot : snapshots_.all()) {
    CREST_RETURN_IF_ERROR(writer.number(static_cast<uint64_t>(snapshot.position)));
    CREST_RETURN_IF_ERROR(writer.values<float>(snapshot.state));
    CREST_RETURN_IF_ERROR(writer.values<float>(snapshot.logits));
  }
  return {};
}

Status Sequence::restore(SessionReader& reader, int64_t token_limit) {
  clear();
  CREST_TRY(const auto tokens, reader.values<int32_t>("tokens"));
  for (const int32_t id : tokens) {
    if (id < 0 || id >= token_limit) return reader.error("token id {}, allowed are 0 to {}", id, token_limit - 1);
  }
  const auto count = static_cast<int64_t>(tokens.size());
  if (count > max_tokens_) {
    return reader.error("holds {} tokens, the context has room for {}", count, max_tokens_);
  }
  const int64_t page_size = storage_.sizes().page_size;
  const int64_t pages = (count + page_size - 1) / page_size;
  std::vector<std::span<const std::byte>> contents;
  for (int64_t i = 0; i < pages; ++i) {
    CREST_TRY(const auto page, reader.bytes(static_cast<uint64_t>(storage_.page_bytes()), "page"));
    contents.push_back(page);
  }
  const auto state_size = static_cast<size_t>(storage_.state_size());
  CREST_TRY(const auto state, reader.values<float>("state"));
  if (state.size() != (count > 0 ? state_size : 0))
    return reader.error("state has {} values, expected {}", state.size(), state_size);
  CREST_TRY(const uint64_t snapshot_count, reader.number("snapshot count"));
  std::vector<Snapshot> snapshots;
  for (uint64_t i = 0; i < snapshot_count; ++i) {
    Snapshot snapshot;
    CREST_TRY(const uint64_t position, reader.number("snapshot position"));
    CREST_TRY(snapshot.state, reader.values<float>("snapshot state"));
    CREST_TRY(snapshot.logits, reader.values<float>("snapshot logits"));
    if (position == 0 || position > tokens.size() || snapshot.state.size() != state_size ||
        (!snapshot.logits.empty() && static_cast<int64_t>(snapshot.logits.size()) != token_limit)) {
      return reader.error("snapshot {} at position {} of {} does not fit the model", i, position, tokens.size());
    }
    snapshot.position = static_cast<int64_t>(position);
    snapshots.push_back(std::move(snapshot));
  }
  CREST_RETURN_IF_ERROR(reader.finish());
  CREST_RETURN_IF_ERROR(reserve(count));
  for (size_t i = 0; i < contents.size(); ++i) storage_.write_page(pages_[i], contents[i].data());
  if (!state.empty()) storage_.write_state(slot_, state.data());
  for (auto& snapshot : snapshots) snapshots_.add(std::move(snapshot));
  append(tokens);
  return {};
}

}  // namespace crest::engine
