#include "report/lines.h"

#include <llvm/DebugInfo/DIContext.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

namespace crest_sim {
namespace {

// LLVM 22 returns an optional, earlier ones a value that may be empty.
SourceLine to_line(const llvm::DILineInfo& info) { return {info.Line ? info.FileName : std::string(), info.Line}; }
[[maybe_unused]] SourceLine to_line(const std::optional<llvm::DILineInfo>& info) {
  return info ? to_line(*info) : SourceLine{};
}

}  // namespace

std::vector<SourceLine> source_lines(const CodeObject& object, const std::vector<uint64_t>& addresses) {
  auto bytes = object.file();
  llvm::StringRef text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(text, "code object"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  // Damaged tables are no reason to lose a report.
  auto ignore = [](llvm::Error e) { llvm::consumeError(std::move(e)); };
  auto context = llvm::DWARFContext::create(**file, llvm::DWARFContext::ProcessDebugRelocations::Ignore, nullptr, "",
                                            ignore, ignore);
  if (context->getNumCompileUnits() == 0) return {};
  llvm::DILineInfoSpecifier wanted(llvm::DILineInfoSpecifier::FileLineInfoKind::RawValue,
                                   llvm::DILineInfoSpecifier::FunctionNameKind::None);
  std::vector<SourceLine> out;
  for (uint64_t address : addresses)
    out.push_back(
        to_line(context->getLineInfoForAddress({address, llvm::object::SectionedAddress::UndefSection}, wanted)));
  return out;
}

}  // namespace crest_sim
