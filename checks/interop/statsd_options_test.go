package interop

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// way is a client with options that change its lines, its packets or its transport.
type way struct {
	name    string
	program func(*testing.T) program
	file    string // in testdata
	args    []string
	env     string
	events  int // events and service checks that it also sends
}

func ways(d *daemon) []way {
	at := func(port, options string) string { return `{"host": "127.0.0.1", "port": ` + port + options + "}" }
	js := func(options string) []string { return []string{at(d.udp, options)} }
	return []way{
		{name: "hot-shots tags", program: node, file: "options.js", args: js(`, "globalTags": {"env": "prod"}`)},
		{name: "hot-shots for Telegraf", program: node, file: "options.js", args: js(`, "telegraf": true, "globalTags": {"env": "prod"}`)},
		{name: "hot-shots for Datadog", program: node, file: "options.js", args: js(`, "datadog": true, "containerID": "abc", "cardinality": "low"`)},
		{name: "hot-shots in packets", program: node, file: "options.js", args: js(`, "maxBufferSize": 1400`)},
		{name: "hot-shots in sums", program: node, file: "options.js", args: js(`, "aggregation": true`)},
		{name: "hot-shots TCP", program: node, file: "options.js", args: []string{at(d.tcp, `, "protocol": "tcp"`)}},
		{name: "hot-shots Unix stream", program: node, file: "options.js", args: []string{fmt.Sprintf(`{"protocol": "stream", "path": %q}`, d.stream)}},

		{name: "statsd", program: statsdClients, file: "options.py", args: []string{"StatsClient", at(d.udp, "")}},
		{name: "statsd TCP", program: statsdClients, file: "options.py", args: []string{"TCPStatsClient", at(d.tcp, "")}},
		{name: "statsd Unix stream", program: statsdClients, file: "options.py", args: []string{"UnixSocketStatsClient", fmt.Sprintf(`{"socket_path": %q}`, d.stream)}},

		{name: "datadog tags", program: statsdClients, file: "options_datadog.py", args: js(`, "constant_tags": ["env:prod"], "container_id": "abc", "cardinality": "low"`), events: 2},
		{name: "datadog in packets", program: statsdClients, file: "options_datadog.py", args: js(`, "disable_buffering": false`), events: 2},
		{name: "datadog telemetry", program: statsdClients, file: "options_datadog.py", args: js(`, "telemetry_min_flush_interval": 0`), events: 2},
		{name: "datadog Unix datagrams", program: statsdClients, file: "options_datadog.py", args: []string{fmt.Sprintf(`{"socket_path": "unix://%s"}`, d.datagrams)}, events: 2},
		{name: "datadog Unix stream", program: statsdClients, file: "options_datadog.py", args: []string{fmt.Sprintf(`{"socket_path": "unixstream://%s"}`, d.stream)}, events: 2},

		{name: "java-dogstatsd-client", program: dogJava, file: "Options.java", env: "DD_DOGSTATSD_URL=udp://127.0.0.1:" + d.udp, events: 1},
		{name: "java-dogstatsd-client Unix datagrams", program: dogJava, file: "Options.java", env: "DD_DOGSTATSD_URL=unix://" + d.datagrams, events: 1},
		{name: "java-dogstatsd-client Unix stream", program: dogJava, file: "Options.java", env: "DD_DOGSTATSD_URL=unixstream://" + d.stream, events: 1},

		{name: "nc TCP", program: netcat, file: "options.sh", args: []string{"nc -N 127.0.0.1 " + d.tcp}},
		{name: "nc Unix datagrams", program: netcat, file: "options.sh", args: []string{"nc -u -q 0 -U " + d.datagrams}},
		{name: "nc Unix stream", program: netcat, file: "options.sh", args: []string{"nc -N -U " + d.stream}},
	}
}

// Each count arrives once over each transport, whatever clients append to it, pack with it, or send
// about themselves.
func TestCountsOfOtherPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	d := startDaemon(t)
	for i, w := range ways(d) {
		t.Run(w.name, func(t *testing.T) {
			run := w.program(t)
			if w.env != "" {
				run.env = append(slices.Clip(run.env), w.env)
			}
			term, before, eventsBefore := fmt.Sprintf("way%d", i), d.metric(t, counted), d.metric(t, events)
			run.run(t, filepath.Join("testdata", w.file), "", append(slices.Clip(w.args), strconv.Itoa(threshold), term)...)
			d.awaitHot(t, term)
			d.await(t, counted, before+threshold)
			d.await(t, events, eventsBefore+w.events)
		})
	}
	d.checkRejected(t)
}
