package interop

import "testing"

// sender is a way to run programs with one StatsD client.
type sender struct {
	name    string
	example string // in examples/producers/statsd
	strict  string // file in examples/producers/strict, or empty
	program func(*testing.T) program
}

var senders = []sender{
	{"hot-shots", "count_search.js", "count_search.js", node},
	{"statsd", "count_search.py", "count_search.py", statsdClients},
	{"datadog", "count_search_datadog.py", "", statsdClients},
	{"java-dogstatsd-client", "CountSearch.java", "CountSearch.java", dogJava},
	{"nc", "count_search.sh", "count_search.sh", netcat},
	{"bash", "count_search_bash.sh", "", bash},
}

// runExample counts searches for terms at a host:port.
func (s *sender) runExample(t *testing.T, address string, terms ...string) {
	t.Helper()
	s.program(t).run(t, example("statsd/"+s.example), "", append([]string{address}, terms...)...)
}

func (s *sender) runStrict(t *testing.T, address string, terms ...string) {
	t.Helper()
	s.program(t).run(t, example("strict/"+s.strict), "", append([]string{address}, terms...)...)
}
