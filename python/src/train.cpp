// The trainer, trained runs and their tokenizers in Python; the classes that people see are written on these in onestep/run.py.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include <filesystem>

#include "python/src/caster.h"
#include "train/log/tensorboard_writer.h"
#include "train/models/generate.h"
#include "train/report/report.h"
#include "train/runs/run.h"
#include "train/runs/run_report.h"
#include "train/runs/trained_run.h"
#include "train/text/stopping_text.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace onestep::python {
namespace {

using namespace train;
using Ids = std::vector<int64_t>;
using Strings = std::vector<std::string>;

nb::dict dict_of(const StepMetrics& m) {
  nb::dict row;
  row["step"] = m.step;
  row["loss"] = m.loss;
  row["lr"] = m.lr;
  row["grad_norm"] = m.grad_norm;
  row["tokens_per_second"] = m.tokens_per_second;
  row["seconds"] = m.seconds;
  row["val_loss"] = m.val_loss;
  row["val_accuracy"] = m.val_accuracy;
  if (m.val_f1) row["val_f1"] = m.val_f1;
  return row;
}

/// Python while a run trains: calls the callback with each step, and ends the run, which is saved first, when that returns
/// True, raises, or somebody presses Ctrl-C.
class PythonWatch {
 public:
  explicit PythonWatch(nb::object callback) : callback_(std::move(callback)) {}

  Watch watch(bool quiet) {
    Watch watch{.stopped = [this] { return stopped(); }, .quiet = quiet};
    if (!callback_.is_none()) watch.on_step = [this](const StepMetrics& metrics) { call(metrics); };
    return watch;
  }
  /// Raises what Python raised meanwhile.
  void finish() {
    if (error_) throw nb::python_error(*error_);
  }

 private:
  bool stopped() {
    if (stop_) return true;
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) keep(nb::python_error());
    return stop_;
  }
  void call(const StepMetrics& metrics) {
    const nb::gil_scoped_acquire locked;
    try {
      if (callback_(dict_of(metrics)).ptr() == Py_True) stop_ = true;
    } catch (const nb::python_error& error) {
      keep(error);
    }
  }
  void keep(const nb::python_error& error) {
    stop_ = true;
    error_.emplace(error);
  }

  nb::object callback_;
  std::optional<nb::python_error> error_;
  bool stop_ = false;
};

/// Trains what `begin` started or resumed; the name of its folder.
template <class Begin>
std::string train_to_end(const Begin& begin, nb::object callback, bool quiet) {
  PythonWatch python(std::move(callback));
  std::string folder;
  {
    const nb::gil_scoped_release released;
    ActiveRun run = begin();
    folder = run.lock->name().string();
    if (run.done.empty()) {
      train_run(run, python.watch(quiet));
      write_page(run);
      folder = run.lock->name().string();
    }
  }
  python.finish();
  return folder;
}

std::string train_config(const std::string& text, const std::string& source, const Strings& sets, const std::string& out,
                         bool quiet, nb::object callback) {
  const auto begin = [&] {
    return start_run(parse_config(text, source, sets), out.empty() ? default_run_folder(source) : run_path(out),
                     std::make_shared<Communicator>(), quiet);
  };
  return train_to_end(begin, std::move(callback), quiet);
}

std::string resume(const std::string& run, const Strings& sets, bool quiet, nb::object callback) {
  const auto begin = [&] { return resume_run(run_path(run), sets, std::make_shared<Communicator>(), quiet); };
  return train_to_end(begin, std::move(callback), quiet);
}

/// A trained model with the generator that its dropout draws from.
struct Model {
  Generator generator;
  std::unique_ptr<LanguageModel> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  Ids eos;  // tokens that end a text
};

std::unique_ptr<Model> load_model_of(const std::string& name, const std::string& checkpoint) {
  const nb::gil_scoped_release released;
  const std::filesystem::path run = run_path(name);
  const Config config = load_run_config(run);
  const FoundCheckpoint found = choose_checkpoint(run, config, checkpoint);
  auto loaded = std::make_unique<Model>();
  loaded->generator.manual_seed(config.seed);
  loaded->eos = config.model.eos_token_ids;
  loaded->tokenizer = prompt_tokenizer(run, config);
  loaded->model = make_trained_model(config, trained_vocabulary(found), found, loaded->generator);
  return loaded;
}

/// (name, tensor) of each as an object of `type`: the very tensors of the model.
nb::list named(const nn::NamedTensors& tensors, const nb::type_object& type) {
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), tensor_type))
    throw nb::type_error("a type that is not derived from Tensor");
  nb::list list;
  for (const auto& [name, tensor] : tensors)
    list.append(nb::make_tuple(name, nb::steal(wrap(tensor, reinterpret_cast<PyTypeObject*>(type.ptr())))));
  return list;
}

