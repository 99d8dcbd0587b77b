"""Optimizers and learning-rate schedules."""

from onestep.optim import lr_scheduler
from onestep.optim.adam import Adam, AdamW
from onestep.optim.adaptive import Adadelta, Adagrad, RMSprop
from onestep.optim.lbfgs import LBFGS
from onestep.optim.optimizer import Optimizer
from onestep.optim.sgd import SGD

__all__ = ["Adadelta", "Adagrad", "Adam", "AdamW", "LBFGS", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]
