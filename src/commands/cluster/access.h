// SPDX-License-Identifier: Apache-2.0
/// Tells where the API server is, and who we are to it.
#pragma once

#include <functional>
#include <string>

#include "ground/base/result.h"

namespace firebreak::cluster {

struct ApiAccess {
  std::string url;               ///< "https://10.0.0.1:6443"
  std::string authorities;       ///< PEM; empty: those of this machine
  std::string token;             ///< empty: the certificate says who we are
  std::string certificate = {};  ///< PEM; with its key, or both empty
  std::string key = {};
};

/// Reads the current context of a file as kubectl's. NotFound: there is none. InvalidArgument: something in
/// it is missing, or is not done here: programs that log in, other names in certificates, servers that nobody
/// checks.
Result<ApiAccess> access_by_kubeconfig(const std::string& path);

/// Folder of a pod's service account.
inline constexpr const char* service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
/// `variable`: the environment. NotFound: we are in no pod.
Result<ApiAccess> access_in_pod(const std::function<std::string(const char*)>& variable,
                                const std::string& folder = service_account_folder);

}  // namespace firebreak::cluster
