# SPDX-License-Identifier: Apache-2.0
# awk -v driver=V -v commit=C -v kernel=K -v command=... -v arch=0|1 -v json=FILE -f table.awk STOCK.log PATCHED.log
# Joins the two runs by class, prints the table, writes FILE. Exit status 1 where a class is not as expected.
# The patched run may have each class several times: every time has to be as expected, and the shortest times count.
function field(name,   text) {
	text = $0
	if (!sub(".*\"" name "\": ", "", text))
		return ""
	if (text ~ /^"/) {
		sub(/^"/, "", text)
		sub(/".*/, "", text)
	} else {
		sub(/[,}].*/, "", text)
	}
	return text
}
function largest(before, now) {
	return before > now + 0 ? before : now + 0
}
function every(before, name) {
	return before == "false" ? before : field(name)
}
function shortest(before, now) {
	return before > 0 && (now == 0 || before < now + 0) ? before : now + 0
}
# Adds to the counts of times that a class has so far, which are words of a string.
function sum_of(before, now,   a, b, i, n, text) {
	n = split(now, b, " ")
	split(before, a, " ")
	for (i = 1; i <= n; i++)
		text = text (i > 1 ? " " : "") (a[i] + b[i])
	return text
}
# Of so many in a hundred the time is under that, in microseconds; 0 where there is none. The last count has no bound: it
# stands as twice the one before.
function under(times, percent,   a, i, n, all, seen) {
	n = split(times, a, " ")
	for (i = 1; i <= n; i++)
		all += a[i]
	for (i = 1; i <= n && all > 0; i++) {
		seen += a[i]
		if (seen * 100 >= all * percent)
			return 64 * 2 ^ (i - 1)
	}
	return 0
}
function total(times,   a, i, n, all) {
	n = split(times, a, " ")
	for (i = 1; i <= n; i++)
		all += a[i]
	return all + 0
}
function stock_words(c) {
	return stock_live[c] == "false" ? "neighbours die" : "neighbours live"
}
function patched_words(c) {
	if (!(c in live))
		return "not run"
	return (live[c] == "true" ? "neighbours live" : "neighbours die") (ended[c] == "true" ? ", client ended" : "") \
		(clean[c] == "true" ? "" : ", something left")
}
FNR == 1 { file++ }
!/^\{"class"/ { next }
file == 1 {
	c = field("class")
	order[++count] = c
	stock_live[c] = field("innocents_live")
	stock_ok[c] = field("as_expected")
	stock_resets[c] = field("resets")
}
file == 2 {
	c = field("class")
	times[c]++
	live[c] = every(live[c], "innocents_live")
	ok[c] = every(ok[c], "as_expected")
	ended[c] = every(ended[c], "faulter_ended")
	clean[c] = every(clean[c], "clean")
	resets[c] += field("resets")
	benign[c] = shortest(benign[c], field("benign_us"))
	fatal[c] = shortest(fatal[c], field("fatal_us"))
	tables[c] = largest(tables[c], field("table_kib"))
	took[c] = sum_of(took[c], field("took"))
}
END {
	printf "{\n  \"driver\": \"%s\",\n  \"kernel\": \"%s\",\n  \"commit\": \"%s\",\n  \"date\": \"%s\",\n", \
		driver, kernel, commit, date >json
	printf "  \"architecture\": \"%s\",\n", (arch == 0 ? "Turing" : "Hopper") >json
	printf "  \"command\": \"%s\",\n  \"what\": \"the driver's logic against a model of the GPU in QEMU; no GPU\",\n", \
		command >json
	printf "  \"classes\": [" >json
	printf "%-49s %-16s %-32s %s\n", "class", "stock", "patched", "ratio"
	for (i = 1; i <= count; i++) {
		c = order[i]
		ratio = benign[c] > 0 && fatal[c] > 0 ? sprintf("%.2f", fatal[c] / benign[c]) : "-"
		good = stock_ok[c] == "true" && ok[c] == "true"
		bad += !good
		printf "%-49s %-16s %-32s %5s%s\n", c, stock_words(c), patched_words(c), ratio, (good ? "" : "  <- not as expected")
		printf "%s\n    {\"class\": \"%s\", \"stock\": \"%s\", \"patched\": \"%s\", \"ratio\": %s, \"benign_us\": %d, \"contained_us\": %d, " \
			"\"stock_resets\": %d, \"patched_resets\": %d, \"patched_runs\": %d, \"table_kib\": %d, " \
			"\"lock_faults\": %d, \"lock_us_p50_under\": %d, \"lock_us_p99_under\": %d, \"lock_us_all_under\": %d, \"as_expected\": %s}", \
			(i > 1 ? "," : ""), c, stock_words(c), patched_words(c), (ratio == "-" ? "null" : ratio), benign[c], fatal[c], \
			stock_resets[c], resets[c], times[c], tables[c], total(took[c]), under(took[c], 50), \
			under(took[c], 99), under(took[c], 100), (good ? "true" : "false") >json
	}
	printf "\n  ]\n}\n" >json
	exit bad > 0 || count == 0
}
