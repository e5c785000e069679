"""Early stopping with the counter that most training scripts have."""


class EarlyStopping:
    """Stop when the validation loss has not improved for some epochs in a row."""

    def __init__(self, patience: int) -> None:
        if patience < 1:
            # bug "patience not checked": if patience != patience:
            raise ValueError(f"patience has to be 1 or more, and is {patience}")
            # bug "patience asserted": raise AssertionError(f"patience has to be 1 or more, and is {patience}")
        self.patience = patience
        # bug "memory kept in the class": self = type(self)
        # bug "memory kept in the class": self.patience = patience
        self.best = float("inf")
        # bug "best starts at zero": self.best = 0.0
        # bug "best starts too low": self.best = 1.0
        # bug "higher is better": self.best = -float("inf")
        # bug "best under another name": self.best_loss = float("inf")
        self.bad_epochs = 0
        # bug "counts from one": self.bad_epochs = 1

    def step(self, val_loss: float) -> bool:
        improved = val_loss < self.best
        # bug "equal is progress": improved = val_loss <= self.best
        # bug "nan is progress": improved = not val_loss >= self.best
        # bug "progress has to be large": improved = val_loss < self.best - 1e-3
        # bug "higher is better": improved = val_loss > self.best
        # bug "best under another name": improved = val_loss < self.best_loss
        # bug "memory kept in the class": self = type(self)
        # bug "memory kept in the class": improved = val_loss < self.best
        if improved:
            self.best = val_loss
            # bug "compared with the first": self.best = val_loss if self.best == float("inf") else self.best
            # bug "best under another name": self.best_loss = val_loss
            self.bad_epochs = 0
            # bug "never starts anew":
            # bug "every epoch counts": self.bad_epochs += 1
            # bug "counts from one": self.bad_epochs = 1
        else:
            self.bad_epochs += 1
            # bug "nothing is counted": self.bad_epochs = 0
            # bug "nan becomes the best": self.bad_epochs += 1
            # bug "nan becomes the best": self.best = val_loss if val_loss != val_loss else self.best
            # bug "compared with the last": self.bad_epochs += 1
            # bug "compared with the last": self.best = val_loss
        return self.bad_epochs >= self.patience
        # bug "one too late": return self.bad_epochs > self.patience
        # bug "one too soon": return 0 < self.bad_epochs >= self.patience - 1
        # bug "no patience": return self.bad_epochs > 0
        # bug "numbers for truth": return int(self.bad_epochs >= self.patience)
        # bug "says it once": return self.bad_epochs == self.patience
        # bug "a stop that stays": self.stopped = getattr(self, "stopped", False) or self.bad_epochs >= self.patience
        # bug "a stop that stays": return self.stopped
        # bug "set back by a stop": stops = self.bad_epochs >= self.patience
        # bug "set back by a stop": self.bad_epochs = 0 if stops else self.bad_epochs
        # bug "set back by a stop": return stops
        # bug "nothing instead of false": if self.bad_epochs >= self.patience:
        # bug "nothing instead of false":     return True
        # bug "stop kept to itself": self.early_stop = self.bad_epochs >= self.patience
