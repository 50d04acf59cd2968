#!/bin/sh
# Asks a guard about requests: check.sh http://127.0.0.1:9133 '/search?q=phone' ...
# Prints the status of each: 200 if it may pass. A guard that is away or slow refuses nothing.
base=$1
shift
for uri in "$@"; do
	answer=$(curl -s --max-time "${HOTPARAM_TIMEOUT:-0.5}" -H 'Content-Type: application/json' \
		-d "{\"method\": \"GET\", \"uri\": \"$uri\", \"addr\": \"192.0.2.1\"}" "$base/v1/check")
	case $answer in
	'{"allowed":false,'*) printf '%s\n' "$answer" | sed 's/.*"status":\([0-9]*\),"headers".*/\1/' ;;
	*) echo 200 ;;
	esac
done
