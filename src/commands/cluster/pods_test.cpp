// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::cluster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* uid = "0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3";

TEST(PodUid, IsInTheControlGroupOfItsContainers) {
  // systemd's driver and cgroupfs, containerd, CRI-O and Docker, and a kubelet in a container itself.
  for (const char* group :
       {"/kubepods.slice/kubepods-burstable.slice/"
        "kubepods-burstable-pod0a1b2c3d_0e1f_4a5b_8c6d_7e8f90a1b2c3.slice/"
        "cri-containerd-91a7.scope",
        "/kubepods.slice/kubepods-pod0a1b2c3d_0e1f_4a5b_8c6d_7e8f90a1b2c3.slice/crio-91a7.scope/container",
        "/kubepods/besteffort/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3/91a7",
        "/system.slice/docker-77.scope/kubelet.slice/kubelet-kubepods.slice/"
        "kubelet-kubepods-pod0a1b2c3d_0e1f_4a5b_8c6d_7e8f90a1b2c3.slice/cri-containerd-91a7.scope"})
    EXPECT_EQ(pod_uid_in(group), uid) << group;
}

TEST(PodUid, OfAStaticPodIsTheHashOfItsFile) {
  EXPECT_EQ(pod_uid_in("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/91a7"),
            "0123456789abcdef0123456789abcdef");
}

TEST(PodUid, OfWhatIsNoPodIsEmpty) {
  for (const char* group : {"", "/", "/system.slice/firebreakd.service", "/kubepods", "/kubepods/burstable",
                            "/machine.slice/libpod-0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3.scope",
                            "/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3", "/kubepods/pod0a1b2c3d",
                            "/kubepods/podx", "/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c",
                            "/kubepods/xpod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3",
                            "/kubepods/pod0a1b2c3d-0e1f_4a5b-8c6d-7e8f90a1b2cg",
                            // Whoever has a session on the host may name it like this.
                            "/user.slice/user-1000.slice/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3",
                            "/../../user.slice/x/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3",
                            "/machine.slice/libpod-1.scope/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3",
                            "/system.slice/job.service/kubepods/pod0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3",
                            "/system.slice/kubepods-pod0a1b2c3d_0e1f_4a5b_8c6d_7e8f90a1b2c3.slice"})
    EXPECT_EQ(pod_uid_in(group), "") << group;
}

// A container that may write to its control group names a child of it after another pod.
TEST(PodUid, IsTheOneThatTheKubeletGave) {
  const std::string own = "0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3";
  const std::string slice =
      "/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod0a1b2c3d_0e1f_4a5b_8c6d_7e8f90a1b2c3.slice/cri-containerd-a.scope";
  EXPECT_EQ(pod_uid_in(slice + "/kubepods-pod99999999_1111_2222_3333_444455556666.slice"), own);
  EXPECT_EQ(pod_uid_in(slice + "/x/pod99999999-1111-2222-3333-444455556666"), own);
  EXPECT_EQ(pod_uid_in("/kubepods/pod" + own + "/91a7/pod99999999-1111-2222-3333-444455556666"), own);
}

TEST(Pods, AreThoseOfAList) {
  const auto pods = pods_in(R"({"kind": "PartialObjectMetadataList", "items": [
      {"metadata": {"namespace": "x", "name": "y", "uid": "1"}},
      {"metadata": {"namespace": "kube-system", "name": "z", "uid": "2",
                    "annotations": {"kubernetes.io/config.hash": "3"}}},
      {"metadata": {"namespace": "x", "name": "y"}}, {"metadata": 4}, {}, 5]})");
  EXPECT_THAT(pods, ElementsAre(Pod{"x", "y", "1", ""}, Pod{"kube-system", "z", "2", "3"}));
  EXPECT_EQ(find_pod(pods, "1"), &pods[0]);
  EXPECT_EQ(find_pod(pods, "3"), &pods[1]) << "a static pod";
  EXPECT_EQ(find_pod(pods, "4"), nullptr);
  EXPECT_EQ(find_pod(pods, ""), nullptr) << "and not the one without a hash";
}

TEST(Pods, WhatIsNoListHasNone) {
  for (const char* text : {"", "7", "[]", "{}", R"({"items": 3})", "{\"items\": [{"})
    EXPECT_THAT(pods_in(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace firebreak::cluster
