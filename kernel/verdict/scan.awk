# SPDX-License-Identifier: Apache-2.0
# awk -v driver=V -v build=debug|release -v has=... -v kernel=K -v commit=C -v date=D -v command=... -v json=FILE -f scan.awk ALLOWED LOG...
# Counts what the guests' kernel logs complain of and what the programs reported; prints and writes FILE. Exit status 1 where a
# complaint is not in ALLOWED, a program's result is not good, or a log ends before its guest was done.
BEGIN {
	FS = "\t"
	complaint = "BUG: |BUG kmalloc|WARNING: |KASAN: |Oops|general protection|UBSAN|Assert failed|ODEBUG|blocked for more than|refcount_t|" \
		"unable to handle|Kernel panic|page allocation failure|list_(add|del) corruption"
	around = 40
}
function name(path) {
	sub(/.*\//, "", path)
	sub(/\.log$/, "", path)
	return path
}
function close_report(   i, allowed) {
	if (!open_report)
		return
	open_report = 0
	for (i = 1; i <= patterns; i++) {
		if (report ~ pattern[i]) {
			tolerated[i]++
			return
		}
	}
	found++
	printf "%s: %s\n", log_name, first
	print report
}
function end_log() {
	close_report()
	if (log_name != "" && !complete) {
		incomplete++
		printf "%s: the guest did not end\n", log_name
	}
}
FILENAME == ARGV[1] {
	if ($0 !~ /^#/ && NF >= 2) {
		pattern[++patterns] = $1
		reason[patterns] = $2
	}
	next
}
FNR == 1 {
	end_log()
	log_name = name(FILENAME)
	complete = in_log = 0
}
/^the kernel's log:/ { in_log = 1 }
/^end of the kernel's log/ { complete = 1; in_log = 0; close_report() }
/^\{"class"/ {
	classes[log_name]++
	split($0, quoted, "\"")
	names[log_name] = names[log_name] (names[log_name] == "" ? "" : ", ") "\"" quoted[4] "\""
	if ($0 !~ /"as_expected": true/) {
		bad[log_name]++
		print log_name ": " $0
	}
}
/^\{"(schedules|fuzz_rounds)"/ {
	summary = summary (summary == "" ? "" : ", ") $0
	if ($0 !~ /"failed": 0[,}]/) {
		bad[log_name]++
		print log_name ": " $0
	}
}
/^modules are gone/ { gone++ }
in_log && !open_report && $0 ~ complaint {
	open_report = lines = 1
	first = report = $0
	next
}
in_log && open_report {
	report = report "\n" $0
	if (++lines > around)
		close_report()
}
END {
	end_log()
	printf "{\n  \"driver\": \"%s\",\n  \"build\": \"%s\",\n  \"kernel\": \"%s\",\n  \"commit\": \"%s\",\n  \"date\": \"%s\",\n", \
		driver, build, kernel, commit, date >json
	printf "  \"kernel_has\": \"%s\",\n  \"command\": \"%s\",\n", has, command >json
	printf "  \"what\": \"the driver's logic against a model of the GPU in QEMU; no GPU\",\n" >json
	for (i in classes)
		printf "  \"classes_%s\": {\"run\": %d, \"not_as_expected\": %d, \"names\": [%s]},\n", i, classes[i], bad[i], names[i] >json
	printf "  \"programs\": [%s],\n  \"guests_that_did_not_end\": %d,\n  \"modules_unloaded\": %d,\n", summary, incomplete, gone >json
	printf "  \"complaints\": %d,\n  \"allowed\": [", found >json
	for (i = 1; i <= patterns; i++) {
		printf "%s\n    {\"pattern\": \"%s\", \"seen\": %d, \"reason\": \"%s\"}", (i > 1 ? "," : ""), pattern[i], tolerated[i], reason[i] >json
		if (tolerated[i])
			printf "allowed %d times: %s (%s)\n", tolerated[i], pattern[i], reason[i]
	}
	printf "\n  ]\n}\n" >json
	for (i in bad)
		wrong += bad[i]
	printf "%d complaints, %d bad results, %d guests that did not end\n", found, wrong, incomplete
	exit found > 0 || wrong > 0 || incomplete > 0
}
