#include "cli/commands.h"

#include <fmt/format.h>
#include <llvm/Support/JSON.h>

#include <charconv>

#include "cli/files.h"

namespace crest_sim::cli {
namespace {

int usage(const std::string& message) {
  fmt::print(stderr, "crest-sim: {}\n", message);
  return kUsage;
}

/// "2=file" or "2:16"; the rest is empty if there is no mark.
bool split_index(const std::string& text, char mark, size_t& index, std::string& rest) {
  size_t at = text.find(mark);
  std::string_view number = std::string_view(text).substr(0, at);
  rest = at == std::string::npos ? std::string() : text.substr(at + 1);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  return error == std::errc() && end == number.data() + number.size();
}

Result<const PlacedBuffer*> buffer_at(const Launch& launch, const char* option, const std::string& text, size_t index) {
  if (const PlacedBuffer* b = launch.arguments.buffer_of(index)) return b;
  return Error{fmt::format("{} {}: argument {} is no buffer", option, text, index)};
}

std::string json_text(llvm::json::Object object) {
  return llvm::formatv("{0:2}", llvm::json::Value(std::move(object))).str();
}

/// What is wanted of the buffers, checked before the launch so that no long run is lost to a slip.
struct Wanted {
  struct Item {
    const PlacedBuffer* buffer;
    std::string text;
    size_t count = 0;
    std::vector<uint8_t> expected;
  };
  std::vector<Item> outputs, prints, expectations;
};

Result<Wanted> plan_outputs(const RunOptions& o, const Launch& launch) {
  Wanted w;
  size_t index = 0;
  std::string rest;
  for (const std::string& text : o.outputs) {
    if (!split_index(text, '=', index, rest) || rest.empty())
      return Error{fmt::format("--output {}: ARGUMENT=FILE, for example 2=c.npy", text)};
    auto b = buffer_at(launch, "--output", text, index);
    if (!b) return Error{b.error()};
    w.outputs.push_back({*b, rest, 0, {}});
  }
  for (const std::string& text : o.prints) {
    size_t count = 16;
    bool good = split_index(text, ':', index, rest);
    if (good && !rest.empty()) {
      auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
      good = error == std::errc() && end == rest.data() + rest.size();
    }
    if (!good) return Error{fmt::format("--print {}: ARGUMENT or ARGUMENT:COUNT", text)};
    auto b = buffer_at(launch, "--print", text, index);
    if (!b) return Error{b.error()};
    w.prints.push_back({*b, text, count, {}});
  }
  for (const std::string& text : o.expectations) {
    if (!split_index(text, '=', index, rest) || rest.empty())
      return Error{fmt::format("--expect {}: ARGUMENT=FILE", text)};
    auto b = buffer_at(launch, "--expect", text, index);
    if (!b) return Error{b.error()};
    auto array = read_array(rest);
    if (!array) return Error{array.error()};
    if (array->bytes.size() != (*b)->bytes)
      return Error{fmt::format("--expect {}: the file has {} bytes of data, the buffer {}", text, array->bytes.size(),
                               (*b)->bytes)};
    w.expectations.push_back({*b, rest, 0, std::move(array->bytes)});
  }
  return w;
}

/// After the launch; false if an expectation is not met.
Result<bool> deliver(const RunOptions& o, const Wanted& w, llvm::json::Object& json) {
  bool good = true;
  for (const auto& item : w.outputs)
    if (auto s = write_array(item.text, item.buffer->format, item.buffer->contents()); !s) return Error{s.error()};
  for (const auto& item : w.prints) {
    size_t step = type_bytes(item.buffer->format.type), count = std::min(item.count, item.buffer->bytes / step);
    std::string line;
    llvm::json::Array values;
    for (size_t n = 0; n < count; ++n) {
      std::string value = value_text(item.buffer->format, item.buffer->contents().data() + n * step);
      line += (n ? " " : "") + value;
      values.push_back(value);
    }
    if (o.object.json)
      json[fmt::format("argument_{}", item.buffer->argument)] = std::move(values);
    else
      fmt::print("argument {} ({}): {}{}\n", item.buffer->argument, type_name(item.buffer->format.type), line,
                 count * step < item.buffer->bytes ? " ..." : "");
  }
  llvm::json::Array comparisons;
  for (const auto& item : w.expectations) {
    Difference d = compare(item.buffer->format, item.buffer->contents(), item.expected, o.atol, o.rtol);
    good = good && d.beyond == 0;
    if (o.object.json) {
      comparisons.push_back(llvm::json::Object{{"argument", static_cast<int64_t>(item.buffer->argument)},
                                               {"different", static_cast<int64_t>(d.different)},
                                               {"beyond_tolerance", static_cast<int64_t>(d.beyond)},
                                               {"max_absolute", fmt::format("{:.6g}", d.max_absolute)},
                                               {"max_relative", fmt::format("{:.6g}", d.max_relative)}});
      continue;
    }
    fmt::print(
        "argument {} against {}: {} elements differ, {} beyond the tolerance, largest difference {:.3g} "
        "(relative {:.3g})\n",
        item.buffer->argument, item.text, d.different, d.beyond, d.max_absolute, d.max_relative);
    if (d.beyond) {
      size_t at = d.first * type_bytes(item.buffer->format.type);
      fmt::print("  first at element {}: {}, expected {}\n", d.first,
                 value_text(item.buffer->format, item.buffer->contents().data() + at),
                 value_text(item.buffer->format, item.expected.data() + at));
    }
  }
  if (!w.expectations.empty() && o.object.json) json["comparisons"] = std::move(comparisons);
  return good;
}

llvm::json::Object kernel_json(const Kernel& k) {
  llvm::json::Array arguments;
  for (const KernelArgument& a : k.arguments)
    arguments.push_back(llvm::json::Object{{"name", a.name},
                                           {"value_kind", a.value_kind},
                                           {"offset", static_cast<int64_t>(a.offset)},
                                           {"size", static_cast<int64_t>(a.size)}});
  return llvm::json::Object{{"Kernel_Name", k.name},
                            {"wave_size", static_cast<int64_t>(k.wave_size)},
                            {"VGPR_Count", static_cast<int64_t>(k.vgpr_count ? k.vgpr_count : k.vgprs)},
                            {"Accum_VGPR_Count", static_cast<int64_t>(k.agpr_count)},
                            {"SGPR_Count", static_cast<int64_t>(k.sgpr_count)},
                            {"LDS_Block_Size", static_cast<int64_t>(k.descriptor.group_segment_bytes)},
                            {"Scratch_Size", static_cast<int64_t>(k.descriptor.private_segment_bytes)},
                            {"vgpr_spill_count", static_cast<int64_t>(k.vgpr_spill_count)},
                            {"max_workgroup_size", static_cast<int64_t>(k.max_flat_workgroup_size)},
                            {"arguments", std::move(arguments)}};
}

std::string header_line(const Launch& launch) {
  const LaunchConfig& c = launch.config;
  return fmt::format("{} on {}: grid ({}, {}, {}), block ({}, {}, {})", launch.kernel->name,
                     launch.object.device->target().name, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y,
                     c.block.z);
}

void listing(const Code& code, const CodeObject& object, const Kernel& kernel, const KernelUse* use) {
  int32_t first = code.index_at(kernel.entry_address);
  size_t end = code.instructions.size() - 1;
  for (const Symbol& s : object.symbols())
    if (s.is_code && s.address == kernel.entry_address && s.size)
      if (int32_t last = code.index_at(s.address + s.size); last > 0) end = static_cast<size_t>(last);
  if (use) {
    fmt::print("{:>12} {:>6}  {:>8}  {}\n", "Hitcount", "Lanes", "Vaddr", "Instruction");
    std::string place;
    for (const InstructionUse& i : use->instructions) {
      std::string here = i.line ? fmt::format("{}:{}", i.file, i.line) : std::string();
      if (!here.empty() && here != place) fmt::print("{:>30}; {}\n", "", here);
      if (!here.empty()) place = here;
      fmt::print(
          "{:>12} {:>6}  {:>8x}  {}{}\n", i.count,
          i.count ? fmt::format("{:.1f}", static_cast<double>(i.active_lanes) / static_cast<double>(i.count)) : "",
          i.pc, i.disassembly, i.fidelity == Fidelity::kApproximate ? "  ; approximate" : "");
    }
    return;
  }
  for (size_t n = first < 0 ? 0 : static_cast<size_t>(first); n < end; ++n)
    fmt::print("{:>8x}  {}\n", code.instructions[n].pc, code.disassembly(code.instructions[n]));
}

}  // namespace

int list_kernels(const ObjectOptions& options) {
  auto object = load_object(options);
  if (!object) return usage(object.error());
  const CodeObject& code = object->module->object();
  if (options.json) {
    llvm::json::Array kernels;
    for (const Kernel& k : code.kernels()) kernels.push_back(kernel_json(k));
    llvm::json::Object root{{"arch", std::string(code.target().name)},
                            {"code_object_version", static_cast<int64_t>(code.code_object_version())},
                            {"kernels", std::move(kernels)}};
    fmt::print("{}\n", json_text(std::move(root)));
    return kOk;
  }
  fmt::print("{}: {}, code object version {}, {} kernels\n", options.file, code.target().name,
             code.code_object_version(), code.kernels().size());
  for (const Kernel& k : code.kernels()) {
    fmt::print(
        "\n{}\n  wave{}, {} VGPRs, {} AGPRs, {} SGPRs, {} bytes of LDS, {} bytes of scratch per lane, workgroups "
        "up to {}\n",
        k.name, k.wave_size, k.vgpr_count ? k.vgpr_count : k.vgprs, k.agpr_count, k.sgpr_count,
        k.descriptor.group_segment_bytes, k.descriptor.private_segment_bytes,
        k.max_flat_workgroup_size ? k.max_flat_workgroup_size : 1024);
    if (k.vgpr_spill_count) fmt::print("  {} VGPRs are spilled\n", k.vgpr_spill_count);
    fmt::print("{}", describe_arguments(k));
  }
  for (uint32_t wave : {32u, 64u}) {
    bool used = false;
    for (const Kernel& k : code.kernels()) used = used || k.wave_size == wave;
    if (!used) continue;
    for (const std::string& word : code.code(wave).unknown) fmt::print("unknown instruction {}\n", word);
  }
  return kOk;
}

namespace {

void show_findings(const RunOptions& options, const Launch& launch, llvm::json::Object& json) {
  if (!launch.checks.any()) return;
  llvm::json::Array list;
  for (const CheckReport& f : launch.findings) {
    if (!options.object.json) fmt::print(stderr, "crest-sim: {}\n", f.to_string());
    list.push_back(llvm::json::Object{{"check", std::string(check_name(f.kind))},
                                      {"message", f.message},
                                      {"pc", static_cast<int64_t>(f.place.pc)},
                                      {"instruction", f.place.disassembly},
                                      {"source", f.place.source},
                                      {"wave", f.place.wave},
                                      {"lane", f.place.lane},
                                      {"count", static_cast<int64_t>(f.count)}});
  }
  json["findings"] = std::move(list);
  if (!options.object.json) fmt::print("{} findings\n", launch.findings.size());
}

}  // namespace

int run_kernel(const RunOptions& options) {
  auto prepared = prepare(options);
  if (!prepared) return usage(prepared.error());
  Launch& launch = *prepared;
  auto wanted = plan_outputs(options, launch);
  if (!wanted) return usage(wanted.error());
  std::vector<std::vector<uint8_t>> inputs;
  if (!options.gpu.empty())
    for (const PlacedBuffer& b : launch.arguments.buffers)
      inputs.emplace_back(b.contents().begin(), b.contents().end());
  std::unique_ptr<Profile> profile;
  if (options.report || options.follow_approximate || !options.report_file.empty())
    profile = std::make_unique<Profile>(ProfileOptions{options.follow_approximate, true});
  run(launch, profile.get());
  const LaunchResult& r = launch.result;
  llvm::json::Object json{{"Kernel_Name", launch.kernel->name},
                          {"arch", std::string(launch.object.device->target().name)},
                          {"ok", r.ok},
                          {"wave_instructions", static_cast<int64_t>(r.wave_instructions)},
                          {"simulation_seconds", r.seconds}};
  if (!r.ok) json["fault"] = r.fault.to_string();
  if (!r.ok && !options.object.json) fmt::print(stderr, "crest-sim: {}\n", r.fault.to_string());
  if (!r.ok && r.fault.kind == FaultKind::kLaunch) return kUsage;
  show_findings(options, launch, json);
  if (r.ok && !options.object.json)
    fmt::print("{}\n{} wave instructions, {:.3f} s of simulation\n", header_line(launch), r.wave_instructions,
               r.seconds);
  bool good = r.ok && launch.findings.empty();
  if (r.ok) {
    auto delivered = deliver(options, *wanted, json);
    if (!delivered) return usage(delivered.error());
    good = good && *delivered;
  }
  if (profile && options.report_file.empty() && !options.object.json) fmt::print("\n{}", profile->report().to_text());
  if (profile && !options.report_file.empty()) {
    std::string text =
        options.report_file.ends_with(".json") ? profile->report().to_json(true) : profile->report().to_text();
    std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    if (auto s = write_file(options.report_file, bytes); !s) return usage(s.error());
  }
  if (profile && options.object.json) {
    auto parsed = llvm::json::parse(profile->report().to_json());
    if (parsed) json["report"] = std::move(*parsed);
  }
  if (options.object.json) fmt::print("{}\n", json_text(std::move(json)));
  if (r.ok && !options.gpu.empty()) {
    auto equal = compare_with_gpu(options.gpu, launch, inputs, options.atol, options.rtol);
    if (!equal) return usage(equal.error());
    good = good && *equal;
  }
  return good ? kOk : kFailed;
}

int disassemble(const RunOptions& options, bool annotate) {
  if (!annotate) {
    auto object = load_object(options.object);
    if (!object) return usage(object.error());
    const CodeObject& code = object->module->object();
    std::vector<const Kernel*> kernels;
    if (options.kernel.empty()) {
      for (const Kernel& k : code.kernels()) kernels.push_back(&k);
    } else {
      auto kernel = find_kernel(code, options.kernel);
      if (!kernel) return usage(kernel.error());
      kernels.push_back(*kernel);
    }
    for (const Kernel* k : kernels) {
      fmt::print("{}{}:\n", k == kernels[0] ? "" : "\n", k->name);
      listing(code.code(k->wave_size), code, *k, nullptr);
    }
    return kOk;
  }
  auto prepared = prepare(options);
  if (!prepared) return usage(prepared.error());
  Profile profile;
  run(*prepared, &profile);
  const LaunchResult& r = prepared->result;
  if (!r.ok) fmt::print(stderr, "crest-sim: {}\n", r.fault.to_string());
  if (!r.ok && r.fault.kind == FaultKind::kLaunch) return kUsage;
  ProfileReport report = profile.report();
  if (options.object.json) {
    fmt::print("{}", report.to_json(true));
    return r.ok ? kOk : kFailed;
  }
  const Kernel& k = *prepared->kernel;
  fmt::print("{}\n", header_line(*prepared));
  const CodeObject& object = prepared->object.module->object();
  listing(object.code(k.wave_size), object, k, report.kernels.empty() ? nullptr : &report.kernels[0]);
  return r.ok ? kOk : kFailed;
}

}  // namespace crest_sim::cli
