#include "web/engine/model_methods.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "autograd/ops.h"
#include "base/json_reader.h"
#include "base/utf8.h"
#include "train/data/data.h"
#include "train/models/generate.h"
#include "train/models/pretrained_files.h"
#include "train/run_folder.h"
#include "train/runs/trained_run.h"
#include "train/text/stopping_text.h"
#include "train/text/stream_decoder.h"
#include "web/engine/ablation.h"
#include "web/engine/arguments.h"
#include "web/engine/attention_maps.h"
#include "web/engine/handles.h"

namespace onestep::web {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A trained model, and its tokenizer unless it was trained on ids.
struct OpenModel {
  explicit OpenModel(const fs::path& folder) {
    if (train::is_run(folder))
      open_run(folder);
    else
      open_pretrained(folder);
    model->eval();
  }

  std::vector<int64_t> encode(const std::string& given) const {
    if (tokenizer) return tokenizer->encode_prompt(given);
    std::vector<int64_t> ids;
    const json parsed = [&]() -> json {
      try {
        return parse_json<ConfigError>("[" + given + "]", "text");
      } catch (const ConfigError&) {
        return nullptr;
      }
    }();
    const bool numbers =
        parsed.is_array() && std::all_of(parsed.begin(), parsed.end(), [](const json& id) { return id.is_number_integer(); });
    ONESTEP_CHECK(ConfigError, numbers, "text: the model was trained on ids: give them with commas: got ", quote(given));
    for (const json& id : parsed) ids.push_back(id.get<int64_t>());
    return ids;
  }
  std::string name_of(int64_t id) const {
    train::StreamDecoder one(tokenizer.get());
    const std::string name = one.add(id);
    return name + one.finish();
  }
  json names_of(const std::vector<int64_t>& ids) const {
    json names = json::array();
    for (const int64_t id : ids) names.push_back(name_of(id));
    return names;
  }
  /// A prompt of the task that training never sees.
  json example() const {
    if (!task || !tokenizer) return nullptr;
    Generator examples(0);
    const train::Batch batch = task->eval_batch(1, examples);
    return tokenizer->decode({batch.inputs.begin(), batch.inputs.end() - (task->targets() - 1)});
  }
  int64_t layers() const { return config.kind == train::ModelKind::gpt ? config.num_layers : 1; }

  train::ModelConfig config;
  Generator generator{0};  // of the initial values, which are then overwritten, and of dropout, which is off
  std::unique_ptr<train::LanguageModel> model;
  std::shared_ptr<const train::Tokenizer> tokenizer;
  std::unique_ptr<train::Data> task;  ///< That it was trained on, if it was one.

 private:
  void open_run(const fs::path& folder) {
    const train::Config run = train::load_run_config(folder);
    ONESTEP_CHECK(ConfigError, train::num_classes(run) == 0, folder.string(),
                  ": is a classifier, the page shows models that write text");
    const train::FoundCheckpoint found = train::choose_checkpoint(folder, run, "last");
    config = run.model;
    tokenizer = train::prompt_tokenizer(folder, run);
    if (run.data.kind == train::DataKind::task) task = train::make_data(run);
    model = train::make_trained_model(run, train::trained_vocabulary(found), found, generator);
  }
  void open_pretrained(const fs::path& folder) {
    train::Pretrained pretrained = train::read_pretrained(folder);
    config = pretrained.model;
    if (train::has_tokenizer(folder)) tokenizer = train::open_tokenizer(folder.string());
    model = train::make_language_model(config, config.vocab_size, generator);
    model->load_state_dict(std::move(pretrained.state));
  }
};

Handles<OpenModel>& models() {
  static Handles<OpenModel> all;
  return all;
}

OpenModel& model_of(const json& arguments) { return models().at(integer(arguments, "model")); }

/// The ids of "text" as the model can read them: the last context_length of them, at least one.
std::vector<int64_t> ids_of(const OpenModel& open, const json& arguments) {
  std::vector<int64_t> ids = open.encode(text_argument(arguments, "text"));
  train::check_prompt(*open.model, ids);
  const auto most = static_cast<size_t>(open.model->context_length());
  if (ids.size() > most) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(most));
  return ids;
}

Ablation ablation_of(OpenModel& open, const json& arguments) {
  return Ablation(*open.model, open.config, arguments.value("ablate", json::array()));
}

