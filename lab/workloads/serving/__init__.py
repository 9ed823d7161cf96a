# SPDX-License-Identifier: Apache-2.0
"""What servers that are sample tenants have in common, whatever they compute."""
