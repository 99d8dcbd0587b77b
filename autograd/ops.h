#pragma once
// Every public op: declarations and meaning, in headers by group. Forward, backward and cases of a group live together in
// ops/NAME.cpp and ops/NAME.cases.cpp. Names, argument order and defaults are PyTorch's. All ops are differentiable where that
// makes sense, take any strides and zero-size tensors, and throw ShapeError / DTypeError / GradError / ConfigError with the
// op's name first.
//
// Shapes in brackets, outermost dim first; B = batch, T = tokens, d = features, V = vocabulary.
#include "autograd/creation.h"
#include "autograd/node.h"
#include "autograd/operators.h"
#include "autograd/ops_conv.h"
#include "autograd/ops_draws.h"
#include "autograd/ops_index.h"
#include "autograd/ops_loss.h"
#include "autograd/ops_math.h"
#include "autograd/ops_nn.h"
#include "autograd/ops_order.h"
#include "autograd/ops_pointwise.h"
#include "autograd/ops_shape.h"
#include "autograd/random/generator.h"
#include "autograd/tensor.h"
#include "autograd/tensor_index.h"
