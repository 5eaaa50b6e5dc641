# SPDX-License-Identifier: MIT
from torch.optim.optimizer import AdamW, Optimizer
