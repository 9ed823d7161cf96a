# SPDX-License-Identifier: Apache-2.0
# The proof: guest programs, an initramfs for each module, and the run of both in QEMU. IMAGE is the guest's kernel.
comma := ,
proof_sources := $(wildcard $(here)/proof/*.c) $(source)/nvidia-uvm/nvCpuUuid.c
proof_program := $(build)/proof/proof
release := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KERNEL)/include/generated/utsrelease.h)
guest_image := $(build)/../guest/vmlinux-$(release)
IMAGE ?= $(guest_image)
PROOF_TOOLS := sh rm mount insmod rmmod mknod sed tr head tail echo dmesg grep poweroff cat sleep kill

$(proof_program): $(proof_sources) $(wildcard $(here)/proof/*.h) $(here)/model/abi.h $(here)/isolation/src/uvm_fault_isolation_test_ioctl.h
	@mkdir -p $(@D)
	@$(CC) -std=gnu11 -O1 -static -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-parameter -DPROOF_BRANCH=$(BRANCH) -o $@ $(proof_sources) \
	  -I$(here)/proof -I$(here)/model -I$(here)/isolation/src -I$(source)/nvidia-uvm -I$(source)/common/inc

# The image of Debian's own package, unpacked here: nothing is installed and /boot stays as it is. The package's last hundreds of MiB are modules.
$(guest_image):
	@mkdir -p $(@D)
	@cd $(@D) && apt-get download -qq linux-image-$(release) && \
	  { dpkg-deb --fsys-tarfile linux-image-$(release)_*.deb || true; } 2>/dev/null | tar -x -O --occurrence=1 ./boot/vmlinuz-$(release) >$@
	@$(here)/proof/unpack $@
	@rm -f $(@D)/linux-image-$(release)_*.deb

# another_version,FOLDER,NAME,EDIT: the model, as an nvidia.ko of another version, or of none.
define another_version
objcopy -O binary --only-section=.modinfo --set-section-flags .modinfo=alloc $(1)/gpu-model.ko $(1)/modinfo && \
  sed -z -i '$(3)' $(1)/modinfo && \
  objcopy --update-section .modinfo=$(1)/modinfo $(1)/gpu-model.ko $(1)/gpu-model-$(2).ko && rm $(1)/modinfo
endef

# The model's exports lose their versions: nvidia-uvm.ko was built without knowing them.
$(build)/proof/%.img: $(build)/%/nvidia-uvm.ko $(model_module) $(proof_program) $(here)/proof/init
	@rm -rf $(@D)/$*.root && mkdir -p $(@D)/$*.root/bin $(@D)/$*.root/proc $(@D)/$*.root/sys $(@D)/$*.root/dev
	@cp /bin/busybox $(@D)/$*.root/bin/ && for tool in $(PROOF_TOOLS); do ln -s busybox $(@D)/$*.root/bin/$$tool; done
	@cp $(here)/proof/init $(proof_program) $(@D)/$*.root/
	@objcopy --strip-debug $< $(@D)/$*.root/nvidia-uvm.ko
	@objcopy --strip-debug -R __kcrctab $(model_module) $(@D)/$*.root/gpu-model.ko
	@$(call another_version,$(@D)/$*.root,other,s/^version=.*/version=1.2.3/)
	@$(call another_version,$(@D)/$*.root,nameless,/^version=/d)
	@cd $(@D)/$*.root && find . | cpio -o -H newc --quiet | gzip -1 >$@
	@rm -rf $(@D)/$*.root

# make guest-stock GUEST="model=arch=0 proof=conformance": one run by hand, with its output.
.PHONY: guest-stock guest-patched
guest-stock guest-patched: guest-%: $(build)/proof/%.img $(IMAGE)
	@$(here)/proof/run.sh $(IMAGE) $< $(GUEST)

# isolating_uvm,KILL_DELAY_MS,GRACE_MS: how long that time is where the neighbours work until nothing is left of a client.
isolating_uvm = uvm=uvm_fault_isolation_mode=2,uvm_fault_isolation_kill_delay_ms=$(1),uvm_fault_isolation_grace_ms=$(2)

