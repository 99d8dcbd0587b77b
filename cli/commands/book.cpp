#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "base/new_files.h"
#include "base/suggest.h"
#include "cli/commands/commands.h"
#include "learn/book/chapter.h"
#include "learn/book/pictures.h"

namespace onestep::cli {
namespace {

struct BookOptions {
  std::string section, dialect, svg;
  bool list = false, check = false;
};

/// One of the names, or none for both.
std::optional<RngDialect> parse_dialect(const std::string& name) {
  if (name.empty()) return {};
  return name == book::name(RngDialect::torch) ? RngDialect::torch : RngDialect::torch_mkl;
}

std::vector<book::Section> chosen_sections(const std::string& number) {
  std::vector<book::Section> chosen = book::find_sections(number);
  if (!chosen.empty()) return chosen;
  std::vector<std::string> numbers;
  for (const book::Section& section : book::sections()) numbers.push_back(section.number);
  const std::string near = nearest(number, numbers);
  fail<ConfigError>("book: there is no section ", number, did_you_mean(near, " (onestep book --list shows them)"));
}

int list(const std::vector<book::Section>& chosen) {
  for (const book::Section& section : chosen) std::cout << section.number << "  " << section.title << '\n';
  return 0;
}

/// Writes the pictures into `folder`, which is made if need be: all of them or none.
int write_pictures(const std::filesystem::path& folder) {
  const std::vector<book::Picture> pictures = book::pictures();
  NewFiles files(folder);
  for (const book::Picture& picture : pictures) files.add(picture.name + ".svg", picture.svg);
  files.finish();
  for (const book::Picture& picture : pictures) std::cout << (folder / (picture.name + ".svg")).string() << '\n';
  return 0;
}

int run(const BookOptions& options) {
  if (!options.svg.empty()) return write_pictures(options.svg);
  const std::optional<RngDialect> dialect = parse_dialect(options.dialect);
  const std::vector<book::Section> chosen = chosen_sections(options.section);
  if (options.list) return list(chosen);
  const std::vector<book::Result> results = book::compute(chosen, dialect);
  if (options.check) return book::check(std::cout, results) ? 0 : 1;
  book::print(std::cout, results);
  return 0;
}

}  // namespace

void add_book(Command& app, Action& action) {
  auto* command =
      app.add_subcommand("book", "Print the results of the book's attention chapter, each with the line that computed it");
  const auto options = std::make_shared<BookOptions>();
  auto* section =
      command->add_option("SECTION", options->section, "Only this section and those below it, such as 3.5 (default: all)")
          ->check(not_empty("the number of a section"));
  auto* list = command->add_flag("--list", options->list, "List the sections");
  auto* dialect =
      command
          ->add_option("--dialect", options->dialect,
                       "Dropout masks: torch (PyTorch 2.7 and later) or torch-mkl (older, on Intel CPUs; default: both)")
          ->type_name("torch|torch-mkl")
          ->check(one_of({"torch", "torch-mkl"}))
          ->excludes(list);
  auto* check =
      command->add_flag("--check", options->check, "Compare with the printed digits; exit status 1 at the first that differs");
  check->excludes(list);
  auto* svg =
      command->add_option("--svg", options->svg, "Write the pictures of docs/attention.md into a folder")->type_name("FOLDER");
  for (auto* other : {section, list, dialect, check}) svg->excludes(other);
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace onestep::cli
