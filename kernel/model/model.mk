# SPDX-License-Identifier: Apache-2.0
# The model GPU: $(build)/model/gpu-model.ko, against the headers of the stock tree.
model_module := $(build)/model/gpu-model.ko
model_sources := $(wildcard $(here)/model/*.c $(here)/model/*.h) $(here)/model/Kbuild
uvm_header := $(source)/common/inc/nv_uvm_interface.h
uvm_types := $(source)/common/inc/nv_uvm_types.h

# has,FILE,PATTERN,NAME: -DMODEL_HAS_NAME where the branch's header matches. Prototypes span lines, so lines are joined.
has = $(if $(shell tr -s '\n ' ' ' <$(1) | grep -oE $(2) | head -n1),-DMODEL_HAS_$(3))
model_defines := \
  $(call has,$(uvm_types),'maxVidmemPageSize',MAX_VIDMEM_PAGE_SIZE) \
  $(call has,$(uvm_header),'nvUvmInterfaceRegisterUvmEvents.',EVENTS_LINUX) \
  $(call has,$(uvm_header),'AddressSpaceCreate.[^;]*enableAts',SPACE_ATS) \
  $(call has,$(uvm_header),'SetPageDirectory.[^;]*dmaAddress',DIRECTORY_DMA) \
  $(call has,$(uvm_header),'MemoryCpuMap.[^;]*NvU64 pageSize',CPU_MAP_U64) \
  $(call has,$(uvm_types),'bUvmOwnsHwFaultBuffer',UVM_OWNS_FAULT_BUFFER) \
  $(call has,$(uvm_header),'FlushReplayableFaultBuffer.UvmGpuFaultInfo',FLUSH_FAULT_INFO) \
  $(call has,$(uvm_header),'EnableAccessCntr.[^;]*const UvmGpuAccessCntrConfig',CONST_ACCESS_CONFIG)

.PHONY: model
model: $(model_module)

$(model_module): $(model_sources) $(stock_module)
	@echo "building the model (log: $(build)/model.log)"
	@mkdir -p $(@D) && cp $(model_sources) $(@D)
	@$(MAKE) --no-print-directory -C $(KERNEL) M=$(@D) MODEL_UVM=$(build)/stock MODEL_DEFINES="$(model_defines)" \
	  modules >$(build)/model.log 2>&1 || { grep -E 'error|warning' -A4 $(build)/model.log | head -n 60 >&2; exit 1; }
