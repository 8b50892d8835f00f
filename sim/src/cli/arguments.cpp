#include "cli/arguments.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/files.h"

namespace crest_sim::cli {
namespace {

std::optional<size_t> parse_count(std::string_view text) {
  size_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error syntax(const std::string& text) {
  return Error{
      fmt::format("--arg {}: an argument is TYPE=VALUE, TYPE:COUNT:FILL, TYPE:@FILE, @FILE.npy, same:N, null or "
                  "pad:BYTES; types: {}",
                  text, type_names())};
}

Status read_buffer(const std::string& path, std::optional<Type> wanted, Arch arch, ArgumentSpec& spec) {
  auto array = read_array(path);
  if (!array) return Error{fmt::format("--arg {}: {}", spec.text, array.error())};
  if (!wanted && !array->type) return Error{fmt::format("--arg {}: a raw file needs a type before it", spec.text)};
  Type type = wanted ? *wanted : *array->type;
  if (wanted && array->type && type_bytes(*array->type) != type_bytes(type))
    return Error{fmt::format("--arg {}: the file holds {}", spec.text, type_name(*array->type))};
  if (array->bytes.size() % type_bytes(type))
    return Error{
        fmt::format("--arg {}: {} bytes are no whole number of {}", spec.text, array->bytes.size(), type_name(type))};
  spec.kind = ArgumentSpec::Kind::kBuffer;
  spec.format = {type, target_info(arch).fnuz_fp8};
  spec.bytes = std::move(array->bytes);
  return Unit{};
}

/// Without metadata: natural alignment, one argument after the other.
void append(std::vector<uint8_t>& out, std::span<const uint8_t> bytes, size_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::string kind_text(const KernelArgument& a) {
  if (a.value_kind == "by_value") return "value";
  if (a.value_kind == "global_buffer") return "pointer";
  return a.value_kind;
}

/// Empty if the argument may be what was given.
std::string mismatch(const KernelArgument& a, const ArgumentSpec& spec) {
  bool pointer = a.value_kind == "global_buffer" || a.value_kind == "dynamic_shared_pointer";
  if (spec.kind == ArgumentSpec::Kind::kPad)
    return "the kernel's metadata says where its arguments are; pad is not used";
  if (spec.kind == ArgumentSpec::Kind::kValue) {
    if (spec.bytes.size() == a.size) return {};
    return fmt::format("the kernel takes {} bytes, {} has {}", a.size, type_name(spec.format.type), spec.bytes.size());
  }
  if (!pointer && a.size != 8) return fmt::format("the kernel takes a value of {} bytes, not a buffer", a.size);
  return {};
}

}  // namespace

Result<ArgumentSpec> parse_argument(const std::string& text, Arch arch, uint64_t seed) {
  ArgumentSpec spec;
  spec.text = text;
  spec.format.fnuz = target_info(arch).fnuz_fp8;
  if (text == "null") {
    spec.kind = ArgumentSpec::Kind::kNull;
    spec.bytes.assign(8, 0);
    return spec;
  }
  if (text.starts_with("@")) {
    if (auto s = read_buffer(text.substr(1), std::nullopt, arch, spec); !s) return Error{s.error()};
    return spec;
  }
  size_t mark = text.find_first_of(":=");
  if (mark == std::string::npos) return syntax(text);
  std::string_view head = std::string_view(text).substr(0, mark), rest = std::string_view(text).substr(mark + 1);
  if (text[mark] == ':' && (head == "same" || head == "pad")) {
    auto number = parse_count(rest);
    if (!number || (head == "pad" && *number > 65536)) return syntax(text);
    spec.kind = head == "same" ? ArgumentSpec::Kind::kSame : ArgumentSpec::Kind::kPad;
    spec.number = *number;
    return spec;
  }
  auto type = parse_type(head);
  if (!type) return syntax(text);
  spec.format.type = *type;
  if (text[mark] == '=') {
    auto value = parse_value(spec.format, rest);
    if (!value) return Error{fmt::format("--arg {}: {}", text, value.error())};
    spec.bytes = *value;
    return spec;
  }
  if (rest.starts_with("@")) {
    if (auto s = read_buffer(std::string(rest.substr(1)), type, arch, spec); !s) return Error{s.error()};
    return spec;
  }
  size_t colon = rest.find(':');
  auto count = parse_count(rest.substr(0, colon));
  if (!count) return syntax(text);
  auto filled = fill(spec.format, *count, colon == std::string_view::npos ? "zeros" : rest.substr(colon + 1), seed);
  if (!filled) return Error{fmt::format("--arg {}: {}", text, filled.error())};
  spec.kind = ArgumentSpec::Kind::kBuffer;
  spec.unwritten = colon == std::string_view::npos;
  spec.bytes = std::move(*filled);
  return spec;
}

const PlacedBuffer* BoundArguments::buffer_of(size_t argument) const {
  for (const PlacedBuffer& b : buffers)
    if (b.argument == argument) return &b;
  return nullptr;
}

std::string describe_arguments(const Kernel& kernel) {
  std::string out;
  size_t n = 0;
  for (const KernelArgument& a : kernel.arguments)
    if (!a.hidden())
      out += fmt::format("  arg {}: {}{}{}, {} bytes at {}\n", n++, a.name, a.name.empty() ? "" : ", ", kind_text(a),
                         a.size, a.offset);
  return out;
}

Result<BoundArguments> bind_arguments(const Kernel& kernel, const std::vector<ArgumentSpec>& specs, Memory& memory) {
  std::vector<const KernelArgument*> wanted;
  for (const KernelArgument& a : kernel.arguments)
    if (!a.hidden()) wanted.push_back(&a);
  if (!wanted.empty() && wanted.size() != specs.size())
    return Error{fmt::format("kernel {} takes {} arguments, {} were given\n{}", kernel.name, wanted.size(),
                             specs.size(), describe_arguments(kernel))};
  BoundArguments out;
  if (!wanted.empty()) out.bytes.resize(kernel.explicit_bytes());
  for (size_t n = 0; n < specs.size(); ++n) {
    const ArgumentSpec& spec = specs[n];
    if (!wanted.empty())
      if (std::string problem = mismatch(*wanted[n], spec); !problem.empty())
        return Error{fmt::format("--arg {} (argument {}, {}): {}", spec.text, n, wanted[n]->name, problem)};
    std::vector<uint8_t> bytes = spec.bytes;
    uint64_t address = 0;
    if (spec.kind == ArgumentSpec::Kind::kBuffer) {
      auto place = memory.allocate(bytes.size(), AllocationKind::kDevice, fmt::format("(argument {})", n));
      if (!place) return Error{place.error()};
      address = *place;
      if (!bytes.empty()) std::memcpy(reinterpret_cast<void*>(address), bytes.data(), bytes.size());
      out.buffers.push_back({n, spec.format, address, bytes.size(), spec.unwritten});
    } else if (spec.kind == ArgumentSpec::Kind::kSame) {
      const PlacedBuffer* other = out.buffer_of(spec.number);
      if (!other) return Error{fmt::format("--arg {}: argument {} is no buffer before it", spec.text, spec.number)};
      address = other->address;
    } else if (spec.kind == ArgumentSpec::Kind::kPad) {
      bytes.assign(spec.number, 0);
      append(out.bytes, bytes, 1);
      continue;
    }
    if (spec.kind != ArgumentSpec::Kind::kValue) {
      bytes.resize(8);
      std::memcpy(bytes.data(), &address, 8);
    }
    if (wanted.empty())
      append(out.bytes, bytes, bytes.size());
    else if (wanted[n]->offset + bytes.size() <= out.bytes.size())
      std::copy(bytes.begin(), bytes.end(), out.bytes.begin() + wanted[n]->offset);
  }
  return out;
}

}  // namespace crest_sim::cli
