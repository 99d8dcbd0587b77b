#include <CLI/CLI.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/help.h"
#include "train/config/config.h"

namespace onestep::cli {
namespace {

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
.B 0
done
.TP
.B 1
a check failed, or training diverged
.TP
.B 2
bad input: one sentence on stderr says what and where
.TP
.B 130
interrupted after saving
.SH ENVIRONMENT
.TP
.B OMP_NUM_THREADS
threads to use where \-\-threads is not given. If neither is, the program uses the physical cores.
.TP
.B ONESTEP_ISA
forces an instruction set: generic, avx2 or avx512. Neither changes a bit of a result.
.TP
.B ONESTEP_CACHE, XDG_CACHE_HOME
tokens of texts are kept in $ONESTEP_CACHE, else in $XDG_CACHE_HOME/onestep, else in ~/.cache/onestep
.TP
.B NO_COLOR
if set, nothing is written in colour
.SH FILES
.TP
.I runs/NAME/config.json
the config of a run with every default written out
.TP
.I runs/NAME/metrics.jsonl
one JSON object a logged step: step, loss, lr, grad_norm, tokens_per_second, seconds, and on evaluation steps val_loss and
val_accuracy, of a classifier also val_f1
.TP
.I runs/NAME/checkpoints/step\-N/model.safetensors
the parameters under their PyTorch names
.TP
.I runs/NAME/report.html
a page about the run, to open in a browser
.SH EXAMPLES
.nf
onestep train configs/next_token.json
onestep train configs/text.json \-\-set data.path=FILE \-\-set model.num_heads=4 \-\-out runs/four_heads
onestep eval runs/four_heads
onestep tokenizer train FILE \-\-vocab\-size 4096 \-\-out bpe
onestep book 3.5
mpirun \-n 2 onestep train configs/next_token.json
.fi
.SH SEE ALSO
.BR mpirun (1),
.BR tensorboard (1),
.BR dot (1),
and the pages in the folder docs of the source: config.md has every key of the config file, formats.md every file of a run.
)";

/// Text as roff takes it: a backslash is printed, a dot or quote at the beginning of a line is no request.
std::string roff(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    line_begins = c == '\n';
  }
  return out;
}

/// `\-\-set KEY=VALUE`, or the name of an argument.
std::string option_head(const CLI::Option& option) {
  if (option.get_positional()) return "\\fI" + roff(option.get_name()) + "\\fR";
  std::string head;
  for (const std::string& name : option.get_snames()) head += "\\fB" + roff("-" + name) + "\\fR, ";
  head += "\\fB" + roff("--" + option.get_lnames().front()) + "\\fR";
  if (option.get_items_expected_max() > 0) head += " \\fI" + roff(option.get_type_name()) + "\\fR";
  return head;
}

void print_options(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() == "--help" && app.get_parent() != nullptr) continue;  // said once
    std::cout << ".TP\n" << option_head(*option) << '\n' << roff(HelpFormatter().make_option_desc(option)) << '\n';
  }
}

/// Paragraphs; each indented line is a line of its own, under the one before.
void print_text(const std::string& text) {
  std::istringstream lines(text);
  bool indented = false;
  for (std::string line; std::getline(lines, line);) {
    const bool was_indented = std::exchange(indented, line.starts_with("    "));
    if (indented != was_indented) std::cout << (indented ? ".RS 4\n" : ".RE\n");
    if (line.empty())
      std::cout << ".PP\n";
    else
      std::cout << (was_indented ? ".br\n" : "") << roff(indented ? line.substr(4) : line) << '\n';
  }
  if (indented) std::cout << ".RE\n";
}

/// A command's paragraph; those of its own subcommands follow.
void print_command(const CLI::App& command, const std::string& name) {
  const std::string usage = HelpFormatter().make_usage(&command, name);
  std::cout << ".SS " << roff(name) << "\n.B " << roff(usage.substr(usage.find(": ") + 2)) << ".PP\n";
  print_text(command.get_description() + '.');
  print_options(command);
  std::cout << ".PP\n";
  print_text(command.get_footer());
  for (const CLI::App* second : all_subcommands(command)) print_command(*second, name + ' ' + second->get_name());
}

int print_man(const CLI::App& app) {
  std::cout << ".TH ONESTEP 1 \"\" \"onestep " ONESTEP_VERSION "\" \"User Commands\"\n"
            << ".SH NAME\nonestep \\- train attention models and look inside\n"
            << ".SH SYNOPSIS\n\\fBonestep\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR ...] [\\fIARGUMENT\\fR ...]\n.SH DESCRIPTION\n";
  print_text(app.get_description());
  std::cout << ".SH OPTIONS\n";
  print_options(app);
  std::cout << ".SH COMMANDS\n";
  for (const CLI::App* command : all_subcommands(app)) print_command(*command, "onestep " + command->get_name());
  std::cout << ".SH CONFIG FILE\n";
  print_text(train::config_help());
  std::cout << kEnd;
  return 0;
}

}  // namespace

void add_man(Command& app, Action& action) {
  app.add_subcommand("man", "Print the manual page")->footer("Read it with: onestep man | man -l -")->callback([&app, &action] {
    action = [&app] { return print_man(app.app()); };
  });
}

}  // namespace onestep::cli
