#!/bin/bash
# Counts searches for terms, by nothing but bash:
#
#     bash count_search_bash.sh localhost:8125 phone 'red shoes'
address=$1
shift
host=${address%:*} port=${address#*:}

# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
encode() {
	local LC_ALL=C i c
	for ((i = 0; i < ${#1}; i++)); do
		c=${1:i:1}
		case $c in
		[A-Za-z0-9_~-]) printf %s "$c" ;;
		.) printf %%2E ;;
		*) printf %%25%02X "'$c" ;;
		esac
	done
}

exec 3>"/dev/udp/$host/$port"
for term; do
	echo "shop.search-terms.hot_param.GET%20/search?q=$(encode "$term"):1|c" >&3
done
