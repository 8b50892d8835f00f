#include "crest_sim/code_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "decode/decoder.h"
#include "loader/elf.h"

namespace crest_sim {

struct CodeObject::Impl {
  std::vector<uint8_t> file;
  ElfFile elf;
  const TargetInfo* target = nullptr;
  uint64_t text_address = 0, text_size = 0;
  std::vector<Kernel> kernels;
  mutable std::once_flag decode_once[2];
  mutable Code code[2];
};

namespace {

constexpr uint32_t kGfx11Generic = 0x54, kGfx94Generic = 0x5f;

const TargetInfo* target_of(uint32_t flags) {
  uint32_t machine = flags & 0xff;
  if (machine == kGfx94Generic) return &target_info(Arch::kGfx942);
  if (machine == kGfx11Generic) return &target_info(Arch::kGfx1100);
  for (const TargetInfo& t : all_targets())
    if (t.elf_machine == machine) return &t;
  return nullptr;
}

template <class T>
T read(std::span<const uint8_t> image, uint64_t at) {
  T value;
  std::memcpy(&value, image.data() + at, sizeof(T));
  return value;
}

KernelDescriptor read_descriptor(std::span<const uint8_t> image, uint64_t at) {
  KernelDescriptor d;
  d.group_segment_bytes = read<uint32_t>(image, at);
  d.private_segment_bytes = read<uint32_t>(image, at + 4);
  d.kernarg_bytes = read<uint32_t>(image, at + 8);
  d.entry_offset = read<int64_t>(image, at + 16);
  d.rsrc3 = read<uint32_t>(image, at + 44);
  d.rsrc1 = read<uint32_t>(image, at + 48);
  d.rsrc2 = read<uint32_t>(image, at + 52);
  d.properties = read<uint16_t>(image, at + 56);
  d.preload = read<uint16_t>(image, at + 58);
  return d;
}

void count_registers(const TargetInfo& target, Kernel& k) {
  uint32_t granule = target.cdna || k.wave_size == 32 ? 8 : 4;
  uint32_t total = ((k.descriptor.rsrc1 & 63) + 1) * granule;
  if (!target.cdna) {
    k.vgprs = std::min(total, 256u);
    return;
  }
  uint32_t accum_offset = ((k.descriptor.rsrc3 & 63) + 1) * 4;
  k.vgprs = std::min({total, accum_offset, 256u});
  k.agprs = total > accum_offset ? std::min(total - accum_offset, 256u) : 0;
}

}  // namespace

uint32_t Kernel::explicit_bytes() const {
  uint32_t bytes = 0;
  for (const KernelArgument& a : arguments)
    if (!a.hidden()) bytes = std::max(bytes, a.offset + a.size);
  return bytes;
}

int32_t Code::index_at(uint64_t image_address) const {
  uint64_t word = (image_address - section_address) / 4;
  if (image_address < section_address || (image_address & 3) || word >= index_of_word.size()) return -1;
  return index_of_word[word];
}

CodeObject::CodeObject(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CodeObject::~CodeObject() = default;

Result<std::shared_ptr<const CodeObject>> CodeObject::parse(std::span<const uint8_t> file) {
  auto impl = std::make_unique<Impl>();
  impl->file.assign(file.begin(), file.end());
  auto elf = ElfFile::parse(impl->file);
  if (!elf) return Error{elf.error()};
  impl->elf = std::move(*elf);
  impl->target = target_of(impl->elf.flags);
  if (!impl->target)
    return Error{fmt::format(
        "code object: e_flags {:#x} names a machine other than gfx942, gfx950, gfx1100 and gfx1151", impl->elf.flags)};
  const ElfSection* text = impl->elf.find_section(".text");
  uint64_t image_size = impl->elf.image.size();
  if (text && (text->address > image_size || text->size > image_size - text->address))
    return Error{fmt::format("code object: .text [{:#x}, +{:#x}) lies outside the image of {:#x} bytes", text->address,
                             text->size, image_size)};
  if (text) impl->text_address = text->address, impl->text_size = text->size & ~uint64_t(3);
  for (const Symbol& symbol : impl->elf.symbols) {
    if (symbol.name.size() <= 3 || !symbol.name.ends_with(".kd")) continue;
    Kernel k;
    k.name = symbol.name.substr(0, symbol.name.size() - 3);
    if (std::any_of(impl->kernels.begin(), impl->kernels.end(),
                    [&](const Kernel& other) { return other.name == k.name; }))
      continue;
    if (symbol.address > image_size || image_size - symbol.address < 64)
      return Error{
          fmt::format("code object: descriptor of kernel {} at {:#x} lies outside the image", k.name, symbol.address)};
    k.descriptor = read_descriptor(impl->elf.image, symbol.address);
    k.descriptor_address = symbol.address;
    k.entry_address = symbol.address + static_cast<uint64_t>(k.descriptor.entry_offset);
    k.wave_size = !impl->target->cdna && k.descriptor.wave32() ? 32 : 64;
    if (k.entry_address < impl->text_address || k.entry_address - impl->text_address >= impl->text_size)
      return Error{fmt::format("code object: entry {:#x} of kernel {} lies outside .text", k.entry_address, k.name)};
    count_registers(*impl->target, k);
    impl->kernels.push_back(std::move(k));
  }
  for (auto note : impl->elf.metadata)
    if (auto s = read_metadata(note, impl->kernels); !s) return Error{s.error()};
  return std::shared_ptr<const CodeObject>(new CodeObject(std::move(impl)));
}

const TargetInfo& CodeObject::target() const { return *impl_->target; }
uint32_t CodeObject::code_object_version() const { return impl_->elf.abi_version + 2u; }
const std::vector<Kernel>& CodeObject::kernels() const { return impl_->kernels; }
const std::vector<Symbol>& CodeObject::symbols() const { return impl_->elf.symbols; }
std::span<const uint8_t> CodeObject::image() const { return impl_->elf.image; }
std::span<const uint8_t> CodeObject::file() const { return impl_->file; }

const Kernel* CodeObject::find_kernel(std::string_view name) const {
  for (const Kernel& k : impl_->kernels)
    if (k.name == name) return &k;
  return nullptr;
}

void CodeObject::relocate(std::span<uint8_t> image, uint64_t base) const {
  for (const ElfRelocation& r : impl_->elf.relocations) {
    uint64_t value = r.symbol_value + static_cast<uint64_t>(r.addend);
    uint8_t* at = image.data() + r.offset;
    auto put = [&](uint64_t v, size_t bytes) { std::memcpy(at, &v, bytes); };
    switch (r.type) {
      case 1:
        put(base + value, 4);
        break;  // ABS32_LO
      case 2:
        put((base + value) >> 32, 4);
        break;  // ABS32_HI
      case 3:
      case 13:
        put(base + value, 8);
        break;  // ABS64, RELATIVE64
      case 4:
      case 10:
        put(value - r.offset, 4);
        break;  // REL32, REL32_LO
      case 5:
        put(value - r.offset, 8);
        break;  // REL64
      case 6:
        put(base + value, 4);
        break;  // ABS32
      case 11:
        put((value - r.offset) >> 32, 4);
        break;  // REL32_HI
      default:
        break;
    }
  }
}

const Code& CodeObject::code(uint32_t wave_size) const {
  int slot = wave_size == 32;
  std::call_once(impl_->decode_once[slot], [&] {
    std::span<const uint8_t> bytes(impl_->elf.image.data() + impl_->text_address, impl_->text_size);
    impl_->code[slot] = decode_section(*impl_->target, wave_size, impl_->text_address, bytes);
  });
  return impl_->code[slot];
}

}  // namespace crest_sim
