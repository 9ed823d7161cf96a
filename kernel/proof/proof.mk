# SPDX-License-Identifier: Apache-2.0
# The proof: guest programs, an initramfs for each module, and the run of both in QEMU. IMAGE is the guest's kernel.
comma := ,
proof_sources := $(wildcard $(here)/proof/*.c) $(source)/nvidia-uvm/nvCpuUuid.c
proof_program := $(build)/proof/proof
release := $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' $(KERNEL)/include/generated/utsrelease.h)
guest_image := $(build)/../guest/vmlinuz-$(release)
IMAGE ?= $(guest_image)
PROOF_TOOLS := sh mount insmod rmmod mknod sed tr head tail echo dmesg grep poweroff cat sleep kill

$(proof_program): $(proof_sources) $(wildcard $(here)/proof/*.h) $(here)/model/abi.h
	@mkdir -p $(@D)
	@$(CC) -std=gnu11 -O1 -static -Wall -Wextra -Werror -Wno-missing-field-initializers -Wno-unused-parameter -o $@ $(proof_sources) \
	  -I$(here)/proof -I$(here)/model -I$(source)/nvidia-uvm -I$(source)/common/inc

# The image of Debian's own package, unpacked here: nothing is installed and /boot stays as it is.
$(guest_image):
	@mkdir -p $(@D)
	@cd $(@D) && apt-get download -qq linux-image-$(release) && dpkg -x linux-image-$(release)_*.deb unpacked
	@cp $(@D)/unpacked/boot/vmlinuz-$(release) $@
	@rm -rf $(@D)/unpacked $(@D)/linux-image-$(release)_*.deb

# The model's exports lose their versions: nvidia-uvm.ko was built without knowing them.
$(build)/proof/%.img: $(build)/%/nvidia-uvm.ko $(model_module) $(proof_program) $(here)/proof/init
	@rm -rf $(@D)/$*.root && mkdir -p $(@D)/$*.root/bin $(@D)/$*.root/proc $(@D)/$*.root/sys $(@D)/$*.root/dev
	@cp /bin/busybox $(@D)/$*.root/bin/ && for tool in $(PROOF_TOOLS); do ln -s busybox $(@D)/$*.root/bin/$$tool; done
	@cp $(here)/proof/init $(proof_program) $(@D)/$*.root/
	@objcopy --strip-debug $< $(@D)/$*.root/nvidia-uvm.ko
	@objcopy --strip-debug -R __kcrctab $(model_module) $(@D)/$*.root/gpu-model.ko
	@cd $(@D)/$*.root && find . | cpio -o -H newc --quiet | gzip -1 >$@
	@rm -rf $(@D)/$*.root

# make guest-stock GUEST="model=arch=0 proof=conformance": one run by hand, with its output.
.PHONY: guest-stock guest-patched
guest-stock guest-patched: guest-%: $(build)/proof/%.img $(IMAGE)
	@$(here)/proof/run.sh $(IMAGE) $< $(GUEST)

# What `make test` runs: conformance on both architectures, the classes on both modules, mistakes, some schedules.
PATCHED_UVM := uvm=uvm_fault_isolation_mode=2,uvm_fault_isolation_kill_delay_ms=1500,uvm_fault_isolation_grace_ms=1000
SCHEDULES ?= 1,6
RESULT ?= $(build)/isolation.json
guest = GUEST_TIMEOUT_S=$(3) $(here)/proof/run.sh $(IMAGE) $(build)/proof/$(1).img $(2)
repository_commit = $(shell git -C $(here) rev-parse --short=12 HEAD 2>/dev/null)

.PHONY: test conformance classes mistakes schedules
test: conformance mistakes classes schedules

conformance: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=1 proof=quick,60) | tee $(build)/proof/hopper.log
	@$(call guest,stock,model=arch=0 proof=quick,60) | tee $(build)/proof/turing.log

mistakes: $(build)/proof/stock.img $(IMAGE)
	@$(call guest,stock,model=arch=1 proof=wrong,60) | tee $(build)/proof/mistakes.log

classes: $(build)/proof/stock.img $(build)/proof/patched.img $(IMAGE)
	@$(call guest,stock,model=arch=1$(comma)gpus=2 proof=stock,180) >$(build)/proof/stock.log || true
	@$(call guest,patched,model=arch=1$(comma)gpus=2 $(PATCHED_UVM) proof=patched,240) >$(build)/proof/patched.log || true
	@awk -v driver=$(VERSION) -v kernel=$(release) -v commit=$(repository_commit) -v date=$$(date -u +%F) -v json=$(RESULT) \
	  -v command="make -C kernel classes" -f $(here)/proof/table.awk $(build)/proof/stock.log $(build)/proof/patched.log

schedules: $(build)/proof/patched.img $(IMAGE)
	@$(call guest,patched,model=arch=1 $(PATCHED_UVM) proof=schedules$(comma)$(SCHEDULES),1800) | tee $(build)/proof/schedules.log
