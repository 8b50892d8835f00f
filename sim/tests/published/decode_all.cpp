// Every object of a folder: loading, decoding, and whether LLVM's two views of each instruction agree.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "bench.h"
#include "decode/decoder.h"

namespace crest_sim::published {
namespace {

namespace fs = std::filesystem;

struct Totals {
  size_t objects = 0, bad_objects = 0, instructions = 0, disagreements = 0;
  std::set<std::string> mnemonics;
  std::map<std::string, size_t> unknown;  ///< base mnemonic or word → occurrences
};

/// Words that are checked already: objects of a family share most of their code.
using Seen = std::set<std::string>;

void compare_views(const Code& code, Disassembler& disassembler, Seen& seen, Totals& totals) {
  for (const Instruction& i : code.instructions) {
    if (i.pc + i.size > code.bytes.size() || i.cls == InstructionClass::kUnknown) continue;
    std::string word(reinterpret_cast<const char*>(code.bytes.data()) + i.pc, i.size);
    if (!seen.insert(word).second) continue;
    RawInstruction raw;
    auto rest = std::span<const uint8_t>(code.bytes).subspan(i.pc);
    if (!disassembler.decode(rest, code.section_address + i.pc, raw)) continue;
    std::string difference = cross_check(raw, parse_text(raw.text));
    if (difference.empty()) continue;
    if (++totals.disagreements <= 10) fmt::print("  {}\n", difference);
  }
}

void add_object(const fs::path& path, Arch arch, std::map<uint32_t, std::unique_ptr<Disassembler>>& disassemblers,
                Seen& seen, Totals& totals) {
  ++totals.objects;
  std::ifstream in(path, std::ios::binary);
  std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
  auto elf = extract_code_object(file, arch);
  auto object = elf.ok() ? CodeObject::parse(*elf) : Result<std::shared_ptr<const CodeObject>>{Error{elf.error()}};
  if (!object.ok() || (*object)->kernels().empty()) {
    ++totals.bad_objects;
    fmt::print("  {}: {}\n", path.filename().string(), object.ok() ? "no kernel in it" : object.error());
    return;
  }
  std::set<uint32_t> sizes;
  for (const Kernel& k : (*object)->kernels()) sizes.insert(k.wave_size);
  for (uint32_t size : sizes) {
    const Code& code = (*object)->code(size);
    totals.instructions += code.instructions.size() - 1;  // the last one only marks the end
    for (const Instruction& i : code.instructions) totals.mnemonics.emplace(mnemonic_info(i.mnemonic).name);
    if (!code.unknown.empty()) ++totals.bad_objects;
    for (const std::string& u : code.unknown) {
      std::string text = u.substr(u.find(' ') + 1);  // without the address
      size_t name = text.find(' ');
      ++totals.unknown[name == std::string::npos ? text : text.substr(name + 1, text.find(' ', name + 1) - name - 1)];
    }
    auto& disassembler = disassemblers[size];
    if (!disassembler) disassembler = std::make_unique<Disassembler>(target_info(arch), size);
    compare_views(code, *disassembler, seen, totals);
  }
}

}  // namespace

bool decode_all(const std::string& directory, Arch arch) {
  std::vector<fs::path> objects;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".co") objects.push_back(entry.path());
  std::sort(objects.begin(), objects.end());
  Totals totals;
  Seen seen;
  std::map<uint32_t, std::unique_ptr<Disassembler>> disassemblers;
  for (const fs::path& path : objects) add_object(path, arch, disassemblers, seen, totals);
  totals.mnemonics.erase("unknown");
  fmt::print(
      "{}: {} objects, {} with something unknown, {} instructions, {} mnemonics; {} distinct encodings, "
      "{} of them with differing text and MCInst\n",
      target_info(arch).name, totals.objects, totals.bad_objects, totals.instructions, totals.mnemonics.size(),
      seen.size(), totals.disagreements);
  for (const auto& [name, count] : totals.unknown) fmt::print("  not known: {} ({} times)\n", name, count);
  return totals.objects > 0 && totals.bad_objects == 0 && totals.disagreements == 0;
}

}  // namespace crest_sim::published
