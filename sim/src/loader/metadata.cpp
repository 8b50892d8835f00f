#include <fmt/format.h>
#include <llvm/BinaryFormat/MsgPackDocument.h>

#include "loader/elf.h"

namespace crest_sim {
namespace {

using llvm::msgpack::DocNode;
using llvm::msgpack::Type;

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
  if (!document.readFromBlob(blob, false))
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
