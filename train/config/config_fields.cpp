#include "train/config/config_fields.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "train/config/field_rows.h"

namespace onestep::train {
namespace {

std::vector<Field> top_fields() {
  FieldRows rows;
  rows.row("seed",
           "seed of the run's generator: parameters, batches and dropout follow from it (its low 32 bits count, as in PyTorch)")
      .value = [](Config& config) -> FieldValue { return &config.seed; };
  return rows.all;
}

std::vector<Field> data_fields() {
  using D = DataConfig;
  constexpr auto in = &Config::data;
  constexpr std::string_view kind = "data.kind", task = "data.task";
  FieldRows rows;
  rows.add<in, &D::kind>(kind,
                         "what is learned: ids written in this file, a text, sequences generated for a task, or none: an "
                         "imported model that has not been trained here. instructions: conversations, whose answers are "
                         "learned; classification: texts with labels, for a head on the last token")
      .required_if(kind, {"none"});  // what an untouched config has
  rows.add<in, &D::task>(task,
                         "copy, reverse, sort: random symbols, then the same ones copied, reversed or sorted; "
                         "modular_addition: a, b, =, a + b mod modulus. Loss and accuracy count the second part only")
      .applies_if(kind, {"task"})
      .required_if(kind, {"task"});
  rows.add<in, &D::tokens>("data.tokens", "the token ids")
      .range(0, kMaxVocab - 1)
      .applies_if(kind, {"tokens"})
      .required_if(kind, {"tokens"});
  rows.add<in, &D::vocab_size>("data.vocab_size", "number of different ids: 0 to vocab_size - 1")
      .range(1, kMaxVocab)
      .applies_if(kind, {"tokens"})
      .applies_if(task, {"copy", "reverse", "sort"})
      .required_if(kind, {"tokens"});
  rows.add<in, &D::window_starts>(
          "data.window_starts",
          "where the windows of the one batch begin that every step uses; without it each step draws its windows at random")
      .at_least(0)
      .applies_if(kind, {"tokens"})
      .may_be_absent();
  rows.add<in, &D::ignore_index>("data.ignore_index",
                                 "id that counts in neither loss nor accuracy where it is the target, as of padding; a step in "
                                 "which no target counts is drawn again; -100 is none")
      .range(-100, kMaxVocab - 1)
      .applies_if(kind, {"tokens"});
  rows.add<in, &D::path>("data.path",
                         "a UTF-8 text file, relative to the working directory; of instructions JSON lines (.jsonl), of "
                         "classification a .csv, .tsv or .jsonl file")
      .applies_if(kind, {"text", "instructions", "classification"})
      .may_be_absent()
      .changeable();
  rows.add<in, &D::paths>("data.paths",
                          "several text files in this order, each once; `*`, `?` and `[...]` match names of files, sorted, "
                          "unless a file has that very name")
      .applies_if(kind, {"text", "instructions", "classification"})
      .may_be_absent()
      .changeable();
  rows.add<in, &D::text>("data.text", "the text itself").applies_if(kind, {"text"}).may_be_absent();
  rows.add<in, &D::val_path>("data.val_path",
                             "a file like data.path that is evaluated; none of the others is kept from training then")
      .applies_if(kind, {"instructions", "classification"})
      .may_be_absent()
      .changeable();
  rows.add<in, &D::chat_template>("data.template",
                                  "how conversations are written: plain, chatml, llama3, none, or a text with {user} and "
                                  "{answer}; without it that whose marks are tokens of the tokenizer, else plain")
      .applies_if(kind, {"instructions"})
      .may_be_absent();
  rows.add<in, &D::tokenizer>("data.tokenizer",
                              "what a token is: a Unicode code point, a byte (256 ids), a word (punctuation stands alone), or "
                              "a piece of GPT-2's byte-pair encoding")
      .applies_if(kind, {"text", "instructions", "classification"});
  rows.add<in, &D::tokenizer_path>("data.tokenizer_path",
                                   "folder with vocab.json and merges.txt (or encoder.json and vocab.bpe): GPT-2's, or one "
                                   "that `onestep tokenizer train` has written; or a run with such a tokenizer. Where a run "
                                   "continues, or starts from another, the vocabulary must be that of the run")
      .applies_if("data.tokenizer", {"bpe"})
      .required_if("data.tokenizer", {"bpe"})
      .changeable();
  rows.add<in, &D::text_column>("data.text_column",
                                "the column or key with the text; where this and label_column are numbers, columns are counted "
                                "from 1 and the file has no line with their names")
      .applies_if(kind, {"classification"});
  rows.add<in, &D::label_column>("data.label_column", "the column or key with the label").applies_if(kind, {"classification"});
  rows.add<in, &D::labels>("data.labels", "the labels in the order of their numbers; without it those of the data, sorted")
      .applies_if(kind, {"classification"})
      .may_be_absent();
  rows.add<in, &D::length>("data.length", "random symbols a sequence; it is 2 length long, a window 2 length - 1")
      .range(1, kMaxLength / 2)
      .applies_if(task, {"copy", "reverse", "sort"});
  rows.add<in, &D::modulus>("data.modulus", "numbers are 0 to modulus - 1; the id `modulus` is the equals sign")
      .range(2, kMaxWidth)
      .applies_if(task, {"modular_addition"});
  rows.add<in, &D::val_fraction>(
          "data.val_fraction",
          "share kept from training: the last tokens, or the sequences or examples that a fixed hash picks; with val_path 0")
      .from_to_below(0, 1)
      .defaults_by_kind(0.1, {{"tokens", 0}})
      .derived_by([](Config& c) {
        if (!c.data.val_path.empty()) c.data.val_fraction = 0;
      });
  return rows.all;
}

std::vector<Field> optimizer_fields() {
  using O = OptimizerConfig;
  constexpr auto in = &Config::optimizer;
  constexpr std::string_view kind = "optimizer.kind";
  FieldRows rows;
  rows.add<in, &O::kind>(kind, "the update rule; names, formulas and defaults are torch.optim's");
  rows.add<in, &O::lr>("optimizer.lr", "learning rate")
      .at_least(0)
      .defaults_by_kind(1e-3, {{"rmsprop", 1e-2}, {"adagrad", 1e-2}});
  rows.add<in, &O::betas>("optimizer.betas", "decay rates of the averages of the gradient and of its square")
      .from_to_below(0, 1)
      .applies_if(kind, {"adam", "adamw"});
  rows.add<in, &O::alpha>("optimizer.alpha", "decay rate of the average of the squared gradient")
      .range(0, 1)
      .applies_if(kind, {"rmsprop"});
  rows.add<in, &O::eps>("optimizer.eps", "added to the denominator")
      .at_least(0)
      .applies_if(kind, {"adam", "adamw", "rmsprop", "adagrad"})
      .defaults_by_kind(1e-8, {{"adagrad", 1e-10}});
  rows.add<in, &O::weight_decay>("optimizer.weight_decay", "decoupled from the gradient in adamw, added to it in the others")
      .at_least(0)
      .defaults_by_kind(0.01, {{"sgd", 0}, {"adam", 0}, {"rmsprop", 0}, {"adagrad", 0}});
  rows.add<in, &O::decay>("optimizer.decay",
                          "which parameters weight_decay applies to: all, or matrices (2 or more dimensions); auto is all for "
                          "model.kind attention")
      .derived_by([](Config& c) { c.optimizer.decay = c.model.kind == ModelKind::gpt ? Decay::matrices : Decay::all; });
  rows.add<in, &O::amsgrad>("optimizer.amsgrad", "divide by the largest average so far").applies_if(kind, {"adam", "adamw"});
  rows.add<in, &O::momentum>("optimizer.momentum", "share of the last update that is kept")
      .at_least(0)
      .applies_if(kind, {"sgd"});
  rows.add<in, &O::dampening>("optimizer.dampening", "share of the gradient kept out of the momentum")
      .applies_if(kind, {"sgd"});
  rows.add<in, &O::nesterov>("optimizer.nesterov", "Nesterov momentum; needs momentum above 0 and dampening 0")
      .applies_if(kind, {"sgd"});
  return rows.all;
}

std::vector<Field> schedule_fields() {
  using S = optim::ScheduleConfig;
  constexpr auto in = &Config::schedule;
  constexpr std::string_view kind = "schedule.kind";
  FieldRows rows;
  rows.add<in, &S::kind>(kind,
                         "the learning rate after the warm-up: constant is lr throughout; linear and cosine go down to min_lr "
                         "in a line or half a cosine; wsd (warm-up, stable, decay) stays at lr and goes down in a line at the "
                         "end; step multiplies by gamma every step_size steps");
  rows.add<in, &S::warmup_steps>("schedule.warmup_steps", "steps of linear rise to lr").range(0, kMaxSteps);
  rows.add<in, &S::decay_steps>("schedule.decay_steps",
                                "step from which on min_lr is used, also when a run continues for more steps than were planned")
      .range(1, kMaxSteps)
      .applies_if(kind, {"linear", "cosine", "wsd"})
      // A run too short for its warm-up takes the first steps of it, as one does whose decay_steps are given.
      .defaults_to("train.steps, or warmup_steps or decay_start where these are more", [](Config& c) {
        c.schedule.decay_steps = std::max({c.train.steps, c.schedule.warmup_steps, c.schedule.decay_start});
      });
  rows.add<in, &S::decay_start>("schedule.decay_start", "step at which the learning rate begins to fall")
      .range(0, kMaxSteps)
      .applies_if(kind, {"wsd"})
      .defaults_to("nine tenths of decay_steps, or the end of the warm-up", [](Config& c) {
        const int64_t end = c.schedule.decay_steps;
        c.schedule.decay_start = std::max(c.schedule.warmup_steps, end - end / 10);
      });
  rows.add<in, &S::min_lr>("schedule.min_lr", "learning rate at the end")
      .at_least(0)
      .applies_if(kind, {"linear", "cosine", "wsd"});
  rows.add<in, &S::step_size>("schedule.step_size", "steps between two falls").range(1, kMaxSteps).applies_if(kind, {"step"});
  rows.add<in, &S::gamma>("schedule.gamma", "factor of each fall").at_least(0).applies_if(kind, {"step"});
  return rows.all;
}

std::vector<Field> train_fields() {
  using T = TrainConfig;
  constexpr auto in = &Config::train;
  FieldRows rows;
  rows.add<in, &T::steps>("train.steps", "parameter updates").range(1, kMaxSteps).changeable();
  rows.add<in, &T::batch_size>("train.batch_size", "sequences a micro-batch")
      .range(1, kMaxLength)
      .defaults_to("12, or the number of window_starts", [](Config& c) {
        const auto windows = static_cast<int64_t>(c.data.window_starts.size());
        c.train.batch_size = windows > 0 ? windows : 12;
      });
  rows.add<in, &T::grad_accumulation>("train.grad_accumulation",
                                      "micro-batches an update; their losses are averaged over all tokens")
      .range(1, kMaxLength);
  rows.add<in, &T::grad_clip>("train.grad_clip", "largest norm of all gradients together; 0 is no clipping").at_least(0);
  rows.add<in, &T::dtype>("train.dtype",
                          "element type of parameters and arithmetic; float64 starts from the float32 parameters")
      .one_of({"float32", "float64"});
  rows.add<in, &T::precision>(
          "train.precision",
          "bf16: products round their operands to bfloat16, sum in float32 and give bfloat16, which halves the memory of "
          "activations; parameters, gradients, optimizer, norms and losses stay float32, and checkpoints. bf16_amx: the same "
          "with "
          "sums in the order of AMX, several times as fast on a CPU that has it, on others slower, with the same bits")
      .changeable();
  rows.add<in, &T::early_stop_patience>(
          "train.early_stop_patience",
          "evaluations without a better validation loss after which the run ends; 0 is never. Needs eval_every")
      .range(0, kMaxSteps)
      .changeable();
  rows.add<in, &T::recompute>("train.recompute",
                              "whether each block of a gpt keeps only its input for the backward pass, which computes the rest "
                              "again: the same bits, less memory, about a third more time")
      .changeable();
  rows.add<in, &T::anomaly>("train.anomaly",
                            "when the loss or the gradient norm is not finite, repeat the step with every op checked and name "
                            "the first op and module that is to blame")
      .changeable();
  rows.add<in, &T::init_from>("train.init_from",
                              "a run, trained or imported, whose newest checkpoint gives the parameters to start from; the "
                              "model section must be that of the run, dropout and with rope context_length apart, and a text "
                              "is read with its tokenizer: data.tokenizer may be left out")
      .may_be_absent();
  rows.add<in, &T::freeze>("train.freeze",
                           "names of parameters that are not trained (`onestep inspect RUN` lists them), in which * stands for "
                           "any characters and ? for one: they have no gradient and no state of the optimizer, are neither "
                           "decayed nor clipped, and are stored once in RUN/frozen.safetensors")
      .may_be_absent();
  rows.add<in, &T::eval_every>("train.eval_every", "steps between evaluations; 0 is at the end only")
      .range(0, kMaxSteps)
      .changeable();
  rows.add<in, &T::eval_batches>("train.eval_batches", "batches an evaluation").range(1, kMaxLength).changeable();
  rows.add<in, &T::sample_every>("train.sample_every",
                                 "steps between samples of what the model writes, which go to stderr and RUN/samples.jsonl, as "
                                 "one does at the end; 0 is never")
      .range(0, kMaxSteps)
      .changeable();
  rows.add<in, &T::histogram_every>("train.histogram_every",
                                    "steps between histograms of every parameter and its gradient, which go to "
                                    "RUN/histograms.jsonl and the report, as those of the last step do; 0 is never")
      .range(0, kMaxSteps)
      .changeable();
  rows.add<in, &T::log_every>("train.log_every",
                              "steps between lines of metrics.jsonl, beside the first step and the evaluations")
      .range(1, kMaxSteps)
      .changeable();
  rows.add<in, &T::checkpoint_every>("train.checkpoint_every",
                                     "steps between checkpoints; 0 is at the end and after the best evaluations only")
      .range(0, kMaxSteps)
      .changeable();
  rows.add<in, &T::tensorboard>(
          "train.tensorboard",
          "whether the metrics, and with an evaluation a sample of what the model writes, also go to RUN/tensorboard")
      .changeable();
  rows.add<in, &T::keep_checkpoints>("train.keep_checkpoints",
                                     "newest checkpoints that are kept, beside the best by validation loss")
      .range(1, kMaxLength)
      .changeable();
  return rows.all;
}

std::vector<Field> distributed_fields() {
  using D = DistributedConfig;
  constexpr auto in = &Config::distributed;
  FieldRows rows;
  rows.add<in, &D::reduce>(
          "distributed.reduce",
          "exact adds the gradients of all micro-batches in their order, so that the number of ranks changes no bit; allreduce "
          "sends only the sum of each rank's own, which is faster and depends on the number of ranks")
      .changeable();
  rows.add<in, &D::bucket_mb>("distributed.bucket_mb", "MiB of gradients that travel at a time").range(1, 1024).changeable();
  rows.add<in, &D::timeout>("distributed.timeout", "seconds without an answer after which a rank is taken to hang")
      .range(0.1, 1e6)
      .changeable();
  return rows.all;
}

}  // namespace

const std::vector<Field>& config_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all;
    for (auto section :
         {top_fields, model_fields, data_fields, optimizer_fields, schedule_fields, train_fields, distributed_fields}) {
      for (Field& row : section()) all.push_back(std::move(row));
    }
    return all;
  }();
  return fields;
}

