#include "attention/weights_recorder.h"

namespace onestep::attention {
namespace {

thread_local WeightsRecorder* active_recorder = nullptr;

}  // namespace

WeightsRecorder::WeightsRecorder() : previous_(active_recorder) { active_recorder = this; }
WeightsRecorder::~WeightsRecorder() { active_recorder = previous_; }

WeightsRecorder* WeightsRecorder::active() { return active_recorder; }

}  // namespace onestep::attention
