// SPDX-License-Identifier: Apache-2.0
/// The catalogue of faults, for people and for programs.
#pragma once

#include <string>

namespace firebreak::commands {

/// Lists by class what each kind does, and what is expected of it.
std::string catalogue_text();
/// The same as data, a JSON document.
std::string catalogue_json();

}  // namespace firebreak::commands
