# Counts a search for a term n times, by a command: sh options.sh COMMAND N TERM
for i in $(seq "$2"); do
	echo "shop.search-terms.hot_param.GET%20/search?q=$3:1|c"
done | $1
