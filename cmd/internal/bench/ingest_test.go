package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

func TestIngest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	loads := []IngestLoad{{Rate: 0, Readers: 1, Merged: canSegment}, {Rate: 0, Readers: 1}, {Rate: 2000, Readers: 1}}
	if canSharePort {
		loads = append(loads, IngestLoad{Rate: 2000, Readers: 2})
	}
	result, err := Ingest(t.Context(), IngestConfig{Command: partsOfTest(), Loads: loads, Rounds: 1, Slice: 100 * time.Millisecond, VsMinimal: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Loads) != len(loads) {
		t.Fatalf("%d figures of %d loads", len(result.Loads), len(loads))
	}
	for i := range loads {
		if result.Loads[i].IngestLoad != loads[i] {
			t.Errorf("load %d is %+v", i, result.Loads[i].IngestLoad)
		}
		mustBeSound(t, result.Loads[i])
	}
}

func mustBeSound(t *testing.T, r IngestFigures) {
	t.Helper()
	if r.LinesPerSecond <= 0 || r.LinesPerCPUSecond <= 0 || r.Lost < 0 || r.Lost >= r.Sent || r.Rate > 0 && r.Lost > 0 || r.Sent%linesPerPacket != 0 {
		t.Errorf("%+v", r)
	}
	m := r.Minimal
	if m.LinesPerSecond <= 0 || m.LinesPerCPUSecond <= 0 {
		t.Fatalf("%+v", m)
	}
	if ratio := r.LinesPerCPUSecond / m.LinesPerCPUSecond; ratio < m.Ratio-0.01 || ratio > m.Ratio+0.01 {
		t.Errorf("ratio %v, want %v", m.Ratio, ratio)
	}
}

func TestIngestFields(t *testing.T) {
	for _, c := range []struct {
		result IngestFigures
		want   string
	}{
		{IngestFigures{IngestLoad: IngestLoad{6, 5, true}, LinesPerSecond: 1, LinesPerCPUSecond: 2, Lost: 3, Sent: 4}, `{"packets_per_second":6,"readers":5,"merged":true,"lines_per_second":1,"lines_per_cpu_second":2,"lost":3}`},
		{
			IngestFigures{Minimal: &Minimal{LinesPerSecond: 1, LinesPerCPUSecond: 2, Ratio: 0.5}},
			`{"packets_per_second":0,"readers":0,"merged":false,"lines_per_second":0,"lines_per_cpu_second":0,"lost":0,"minimal_lines_per_second":1,"minimal_lines_per_cpu_second":2,"ratio":0.5}`,
		},
	} {
		if got, err := json.Marshal(c.result); string(got) != c.want {
			t.Errorf("%s, %v\nwant %s", got, err, c.want)
		}
	}
}

