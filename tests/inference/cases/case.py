"""What a case is, and the heads and inputs that cases share."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """import math
import random
from typing import List, Optional, Tuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


"""

X2 = "(torch.randn(4, 6),)"
X3 = "(torch.randn(2, 5, 4),)"
X4 = "(torch.randn(2, 3, 8, 8),)"


@dataclass(frozen=True)
class Case:
    """One model: its text (after `HEAD`), and expressions for constructor arguments and inputs."""

    name: str
    text: str
    inputs: str
    init: str = "()"

    @property
    def source(self) -> str:
        return HEAD + self.text.strip("\n") + "\n"


class Cases(list[Case]):
    """The cases of one theme; calling it adds one."""

    def __call__(self, name: str, inputs: str, text: str, init: str = "()") -> None:
        self.append(Case(name, text, inputs, init))
