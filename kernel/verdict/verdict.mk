# SPDX-License-Identifier: Apache-2.0
# The verdict: a small kernel with KASAN, lockdep, fault injection and HMM, built from KERNEL_SOURCE; the debug build of the module on
# it, stock and patched; the classes, some schedules, and every word of the kernel's log. `fuzz` and `failing` run there too. All is
# slow there, so a client's end and its grace time are far away.
# With VERDICT_CONFIG=kcsan the kernel has KCSAN instead, and the module is the release build.
VERDICT_CONFIG ?= kasan
verdict := $(abspath $(here)/../build/kernel/verdict)
# Kernels of several releases lie beside each other, and what was built for each: linux-6.1, 580-6.1, linux-6.12-kcsan.
verdict_release := $(if $(KERNEL_SOURCE),$(shell sed -n 's/^VERSION = //p; s/^PATCHLEVEL = //p' $(KERNEL_SOURCE)/Makefile | paste -sd.))
verdict_name := $(verdict_release)$(addprefix -,$(filter-out kasan,$(VERDICT_CONFIG)))
verdict_kernel := $(verdict)/linux-$(verdict_name)
verdict_config := $(here)/verdict/config $(here)/verdict/config.$(VERDICT_CONFIG)
verdict_kernel_has := $(if $(filter kcsan,$(VERDICT_CONFIG)),KCSAN,KASAN$(comma) lockdep$(comma) failslab$(comma) fail_page_alloc)$(comma) DEVICE_PRIVATE$(comma) HMM_MIRROR
# `failing` has the release build: where an allocation of its own fails, the debug build's lock tracking asserts what is not so.
verdict_type := $(if $(filter failing,$(MAKECMDGOALS))$(filter kcsan,$(VERDICT_CONFIG)),release,debug)
verdict_build := $(verdict)/$(BRANCH)-$(verdict_name)$(if $(filter failing,$(MAKECMDGOALS)),-release)
verdict_make = $(MAKE) --no-print-directory -f $(here)/Makefile SOURCE=$(SOURCE) KERNEL=$(verdict_kernel) \
  IMAGE=$(verdict_kernel)/arch/x86/boot/bzImage TYPE=$(verdict_type) BUILD=$(verdict_build)
# Words for the guest's kernel, such as kcsan.skip_watch=500.
VERDICT_WORDS ?=
verdict_guest = GUEST_MIB=3072 GUEST_BOOT_S=180 GUEST_TIMEOUT_S=$(3) $(here)/proof/run.sh $(verdict_kernel)/arch/x86/boot/bzImage \
  $(verdict_build)/proof/$(1).img log_buf_len=8M log=full $(VERDICT_WORDS) $(2)
# From a client's condemnation to its kill, and its grace time: shorter ones, 5000,10000, take half as long where the machine does nothing else.
VERDICT_DELAYS ?= 10000,20000
VERDICT_UVM = $(call isolating_uvm,$(word 1,$(subst $(comma), ,$(VERDICT_DELAYS))),$(word 2,$(subst $(comma), ,$(VERDICT_DELAYS))))
VERDICT_SCHEDULES ?= 1,10
# Each branch keeps its logs in a folder of its own: several can run beside each other.
# Some of the classes, by the beginnings of their names with '+' between them; all without it.
VERDICT_CLASSES ?=
verdict_chosen = $(if $(VERDICT_CLASSES),$(comma)$(VERDICT_CLASSES))
# On the stock module, on the patched one, or on both.
VERDICT_MODULES ?= stock patched
VERDICT_RESULT ?= $(verdict)/verdict.json
FUZZ_UVM = $(call isolating_uvm,1000,2000)
FUZZ ?= 1,1800
FUZZ_RESULT ?= $(verdict)/fuzz.json
# The same, and how many percent of the allocations of its processes and of UVM's threads fail.
FAILING ?= 1,600,1
FAILING_RESULT ?= $(verdict)/failing.json
verdict_logs = $(addprefix $(verdict_build)/,$(addsuffix .log,$(VERDICT_MODULES)) schedules.log)
verdict_source = $(if $(filter 535,$(BRANCH)),, SOURCE=PATH)
verdict_command = make -C kernel verdict KERNEL_SOURCE=PATH$(verdict_source)$(if \
  $(filter-out kasan,$(VERDICT_CONFIG)), VERDICT_CONFIG=$(VERDICT_CONFIG))$(if $(VERDICT_WORDS), VERDICT_WORDS='$(VERDICT_WORDS)')$(if \
  $(filter 1,$(words $(VERDICT_MODULES))), VERDICT_MODULES=$(VERDICT_MODULES))$(if \
  $(VERDICT_CLASSES), VERDICT_CLASSES=$(VERDICT_CLASSES)) VERDICT_DELAYS=$(VERDICT_DELAYS) VERDICT_SCHEDULES=$(VERDICT_SCHEDULES)