// At a rate so slow that nothing is lost, every line is counted.
func TestReceiversCountEveryLine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	for _, kind := range []string{kindAggregator, kindMinimal} {
		t.Run(kind, func(t *testing.T) {
			p, err := startPart(t.Context(), partsOfTest(), "receiver", receiverConfig{Kind: kind, Readers: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.stop(); err != nil {
					t.Error(err)
				}
			}()
			var addr string
			if err := p.receive(&addr); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("udp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			const packets = 500
			for i, packet := range Packets(packets) {
				if _, err := conn.Write(packet); err != nil {
					t.Fatal(err)
				}
				for i%50 == 49 { // until the receiver has caught up
					r, err := p.read()
					if err != nil {
						t.Fatal(err)
					}
					if r.CPU <= 0 || r.At <= 0 {
						t.Fatalf("%+v", r)
					}
					if r.Lines == int64(i+1)*linesPerPacket {
						break
					}
				}
			}
			var last receiverProgress
			if err := p.last(&last); err != nil {
				t.Fatal(err)
			}
			if last.Lines != packets*linesPerPacket {
				t.Errorf("%d lines were counted of %d", last.Lines, packets*linesPerPacket)
			}
		})
	}
}

func TestRoundTellsRates(t *testing.T) {
	r := ingestRound{from: receiverProgress{Lines: 1000, CPU: time.Second, At: 5e9}, to: receiverProgress{Lines: 4000, CPU: 3 * time.Second, At: 11e9}}
	if r.perSecond() != 500 || r.perCPU() != 1500 {
		t.Errorf("%v per second, %v per CPU second", r.perSecond(), r.perCPU())
	}
}

func TestCountLines(t *testing.T) {
	counts := make(map[string]*int64)
	packet := "shop.hot_param.b=2&q=1:1|c\nshop.hot_param.b=2&q=2:3|c\nnone\nshop.hot_param.b=2&q=1:x|c\nshop.hot_param.b=2&q=1:4|g\nshop.hot_param.b=2&q=1:2|c"
	if n := CountLines([]byte(packet), counts); n != 3 || len(counts) != 2 || *counts["b=2&q=1"] != 3 || *counts["b=2&q=2"] != 3 {
		t.Errorf("%d lines, %v", n, counts)
	}
}

func TestPartsThatFail(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	if _, err := startPart(t.Context(), []string{"/nonexistent/program"}, "receiver", nil); err == nil {
		t.Error("a program that does not exist starts")
	}
	for name, says := range map[string]string{"receiver": `there is no receiver "other"`, "none": `there is no part "none"`} {
		p, err := startPart(t.Context(), partsOfTest(), name, receiverConfig{Kind: "other"})
		if err != nil {
			if !strings.Contains(err.Error(), says) {
				t.Error(err) // it had ended before it got its configuration
			}
			continue
		}
		var addr string
		if err := p.receive(&addr); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %s", err, says)
		}
		if p.stop() == nil {
			t.Error("it ended well")
		}
	}
}

// When the context ends, so do the parts, and nothing else is logged.
func TestIngestEndsWithItsContext(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := Ingest(ctx, IngestConfig{Command: partsOfTest(), Slice: time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "receiver") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestHeadIsTheFirstLine(t *testing.T) {
	var out head
	for _, s := range []string{"\n", "hotparam: first ", "words\nsecond\n", strings.Repeat("x", 3*headSize), "last\n"} {
		if n, err := out.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := out.String(); got != "first words" {
		t.Errorf("%q", got)
	}
	if len(out.begin) != headSize {
		t.Errorf("%d bytes are kept", len(out.begin))
	}
}

// Each packet is sent whole, and once in each turn, however many are sent together.
func TestJoinedPacketsArePackets(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadBuffer(4 << 20)
	to, err := net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	made := Packets(300)
	left, sent := make(map[string]int), int64(0)
	for _, p := range made {
		left[string(p)]++
	}
	buf := make([]byte, 65535)
	for _, m := range joined(made, to) {
		if n, err := ipv4.NewPacketConn(to).WriteBatch([]ipv4.Message{m.Message}, 0); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		sent += m.packets
		for range m.packets {
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			left[string(buf[:n])]--
		}
	}
	for p, n := range left {
		if n != 0 {
			t.Errorf("%d of %q are missing", n, p)
		}
	}
	if sent != int64(len(made)) {
		t.Errorf("%d packets are said to be sent of %d", sent, len(made))
	}
}

// Packets below saturation are sent at a steady rate, not in bursts.
func TestTrickle(t *testing.T) {
	receive, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer receive.Close()
	conn, err := net.DialUDP("udp", nil, receive.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var over atomic.Bool
	const rate = 2000
	began := time.Now()
	stop := time.AfterFunc(200*time.Millisecond, func() { over.Store(true) })
	defer stop.Stop()
	sent, err := trickle([]*ipv4.PacketConn{ipv4.NewPacketConn(conn)}, singles(Packets(10)), rate, &over)
	if took := time.Since(began).Seconds(); err != nil || float64(sent) < rate*took/2 || float64(sent) > rate*took*1.5 {
		t.Errorf("%d packets were sent in %.3f s, %v", sent, took, err)
	}
}
