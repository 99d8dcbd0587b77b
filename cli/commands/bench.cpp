#include <functional>
#include <iostream>
#include <memory>

#include "bench/workloads.h"
#include "cli/commands/commands.h"
#include "train/config/config_fields.h"
#include "train/log/metrics.h"

namespace onestep::cli {
namespace {

using Result = nlohmann::ordered_json;

struct Options {
  bench::StepWork step;
  bench::AttentionWork attention;
  bench::MatmulWork matmul;
  bench::ConvWork conv;
  bench::OpWork op;
  bench::GenerateWork generate;
  std::string small = "mlp", mode = "fwdbwd";
  double seconds = 2;
  bool json = false;
};

void print(const Result& result, bool json) {
  if (json) {
    std::cout << result.dump() << '\n';
    return;
  }
  for (const auto& [key, value] : result.items()) {
    std::cout << key << std::string(key.size() < 36 ? 36 - key.size() : 1, ' ')
              << (value.is_string() ? value.get<std::string>() : value.dump()) << '\n';
  }
}

void add_count(Command& command, const std::string& name, int64_t& value, const std::string& what,
               int64_t most = int64_t{1} << 31) {
  command.add_option("--" + name, value, what)->type_name("N")->capture_default_str()->check(whole_number(1, most));
}

/// A count that sets this key of a config.
void add_key(Command& command, const std::string& name, int64_t& value, const std::string& what, const std::string& key) {
  add_count(command, name, value, what, static_cast<int64_t>(find_field(key)->high));
}

void add_shape(Command& command, bench::GptShape& shape) {
  add_key(command, "layers", shape.layers, "Blocks", "model.num_layers");
  add_key(command, "heads", shape.heads, "Attention heads a block", "model.num_heads");
  add_key(command, "embd", shape.embd, "Width of the model", "model.d_model");
  add_key(command, "ctx", shape.ctx, "Context length in tokens", "model.context_length");
  add_key(command, "vocab", shape.vocab, "Tokens in the vocabulary", "data.vocab_size");
  command.add_option("--bias", shape.bias, "Whether layers have biases")
      ->type_name("0|1")
      ->capture_default_str()
      ->check(one_of({"0", "1"}));
}

/// Refuses a number of heads that does not divide the width, both by the names of their options.
void check_heads(const std::string& heads_option, int64_t heads, const std::string& width_option, int64_t width) {
  ONESTEP_CHECK(ConfigError, width % heads == 0, heads_option, ": must divide ", width_option, ", ", width, ": got ", heads);
}

void check_heads(const bench::GptShape& shape) { check_heads("--heads", shape.heads, "--embd", shape.embd); }

void add_precision(Command& command, std::string& precision, const std::string& what) {
  command.add_option("--precision", precision, what)
      ->type_name("KIND")
      ->capture_default_str()
      ->check(one_of({"float32", "bf16", "bf16_amx"}));
}

void add_mode(Command& command, std::string& mode) {
  command.add_option("--mode", mode, "fwd or fwdbwd")
      ->type_name("MODE")
      ->capture_default_str()
      ->check(one_of({"fwd", "fwdbwd"}));
}

/// Adds a kind of work, its description and what times it; returns its command.
using AddWork = std::function<Command*(const char* name, const char* what, const std::function<Result(Options&)>& run)>;

void add_step(const AddWork& add, Options& options) {
  auto* step = add("step", "A training step of a GPT: forward, backward, AdamW", [](Options& o) {
    check_heads(o.step.model);
    return bench::bench_step(o.step, o.seconds);
  });
  add_shape(*step, options.step.model);
  add_key(*step, "batch", options.step.batch, "Sequences a step", "train.batch_size");
  add_count(*step, "steps", options.step.steps, "Largest number of steps");
  step->add_option("--gelu", options.step.gelu, "erf or tanh")
      ->type_name("KIND")
      ->capture_default_str()
      ->check(one_of({"erf", "tanh"}));
  add_precision(*step, options.step.precision, "train.precision of a config");
  step->add_option("--lora", options.step.lora, "Rank of adapters, which alone are trained then; 0: none")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(0, static_cast<int64_t>(find_field("model.lora.rank")->high)));
  step->add_flag("--profile", options.step.profile, "Also the time of each op in a step");
}

void add_attention(const AddWork& add, Options& options) {
  auto* attention = add("attention", "Causal multi-head self-attention with its projections", [](Options& o) {
    check_heads("--H", o.attention.H, "--C", o.attention.C);
    o.attention.backward = o.mode == "fwdbwd";
    return bench::bench_attention(o.attention, o.seconds);
  });
  add_count(*attention, "B", options.attention.B, "Sequences");
  add_count(*attention, "T", options.attention.T, "Tokens a sequence");
  add_count(*attention, "C", options.attention.C, "Width");
  add_count(*attention, "H", options.attention.H, "Heads");
  add_mode(*attention, options.mode);
  add_precision(*attention, options.attention.precision, "Of the products");
}

void add_matmul(const AddWork& add, Options& options) {
  auto* matmul = add("matmul", "One matrix product", [](Options& o) { return bench::bench_matmul(o.matmul, o.seconds); });
  add_count(*matmul, "m", options.matmul.m, "Rows of the result");
  add_count(*matmul, "n", options.matmul.n, "Columns of the result");
  add_count(*matmul, "k", options.matmul.k, "Inner dimension");
  add_count(*matmul, "batch", options.matmul.batch, "Products in a batch");
  matmul->add_option("--op", options.matmul.op, "NN, NT (the second operand is stored transposed) or TN (the first is)")
      ->type_name("OP")
      ->capture_default_str()
      ->check(one_of({"NN", "NT", "TN"}));
  add_precision(*matmul, options.matmul.precision, "Of the three matrices");
}

void add_conv(const AddWork& add, Options& options) {
  auto* conv = add("conv", "A 2-d convolution with bias of square images", [](Options& o) {
    const int64_t padded = o.conv.size + 2 * o.conv.padding;
    ONESTEP_CHECK(ConfigError, o.conv.kernel <= padded, "--kernel: must be at most --size and twice --padding, ", padded,
                  ": got ", o.conv.kernel);
    o.conv.backward = o.mode == "fwdbwd";
    return bench::bench_conv(o.conv, o.seconds);
  });
  add_count(*conv, "batch", options.conv.batch, "Images");
  add_count(*conv, "in", options.conv.in, "Channels of the images");
  add_count(*conv, "out", options.conv.out, "Channels of the result");
  add_count(*conv, "size", options.conv.size, "Height and width");
  add_count(*conv, "kernel", options.conv.kernel, "Height and width of the kernel");
  add_count(*conv, "stride", options.conv.stride, "Stride of both dims");
  conv->add_option("--padding", options.conv.padding, "Zeros on each side")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(0, 1024));
  conv->add_option("--first", options.conv.first, "Whether the images need no gradient")
      ->type_name("0|1")
      ->capture_default_str()
      ->check(one_of({"0", "1"}));
  add_mode(*conv, options.mode);
}

