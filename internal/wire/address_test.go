package wire_test

import (
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]wire.Address{
		"127.0.0.1:8125":         {Network: "udp", Addr: "127.0.0.1:8125"},
		":8125":                  {Network: "udp", Addr: ":8125"},
		"udp://[::1]:8125":       {Network: "udp", Addr: "[::1]:8125"},
		"tcp://statsd:8125":      {Network: "tcp", Addr: "statsd:8125"},
		"unix:///run/a.sock":     {Network: "unixgram", Addr: "/run/a.sock"},
		"unixgram:///run/a.sock": {Network: "unixgram", Addr: "/run/a.sock"},
		"unixstream:///a":        {Network: "unix", Addr: "/a"},
	} {
		got, err := wire.ParseAddress(text)
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := wire.ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("%s was written as %s, which is %+v, %v", text, got, again, err)
		}
		if got.IsStream() != (got.Network == "tcp" || got.Network == "unix") {
			t.Errorf("%s: IsStream is %v", text, got.IsStream())
		}
	}
	for text, want := range map[string]string{
		"":                                    "host:port",
		"127.0.0.1":                           "host:port",
		"a:http":                              "host:port",
		"http://a:80":                         "scheme",
		"unix://run/a.sock":                   "absolute",
		"unix:///" + strings.Repeat("a", 103): "at most 103 bytes",
	} {
		if _, err := wire.ParseAddress(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error is %v, want one that says %q", text, err, want)
		}
	}
}