const std::vector<std::string>& config_sections() {
  static const std::vector<std::string> sections{"model",    "model.lora", "data",       "optimizer",
                                                 "schedule", "train",      "distributed"};
  return sections;
}

std::string section_pointer(const std::string& section) {
  std::string pointer = section.empty() ? "" : "/" + section;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

std::string parent_section(const std::string& section) {
  const size_t dot = section.rfind('.');
  return dot == std::string::npos ? "" : section.substr(0, dot);
}

const Field* find_field(const std::string& path) {
  static const std::map<std::string_view, const Field*> by_path = [] {
    std::map<std::string_view, const Field*> all;
    for (const Field& field : config_fields()) all.emplace(field.path, &field);
    return all;
  }();
  const auto found = by_path.find(path);
  return found == by_path.end() ? nullptr : found->second;
}

Field& Field::one_of(std::span<const std::string_view> values) {
  choices.assign(values.begin(), values.end());
  return *this;
}
Field& Field::applies_if(std::string_view selector, Names values) {
  when.push_back({std::string(selector), {values.begin(), values.end()}});
  return *this;
}
Field& Field::required_if(std::string_view selector, Names values) {
  required.push_back({std::string(selector), {values.begin(), values.end()}});
  return *this;
}
Field& Field::defaults_by_kind(double others, std::initializer_list<std::pair<std::string_view, double>> kinds) {
  usual = others;
  defaults.assign(kinds.begin(), kinds.end());
  return *this;
}
Field& Field::defaults_to(std::string_view words, void (*set)(Config&)) {
  derived = words;
  derive = set;
  return *this;
}
Field& Field::only_beside(std::string_view number) {
  beside = number;
  return *this;
}
Field& Field::elsewhere_only(std::string_view json) {
  neutral = json;
  return *this;
}

Field& FieldRows::row(std::string_view path, std::string_view doc) {
  Field& row = all.emplace_back();
  row.path = path;
  row.doc = doc;
  return row;
}

std::string Field::section() const { return parent_section(path); }

std::string Field::key() const { return path.substr(path.rfind('.') + 1); }

std::string Field::pointer() const { return section_pointer(path); }

FieldValue value_of(const Field& field, const Config& config) {
  return field.value(const_cast<Config&>(config));  // one accessor a row serves reading and writing
}

FieldValue default_value(const Field& field) {
  static const Config untouched;
  return value_of(field, untouched);
}

bool is_untouched(const Field& field, const Config& config) {
  return to_json(value_of(field, config)) == to_json(default_value(field));
}

std::string_view chosen(const FieldValue& value) {
  const auto& choice = std::get<Choice>(value);
  return choice.names[*choice.value];
}

bool applies(const Field& field, const Config& config) {
  const bool beside = field.beside.empty() || *std::get<int64_t*>(value_of(*find_field(field.beside), config)) > 0;
  return beside && holds(field.when, config);
}

bool holds(const std::vector<When>& conditions, const Config& config) {
  return conditions.empty() || std::any_of(conditions.begin(), conditions.end(), [&](const When& when) {
           const Field& selector = *find_field(when.path);
           const std::string_view value = chosen(value_of(selector, config));
           return std::find(when.values.begin(), when.values.end(), value) != when.values.end() && holds(selector.when, config);
         });
}

}  // namespace onestep::train
