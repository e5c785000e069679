"""Right answers in other styles: what no check may refuse."""

import math
from collections import deque

import numpy as np

from vit_course.training import EarlyStopping


class InTheLesson:
    def __init__(self, patience):
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self.patience, self.best, self.bad_epochs = patience, float("inf"), 0

    def step(self, validation_loss):
        if validation_loss < self.best:
            self.best, self.bad_epochs = validation_loss, 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


class WithAList:
    def __init__(self, patience):
        if not patience > 0:
            raise ValueError("patience: " + str(patience))
        self.patience = patience
        self.losses = []

    @property
    def best(self):
        return min((loss for loss in self.losses if not math.isnan(loss)), default=math.inf)

    def step(self, validation_loss):
        self.losses.append(validation_loss)
        if math.isinf(self.best):
            return len(self.losses) >= self.patience
        return len(self.losses) - 1 - self.losses.index(self.best) >= self.patience


class WithADeque:
    def __init__(self, patience):
        if patience <= 0:
            raise ValueError(f"{patience=}")
        self.recent = deque(maxlen=patience)
        self.best = np.inf

    def step(self, validation_loss):
        self.recent.append(bool(validation_loss < self.best))
        self.best = np.fmin(self.best, validation_loss)
        return len(self.recent) == self.recent.maxlen and not any(self.recent)


class WithACountdown:
    def __init__(self, patience, min_delta=0.0):
        if patience < 1:
            raise ValueError(f"a patience of {patience} would stop at once")
        self.patience = self.left = patience
        self.min_delta = min_delta
        self.best = math.inf

    def step(self, loss):
        self.left -= 1
        if loss < self.best - self.min_delta:
            self.best, self.left = loss, self.patience
        return np.bool_(self.left <= 0)


RIGHT = {"EarlyStopping": [EarlyStopping, InTheLesson, WithAList, WithADeque, WithACountdown]}
