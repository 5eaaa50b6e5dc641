# SPDX-License-Identifier: MIT
"""What stepgate measured, in the formats of other tools. docs/exports.md says how to use it."""
