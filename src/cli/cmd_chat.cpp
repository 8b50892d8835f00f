#include "cli/app.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/line_editor.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {
namespace {

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> system;
  bool no_think = false;
};

constexpr std::string_view kHelp =
    "/help            this list\n"
    "/system TEXT     set the system message; without TEXT: none\n"
    "/set NAME VALUE  change a setting; without NAME: show them\n"
    "/clear           forget the conversation, keep the system message\n"
    "/regen           answer the last message again\n"
    "/save FILE       keep the conversation in a file\n"
    "/load FILE       go on with it\n"
    "/stats           tokens, speed and memory\n"
    "/exit            leave (or Ctrl-D)\n"
    "A message that starts with \"\"\" goes on until a line that ends with \"\"\".\n"
    "Ctrl-C stops the answer; twice, the program.\n";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

void report(const Status& status) {
  if (!status.ok()) print_error(status.error().message);
}

/// False: leave.
bool run_command(ChatSession& chat, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space), rest = space == std::string::npos ? std::string() : trimmed(line.substr(space));
  if (name == "/exit" || name == "/quit" || name == "/bye") return false;
  if (name == "/help" || name == "/?") {
    print_stderr(kHelp);
  } else if (name == "/system") {
    chat.set_system(rest);
  } else if (name == "/set") {
    const size_t gap = rest.find(' ');
    const auto shown = chat.set(rest.substr(0, gap), gap == std::string::npos ? std::string() : trimmed(rest.substr(gap)));
    if (shown.ok()) {
      print_stderr(*shown);
    } else {
      print_error(shown.error().message);
    }
  } else if (name == "/clear") {
    chat.clear();
  } else if (name == "/regen") {
    report(chat.regenerate());
  } else if (name == "/save" || name == "/load") {
    if (rest.empty()) {
      print_error(name + " needs a file name");
    } else {
      report(name == "/save" ? chat.save(rest) : chat.load(rest));
    }
  } else if (name == "/stats") {
    print_stderr(chat.statistics());
  } else {
    print_error(fmt::format("there is no command {}; /help lists them", name));
  }
  return true;
}

/// The rest of a """ message.
std::string read_block(LineEditor& editor, std::string first) {
  std::string text = first.substr(3);
  while (true) {
    if (text.size() >= 3 && text.ends_with("\"\"\"")) return text.substr(0, text.size() - 3);
    const auto line = editor.read("... ");
    if (!line) return text;
    text += "\n" + *line;
  }
}

Result<int> chat(const ChatOptions& o) {
  const InterruptGuard guard;
  CREST_TRY(const auto engine, load_engine(o.model));
  CREST_TRY(const auto session, ChatSession::create(*engine, o.sampling, o.system, o.no_think));
  LineEditor editor;
  bool warned = false;
  if (editor.interactive()) print_stderr("Type a message, or /help.\n");
  while (true) {
    const auto line = editor.read("> ");
    if (!line) {
      if (!InterruptGuard::interrupted()) break;
      if (!editor.interactive() || warned || InterruptGuard::terminated()) return kExitInterrupted;
      InterruptGuard::clear();
      print_stderr("\n(Ctrl-C again, Ctrl-D or /exit leaves)\n");
      warned = true;
      continue;
    }
    warned = false;
    const std::string text = line->starts_with("\"\"\"") ? read_block(editor, *line) : *line;
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    if (text.starts_with('/') && text.find('\n') == std::string::npos) {
      if (!run_command(*session, text)) break;
    } else {
      report(session->say(text));
    }
    if (InterruptGuard::interrupted() && (!editor.interactive() || InterruptGuard::terminated()))
      return kExitInterrupted;
    InterruptGuard::clear();
    if (!flush_stdout()) return kExitError;
  }
  if (editor.interactive()) print_stderr("\n");
  return kExitOk;
}

}  // namespace

void add_chat_command(Application& application) {
  auto o = std::make_shared<ChatOptions>();
  Command command = application.add_command("chat", "Talk with a model", {"crest chat -m model.gguf", "crest chat -m model.gguf --system 'Answer briefly.' --temp 0.3"},
                                            [o] { return chat(*o); });
  add_model_options(command, o->model);
  command.option("--system", o->system, "TEXT", "System message");
  command.flag("--no-think", o->no_think, "Ask the template for answers without reasoning");
  add_sampling_options(command, o->sampling);
}

}  // namespace crest::cli
