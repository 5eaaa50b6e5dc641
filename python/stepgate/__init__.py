# SPDX-License-Identifier: MIT
"""What stepgate measured, in the formats of other tools (docs/exports.md), and steps that a program
names itself (docs/programs.md)."""
from .step import step

__all__ = ["step"]