.PHONY: verdict verdict-kernel verdict-modules fuzz failing
verdict-kernel: $(verdict_kernel)/.built
$(verdict_kernel)/.built: $(verdict_config)
	@[ -f "$(KERNEL_SOURCE)/Kconfig" ] || { echo "say KERNEL_SOURCE=path of an unpacked Linux source, such as Debian's linux-source-6.1" >&2; exit 1; }
	@mkdir -p $(@D) && cat $^ >$(verdict_kernel).config
	@echo "building the verdict's kernel (some minutes; log: $(verdict_kernel).log)"
	+@$(MAKE) -C $(KERNEL_SOURCE) O=$(@D) KCONFIG_ALLCONFIG=$(verdict_kernel).config allnoconfig >$(verdict_kernel).log 2>&1
	@sed -n 's/^CONFIG_\(.*\)=n$$/# CONFIG_\1 is not set/p; /^CONFIG_.*=[^n]/p' $(verdict_kernel).config | while read -r line; do \
	  grep -qxF "$$line" $(@D)/.config || { echo "the kernel has no $$line" >&2; exit 1; }; done
	+@$(MAKE) -C $(KERNEL_SOURCE) O=$(@D) bzImage modules >>$(verdict_kernel).log 2>&1 || { tail -n 30 $(verdict_kernel).log >&2; exit 1; }
	@touch $@

verdict-modules: verdict-kernel
	+@$(verdict_make) $(verdict_build)/proof/stock.img $(verdict_build)/proof/patched.img

verdict: verdict-modules
	@$(if $(filter stock,$(VERDICT_MODULES)),$(call verdict_guest,stock,model=arch=1$(comma)gpus=2 proof=stock$(verdict_chosen),3600) >$(verdict_build)/stock.log || true)
	@$(if $(filter patched,$(VERDICT_MODULES)),$(call verdict_guest,patched,load=versions model=arch=1$(comma)gpus=2 $(VERDICT_UVM) \
	  proof=patched$(verdict_chosen),3600) >$(verdict_build)/patched.log || true)
	@$(call verdict_guest,patched,model=arch=0 $(VERDICT_UVM) proof=schedules$(comma)$(VERDICT_SCHEDULES),3600) >$(verdict_build)/schedules.log || true
	@$(call verdict_scan,$(VERDICT_RESULT),$(verdict_command),$(verdict_logs))

# fuzz_guest,LOG,WORDS
fuzz_guest = $(call verdict_guest,patched,model=arch=1 $(FUZZ_UVM) proof=fuzz$(comma)$(2),$(shell echo \
  $$(($(word 2,$(subst $(comma), ,$(2))) + 900)))) >$(verdict_build)/$(1).log || true

fuzz: verdict-modules
	@$(call fuzz_guest,fuzz,$(FUZZ))
	@$(call verdict_scan,$(FUZZ_RESULT),make -C kernel fuzz FUZZ=$(FUZZ) KERNEL_SOURCE=PATH$(verdict_source),$(verdict_build)/fuzz.log)

failing: verdict-modules
	@$(call fuzz_guest,failing,$(FAILING))
	@$(call verdict_scan,$(FAILING_RESULT),make -C kernel failing FAILING=$(FAILING) KERNEL_SOURCE=PATH$(verdict_source),$(verdict_build)/failing.log)

# verdict_scan,JSON,COMMAND,LOGS
define verdict_scan
awk -v driver=$(VERSION) -v build=$(verdict_type) -v has="$(verdict_kernel_has)" -v kernel=$$(sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(verdict_kernel)/include/generated/utsrelease.h) \
  -v commit=$(repository_commit) -v date=$$(date -u +%F) -v json=$(1) -v command="$(2)" -f $(here)/verdict/scan.awk $(here)/verdict/allowed $(3)
endef
