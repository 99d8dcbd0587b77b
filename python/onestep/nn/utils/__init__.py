"""Helpers over parameters and their gradients."""

from onestep.nn.utils import rnn
from onestep.nn.utils.clip import clip_grad_norm, clip_grad_norm_, clip_grad_value_, get_total_norm
from onestep.nn.utils.vector import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]