Ids generate_ids(Model& m, const Ids& prompt, int64_t tokens, const SamplingOptions& sampling,
                 const std::vector<std::string>& stop, int64_t seed, bool cache, bool ignore_eos) {
  check_prompt(*m.model, prompt);
  Generator generator(seed);
  const Stops stops{.strings = stop, .ids = ignore_eos ? Ids{} : m.eos};
  StoppingText text(m.tokenizer.get(), stops);
  for (const int64_t id : prompt) text.follow(id);
  const auto ends = [&](int64_t id) { return text.add(id), text.stopped(); };
  const Prompt only{.ids = prompt, .generator = &generator, .ends = ends};
  const GenerateOptions options{.tokens = tokens, .sampling = sampling, .cache = cache};
  return unlocked([&] { return generate(*m.model, std::span(&only, 1), options)[0].ids; });
}

/// What ids stand for, as people read it: the text, and the pieces of it one by one.
std::string text_of(const Model& m, const Ids& ids) {
  StreamDecoder text(m.tokenizer.get());
  std::string all;
  for (const int64_t id : ids) all += text.add(id) + (m.tokenizer ? "" : " ");
  return all + text.finish();
}

void add_model(nb::module_& m) {
  nb::class_<Model>(m, "_Model")
      .def("forward",
           [](const Model& self, const Tensor& tokens) { return unlocked([&] { return self.model->forward(tokens); }); })
      .def("named_parameters",
           [](Model& self, const nb::type_object& type) { return named(self.model->named_parameters(), type); })
      .def("named_buffers", [](Model& self, const nb::type_object& type) { return named(self.model->named_buffers(), type); })
      .def("train", [](Model& self, bool mode) { self.model->train(mode); })
      .def("repr", [](const Model& self) { return self.model->repr(); })
      .def("generate",
           [](Model& self, const Ids& prompt, int64_t tokens, double temperature, int64_t top_k, double top_p, double min_p,
              double repetition_penalty, const std::vector<std::string>& stop, int64_t seed, bool cache, bool ignore_eos) {
             return generate_ids(self, prompt, tokens, {temperature, top_k, top_p, min_p, repetition_penalty}, stop, seed,
                                 cache, ignore_eos);
           })
      .def_prop_ro("eos", [](const Model& self) { return self.eos; })
      .def("attention",
           [](Model& self, const Ids& ids) { return unlocked([&] { return attention_weights(*self.model, ids); }); })
      .def("text", &text_of)
      .def_prop_ro("tokenizer", [](const Model& self) { return std::const_pointer_cast<Tokenizer>(self.tokenizer); })
      .def_prop_ro("vocab_size", [](const Model& self) { return self.model->vocab_size(); })
      .def_prop_ro("context_length", [](const Model& self) { return self.model->context_length(); });
}

}  // namespace

void add_train(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer", "Text to token ids and back.")
      .def_prop_ro(
          "kind", [](const Tokenizer& self) { return name_of(self.kind()); }, "char, byte, word or bpe.")
      .def_prop_ro("vocab_size", &Tokenizer::vocab_size, "Ids are 0 .. vocab_size - 1.")
      .def(
          "encode", [](const Tokenizer& self, const std::string& text) { return self.encode(text); }, "text"_a,
          "The ids of a text. Raises ConfigError naming a symbol outside the vocabulary.")
      .def(
          "encode_prompt", [](const Tokenizer& self, const std::string& text) { return self.encode_prompt(text); }, "text"_a,
          "The ids of a text that a model is to continue: after those that the tokenizer puts before a text, if any.")
      .def(
          "decode",
          [](const Tokenizer& self, const Ids& ids) {
            const std::string text = self.decode(ids);
            PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
            if (decoded == nullptr) throw nb::python_error();
            return nb::steal<nb::str>(decoded);
          },
          "ids"_a, "The text of ids. Raises ConfigError for an id that is none.")
      .def("__repr__", [](const Tokenizer& self) {
        return "Tokenizer(" + std::string(name_of(self.kind())) + ", " + std::to_string(self.vocab_size()) + " tokens)";
      });
  m.def(
      "_open_tokenizer", [](const std::string& folder) { return std::shared_ptr<Tokenizer>(open_tokenizer(folder)); },
      "folder"_a);
  add_model(m);
  nb::class_<EventFile>(m, "_EventFile")
      .def(nb::init<const std::string&, std::optional<int64_t>>(), "folder"_a, "first_step"_a.none())
      .def("scalar", [](EventFile& self, const std::string& tag, int64_t step, double value) { self.scalar(tag, step, value); })
      .def("text",
           [](EventFile& self, const std::string& tag, int64_t step, const std::string& text) { self.text(tag, step, text); })
      .def("summary", [](EventFile& self, int64_t step, const nb::bytes& value) {
        self.summary(step, {value.c_str(), value.size()});
      });
  m.def("_load_model", &load_model_of, "run"_a, "checkpoint"_a);
  m.def("_train", &train_config, "config"_a, "source"_a, "sets"_a, "out"_a, "quiet"_a, "callback"_a.none());
  m.def("_resume", &resume, "run"_a, "sets"_a, "quiet"_a, "callback"_a.none());
  m.def("_report_html", [](const Strings& runs) {
    return unlocked([&] {
      std::vector<ReportRun> all;
      for (const std::string& run : runs) all.push_back(report_run(run_path(run)));
      return report_html(all);
    });
  });
}

}  // namespace onestep::python
