# SPDX-License-Identifier: Apache-2.0
# The patched tree: a copy of the source, our files beside NVIDIA's, and the hooks put in by spatch.
isolation_sources := $(wildcard $(here)/isolation/src/*.c $(here)/isolation/src/*.h)

$(build)/patched/.copied: $(here)/Makefile $(here)/isolation/isolation.mk $(source)/Kbuild
	$(call copy_source,$(@D))
	touch $@

$(patched_module): $(build)/patched/.copied $(isolation_sources)
	@echo "building $(VERSION) with fault isolation (a minute or two; log: $(build)/patched.log)"
	@$(call build_module,$(@D),$(build)/patched.log)
