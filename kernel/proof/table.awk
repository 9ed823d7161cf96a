# SPDX-License-Identifier: Apache-2.0
# awk -v driver=V -v commit=C -v kernel=K -v command=... -v arch=0|1 -v json=FILE -f table.awk STOCK.log PATCHED.log...
# Joins the runs by class, prints the table, writes FILE. Exit status 1 where a class is not as expected.
# A patched run may have each class several times: every time has to be as expected, and the longest times count.
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
# Of several runs the one with the largest median counts: no time is better than it was.
function worse(before, now,   a, b) {
	if (before == "")
		return now
	split(before, a, " ")
	split(now, b, " ")
	return b[2] > a[2] ? now : before
}
function part(spread, number,   a) {
	split(spread, a, " ")
	return a[number] + 0
}
function as_json(name, spread) {
	if (part(spread, 1) == 0)
		return sprintf("\"%s\": null", name)
	return sprintf("\"%s\": {\"count\": %d, \"p50\": %d, \"p99\": %d, \"largest\": %d}", name, part(spread, 1), part(spread, 2), \
		part(spread, 3), part(spread, 4))
}
function ratio_of(over, under, number) {
	return part(under, number) > 0 && part(over, number) > 0 ? sprintf("%.2f", part(over, number) / part(under, number)) : "null"
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
# The values of all classes and guests, by size. There are some thousands at most.
function sort_values(name,   i, j, value) {
	for (i = 2; i <= number[name]; i++) {
		value = values[name, i]
		for (j = i - 1; j >= 1 && values[name, j] > value; j--)
			values[name, j + 1] = values[name, j]
		values[name, j + 1] = value
	}
}
# As field() gives one of a class.
function spread_of(name,   n) {
	n = number[name]
	if (n == 0)
		return ""
	sort_values(name)
	return n " " values[name, int((n + 1) / 2)] " " values[name, int((n * 99 + 99) / 100)] " " values[name, n]
}
function all_as_json(   ordinary, sink) {
	ordinary = spread_of("lock_benign_us")
	sink = spread_of("sink_us")
	return sprintf("\"all_classes\": {\"sink_over_ordinary_hold_p50\": %s, \"sink_over_ordinary_hold_p99\": %s, " \
		"\"sink_over_ordinary_hold_largest\": %s, \"sink_p99_over_ordinary_p50\": %s, %s, %s, %s, %s}", \
		ratio_of(sink, ordinary, 2), ratio_of(sink, ordinary, 3), ratio_of(sink, ordinary, 4), \
		part(ordinary, 2) > 0 ? sprintf("%.2f", part(sink, 3) / part(ordinary, 2)) : "null", \
		as_json("lock_benign_us", ordinary), as_json("sink_us", sink), \
		as_json("lock_benign_pushes", spread_of("lock_benign_pushes")), as_json("sink_pushes", spread_of("sink_pushes")))
}
# The module's own histogram, of all guests together: under so many microseconds, each twice the one before, and what took longer.
function took_as_json(   us, text) {
	for (us = 64; us <= 65536; us *= 2)
		text = text "\"under_" us "\": " took["under_" us] + 0 ", "
	return "\"took_us\": {" text "\"longer\": " took["longer"] + 0 "}"
}
FNR == 1 { file++ }
file >= 2 && /^took_us / { took[$2] += $3 }
file >= 2 && /^\{"each"/ {
	name = field("each")
	count_of = split(field("values"), each, " ")
	for (i = 1; i <= count_of; i++)
		values[name, ++number[name]] = each[i] + 0
}
!/^\{"class"/ { next }
file == 1 {
	c = field("class")
	order[++count] = c
	stock_live[c] = field("innocents_live")
	stock_ok[c] = field("as_expected")
	stock_resets[c] = field("resets")
}
file >= 2 {
	c = field("class")
	times[c]++
	live[c] = every(live[c], "innocents_live")
	ok[c] = every(ok[c], "as_expected")
	ended[c] = every(ended[c], "faulter_ended")
	clean[c] = every(clean[c], "clean")
	resets[c] += field("resets")
	benign[c] = worse(benign[c], field("benign_us"))
	fatal[c] = worse(fatal[c], field("fatal_us"))
	lock_benign[c] = worse(lock_benign[c], field("lock_benign_us"))
	lock_fatal[c] = worse(lock_fatal[c], field("lock_fatal_us"))
	sink[c] = worse(sink[c], field("sink_us"))
	pushes_benign[c] = worse(pushes_benign[c], field("lock_benign_pushes"))
	pushes[c] = worse(pushes[c], field("sink_pushes"))
	tables[c] = largest(tables[c], field("table_kib"))
}
END {
	printf "{\n  \"driver\": \"%s\",\n  \"kernel\": \"%s\",\n  \"commit\": \"%s\",\n  \"date\": \"%s\",\n", \
		driver, kernel, commit, date >json
	printf "  \"architecture\": \"%s\",\n", (arch == 0 ? "Turing" : "Hopper") >json
	printf "  \"command\": \"%s\",\n  \"what\": \"the driver's logic against a model of the GPU in QEMU; no GPU\",\n", \
		command >json
	printf "  %s,\n  %s,\n", all_as_json(), took_as_json() >json
	printf "  \"classes\": [" >json
	printf "%-49s %-16s %-32s %7s %7s %7s %9s\n", "class", "stock", "patched", "p50", "p99", "largest", "lock p50"
	for (i = 1; i <= count; i++) {
		c = order[i]
		good = stock_ok[c] == "true" && ok[c] == "true"
		bad += !good
		printf "%-49s %-16s %-32s %7s %7s %7s %9s%s\n", c, stock_words(c), patched_words(c), ratio_of(fatal[c], benign[c], 2), \
			ratio_of(fatal[c], benign[c], 3), ratio_of(fatal[c], benign[c], 4), ratio_of(lock_fatal[c], lock_benign[c], 2), \
			(good ? "" : "  <- not as expected")
		printf "%s\n    {\"class\": \"%s\", \"stock\": \"%s\", \"patched\": \"%s\", " \
			"\"stock_resets\": %d, \"patched_resets\": %d, \"patched_runs\": %d, \"table_kib\": %d, ", \
			(i > 1 ? "," : ""), c, stock_words(c), patched_words(c), stock_resets[c], resets[c], times[c], tables[c] >json
		printf "\"ratio_p50\": %s, \"ratio_p99\": %s, \"ratio_largest\": %s, %s, %s, ", ratio_of(fatal[c], benign[c], 2), \
			ratio_of(fatal[c], benign[c], 3), ratio_of(fatal[c], benign[c], 4), as_json("benign_us", benign[c]), \
			as_json("contained_us", fatal[c]) >json
		printf "\"lock_ratio_p50\": %s, \"lock_ratio_p99\": %s, \"lock_ratio_largest\": %s, %s, %s, %s, %s, %s, ", \
			ratio_of(lock_fatal[c], lock_benign[c], 2), ratio_of(lock_fatal[c], lock_benign[c], 3), \
			ratio_of(lock_fatal[c], lock_benign[c], 4), as_json("lock_benign_us", lock_benign[c]), \
			as_json("lock_contained_us", lock_fatal[c]), as_json("sink_us", sink[c]), \
			as_json("lock_benign_pushes", pushes_benign[c]), as_json("sink_pushes", pushes[c]) >json
		printf "\"as_expected\": %s}", (good ? "true" : "false") >json
	}
	printf "\n  ]\n}\n" >json
	exit bad > 0 || count == 0
}
