#!/bin/sh
# Makes the pictures of the documentation, from the real program: docs/images.
# Needs Go and tmux; takes half a minute.
set -eu
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
tmux="tmux -L hotparam-pictures-$$ -f /dev/null" # a server of its own
trap '$tmux kill-server 2>/dev/null || true; rm -rf "$dir"' EXIT

go build -o "$dir/hotparam" ./cmd/hotparam
go build -o "$dir/termshot" ./internal/termshot
mkdir -p docs/images

# NO_COLOR= : the picture has colours, whatever the caller's terminal has.
$tmux new-session -d -x 102 -y 30 "NO_COLOR= TERM=tmux-256color '$dir/hotparam' demo"
sleep 18
$tmux send-keys f # a flash crowd
sleep 9           # near the log's end, where most is refused
$tmux capture-pane -e -p >"$dir/demo.ansi"
$tmux send-keys q
grep -q 'requests/s' "$dir/demo.ansi" && grep -q 'end the flash crowd' "$dir/demo.ansi" || { echo "pictures: the demo shows nothing:" >&2; cat "$dir/demo.ansi" >&2; exit 1; }
"$dir/termshot" <"$dir/demo.ansi" >docs/images/demo.svg
echo docs/images/demo.svg
