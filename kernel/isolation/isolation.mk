# SPDX-License-Identifier: Apache-2.0
# The patched tree: a copy of the source, the hooks put in by spatch, our files beside NVIDIA's.
isolation_sources := $(wildcard $(here)/isolation/src/*.c $(here)/isolation/src/*.h)
isolation_hooks := $(addprefix $(here)/isolation/,apply keep_lines bodies relied_on) $(wildcard $(here)/isolation/hooks/*)
isolation_objects := $(patsubst %.c,nvidia-uvm/%.o,$(notdir $(filter %.c,$(isolation_sources))))

# A file more or less is another tree: its Kbuild names each.
isolation_list := $(build)/isolation.objects
ifneq ($(shell cat $(isolation_list) 2>/dev/null),$(isolation_objects))
  $(shell mkdir -p $(build) && echo '$(isolation_objects)' >$(isolation_list))
endif

# The tests of the kernel (conftest) take longer than the compilation and are the same for both trees.
$(build)/patched/.hooked: $(here)/Makefile $(here)/isolation/isolation.mk $(isolation_hooks) $(source)/Kbuild $(isolation_list) \
    | $(if $(filter patched,$(MAKECMDGOALS)),,$(stock_module))
	$(call copy_source,$(@D))
	[ ! -d $(build)/stock/conftest ] || cp -a $(build)/stock/conftest $(@D)/
	$(here)/isolation/bodies $(@D) $(BRANCH)
	$(here)/isolation/apply $(@D) $(BRANCH) >$(build)/hooks.log
	tail -n 1 $(build)/hooks.log
	printf 'NVIDIA_UVM_SOURCES += %s\n' $(isolation_objects:.o=.c) >>$(@D)/nvidia-uvm/nvidia-uvm-sources.Kbuild
	printf 'NVIDIA_UVM_CFLAGS += -DUVM_FAULT_ISOLATION_BRANCH=%s\n' $(BRANCH) >>$(@D)/nvidia-uvm/nvidia-uvm-sources.Kbuild
	touch $@

# Files that did not change keep their times, so that a rebuild compiles what did.
$(patched_module): $(build)/patched/.hooked $(isolation_sources)
	cp -u --preserve=timestamps $(isolation_sources) $(@D)/nvidia-uvm/
	@echo "building $(VERSION) with fault isolation (a minute or two; log: $(build)/patched.log)"
	+@$(call build_module,$(@D),$(build)/patched.log)

# Before DKMS builds for a kernel: RELEASE is its name.
.PHONY: same-version
same-version:
	@$(here)/isolation/same_version $(VERSION) $(RELEASE)

# The patch as a series for NVIDIA's tree, into OUT.
OUT ?= $(build)/series
.PHONY: series
series:
	@$(here)/isolation/series $(source) $(BRANCH) $(OUT)

# No instruction of the benign path may differ.
.PHONY: objects
objects: $(stock_module) $(patched_module)
	$(here)/isolation/compare $(build)/stock $(build)/patched >$(build)/objects.log || { cat $(build)/objects.log >&2; exit 1; }
	tail -n 1 $(build)/objects.log

# No warning more than without us; our files alone with more of them than the kernel's default, and what sparse says. They are compiled
# anew for it, so not while `objects` reads them.
.PHONY: lint
lint: $(stock_module) $(patched_module) | $(filter objects,$(MAKECMDGOALS))
	$(here)/isolation/same_version_test
	$(here)/hardware/try_test
	$(if $(filter 535,$(BRANCH)),$(here)/isolation/bodies_test $(source) $(BRANCH))
	$(here)/isolation/new_warnings $(build)/stock.log $(build)/patched.log
	$(here)/isolation/lint $(build)/patched $(kernel_source) $(KERNEL) >$(build)/lint.log 2>&1 || { tail -n 40 $(build)/lint.log >&2; exit 1; }
	tail -n 1 $(build)/lint.log
