#include "engine/session_file.h"

namespace crest::engine {
namespace {

constexpr std::string_view kMagic = "CRESTSES";
constexpr uint64_t kVersion = 1;
constexpr size_t kDigestBytes = std::tuple_size_v<Digest>;
constexpr size_t kHeaderBytes = 8 + 8 + kDigestBytes;

}  // namespace

Result<SessionWriter> SessionWriter::create(const std::filesystem::path& path, const Digest& fingerprint) {
  CREST_TRY(auto file, core::AtomicFile::create(path));
  SessionWriter writer(std::move(file));
  CREST_RETURN_IF_ERROR(writer.bytes(std::as_bytes(std::span(kMagic))));
  CREST_RETURN_IF_ERROR(writer.number(kVersion));
  CREST_RETURN_IF_ERROR(writer.bytes(std::as_bytes(std::span(fingerprint))));
  return writer;
}

Status SessionWriter::number(uint64_t value) { return bytes(std::as_bytes(std::span(&value, 1))); }

Status SessionWriter::bytes(std::span<const std::byte> bytes) {
  hash_.update(bytes);
  return file_.write(bytes);
}

Status SessionWriter::commit() {
  const Digest digest = hash_.digest();
  CREST_RETURN_IF_ERROR(file_.write(std::as_bytes(std::span(digest))));
  return file_.commit();
}

Result<SessionReader> SessionReader::open(const std::filesystem::path& path, const Digest& fingerprint) {
  SessionReader reader;
  CREST_TRY(reader.map_, core::FileMap::open(path));
  CREST_RETURN_IF_ERROR(reader.map_->verify_size());
  const auto all = reader.map_->bytes();
  if (all.size() < kMagic.size() || std::memcmp(all.data(), kMagic.data(), kMagic.size()) != 0) {
    return reader.error("is not a saved session");
  }
  if (all.size() < kHeaderBytes + kDigestBytes)
    return reader.error("saved session is cut off after {} bytes", all.size());
  reader.left_ = all.subspan(kMagic.size());
  CREST_TRY(const uint64_t version, reader.number("version"));
  if (version != kVersion)
    return reader.error("version of the saved session is {}, supported is {}", version, kVersion);
  const auto content = all.first(all.size() - kDigestBytes);
  core::Sha256 hash;
  hash.update(content);
  const Digest digest = hash.digest();
  if (std::memcmp(digest.data(), all.data() + content.size(), kDigestBytes) != 0) {
    return reader.error("checksum of the saved session does not match: the file is damaged or cut off");
  }
  if (std::memcmp(fingerprint.data(), all.data() + 16, kDigestBytes) != 0) {
    return reader.error("was saved with another model or another KV cache type or page size");
  }
  reader.left_ = content.subspan(kHeaderBytes);
  return reader;
}

Result<uint64_t> SessionReader::number(std::string_view what) {
  CREST_TRY(const auto raw, bytes(sizeof(uint64_t), what));
  uint64_t value = 0;
  std::memcpy(&value, raw.data(), sizeof value);
  return value;
}

Result<std::span<const std::byte>> SessionReader::bytes(uint64_t count, std::string_view what) {
  if (count > left_.size()) return error("{} needs {} bytes, only {} are left", what, count, left_.size());
  const auto result = left_.first(count);
  left_ = left_.subspan(count);
  return result;
}

Status SessionReader::finish() const {
  if (!left_.empty()) return error("{} bytes are left behind the saved session", left_.size());
  return {};
}

}  // namespace crest::engine
