# SPDX-License-Identifier: Apache-2.0
"""Whose child it is."""
import os

print(os.getppid() == int(os.environ["STARTED_BY"]))
