"""Optimizers and learning-rate schedules."""

from onestep.optim import lr_scheduler, swa_utils
from onestep.optim.adam import Adam, AdamW
from onestep.optim.adaptive import Adadelta, Adagrad, RMSprop
from onestep.optim.averaged import ASGD, Rprop
from onestep.optim.lbfgs import LBFGS
from onestep.optim.matrix import Adafactor, Muon
from onestep.optim.momentum import Adamax, NAdam, RAdam
from onestep.optim.optimizer import Optimizer
from onestep.optim.sgd import SGD

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "lr_scheduler",
    "swa_utils",
]
