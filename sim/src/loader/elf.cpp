#include "loader/elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

namespace crest_sim {
namespace {

/// What zero-initialised variables may add to the size of the file.
constexpr uint64_t kMaxZeroBytes = uint64_t(256) << 20;
constexpr uint16_t kMachineAmdgpu = 224;
constexpr uint8_t kOsAbiHsa = 64;
constexpr uint32_t kNoteMetadata = 32;

/// Reads structures out of the file, refusing to leave it.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> file) : file_(file) {}
  bool holds(uint64_t offset, uint64_t bytes) const { return offset <= file_.size() && bytes <= file_.size() - offset; }
  template <class T>
  T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  std::span<const uint8_t> range(uint64_t offset, uint64_t bytes) const { return file_.subspan(offset, bytes); }
  uint64_t size() const { return file_.size(); }

 private:
  std::span<const uint8_t> file_;
};

std::string text_at(std::span<const uint8_t> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  return std::string(begin, strnlen(begin, table.size() - offset));
}

Error bad(std::string_view what, uint64_t value, std::string_view allowed) {
  return Error{fmt::format("code object: {} is {:#x}; {}", what, value, allowed)};
}

Status check_header(const Reader& file, const Elf64_Ehdr& h) {
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return Error{"code object: not an ELF file"};
  if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
    return Error{"code object: not a 64-bit little-endian ELF file"};
  if (h.e_machine != kMachineAmdgpu) return bad("e_machine", h.e_machine, "AMD GPU code has 0xe0");
  if (h.e_ident[EI_OSABI] != kOsAbiHsa) return bad("EI_OSABI", h.e_ident[EI_OSABI], "only 0x40 (HSA) is supported");
  if (h.e_ident[EI_ABIVERSION] < 2 || h.e_ident[EI_ABIVERSION] > 4)
    return bad("EI_ABIVERSION", h.e_ident[EI_ABIVERSION], "2, 3 and 4 (code object V4 to V6) are supported");
  if (h.e_type != ET_DYN) return bad("e_type", h.e_type, "a linked code object has 3 (ET_DYN)");
  if (h.e_phnum != 0 &&
      (h.e_phentsize != sizeof(Elf64_Phdr) || !file.holds(h.e_phoff, uint64_t(h.e_phnum) * sizeof(Elf64_Phdr))))
    return bad("e_phoff", h.e_phoff,
               fmt::format("{} program headers must lie within {} bytes", h.e_phnum, file.size()));
  if (h.e_shnum != 0 &&
      (h.e_shentsize != sizeof(Elf64_Shdr) || !file.holds(h.e_shoff, uint64_t(h.e_shnum) * sizeof(Elf64_Shdr))))
    return bad("e_shoff", h.e_shoff,
               fmt::format("{} section headers must lie within {} bytes", h.e_shnum, file.size()));
  return Unit{};
}

Status load_segments(const Reader& file, const Elf64_Ehdr& h, ElfFile& out) {
  uint64_t end = 0, max_image = file.size() + kMaxZeroBytes;
  for (int pass = 0; pass < 2; ++pass) {
    for (uint32_t i = 0; i < h.e_phnum; ++i) {
      auto p = file.at<Elf64_Phdr>(h.e_phoff + i * sizeof(Elf64_Phdr));
      if (p.p_type != PT_LOAD) continue;
      if (!file.holds(p.p_offset, p.p_filesz))
        return bad("p_offset + p_filesz", p.p_offset + p.p_filesz, "must lie within the file");
      if (p.p_filesz > p.p_memsz) return bad("p_memsz", p.p_memsz, "must not be below p_filesz");
      if (p.p_vaddr > max_image || p.p_memsz > max_image - p.p_vaddr)
        return bad("p_vaddr + p_memsz", p.p_vaddr + p.p_memsz, "at most the size of the file and 256 MiB");
      if (pass == 0)
        end = std::max(end, p.p_vaddr + p.p_memsz);
      else
        std::memcpy(out.image.data() + p.p_vaddr, file.range(p.p_offset, p.p_filesz).data(), p.p_filesz);
    }
    if (pass == 0) out.image.assign(end, 0);
  }
  return Unit{};
}

Status load_sections(const Reader& file, const Elf64_Ehdr& h, ElfFile& out) {
  std::vector<uint32_t> names;
  for (uint32_t i = 0; i < h.e_shnum; ++i) {
    auto s = file.at<Elf64_Shdr>(h.e_shoff + i * sizeof(Elf64_Shdr));
    if (s.sh_type != SHT_NOBITS && !file.holds(s.sh_offset, s.sh_size))
      return bad(fmt::format("section {} offset + size", i), s.sh_offset + s.sh_size, "must lie within the file");
    out.sections.push_back(
        {{}, s.sh_type, s.sh_addr, s.sh_offset, s.sh_type == SHT_NOBITS ? 0 : s.sh_size, s.sh_entsize, s.sh_link});
    names.push_back(s.sh_name);
  }
  if (h.e_shstrndx < out.sections.size()) {
    const ElfSection& table = out.sections[h.e_shstrndx];
    auto text = file.range(table.offset, table.size);
    for (size_t i = 0; i < names.size(); ++i) out.sections[i].name = text_at(text, names[i]);
  }
  return Unit{};
}

void load_symbols(const Reader& file, const ElfSection& section, ElfFile& out) {
  if (section.link >= out.sections.size()) return;
  const ElfSection& strings = out.sections[section.link];
  auto text = file.range(strings.offset, strings.size);
  for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.size; at += sizeof(Elf64_Sym)) {
    auto s = file.at<Elf64_Sym>(section.offset + at);
    uint8_t type = ELF64_ST_TYPE(s.st_info);
    if (s.st_shndx == SHN_UNDEF || (type != STT_OBJECT && type != STT_FUNC && type != STT_NOTYPE)) continue;
    if (std::string name = text_at(text, s.st_name); !name.empty())
      out.symbols.push_back({name, s.st_value, s.st_size, type == STT_FUNC});
  }
}