# What `make test` runs: conformance on both architectures, the classes on both modules, mistakes, some schedules.
SCHEDULES ?= 1,6
# How often each class is played on the patched module: the first time the emulator translates the code as well, which a ratio would count.
TIMES ?= 1
# Of the GPU on which classes and mutants are played: 1 Hopper, 0 Turing.
ARCH ?= 1
# NVIDIA's Makefile means the processor by that name.
MAKEOVERRIDES := $(filter-out ARCH=%,$(MAKEOVERRIDES))
unexport ARCH
RESULT ?= $(build)/isolation.json
RUN_AS ?= make -C kernel classes
# Where `make results` keeps the tables of all branches.
RESULTS ?= $(here)/../results/qemu/isolation.json
# The classes on the patched module, in parts with a guest each: half of the time a class waits for the end of a grace time.
CLASS_PARTS := 0-20 21-40 41-58 59-99
patched_logs := $(CLASS_PARTS:%=$(build)/proof/patched-%.log)
# One takes about five seconds.
patched_timeout_s = $(shell echo $$((900 * $(TIMES))))
schedules_timeout_s = $(shell echo $$((600 + 15 * $(lastword $(subst $(comma), ,$(SCHEDULES))))))
guest = GUEST_TIMEOUT_S=$(3) $(here)/proof/run.sh $(IMAGE) $(build)/proof/$(1).img $(2)
# The last one that changed this folder: what ran is all in it.
repository_commit = $(shell git -C $(here) log -1 --format=%h --abbrev=12 -- . 2>/dev/null)

# How often `make probes` switches the guest's probes on and off.
PROBES ?= 100

# first_report,LOG: where the guest's kernel stood still, both processors' stacks, or what it found wrong first.
first_report = sed -n '/watchdog: BUG\|Kernel panic\|Call Trace/,$$p' $(1) | head -n 120 >&2

# Each run has a guest of its own, which waits half of the time: two processors take make -j4.
.PHONY: test load conformance hopper turing classes classes-stock classes-patched mistakes schedules probes $(CLASS_PARTS:%=classes-patched-%)
test: load conformance mistakes classes schedules

# Beside an nvidia.ko of another version the patched module does not load; beside its own it does, its own tests pass, and it works.
load: $(build)/proof/patched.img $(IMAGE)
	@$(call guest,patched,load=versions model=arch=1$(comma)gpus=2 $(call isolating_uvm,1500,3000) proof=patched$(comma)0,180) >$(build)/proof/load.log || \
	  { tail -n 20 $(build)/proof/load.log >&2; $(call first_report,$(build)/proof/load.log); exit 1; }
	@grep '"load beside\|"a setting\|"built-in\|"root without\|"unload' $(build)/proof/load.log

conformance: hopper turing

hopper: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=1 proof=quick,180) | tee $(build)/proof/hopper.log

turing: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=0 proof=quick,180) | tee $(build)/proof/turing.log

mistakes: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=1 proof=wrong,240) | tee $(build)/proof/mistakes.log

# What these say of the classes is judged below.
classes-stock: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=$(ARCH)$(comma)gpus=2 proof=stock,1200) >$(build)/proof/stock.log || true

classes-patched: $(CLASS_PARTS:%=classes-patched-%)

$(CLASS_PARTS:%=classes-patched-%): classes-patched-%: $(build)/proof/patched.img $(IMAGE)
	@$(call guest,patched,model=arch=$(ARCH)$(comma)gpus=2 $(call isolating_uvm,1500,3000) proof=patched$(comma)$*$(comma)$(TIMES),$(patched_timeout_s)) >$(build)/proof/patched-$*.log || true

classes: classes-stock classes-patched
	@awk -v driver=$(VERSION) -v kernel=$(release) -v commit=$(repository_commit) -v date=$$(date -u +%F) -v arch=$(ARCH) -v json=$(RESULT) \
	  -v command="$(RUN_AS)" -f $(here)/proof/table.awk $(build)/proof/stock.log $(patched_logs) || \
	  { tail -n 8 $(build)/proof/stock.log $(patched_logs) >&2; $(foreach log,$(build)/proof/stock.log $(patched_logs),$(call first_report,$(log));) \
	    echo "not as expected:" >&2; grep -H '"as_expected": false' $(build)/proof/stock.log $(patched_logs) >&2; exit 1; }

