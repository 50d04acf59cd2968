#!/bin/sh
# Makes the pictures of the documentation, from the real program: docs/images.
# Needs Go, tmux, redis-server and chromium; takes four minutes.
set -eu
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
tmux="tmux -L hotparam-pictures-$$ -f /dev/null" # a server of its own
trap 'kill $(cat "$dir"/*.pid 2>/dev/null) 2>/dev/null || true; $tmux kill-server 2>/dev/null || true; sleep 1; rm -rf "$dir"' EXIT

# As a release, whose version the page shows: the tag that comes next is not known here.
version=$(git describe --tags --abbrev=0 2>/dev/null || echo v0.1.0)
go build -ldflags "-X main.version=$version" -o "$dir/hotparam" ./cmd/hotparam
go build -o "$dir/termshot" ./checks/termshot
go test -tags real -c -o "$dir/page.test" ./cmd/internal/page # drives a browser
mkdir -p docs/images

# shot NAME WORDS… writes the terminal as a picture, if all words are on it.
shot() {
	name=$1
	shift
	$tmux capture-pane -e -p >"$dir/$name.ansi"
	for words in "$@"; do
		grep -q "$words" "$dir/$name.ansi" || { echo "pictures: $name does not show '$words':" >&2; cat "$dir/$name.ansi" >&2; exit 1; }
	done
	"$dir/termshot" <"$dir/$name.ansi" >"docs/images/$name.svg"
	echo "docs/images/$name.svg"
}

# NO_COLOR= : the picture has colours, whatever the caller's terminal has.
$tmux new-session -d -x 102 -y 30 "NO_COLOR= TERM=tmux-256color '$dir/hotparam' demo"
sleep 18
$tmux send-keys f # a flash crowd
sleep 9           # near the log's end, where most is refused
shot demo 'requests/s' 'end the flash crowd'
$tmux send-keys q

# An aggregator, and counts of some keys that come and go.
redis-server --port 0 --unixsocket "$dir/redis.sock" --save '' --pidfile "$dir/redis.pid" --daemonize yes >/dev/null
cat >"$dir/hotparam.yaml" <<-YAML
	namespace: shop
	aggregator: {redis: "unix://$dir/redis.sock", listen: "unix://$dir/statsd.sock", http: "127.0.0.1:19125"}
	rules:
	  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: 100/s, limit: 50/s}
	  - {id: products, match: {route: "GET /products/{id}"}, by: ["path:id"], hot: 60/s, limit: {rate: 40/s, on_limit: shadow}}
	  - {id: brands, match: {route: "GET /search"}, by: [brand], hot: 40/s}
YAML
"$dir/hotparam" aggregator --config "$dir/hotparam.yaml" >"$dir/aggregator.log" 2>&1 &
echo $! >"$dir/aggregator.pid"
sleep 2

# emit DELAY SECONDS RATE INSTANCE KEY sends a crowd that rises and falls.
crowds=0
emit() {
	(
		sleep "$1"
		step=$(($2 * 1000 / 16)) # milliseconds
		for tenths in 6 8 10 11 13 12 10 11 9 8 9 11 12 13 11 10; do
			"$dir/hotparam" emit --config "$dir/hotparam.yaml" --instance "$4" --over "${step}ms" "$5" $((step * $3 * tenths / 10000)) >/dev/null 2>&1 || true # of a busy machine some counts are lost
		done
	) &
	crowds=$((crowds + 1))
	echo $! >"$dir/crowd$crowds.pid"
}
emit 0 190 210 api-1 'search-terms GET /search?q=phone'
emit 3 187 180 api-2 'search-terms GET /search?q=phone'
emit 10 180 160 api-1 'search-terms GET /search?q=black+friday'
emit 35 155 230 api-2 'search-terms GET /search?q=advent+calendar'
emit 20 170 95 api-2 'products GET /products/4711'
emit 50 140 130 api-1 'products GET /products/0815'
emit 5 185 75 api-1 'brands GET /search?brand=acme'
emit 62 128 140 api-2 'search-terms GET /search?q=headphones'
emit 70 120 85 api-1 'products GET /products/1202'
emit 44 146 60 api-2 'brands GET /search?brand=globex'
$tmux new-session -d -x 110 -y 22 "NO_COLOR= TERM=tmux-256color '$dir/hotparam' top --config '$dir/hotparam.yaml'"
sleep 95
"$dir/hotparam" block 'search-terms GET /search?q=lamp' --for 10m --why 'scraper, INC-1234' --config "$dir/hotparam.yaml" --yes >/dev/null
sleep 2
shot top phone 'black'

# The same on the page, with longer lines, as a browser shows it.
sleep 45
HOTPARAM_PICTURE_OF=http://127.0.0.1:19125 HOTPARAM_PICTURES="$PWD/docs/images" "$dir/page.test" -test.run '^TestPictureForTheDocuments$'

# The heat map, from a day of real traces if HOTPARAM_TRACES names their folder.
if [ -n "${HOTPARAM_TRACES:-}" ]; then
	HOTPARAM_PICTURES="$dir" "$dir/page.test" -test.run '^TestHeatMapInABrowser$/^a_day_with_five_incidents$'
	cp "$dir/heat-unusual-light.png" docs/images/heat.png
	cp "$dir/heat-unusual-dark.png" docs/images/heat-dark.png
fi
