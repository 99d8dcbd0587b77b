#pragma once
// The commands of the program, one file each. A command registers its arguments; nothing runs while parsing.
//
// To add one: write cli/commands/NAME.cpp with `add_NAME`, declare it here and list it in cli/main.cpp.

#include <functional>

#include "cli/arguments.h"

namespace onestep::train {}

namespace onestep::cli {

using namespace train;  // what commands are for

/// Runs once the whole command line is parsed; the result is the exit status (0 done, 1 a check failed or training
/// diverged, 130 interrupted). Bad input is a thrown Error, which becomes one sentence and exit status 2.
using Action = std::function<int()>;

/// Each adds its subcommand to `app`; when it is the one called, it puts its work into `action`.
void add_train(Command& app, Action& action);
void add_sweep(Command& app, Action& action);
void add_eval(Command& app, Action& action);
void add_generate(Command& app, Action& action);
void add_classify(Command& app, Action& action);
void add_chat(Command& app, Action& action);
void add_import(Command& app, Action& action);
void add_export(Command& app, Action& action);
void add_inspect(Command& app, Action& action);
void add_graph(Command& app, Action& action);
void add_report(Command& app, Action& action);
void add_compare(Command& app, Action& action);
void add_play(Command& app, Action& action);
void add_export_csv(Command& app, Action& action);
void add_schema(Command& app, Action& action);
void add_completion(Command& app, Action& action);
void add_man(Command& app, Action& action);
void add_help(Command& app, Action& action);
void add_version(Command& app, Action& action);
void add_gradcheck(Command& app, Action& action);
void add_book(Command& app, Action& action);
void add_tokenizer(Command& app, Action& action);
void add_bench(Command& app, Action& action);

}  // namespace onestep::cli
