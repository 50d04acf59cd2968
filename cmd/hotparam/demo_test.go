package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/cmd/internal/demo"
)

func TestDemoUsage(t *testing.T) {
	for _, flags := range [][]string{{"--for", "-1s"}, {"--for", "soon"}, {"--transport", "pigeon"}, {"--fast"}, {"now"}} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"demo"}, flags...), streams{in: strings.NewReader(""), out: &out, err: &errs})
		if code != exitUsage || out.Len() > 0 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", flags, code, out.String(), errs.String())
		}
	}
}

func TestDemoJSON(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"demo", "--json", "--for", "1500ms"}, streams{in: strings.NewReader(""), out: &out, err: &errs})
	if code != exitOK {
		t.Fatalf("exit code %d, stderr:\n%s", code, errs.String())
	}
	dec := json.NewDecoder(&out)
	var r demo.Result
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("more than one object, or something else, on stdout: %v", err)
	}
	if r.Requests < 100 || r.Requests != r.Allowed+r.Limited {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(errs.String(), "redis-cli -p ") {
		t.Errorf("stderr does not tell Redis's port:\n%s", errs.String())
	}
}

// TestDemoKafka tests the same with an embedded Kafka, in the same time.
func TestDemoKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"demo", "--transport", "kafka", "--for", "5s", "--json"}, streams{in: strings.NewReader(""), out: &out, err: &errs})
	if code != exitOK {
		t.Fatalf("exit code %d, stderr:\n%s", code, errs.String())
	}
	var r demo.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Hot) == 0 || r.Limited == 0 || r.Enforce.P50 == nil || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
	for reason, n := range r.Dropped {
		if n != 0 {
			t.Errorf("dropped: %s %d", reason, n)
		}
	}
	if !strings.Contains(errs.String(), "over   Kafka (embedded) at 127.0.0.1:") {
		t.Errorf("stderr does not tell the transport:\n%s", errs.String())
	}
}

func TestDemoLines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"demo", "--for", "3s"}, streams{in: strings.NewReader(""), out: &out, err: &errs})
	if code != exitOK || errs.Len() > 0 {
		t.Fatalf("exit code %d, stderr:\n%s", code, errs.String())
	}
	for _, want := range []string{"hot at 10/s over all instances", "over   StatsD lines over UDP, to 127.0.0.1:", "redis-cli -p ", "s  hot   GET /Archives/edgar/data?cik=", "curl -i 'http://127.0.0.1:", "PEAK/S", "nothing was dropped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}
