#include <fmt/format.h>

#include "loader/elf.h"
#include "loader/msgpack.h"

namespace crest_sim {
namespace {

using Kind = MsgPackValue::Kind;

uint32_t number(const MsgPackValue& map, std::string_view key) {
  const MsgPackValue* value = map.find(key);
  bool integer = value && (value->kind == Kind::kUnsigned || value->kind == Kind::kSigned);
  return integer ? static_cast<uint32_t>(value->bits) : 0;
}

std::string text(const MsgPackValue& map, std::string_view key) {
  const MsgPackValue* value = map.find(key);
  return value ? std::string(value->text) : std::string();
}

void read_kernel(const MsgPackValue& entry, Kernel& kernel) {
  kernel.kernarg_segment_size = number(entry, ".kernarg_segment_size");
  kernel.max_flat_workgroup_size = number(entry, ".max_flat_workgroup_size");
  kernel.sgpr_count = number(entry, ".sgpr_count");
  kernel.vgpr_count = number(entry, ".vgpr_count");
  kernel.agpr_count = number(entry, ".agpr_count");
  kernel.sgpr_spill_count = number(entry, ".sgpr_spill_count");
  kernel.vgpr_spill_count = number(entry, ".vgpr_spill_count");
  const MsgPackValue* required = entry.find(".reqd_workgroup_size");
  if (required && required->items.size() == 3)
    for (size_t i = 0; i < 3; ++i) kernel.required_workgroup_size[i] = static_cast<uint32_t>(required->items[i].bits);
  kernel.arguments.clear();
  if (const MsgPackValue* arguments = entry.find(".args"))
    for (const MsgPackValue& argument : arguments->items)
      kernel.arguments.push_back({text(argument, ".name"), text(argument, ".value_kind"),
                                  text(argument, ".address_space"), number(argument, ".offset"),
                                  number(argument, ".size")});
}

}  // namespace

Status read_metadata(std::span<const uint8_t> note, std::vector<Kernel>& kernels) {
  auto root = read_msgpack(note);
  if (!root || root->kind != Kind::kMap)
    return Error{fmt::format("code object: the metadata note ({} bytes) is not a valid msgpack map", note.size())};
  const MsgPackValue* list = root->find("amdhsa.kernels");
  if (!list) return Unit{};
  for (const MsgPackValue& entry : list->items) {
    std::string symbol = text(entry, ".symbol");
    for (Kernel& kernel : kernels)
      if (symbol == kernel.name + ".kd") read_kernel(entry, kernel);
  }
  return Unit{};
}

}  // namespace crest_sim