void add_op(const AddWork& add, Options& options) {
  auto* op = add("op", "One op on a tensor of 2,048 x 1,024", [](Options& o) {
    o.op.backward = o.mode == "fwdbwd";
    return bench::bench_op(o.op, o.seconds);
  });
  op->add_option("--op", options.op.op, "Name of the op")
      ->type_name("OP")
      ->capture_default_str()
      ->check(one_of(bench::op_names()));
  add_mode(*op, options.mode);
}

void add_small(const AddWork& add, Options& options) {
  auto* small = add("small", "Small graphs, where the engine's overhead counts",
                    [](Options& o) { return bench::bench_small(o.small, o.seconds); });
  small->add_option("--case", options.small, "mlp, mha, scalarops, addchain, recorded or backward")
      ->type_name("CASE")
      ->capture_default_str()
      ->check(one_of({"mlp", "mha", "scalarops", "addchain", "recorded", "backward"}));
}

void add_generate(const AddWork& add, Options& options) {
  auto* generate = add("generate", "Greedy generation with a cache", [](Options& o) {
    check_heads(o.generate.model);
    return bench::bench_generate(o.generate, o.seconds);
  });
  add_shape(*generate, options.generate.model);
  add_count(*generate, "prompt", options.generate.prompt, "Tokens of the prompt");
  add_count(*generate, "tokens", options.generate.tokens, "Tokens to generate");
  add_count(*generate, "batch", options.generate.batch, "Sequences at once");
  generate->add_weights_option(options.generate.weights);
}

}  // namespace

void add_bench(Command& app, Action& action) {
  const auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand(
      "bench",
      "Time a training step, attention, matmul, convolutions, single ops, small graphs, generation or the machine's limits");
  command->require_subcommand();
  const AddWork add = [&](const char* name, const char* what, const std::function<Result(Options&)>& run) {
    auto* work = command->add_subcommand(name, what);
    work->add_option("--budget", options->seconds, "Seconds to spend on timing")
        ->type_name("S")
        ->capture_default_str()
        ->check(decimal_number("above 0", [](double seconds) { return seconds > 0; }));
    work->add_flag("--json", options->json, "One line of JSON with the keys that the scripts of bench/peers print");
    work->callback([&action, options, run] {
      action = [options, run] {
        print(run(*options), options->json);
        return 0;
      };
    });
    return work;
  };

  add_step(add, *options);
  add_attention(add, *options);
  add_matmul(add, *options);
  add_conv(add, *options);
  add_op(add, *options);
  add_small(add, *options);
  add("limits", "Limits of the machine: multiply-adds per second on registers and bytes per second from memory",
      [](Options& o) { return bench::bench_limits(o.seconds); });
  add_generate(add, *options);
}

}  // namespace onestep::cli