std::optional<int64_t> index_of(const json& arguments, const char* key) {
  return arguments.contains(key) ? std::optional(integer(arguments, key)) : std::nullopt;
}

/// "run" for one that can continue with what is in its folder, else "model".
json folder_kind(const json& arguments) {
  const fs::path folder = text_argument(arguments, "folder");
  if (!train::is_run(folder)) return "model";
  const train::DataConfig data = train::load_run_config(folder).data;
  const bool whole = data.kind == train::DataKind::task || data.kind == train::DataKind::tokens || !data.text.empty();
  return whole ? "run" : "model";
}

json model_open(const json& arguments) {
  const int64_t number = models().make(text_argument(arguments, "folder"));
  const OpenModel& open = models().at(number);
  return {{"model", number},
          {"parameters", open.model->num_parameters()},
          {"layers", open.layers()},
          {"heads", open.config.num_heads},
          {"context", open.model->context_length()},
          {"vocabulary", open.model->vocab_size()},
          {"tokenizer", open.tokenizer ? json(name_of(open.tokenizer->kind())) : json(nullptr)},
          {"example", open.example()},
          {"answer", open.task ? json(open.task->targets()) : json(nullptr)}};
}

json model_next(const json& arguments) {
  OpenModel& open = model_of(arguments);
  const std::vector<int64_t> ids = ids_of(open, arguments);
  const Ablation ablation = ablation_of(open, arguments);
  train::ModelCache cache;
  train::ModelCache* const caches[] = {&cache};
  const Tensor logits = select(open.model->next_logits(from_values(ids, {1, std::ssize(ids)}), caches), 0, 0);
  const train::SamplingOptions sampling{.temperature = number(arguments, "temperature", 1.0)};
  train::check_sampling(sampling);
  const Tensor probabilities = sampling_probabilities(logits, sampling).to(DType::float32);
  json next = json::array();
  for (const auto& [id, p] : train::most_likely(probabilities, std::max<int64_t>(integer(arguments, "count", 20), 0)))
    next.push_back({{"id", id}, {"text", open.name_of(id)}, {"probability", p}});
  return {{"tokens", open.names_of(ids)}, {"next", next}};
}

json model_attention(const json& arguments) {
  OpenModel& open = model_of(arguments);
  const std::vector<int64_t> ids = ids_of(open, arguments);
  const Ablation ablation = ablation_of(open, arguments);
  return {{"tokens", open.names_of(ids)},
          {"weights", attention_maps(*open.model, ids, index_of(arguments, "layer"), index_of(arguments, "head"))}};
}

json model_generate(const json& arguments) {
  OpenModel& open = model_of(arguments);
  const std::vector<int64_t> prompt = open.encode(text_argument(arguments, "text"));
  const train::GenerateOptions options = {.tokens = integer(arguments, "tokens"),
                                          .sampling = {.temperature = number(arguments, "temperature", 1.0),
                                                       .top_k = integer(arguments, "top_k", 0),
                                                       .top_p = number(arguments, "top_p", 1.0)}};
  const Ablation ablation = ablation_of(open, arguments);
  Generator generator(integer(arguments, "seed", 0));
  const train::Stops stops{.ids = open.config.eos_token_ids};
  train::StoppingText text(open.tokenizer.get(), stops);
  if (!prompt.empty()) text.follow(prompt.back());
  std::string written;
  const train::Prompt one{.ids = prompt, .generator = &generator, .ends = [&](int64_t) { return text.stopped(); }};
  const train::Generated made =
      train::generate(*open.model, std::span(&one, 1), options,
                      [&](size_t, const train::Generated& so_far) { written += text.add(so_far.ids.back()); })[0];
  written += text.finish();
  return {{"ids", made.ids}, {"text", written}, {"logprobs", made.logprobs}, {"stopped", text.stopped()}};
}

json model_close(const json& arguments) {
  models().close(integer(arguments, "model"));
  return nullptr;
}

}  // namespace

std::vector<Method> model_methods() {
  return {{"folder_kind", folder_kind},         {"model_open", model_open},         {"model_next", model_next},
          {"model_attention", model_attention}, {"model_generate", model_generate}, {"model_close", model_close}};
}

}  // namespace onestep::web
