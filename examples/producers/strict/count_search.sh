#!/bin/sh
# Counts searches for terms in a StatsD of another make, by nc:
#
#     sh count_search.sh localhost:8125 phone 'red shoes'
address=$1
shift
host=${address%:*} port=${address#*:}

# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key, and then what is not A-Z a-z 0-9 - _HH.
strict() {
	printf %s "$1" | od -An -v -tu1 | LC_ALL=C awk '{ for (i = 1; i <= NF; i++) { c = sprintf("%c", $i)
		printf(c ~ /[A-Za-z0-9-]/ ? c : c ~ /[._~]/ ? "_%02X" : "_25%02X", $i) } }'
}

for term; do
	echo "shop.search-terms.hot_param.GET_20_2Fsearch_3Fq=$(strict "$term"):1|c"
done | nc -u -q 0 "$host" "$port"
