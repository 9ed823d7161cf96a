# SPDX-License-Identifier: Apache-2.0
"""An LLM server as a sample tenant: README.md beside this file."""
