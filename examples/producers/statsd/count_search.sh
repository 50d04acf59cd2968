#!/bin/sh
# Counts searches for terms, by nc:
#
#     sh count_search.sh localhost:8125 phone 'red shoes'
address=$1
shift
host=${address%:*} port=${address#*:}

# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
encode() {
	printf %s "$1" | od -An -v -tu1 | LC_ALL=C awk '{ for (i = 1; i <= NF; i++) { c = sprintf("%c", $i)
		printf(c ~ /[A-Za-z0-9_~-]/ ? c : c == "." ? "%%2E" : "%%25%02X", $i) } }'
}

for term; do
	echo "shop.search-terms.hot_param.GET%20/search?q=$(encode "$term"):1|c"
done | nc -u -q 0 "$host" "$port"
