# The headers as users see them: copies in the build folder's include/onestep/ whose includes start there ("nn/linear.h" becomes
# "onestep/nn/linear.h"), so that no nn/ or train/ folder of a user's own can come between; and onestep.h, which includes those
# that users include. Projects that add this one as a folder see the same files as those that install it.

set(ONESTEP_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)

# What includes an unchanged header is not built again.
function(onestep_write_header name text)
  set(path ${ONESTEP_INCLUDE_DIR}/onestep/${name})
  set(old_text)
  if(EXISTS ${path})
    file(READ ${path} old_text)
  endif()
  if(NOT text STREQUAL old_text)
    file(WRITE ${path} "${text}")
  endif()
endfunction()

# What <onestep/onestep.h> includes, bottom up.
set(public_headers
    base/enum_names.h
    base/error.h
    base/file_stamp.h
    base/format.h
    base/machine.h
    autograd/anomaly.h
    autograd/dot.h
    autograd/dtype.h
    autograd/checkpoint.h
    autograd/function.h
    autograd/functional.h
    autograd/grad.h
    autograd/grad_hook.h
    autograd/grad_mode.h
    autograd/memory.h
    autograd/node.h
    autograd/creation.h
    autograd/list_view.h
    autograd/ops.h
    autograd/packed_weight.h
    autograd/profiler.h
    autograd/shape.h
    autograd/tensor.h
    autograd/tensor_index.h
    autograd/random/generator.h
    autograd/testing/gradcheck.h
    nn/activation.h
    nn/batch_norm.h
    nn/bilinear.h
    nn/convolution.h
    nn/dropout.h
    nn/embedding.h
    nn/feed_forward.h
    nn/flatten.h
    nn/fold.h
    nn/hooks.h
    nn/identity.h
    nn/init.h
    nn/layer_norm.h
    nn/linear.h
    nn/lora.h
    nn/loss.h
    nn/module.h
    nn/module_dict.h
    nn/module_list.h
    nn/multihead_attention.h
    nn/pack_weights.h
    nn/padding.h
    nn/parameter_list.h
    nn/pooling.h
    nn/rms_norm.h
    nn/rnn.h
    nn/rnn_cell.h
    nn/sequential.h
    nn/transformer.h
    attention/attention.h
    attention/attention_kind.h
    attention/causal_attention.h
    attention/causal_self_attention.h
    attention/einsum_attention.h
    attention/factory.h
    attention/heads.h
    attention/kv_cache.h
    attention/mask.h
    attention/multi_head_attention.h
    attention/options.h
    attention/self_attention.h
    attention/weights_recorder.h
    optim/lr_scheduler.h
    optim/optimizer.h
    optim/schedule.h
    train/config/config.h
    train/text/bpe_tokenizer.h
    train/text/bpe_trainer.h
    train/text/bpe_vocabulary.h
    train/text/stopping_text.h
    train/text/stream_decoder.h
    train/text/tokenizer.h
    train/text/tokenizer_kind.h
    train/text/vocabulary_tokenizer.h
    train/data/bigrams.h
    train/data/data.h
    train/data/task.h
    train/data/token_file.h
    train/models/generate.h
    train/text/chat_template.h
    train/models/conversation.h
    train/models/gguf_files.h
    train/models/gpt.h
    train/models/pretrained_files.h
    train/models/language_model.h
    train/checkpoint/checkpoint.h
    train/checkpoint/safetensors.h
    train/checkpoint/trainer_state.h
    train/distributed/communicator.h
    train/distributed/data_parallel.h
    train/log/metrics.h
    train/log/progress.h
    train/log/tensorboard_writer.h
    train/evaluate.h
    train/memory_need.h
    train/run_folder.h
    train/run_loop.h
    train/samples.h
    train/trainer.h
    train/report/report.h)

# Copies a header and those that it includes.
set(written_headers)
function(onestep_publish header)
  if(header IN_LIST written_headers)
    return()
  endif()
  list(APPEND written_headers ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(REGEX MATCHALL "#include \"[a-z0-9_/]+\\.h\"" includes "${text}")
  string(REGEX REPLACE "#include \"([a-z_]+)/" "#include \"onestep/\\1/" text "${text}")
  onestep_write_header(${header} "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" include "${include}")
    onestep_publish(${include})
  endforeach()
  set(written_headers ${written_headers} PARENT_SCOPE)
endfunction()

set(umbrella "#pragma once\n// All of the library: link with onestep::onestep.\n")
foreach(header IN LISTS public_headers)
  onestep_publish(${header})
  string(APPEND umbrella "#include \"onestep/${header}\"\n")
endforeach()
onestep_write_header(onestep.h "${umbrella}")

file(GLOB_RECURSE stale_headers RELATIVE ${ONESTEP_INCLUDE_DIR}/onestep ${ONESTEP_INCLUDE_DIR}/onestep/*)
list(REMOVE_ITEM stale_headers onestep.h ${written_headers})
list(TRANSFORM stale_headers PREPEND ${ONESTEP_INCLUDE_DIR}/onestep/)
if(stale_headers)
  file(REMOVE ${stale_headers})
endif()
