# SPDX-License-Identifier: MIT
"""For tests only: as much of PyTorch as the hook looks at."""
__version__ = "9.9"


class cuda:
    @staticmethod
    def is_initialized():
        return True

    @staticmethod
    def get_device_name():
        return "a fake GPU"
