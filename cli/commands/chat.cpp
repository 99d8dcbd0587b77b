#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/read_file.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/commands/loaded_run.h"
#include "cli/commands/prompts.h"
#include "train/models/conversation.h"

namespace onestep::cli {
namespace {

struct Options {
  std::string run, checkpoint = "last", weights = "float32", stop_ids;
  std::optional<std::string> chat_template;
  bool quiet = false, ignore_eos = false;
  int64_t seed = 0;
  ConversationOptions conversation = {.generate = {.tokens = 500}};
};

volatile std::sig_atomic_t answer_interrupted = 0;

/// While it lives the first SIGINT is remembered; a second one ends the program.
class AnswerInterrupt {
 public:
  AnswerInterrupt() {
    answer_interrupted = 0;
    before_ = std::signal(SIGINT, [](int) {
      answer_interrupted = 1;
      std::signal(SIGINT, SIG_DFL);
    });
  }
  ~AnswerInterrupt() { std::signal(SIGINT, before_); }
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;

 private:
  void (*before_)(int);
};

/// The next line of standard input that is not empty; none at its end. On a terminal a `> ` asks for it.
std::optional<std::string> next_message(bool asks) {
  for (std::string line;;) {
    if (asks) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return line;
  }
}

/// Prints an answer as it comes, without the white space before it; returns whether messages were forgotten for it.
bool answer(Conversation& conversation, const std::string& message) {
  const AnswerInterrupt interrupt;
  bool begun = false;
  const auto show = [&](const std::string& piece) {
    const size_t first = begun ? 0 : piece.find_first_not_of(" \t\n");
    if (first == std::string::npos) return;
    begun = true;
    std::cout << piece.substr(first) << std::flush;
  };
  const Answer said = conversation.say(message, show, [] { return answer_interrupted != 0; });
  std::cout << std::endl;
  return said.forgotten > 0;
}

ChatTemplate parse_template(const std::string& name_or_text) {
  try {
    return make_chat_template(name_or_text);
  } catch (const ConfigError& error) {
    fail<ConfigError>("--template: ", error.what());
  }
}

int run_chat(Options& options) {
  check_sampling(options.conversation.generate.sampling);
  if (options.chat_template) options.conversation.chat = parse_template(*options.chat_template);
  const std::unique_ptr<LoadedRun> run = load_run(options.run, options.checkpoint, options.weights);
  stop_at_ids(*run, options.stop_ids, options.conversation.stops);
  if (!options.ignore_eos) stop_at_eos(*run, options.conversation.stops);
  ONESTEP_CHECK(ConfigError, run->tokenizer != nullptr, "chat: ", options.run, " was trained on ids and has no tokenizer");
  const std::string& learned = run->config.data.chat_template;
  if (!options.chat_template)
    options.conversation.chat = make_chat_template(learned.empty() ? find_chat_template(*run->tokenizer) : learned);
  Generator generator(options.seed);
  std::optional<Conversation> conversation;
  try {
    conversation.emplace(*run->model, *run->tokenizer, options.conversation, generator);
  } catch (const ConfigError& error) {
    fail<ConfigError>("--template or --system: ", error.what());
  }
  read_some(STDIN_FILENO, "standard input", nullptr, 0);  // says what std::cin takes for its end
  const bool asks = ::isatty(STDIN_FILENO) == 1 && !options.quiet;
  if (asks) std::cerr << "One message a line. Ctrl-C stops an answer, Ctrl-D ends the conversation.\n";
  bool silent = options.quiet;
  while (const auto message = next_message(asks)) {
    try {
      const bool forgot = answer(*conversation, *message);
      if (forgot && !silent)
        std::cerr << "the context of " << run->model->context_length()
                  << " tokens is full: from now on the oldest messages are forgotten\n";
      silent |= forgot;
    } catch (const DivergedError& error) {
      std::cerr << "onestep: " << options.run << ": " << error.what() << '\n';
      return 1;
    } catch (const ConfigError& error) {  // a symbol that the vocabulary does not have
      if (!asks) fail<ConfigError>("the message ", quote(*message), ": ", error.what());
      std::cerr << "onestep: " << escaped(error.what()) << '\n';
    }
  }
  if (asks) std::cerr << '\n';
  return 0;
}

}  // namespace

void add_chat(Command& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("chat", "Talk with a trained run");
  ConversationOptions& conversation = options->conversation;
  command->add_option("RUN", options->run, "The run folder")->required();
  command
      ->add_option("--template", options->chat_template,
                   "How messages are written: plain, chatml, llama3, none, or a text with {user} and {answer} (default: that "
                   "with which the run learned, or whose marks are tokens of it, else plain)")
      ->type_name("TEMPLATE");
  command->add_option("--system", conversation.system, "What the model is told before the first message")->type_name("TEXT");
  command->add_whole_number("--tokens", conversation.generate.tokens, "Tokens of an answer at most", 1, int64_t{1} << 40);
  add_sampling_options(*command, conversation.generate.sampling, options->seed);
  command->add_repeatable_option("--stop", conversation.stops.strings, "End an answer before this text, too")
      ->type_name("TEXT")
      ->check(not_empty("a text"));
  add_stop_ids(*command, options->stop_ids, "End an answer at any of these tokens, too: 1,2,3");
  add_ignore_eos(*command, options->ignore_eos);
  command->add_checkpoint_option(options->checkpoint);
  command->add_weights_option(options->weights);
  command->add_flag("--quiet", options->quiet, "Nothing on stderr but errors");
  command->footer(
      "Each line of standard input is a message; the answers go to standard output as they come. Ctrl-C stops an answer; what "
      "was said of\nit stays in the conversation. When the context is full, the oldest messages are forgotten.\n"
      "plain is \"User: {user}\\nAssistant:{answer}\\n\"; --template takes such a text, in which \\n is a new line. An answer "
      "ends before what follows\n{answer}, or before the next {user} where that is white space.");
  command->callback([options, &action] { action = [options] { return run_chat(*options); }; });
}

}  // namespace onestep::cli