Status load_relocations(const Reader& file, const ElfSection& section, ElfFile& out) {
  for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.size; at += sizeof(Elf64_Rela)) {
    auto r = file.at<Elf64_Rela>(section.offset + at);
    uint64_t value = 0;
    if (uint32_t symbol = ELF64_R_SYM(r.r_info); symbol != 0 && section.link < out.sections.size()) {
      const ElfSection& table = out.sections[section.link];
      if ((uint64_t(symbol) + 1) * sizeof(Elf64_Sym) > table.size)
        return bad("relocation symbol", symbol, "not in the symbol table");
      auto s = file.at<Elf64_Sym>(table.offset + uint64_t(symbol) * sizeof(Elf64_Sym));
      if (s.st_shndx == SHN_UNDEF)
        return Error{fmt::format("code object: undefined symbol number {} is used by a relocation", symbol)};
      value = s.st_value;
    }
    uint32_t type = ELF64_R_TYPE(r.r_info);
    uint64_t bytes = (type == 3 || type == 5 || type == 13) ? 8 : 4;
    if (r.r_offset > out.image.size() || bytes > out.image.size() - r.r_offset)
      return bad("relocation offset", r.r_offset, "outside the image");
    out.relocations.push_back({r.r_offset, type, value, r.r_addend});
  }
  return Unit{};
}

void load_notes(const Reader& file, const ElfSection& section, ElfFile& out) {
  uint64_t at = section.offset, end = section.offset + section.size;
  while (at + sizeof(Elf64_Nhdr) <= end) {
    auto n = file.at<Elf64_Nhdr>(at);
    uint64_t name = at + sizeof(Elf64_Nhdr), description = name + (uint64_t(n.n_namesz) + 3) / 4 * 4;
    if (description > end || n.n_descsz > end - description) return;
    if (n.n_type == kNoteMetadata) out.metadata.push_back(file.range(description, n.n_descsz));
    at = description + (uint64_t(n.n_descsz) + 3) / 4 * 4;
  }
}

}  // namespace

const ElfSection* ElfFile::find_section(std::string_view name) const {
  for (const ElfSection& s : sections)
    if (s.name == name) return &s;
  return nullptr;
}

Result<ElfFile> ElfFile::parse(std::span<const uint8_t> bytes) {
  Reader file(bytes);
  if (!file.holds(0, sizeof(Elf64_Ehdr)))
    return Error{fmt::format("code object: {} bytes are too short for an ELF header", bytes.size())};
  auto header = file.at<Elf64_Ehdr>(0);
  if (auto s = check_header(file, header); !s) return Error{s.error()};
  ElfFile out;
  out.abi_version = header.e_ident[EI_ABIVERSION];
  out.flags = header.e_flags;
  if (auto s = load_segments(file, header, out); !s) return Error{s.error()};
  if (auto s = load_sections(file, header, out); !s) return Error{s.error()};
  bool has_symtab = out.find_section(".symtab") != nullptr;
  for (size_t i = 0; i < out.sections.size(); ++i) {
    const ElfSection section = out.sections[i];
    if (section.type == SHT_SYMTAB || (section.type == SHT_DYNSYM && !has_symtab)) load_symbols(file, section, out);
    if (section.type == SHT_NOTE) load_notes(file, section, out);
    if (section.type == SHT_RELA)
      if (auto s = load_relocations(file, section, out); !s) return Error{s.error()};
  }
  return out;
}

}  // namespace crest_sim
