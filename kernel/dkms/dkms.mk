# SPDX-License-Identifier: Apache-2.0
# dkms-tree: what `dkms add` takes, under DESTDIR/usr/src. Only our files: NVIDIA's source is the machine's own.
dkms_version := $(shell sed -n 's/^project.firebreak VERSION \([0-9.]*\).*/\1/p' $(here)/../CMakeLists.txt)
dkms_tree := $(DESTDIR)/usr/src/firebreak-uvm-$(dkms_version)

.PHONY: dkms-tree
dkms-tree:
	mkdir -p $(dkms_tree)
	cp -r $(here)/Makefile $(here)/isolation $(here)/LICENSES $(dkms_tree)
	sed 's/@VERSION@/$(dkms_version)/' $(here)/dkms/dkms.conf >$(dkms_tree)/dkms.conf
	@echo $(dkms_tree)
