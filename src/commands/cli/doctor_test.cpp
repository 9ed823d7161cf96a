// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/doctor.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* open_version =
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (someone)\nGCC "
    "version: 12.2.0";
constexpr const char* closed_version =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n";

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    options_.find_program = [this](const std::string& name) -> std::optional<std::string> {
      return has_mps_ ? std::optional("/usr/bin/" + name) : std::nullopt;
    };
    options_.library_folders = {"/nowhere", "/usr/lib"};
    options_.software_gpu_library = "/firebreak/libcuda.so.1";
    options_.probe_result = [this](guard::Probed what) {
      return what == guard::Probed::Spares ? spare_probe_result_ : guard_probe_result_;
    };
  }

  /// A machine that has everything.
  void equip() {
    kernel_.set_file("/proc/driver/nvidia/version", open_version);
    kernel_.set_file("/proc/driver/nvidia-uvm/fault_isolation",
                     "format 1\nmode on\ncondemned 0\nkilled 0\nsinks 0\n");
    kernel_.set_file("/proc/modules", "nvidia_uvm 1 2 - Live\nnvidia 3 4 nvidia_uvm, Live\n");
    for (const char* node : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "kmsg"}) {
      kernel_.set_device(std::string("/dev/") + node, {});
    }
    kernel_.set_file("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    kernel_.set_file("/usr/lib/libcuda.so.1", "");
    kernel_.set_file("/firebreak/libcuda.so.1", "");
    has_mps_ = true;
  }

  Finding finding(const std::string& name) {
    for (const Finding& found : examine(kernel_, options_)) {
      if (found.name.starts_with(name)) return found;
    }
    ADD_FAILURE() << "nothing about " << name;
    return {};
  }

  os::FakeKernel kernel_;
  ExamineOptions options_;
  bool has_mps_ = false;
  guard::ProbeResult guard_probe_result_{guard::ProbeResult::Answer::Works, ""};
  guard::ProbeResult spare_probe_result_{guard::ProbeResult::Answer::Works, ""};
};

TEST_F(DoctorTest, FindsNothingWrongWithAMachineThatHasEverything) {
  equip();
  for (const Finding& found : examine(kernel_, options_)) {
    EXPECT_EQ(found.availability, Availability::Good) << found.name << ": " << found.detail;
    EXPECT_TRUE(found.remedy.empty()) << found.name;
  }
  EXPECT_EQ(finding("NVIDIA driver").detail, "580.159.04, open kernel modules");
  EXPECT_EQ(finding("libcuda").detail, "/usr/lib/libcuda.so.1");
  EXPECT_EQ(finding("/dev/nvidia1").availability, Availability::Good);
}

TEST_F(DoctorTest, SaysForEverythingThatIsMissingWhatItIsForAndWhatToDo) {
  for (const Finding& found : examine(kernel_, options_)) {
    if (found.availability == Availability::Good) continue;
    EXPECT_FALSE(found.needed_for.empty()) << found.name;
    EXPECT_FALSE(found.remedy.empty()) << found.name;
  }
  EXPECT_EQ(finding("NVIDIA driver").availability, Availability::Missing);
  EXPECT_EQ(finding("/dev/nvidia0").availability, Availability::Missing);
  EXPECT_EQ(finding("software GPU").availability, Availability::Missing);
}

TEST_F(DoctorTest, TellsClosedModulesFromOpenOnes) {
  equip();
  kernel_.set_file("/proc/driver/nvidia/version", closed_version);
  EXPECT_EQ(finding("NVIDIA driver").availability, Availability::Limited);
  EXPECT_EQ(finding("NVIDIA driver").detail, "535.104.05, closed kernel modules");
}