# Not of `make test`: it is of the emulator, and takes some minutes.
probes: $(build)/proof/patched.img $(IMAGE)
	@$(call guest,patched,model=arch=1 proof=probes$(comma)$(PROBES),$(shell echo $$((120 + 5 * $(PROBES))))) >$(build)/proof/probes.log || \
	  { tail -n 8 $(build)/proof/probes.log >&2; $(call first_report,$(build)/proof/probes.log); exit 1; }
	@grep '"probes"' $(build)/proof/probes.log

schedules: $(build)/proof/patched.img $(IMAGE)
	@$(call guest,patched,model=arch=1 $(call isolating_uvm,300,3000) proof=schedules$(comma)$(SCHEDULES),$(schedules_timeout_s)) | tee $(build)/proof/schedules.log

# All of it for one branch, into RESULTS in the place of that branch's last table. What fails is recorded too, and said.
.PHONY: results
results:
	@failed=; for run in conformance mistakes classes schedules; do \
	  $(MAKE) --no-print-directory -f $(here)/Makefile $$run SCHEDULES=$(SCHEDULES) TIMES=3 ARCH=$(ARCH) RUN_AS="make -C kernel results SCHEDULES=$(SCHEDULES)" || \
	    failed="$$failed $$run"; done; \
	  $(here)/proof/record $(RESULTS) $(RESULT) $(addprefix $(build)/proof/,hopper.log turing.log mistakes.log schedules.log); \
	  [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

# One thing at a time taken away from the patched module, in a copy of its tree: each has to fail a class. MUTANTS names
# some of them; what the result says of the others stays.
MUTANTS ?=
MUTANTS_RESULT ?= $(here)/../results/qemu/mutants.json
# Another such result: what noticed a mutant there is played first.
MUTANTS_LIKELY ?= $(if $(filter 535-1,$(BRANCH)-$(ARCH)),,$(here)/../results/qemu/mutants.json)
mutant_tree := $(build)/mutant
.PHONY: mutants mutant-run
mutants: $(build)/proof/patched.img $(IMAGE)
	@[ $(mutant_tree)/.copied -nt $(build)/patched/.hooked ] || { rm -rf $(mutant_tree) && cp -a $(build)/patched $(mutant_tree) && \
	  grep -rlI '$(build)/patched/' $(mutant_tree) | xargs -d '\n' sed -i 's#$(build)/patched/#$(mutant_tree)/#g' && touch $(mutant_tree)/.copied; }
	@cd $(build)/patched/nvidia-uvm && for file in *.[ch]; do cmp -s $$file $(mutant_tree)/nvidia-uvm/$$file || cp $$file $(mutant_tree)/nvidia-uvm/; done
	+@$(call build_module,$(mutant_tree),$(build)/mutant.log)
	@$(here)/proof/mutate $(here)/isolation/mutants $(mutant_tree) $(MUTANTS_RESULT) '$(MUTANTS_LIKELY)' $(ARCH) \
	  '$(MAKE) --no-print-directory -f $(here)/Makefile SOURCE=$(SOURCE) mutant-run' \
	  '{"driver": "$(VERSION)", "kernel": "$(release)", "commit": "$(repository_commit)", "date": "'$$(date -u +%F)'", "command": "make -C kernel mutants$(if $(filter 535,$(BRANCH)),, SOURCE=PATH)$(if $(filter 0,$(ARCH)), ARCH=0)"}' $(MUTANTS)

mutant-run: $(model_module) $(proof_program)
	@$(call build_module,$(mutant_tree),$(build)/mutant.log)
	@$(MAKE) --no-print-directory -f $(here)/Makefile SOURCE=$(SOURCE) $(build)/proof/mutant.img
	@$(call guest,mutant,$${MUTANT_LOAD-load=versions} model=arch=$$MUTANT_ARCH$(comma)gpus=2 $(call isolating_uvm,1500,3000) proof=patched$(comma)$$MUTANT_CLASSES$(comma)$$MUTANT_TIMES,300) || true
