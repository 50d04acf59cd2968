package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

const signingKey = "0123456789abcdef0123456789abcdef"

// The file's defaults equal the library's.
func TestCapsAgree(t *testing.T) {
	c, want := config.Aggregator{}.WithDefaults().Caps, decode.DefaultCaps
	if got := (decode.Caps{Counts: c.Counts, Keys: c.Keys, Names: c.Names, NewNames: c.NewNames}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTrustInWords(t *testing.T) {
	for settings, want := range map[string]string{
		"listen: ':8125'": ":4:22: warning: aggregator.listen :8125: anyone who can send there",
		"trust: signed, key_file: k, listen: ':8125'":     "counts: StatsD to :8125, signed\n",
		"trust: listed, senders: [10.0.0.0/8, 192.0.2.7]": "counts: StatsD to 127.0.0.1:8125, from 2 networks listed\n",
		"key_env: K": "counts: StatsD to 127.0.0.1:8125, signed, which is optional\n",
		"trust: signed, key_env: K, source: kafka, http: ':9125'": "acks=1, signed\n",
	} {
		r := hotparamCommand(t, "rules", "lint", write(t, goodRules+"aggregator: {"+settings+"}\n"))
		r.exits(t, exitOK, want)
		if strings.Contains(r.err, "warning") != strings.Contains(want, "warning") {
			t.Errorf("%s: %s", settings, r.err)
		}
	}
}

// The check reads the keys, as the daemon does when it starts.
func TestCheckReadsTheKeys(t *testing.T) {
	t.Setenv("HOTPARAM_REDIS", "redis://"+unreachable(t))
	for key, want := range map[string]string{signingKey: "good, ", signingKey[1:]: "has 31 bytes, want 32 at least", "": "TEST_SIGNING_KEY"} {
		t.Setenv("TEST_SIGNING_KEY", key)
		code := exitConfig
		if key == signingKey {
			code = exitUnreachable
		}
		path := write(t, goodRules+"aggregator: {trust: signed, key_env: TEST_SIGNING_KEY}\n")
		r := hotparamCommand(t, "aggregator", "--dry-run", "--config", path)
		r.exits(t, code, want)
		if key != "" && strings.Contains(r.err, key) {
			t.Errorf("stderr tells the key: %s", r.err)
		}
	}
}

// A daemon that requires signatures counts an instance's packets and nothing from other senders.
// It counts, logs and reports the refused packets.
func TestDaemonBelievesWhatIsSigned(t *testing.T) {
	server := testenv.Redis(t)
	t.Setenv("TEST_SIGNING_KEY", "the key of tomorrow, which is not used yet\n"+signingKey+"\n")
	path := write(t, goodRules+"aggregator: {trust: signed, key_env: TEST_SIGNING_KEY, listen: ['127.0.0.1:0', 'tcp://127.0.0.1:0']}\n")
	d := startDaemon(t, "--redis", server.URL(), "--config", path)
	eventually(t, d.is("ready"))
	file, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	addresses := strings.Split(d.find(`statsd=(\S+)`), ",")
	for i, address := range addresses {
		sink, err := statsdsink.New(statsdsink.Config{Rules: file.Rules, Addrs: []string{address}, Instance: fmt.Sprint("api-", i), Key: []byte(signingKey)})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		eventually(t, func() error { // until a connection is there
			return sink.Send(t.Context(), collector.Flush{Start: now, Now: now, Held: 1}, []collector.Count{{Rule: []byte("search-terms"), Text: []byte("GET /search?q=1"), N: 5}}).Err
		})
		defer sink.Close()
		to, err := wire.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial(to.Network, to.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprint(conn, "shop.search-terms.hot_param.GET%20/search?q=innocent:200|c\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, d.serves(
		"hotparam_statsd_counted_total 10", "hotparam_statsd_senders 2", "hotparam_hot_keys 0",
		`hotparam_statsd_refused_packets_total{reason="unsigned"} 2`, `hotparam_statsd_refused_packets_total{reason="bad_mac"} 0`,
	))
	eventually(t, d.is("ready; what some senders send is dropped, lately as unsigned (hotparam_*_refused_*_total; docs/SECURITY.md)"))
	if from := d.find(`reason=unsigned from=(\S+)`); from != "127.0.0.1" {
		t.Errorf("the log names %s", from)
	}
}