TEST_F(DoctorTest, TellsANodeThatIsNotThereFromOneThatIsRefused) {
  equip();
  kernel_.remove("/dev/nvidia-uvm-tools");
  EXPECT_THAT(finding("/dev/nvidia-uvm-tools").remedy, HasSubstr("nvidia-modprobe"));
  kernel_.refuse("/dev/nvidia-uvm-tools", Error{ErrorCode::PermissionDenied, "Permission denied", {}});
  EXPECT_THAT(finding("/dev/nvidia-uvm-tools").remedy, HasSubstr("access"));
  kernel_.refuse("/dev/kmsg", Error{ErrorCode::PermissionDenied, "Operation not permitted", {}});
  EXPECT_THAT(finding("/dev/kmsg").remedy, HasSubstr("CAP_SYSLOG"));
  kernel_.permit("/dev/kmsg");
  os::FakeDevice log;
  log.read = [](const os::Fd&, std::span<std::byte>) -> Result<std::size_t> {
    return fail(ErrorCode::Internal, "read: No such device");
  };
  kernel_.set_device("/dev/kmsg", log);
  EXPECT_EQ(finding("/dev/kmsg").availability, Availability::Missing);
  EXPECT_THAT(finding("/dev/kmsg").detail, HasSubstr("not read: read: No such device"));
}

TEST_F(DoctorTest, SaysThatThePageWasNotBuilt) {
  equip();
  options_.has_page = false;
  EXPECT_EQ(finding("page of the characterization").availability, Availability::Missing);
  EXPECT_THAT(finding("page of the characterization").remedy, HasSubstr("npm"));
}

TEST_F(DoctorTest, OneModuleDoesNotPassForAnother) {
  equip();
  kernel_.set_file("/proc/modules", "nvidia_uvm 1 2 - Live\n");
  EXPECT_EQ(finding("module nvidia_uvm").availability, Availability::Good);
  EXPECT_EQ(finding("module nvidia").availability, Availability::Missing);
}

