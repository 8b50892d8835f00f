// crest-sim: runs, checks and lists AMD code objects on the CPU.
#include <CLI/CLI.hpp>

#include "cli/commands.h"

using namespace crest_sim::cli;

namespace {

void add_object(CLI::App& command, ObjectOptions& o) {
  command.add_option("object", o.file, "Code object (.co), or an offload bundle, compressed or not")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("--arch", o.arch,
                     "Architecture, if the file has code for several: gfx942, gfx950, gfx1100, gfx1151");
  command.add_flag("--json", o.json, "Print JSON");
}

void add_launch(CLI::App& command, RunOptions& o) {
  command.add_option("--grid", o.grid, "Workgroups: X, X,Y or X,Y,Z")->capture_default_str();
  command.add_option("--block", o.block, "Work-items of a workgroup: X, X,Y or X,Y,Z")->capture_default_str();
  command.add_option("--arg", o.arguments,
                     "The next argument:\n"
                     "  i32=5, f32=0.5           a value\n"
                     "  f32:1000:random          a buffer: TYPE:COUNT:FILL\n"
                     "  f16:@in.npy, @in.npy     a buffer from a file (.npy or raw)\n"
                     "  same:0                   the buffer of argument 0 again\n"
                     "  null                     a null pointer\n"
                     "  pad:12                   unused bytes (kernels without metadata)\n"
                     "Types: " +
                         type_names() +
                         "\n"
                         "Fills: zeros, ones, const:V, iota[:START[:STEP]], random[:LOW:HIGH], normal[:MEAN:SD]");
  command.add_option("--kernarg", o.kernarg, "File with the whole argument segment, instead of --arg")
      ->check(CLI::ExistingFile);
  command.add_option("--lds", o.lds_bytes, "Bytes of dynamic LDS")->capture_default_str();
  command.add_option("--seed", o.seed, "Of random fills; argument N uses SEED + N")->capture_default_str();
  command.add_option("--threads", o.threads, "Host threads; 0: one per core. Results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command.add_flag("--strict-matrix", o.strict_matrix, "Matrix arithmetic by the published bit-accurate rules");
  command
      .add_option("--max-instructions", o.max_instructions,
                  "Wave instructions of a workgroup after which the launch fails as hanging; 0: no limit")
      ->capture_default_str();
}

void add_results(CLI::App& command, RunOptions& options) {
  command.add_option("--output", options.outputs, "ARGUMENT=FILE: write a buffer afterwards (.npy, otherwise raw)");
  command.add_option("--print", options.prints, "ARGUMENT[:COUNT]: print the first elements of a buffer");
  command
      .add_option("--checks", options.checks,
                  "Comma-separated: uninitialised, wait, lds-race, global-race, barrier, alignment, hazard, "
                  "buffer-bounds; all, standard (all but buffer-bounds), none; -NAME switches one off. A buffer "
                  "without a fill counts as not written")
      ->capture_default_str();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs, checks and lists AMD GPU code objects on the CPU", "crest-sim"};
  app.require_subcommand(1);
  app.set_version_flag("--version", CREST_SIM_VERSION);
  app.footer(
      "Examples:\n"
      "  crest-sim list k.co\n"
      "  crest-sim run k.co vadd --grid 4 --block 256 --arg f32:1000:iota --arg f32:1000:random \\\n"
      "      --arg f32:1000:zeros --arg i32=1000 --print 2:8 --output 2=c.npy\n"
      "  crest-sim check k.co vadd --grid 4 --block 256 --arg ...\n"
      "  crest-sim disasm k.co vadd --grid 4 --block 256 --arg ...\n"
      "Exit codes: 0 all is well; 1 the kernel faulted, a check found something or a result is wrong; 2 wrong usage or "
      "input; 130 interrupted.");

  ObjectOptions list_options;
  CLI::App* list = app.add_subcommand("list", "Kernels of an object, their resources and arguments");
  add_object(*list, list_options);

  RunOptions options;
  CLI::App* run = app.add_subcommand("run", "Launch a kernel with generated or file buffers");
  add_object(*run, options.object);
  run->add_option("kernel", options.kernel, "Its name, or a part of it that no other kernel has")->required();
  add_launch(*run, options);
  add_results(*run, options);
  run->add_option("--expect", options.expectations,
                  "ARGUMENT=FILE: compare a buffer with a file; exit code 1 if it differs");
  run->add_option("--atol", options.atol, "Absolute tolerance of --expect and --gpu")->capture_default_str();
  run->add_option("--rtol", options.rtol, "Relative tolerance of --expect and --gpu")->capture_default_str();
  run->add_flag("--report", options.report, "Print what was executed: fidelity by mnemonic, coverage");
  run->add_option("--report-file", options.report_file, "Write that report to a file instead (.json: as JSON)");
  run->add_flag("--follow-approximate", options.follow_approximate,
                "Also report whether approximate results reached an address or a branch (slow)");
  run->add_option("--gpu", options.gpu,
                  "Repeat the launch on a real GPU through this HIP library (libamdhip64.so) and compare the buffers");

  RunOptions checking;
  checking.checks = "standard";
  CLI::App* check =
      app.add_subcommand("check", "Launch a kernel and look for races, missing waits, unwritten values ...");
  add_object(*check, checking.object);
  check->add_option("kernel", checking.kernel, "Its name, or a part of it that no other kernel has")->required();
  add_launch(*check, checking);
  add_results(*check, checking);

  RunOptions listing;
  CLI::App* disasm = app.add_subcommand("disasm", "Listing; with a launch, annotated with how often each line ran");
  add_object(*disasm, listing.object);
  disasm->add_option("kernel", listing.kernel, "Its name, or a part of it that no other kernel has");
  add_launch(*disasm, listing);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    return code == 0 ? kOk : kUsage;
  }
  if (*list) return list_kernels(list_options);
  if (*run) return run_kernel(options);
  if (*check) return run_kernel(checking);
  bool annotate =
      disasm->count("--arg") || disasm->count("--grid") || disasm->count("--block") || disasm->count("--kernarg");
  if (annotate && listing.kernel.empty()) {
    std::cerr << "crest-sim: name the kernel to launch\n";
    return kUsage;
  }
  return disassemble(listing, annotate);
}
