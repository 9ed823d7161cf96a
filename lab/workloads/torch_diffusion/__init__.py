# SPDX-License-Identifier: Apache-2.0
"""An image and video server as a sample tenant: README.md beside this file."""