TEST_F(DoctorTest, KnowsWhoseDescriptorsItMayDuplicate) {
  equip();
  EXPECT_EQ(finding("another process").availability, Availability::Good);
  kernel_.set_file("/proc/self/status", "CapEff:\t0000000000000000\n");
  EXPECT_EQ(finding("another process").availability, Availability::Limited);
  kernel_.set_file("/proc/sys/kernel/yama/ptrace_scope", "0\n");
  EXPECT_EQ(finding("another process").availability, Availability::Limited);
  kernel_.set_file("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_EQ(finding("another process").availability, Availability::Missing);
  EXPECT_THAT(finding("another process").remedy, HasSubstr("ptrace_scope=0"));
}

TEST_F(DoctorTest, PrintsWhatIsMissingInWordsAndTheRestInOneLine) {
  equip();
  EXPECT_THAT(to_text(examine(kernel_, options_)), Not(HasSubstr("to do")));
  has_mps_ = false;
  const std::string text = to_text(examine(kernel_, options_));
  EXPECT_THAT(text, HasSubstr("missing nvidia-cuda-mps-control: not in PATH\n        needed for sharing"));
  EXPECT_THAT(text, HasSubstr("ok      NVIDIA driver: 580.159.04"));
}

// Who reads the list has to know in the end whether it is enough for what they want.
TEST_F(DoctorTest, EndsWithAVerdictForEachUse) {
  equip();
  for (const UseVerdict& verdict : verdicts_of(examine(kernel_, options_))) {
    EXPECT_EQ(verdict.answer, Availability::Good) << to_string(verdict.use) << ": " << verdict.because;
    EXPECT_EQ(verdict.because, "");
  }
  has_mps_ = false;
  kernel_.remove("/dev/nvidia-uvm-tools");
  kernel_.set_file("/proc/self/status", "CapEff:\t0000000000000000\n");
  const std::string text = to_text(examine(kernel_, options_));
  EXPECT_THAT(text,
              HasSubstr("no      share a real GPU between tenants (nvidia-cuda-mps-control: not in PATH)\n"));
  EXPECT_THAT(text,
              HasSubstr("no      say within a millisecond who caused a memory fault (/dev/nvidia-uvm-tools"));
  EXPECT_THAT(text, HasSubstr("partly  let the last kernels of a dying tenant end (another process"));
  EXPECT_THAT(text, HasSubstr("yes     try everything without a GPU (FIREBREAK_GPU=soft)\n"));
}

TEST_F(DoctorTest, ClosedModulesAreGoodEnoughForSharing) {
  equip();
  kernel_.set_file("/proc/driver/nvidia/version", closed_version);
  EXPECT_THAT(to_text(examine(kernel_, options_)), HasSubstr("yes     share a real GPU between tenants\n"));
}

// A GPU has two MPS domains, and one in that mode serves a single server.
TEST_F(DoctorTest, TellsOfAGpuThatServesOneDomainAlone) {
  equip();
  options_.exclusive_gpus = {"GPU-7"};
  EXPECT_EQ(finding("compute mode of GPU-7").availability, Availability::Missing);
  EXPECT_EQ(finding("compute mode of GPU-7").remedy, "nvidia-smi -c DEFAULT -i GPU-7");
  EXPECT_THAT(to_text(examine(kernel_, options_)),
              HasSubstr("no      share a real GPU between tenants (compute"));
}

TEST_F(DoctorTest, TellsProgramsTheSame) {
  equip();
  has_mps_ = false;
  const auto document = nlohmann::json::parse(to_json(examine(kernel_, options_), false));
  EXPECT_EQ(document["usable"], false);
  EXPECT_EQ(document["verdicts"][0]["use"], "sharing");
  EXPECT_EQ(document["verdicts"][0]["answer"], "missing");
  EXPECT_EQ(document["findings"].size(), examine(kernel_, options_).size());
  EXPECT_EQ(document["findings"][0]["name"], "NVIDIA driver");
}

TEST(DriverVersionTest, NeedsANumber) {
  EXPECT_FALSE(parse_driver_version(""));
  EXPECT_FALSE(parse_driver_version("NVRM version: unknown\n580.1"));
  EXPECT_EQ(parse_driver_version(open_version)->number, "580.159.04");
}

TEST_F(DoctorTest, SaysWhetherTheDriverIsolatesFaultsAndWhatItHasSeen) {
  equip();
  EXPECT_EQ(finding("fault isolation").detail, "on");
  const std::string path = "/proc/driver/nvidia-uvm/fault_isolation";
  kernel_.set_file(path, "format 1\nmode on\ncondemned 1\nkilled 1\nsinks 2\nfault no_range contained 3\n");
  EXPECT_EQ(finding("fault isolation").detail, "on; 3 contained (3 no_range); 1 killed by the module");
  kernel_.set_file(path,
                   "format 1\nmode report\nfault no_range reported 1\nforeseen condemned 1\n"
                   "foreseen fault no_range contained 1\n");
  EXPECT_THAT(finding("fault isolation").detail, HasSubstr("mode on would have come to: 1 contained"));
  kernel_.set_file(path, "format 1\nmode off\ncondemned 0\nkilled 0\nsinks 0\n");
  EXPECT_EQ(finding("fault isolation").availability, Availability::Limited);
  EXPECT_THAT(finding("fault isolation").remedy, HasSubstr("uvm_fault_isolation_mode"));
  kernel_.set_file(path, "format 2\n");
  EXPECT_EQ(finding("fault isolation").availability, Availability::Missing);
  EXPECT_THAT(finding("fault isolation").detail, HasSubstr("format 2"));
  kernel_.remove(path);
  EXPECT_EQ(finding("fault isolation").availability, Availability::Missing);
  EXPECT_THAT(finding("fault isolation").detail, HasSubstr("not the patched one"));
}

TEST_F(DoctorTest, SaysWhetherTheGuardWorks) {
  equip();
  guard_probe_result_ = {guard::ProbeResult::Answer::Fails, "the GPU may not"};
  EXPECT_EQ(finding("guard").availability, Availability::Missing);
  EXPECT_EQ(finding("guard").detail, "fails: the GPU may not");
  guard_probe_result_ = {guard::ProbeResult::Answer::Untested, "no GPU"};
  EXPECT_EQ(finding("guard").availability, Availability::Limited);
  EXPECT_EQ(finding("guard").detail, "not tested: no GPU");
}

}  // namespace
}  // namespace firebreak::cli
