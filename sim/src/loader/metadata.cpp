#include <fmt/format.h>
#include <llvm/BinaryFormat/MsgPackDocument.h>

#include "loader/elf.h"

namespace crest_sim {
namespace {

using llvm::msgpack::DocNode;
using llvm::msgpack::Type;

/// LLVM's reader trusts what it reads (a map key that is an array ends the program). Walks one value and says whether it
/// is well formed, no deeper than such notes are, with strings as keys; `at` moves behind it.
bool well_formed(llvm::StringRef blob, size_t& at, int depth) {
  auto take = [&](size_t bytes, uint64_t& value) {
    if (blob.size() - at < bytes) return false;
    value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(blob[at + i]);
    at += bytes;
    return true;
  };
  auto skip = [&](uint64_t bytes) {
    if (blob.size() - at < bytes) return false;
    at += bytes;
    return true;
  };
  auto is_string = [&] {
    uint8_t b = at < blob.size() ? static_cast<uint8_t>(blob[at]) : 0;
    return (b >= 0xa0 && b <= 0xbf) || (b >= 0xd9 && b <= 0xdb);
  };
  auto items = [&](uint64_t count, bool map) {
    for (uint64_t i = 0; i < count; ++i) {
      if (map && (!is_string() || !well_formed(blob, at, depth + 1))) return false;
      if (!well_formed(blob, at, depth + 1)) return false;
    }
    return true;
  };
  uint64_t tag = 0, n = 0;
  if (depth > 16 || !take(1, tag)) return false;
  if (tag < 0x80 || tag >= 0xe0 || tag == 0xc0 || tag == 0xc2 || tag == 0xc3) return true;
  if (tag < 0x90) return items(tag & 15, true);
  if (tag < 0xa0) return items(tag & 15, false);
  if (tag < 0xc0) return skip(tag & 31);
  if (tag == 0xca || tag == 0xcb) return skip(tag == 0xca ? 4 : 8);
  if (tag >= 0xcc && tag <= 0xcf) return skip(size_t(1) << (tag - 0xcc));
  if (tag >= 0xd0 && tag <= 0xd3) return skip(size_t(1) << (tag - 0xd0));
  if (tag >= 0xd9 && tag <= 0xdb) return take(size_t(1) << (tag - 0xd9), n) && skip(n);
  if (tag == 0xdc || tag == 0xdd) return take(tag == 0xdc ? 2 : 4, n) && items(n, false);
  if (tag == 0xde || tag == 0xdf) return take(tag == 0xde ? 2 : 4, n) && items(n, true);
  return false;  // binary and extension values have no place in the note
}

DocNode* field(DocNode& map, llvm::StringRef key) {
  if (map.getKind() != Type::Map) return nullptr;
  auto& entries = map.getMap();
  auto it = entries.find(key);
  return it == entries.end() ? nullptr : &it->second;
}

uint32_t number(DocNode& map, llvm::StringRef key) {
  DocNode* node = field(map, key);
  if (!node) return 0;
  if (node->getKind() == Type::UInt) return static_cast<uint32_t>(node->getUInt());
  if (node->getKind() == Type::Int) return static_cast<uint32_t>(node->getInt());
  return 0;
}

std::string text(DocNode& map, llvm::StringRef key) {
  DocNode* node = field(map, key);
  return node && node->getKind() == Type::String ? node->getString().str() : std::string();
}

void read_arguments(DocNode& entry, Kernel& kernel) {
  DocNode* arguments = field(entry, ".args");
  if (!arguments || arguments->getKind() != Type::Array) return;
  for (DocNode& argument : arguments->getArray())
    kernel.arguments.push_back({text(argument, ".name"), text(argument, ".value_kind"),
                                text(argument, ".address_space"), number(argument, ".offset"),
                                number(argument, ".size")});
}

void read_kernel(DocNode& entry, Kernel& kernel) {
  kernel.kernarg_segment_size = number(entry, ".kernarg_segment_size");
  kernel.max_flat_workgroup_size = number(entry, ".max_flat_workgroup_size");
  kernel.sgpr_count = number(entry, ".sgpr_count");
  kernel.vgpr_count = number(entry, ".vgpr_count");
  kernel.agpr_count = number(entry, ".agpr_count");
  kernel.sgpr_spill_count = number(entry, ".sgpr_spill_count");
  kernel.vgpr_spill_count = number(entry, ".vgpr_spill_count");
  DocNode* required = field(entry, ".reqd_workgroup_size");
  if (required && required->getKind() == Type::Array && required->getArray().size() == 3)
    for (int i = 0; i < 3; ++i)
      if (DocNode& n = required->getArray()[i]; n.getKind() == Type::UInt)
        kernel.required_workgroup_size[i] = static_cast<uint32_t>(n.getUInt());
  read_arguments(entry, kernel);
}

}  // namespace

Status read_metadata(std::span<const uint8_t> note, std::vector<Kernel>& kernels) {
  llvm::msgpack::Document document;
  llvm::StringRef blob(reinterpret_cast<const char*>(note.data()), note.size());
  size_t at = 0;
  if (!well_formed(blob, at, 0) || !document.readFromBlob(blob, false))
    return Error{fmt::format("code object: the metadata note ({} bytes) is not valid msgpack", note.size())};
  DocNode* list = field(document.getRoot(), "amdhsa.kernels");
  if (!list || list->getKind() != Type::Array) return Unit{};
  for (DocNode& entry : list->getArray()) {
    std::string symbol = text(entry, ".symbol");
    for (Kernel& kernel : kernels)
      if (symbol == kernel.name + ".kd") read_kernel(entry, kernel);
  }
  return Unit{};
}

}  // namespace crest_sim
