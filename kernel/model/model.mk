# SPDX-License-Identifier: Apache-2.0
# The model GPU: $(build)/model/gpu-model.ko, against the headers of the stock tree.
model_module := $(build)/model/gpu-model.ko
model_sources := $(wildcard $(here)/model/*.c $(here)/model/*.h) $(here)/model/Kbuild

.PHONY: model
model: $(model_module)

# Files that did not change keep their times, so that a rebuild compiles what did.
$(model_module): $(model_sources) $(here)/model/features $(stock_module)
	@echo "building the model (log: $(build)/model.log)"
	@mkdir -p $(@D) && cp -u --preserve=timestamps $(model_sources) $(@D)
	+@$(MAKE) --no-print-directory -C $(KERNEL) M=$(@D) MODEL_UVM=$(build)/stock MODEL_VERSION=$(VERSION) \
	  MODEL_DEFINES="$$($(here)/model/features $(source)/common/inc | tr '\n' ' ')" modules >$(build)/model.log 2>&1 || \
	  { grep -E 'error|warning' -A4 $(build)/model.log | head -n 60 >&2; exit 1; }
	@lacking=$$(comm -23 <(nm -u $(stock_module) | grep -o 'nvUvmInterface.*' | sort) <(nm $@ | awk '$$2 == "T" { print $$3 }' | sort)); \
	  [ -z "$$lacking" ] || { echo "the model lacks" $$lacking >&2; exit 1; }
