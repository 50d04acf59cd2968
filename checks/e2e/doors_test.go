package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/hotparam/hotparam/internal/testenv"
)

// guardOfAll is a guard with all doors, by address.
type guardOfAll struct {
	*daemon
	rls, auth, check, spoe string
}

// startGuardOfAll starts a guard with all doors and this text as its file.
func startGuardOfAll(t *testing.T, binary, text string) *guardOfAll {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guard.yaml")
	testenv.WriteFile(t, path, text)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	return (&fleet{t: t, bin: programs{hotparam: binary}, http: client}).startGuardOfAll(path)
}

// startGuardOfAll starts a guard with all doors and this file.
func (f *fleet) startGuardOfAll(file string) *guardOfAll {
	f.t.Helper()
	const free = "127.0.0.1:0"
	p := f.startProgram(f.bin.hotparam, "guard", "--config", file, "--rls", free, "--auth", free, "--check", free, "--spoe", free, "--http", free)
	at := p.WaitFor(`guard is up.* rls=(\S+) auth=(\S+) check=(\S+) spoe=(\S+) http=(\S+)`)
	return &guardOfAll{&daemon{p, f, file, "http://" + at[5]}, at[1], at[2], at[3], at[4]}
}

// count returns the value of a metric that is a whole number.
func (g *guardOfAll) count(name string) int64 { return int64(g.metric(name)) }

// doorNames are the names of all doors.
var doorNames = []string{"rls", "auth", "check", "spoe"}

// addr returns the address of a door.
func (g *guardOfAll) addr(door string) string {
	return map[string]string{"rls": g.rls, "auth": g.auth, "check": g.check, "spoe": g.spoe}[door]
}

// askDoor asks a door about a GET over a connection of its own, as a gateway does, and returns the
// status that the client would get: 200 if the request passes.
func (g *guardOfAll) askDoor(door, target string) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch door {
	case "rls":
		return askRLS(ctx, g.rls, target)
	case "auth":
		return askAuth(ctx, g.auth, target)
	case "check":
		return askCheck(ctx, g.check, target)
	}
	return askSPOE(ctx, g.spoe, target)
}

func askRLS(ctx context.Context, addr, target string) (int, error) {
	conn, err := dialRLS(addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	answer, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, rlsRequest(target))
	if err != nil {
		return 0, err
	}
	if answer.GetOverallCode() == ratelimit.RateLimitResponse_OK {
		return http.StatusOK, nil
	}
	return strconv.Atoi(answer.GetDynamicMetadata().AsMap()["status"].(string))
}

// dialRLS returns a connection to the door for Envoy, which the caller closes.
func dialRLS(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
}

// rlsRequest returns Envoy's question about a GET.
func rlsRequest(target string) *ratelimit.RateLimitRequest {
	return &ratelimit.RateLimitRequest{Domain: "hotparam", Descriptors: []*common.RateLimitDescriptor{{
		Entries: []*common.RateLimitDescriptor_Entry{{Key: "method", Value: "GET"}, {Key: "path", Value: target}},
	}}}
}

func askAuth(ctx context.Context, addr, target string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/forwarded", http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-Forwarded-Method", "GET")
	r.Header.Set("X-Forwarded-Uri", target)
	return answerTo(r, nil)
}

func askCheck(ctx context.Context, addr, target string) (int, error) {
	body, _ := json.Marshal(map[string]string{"method": "GET", "uri": target})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/check", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	var answer struct{ Status int }
	status, err := answerTo(r, &answer)
	if err != nil || status != http.StatusOK {
		return status, err
	}
	return answer.Status, nil
}

// answerTo sends a request over a connection of its own and returns the status of the answer.
func answerTo(r *http.Request, into any) (int, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if into != nil {
		err = json.NewDecoder(response.Body).Decode(into)
	}
	return response.StatusCode, err
}

func askSPOE(ctx context.Context, addr, target string) (int, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	in := bufio.NewReader(conn)
	if _, err := conn.Write(spoeHello()); err != nil {
		return 0, err
	}
	if _, err := readSPOE(in); err != nil {
		return 0, err
	}
	check := append(spoeText(nil, "check"), 2)
	check = append(spoeText(check, "method"), 8)
	check = append(spoeText(spoeText(check, "GET"), "uri"), 8)
	if _, err := conn.Write(spoeFrame(3, 1, spoeText(check, target))); err != nil {
		return 0, err
	}
	answer, err := readSPOE(in)
	switch {
	case err != nil:
		return 0, err
	case bytes.Contains(answer, []byte("\x07allowed\x11")):
		return http.StatusOK, nil
	}
	_, status, found := bytes.Cut(answer, []byte("\x06status\x04"))
	if !found || len(status) < 2 {
		return 0, fmt.Errorf("the answer %q", answer)
	}
	return 240 + int(status[0]-240) + int(status[1])<<4, nil // how HAProxy encodes numbers from 240 on
}

// spoeHello returns HAProxy's first frame.
func spoeHello() []byte {
	b := append(spoeText(nil, "supported-versions"), 8)
	b = append(spoeText(spoeText(b, "2.0"), "max-frame-size"), 3, 0xfc, 0xf0, 0x06) // 16380
	return spoeFrame(1, 0, spoeText(append(spoeText(b, "capabilities"), 8), "pipelining"))
}

// spoeText appends a text of less than 240 bytes.
func spoeText(b []byte, text string) []byte { return append(append(b, byte(len(text))), text...) }

func spoeFrame(kind, stream byte, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+7))
	return append(append(b, kind, 0, 0, 0, 1, stream, stream), payload...)
}

func readSPOE(in *bufio.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > 64<<10 {
		return nil, errors.New("a frame that is too long")
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(in, frame)
	return frame, err
}

// Each door obeys operators' controls within a second.
func TestControlsAtEveryDoor(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: 100000/s
    limit: {rate: 1/1m, burst: 5, scope: instance}
`)
	g := f.startGuardOfAll(f.file(f.sections()))
	within(t, patience, "the guard follows Redis", func() bool {
		_, text := f.get(g.url + "/-/ready")
		return strings.HasPrefix(text, "ready, following")
	})
	for _, step := range []struct {
		command []string
		obeyed  func(door string, statuses []int) bool
	}{
		{[]string{"block", "--for", "10m"}, func(_ string, s []int) bool { return s[0] == http.StatusForbidden }},
		{[]string{"release"}, func(_ string, s []int) bool { return s[0] == http.StatusOK && s[burst+1] == http.StatusOK }},
		{[]string{"pin", "--for", "10m"}, func(_ string, s []int) bool { return s[burst+1] == http.StatusTooManyRequests }},
		{[]string{"allow", "--for", "10m"}, func(_ string, s []int) bool { return s[burst+1] == http.StatusOK }},
	} {
		var said struct{ Action, Key string }
		for _, door := range doorNames {
			f.operate(&said, append([]string{step.command[0], searchKey(door), "--yes"}, step.command[1:]...)...)
			took := within(t, time.Second, fmt.Sprintf("%s at %s", step.command[0], door), func() bool {
				var statuses []int
				for range burst + 2 {
					status, err := g.askDoor(door, "/search?q="+door)
					if err != nil {
						t.Fatalf("%s: %v", door, err)
					}
					statuses = append(statuses, status)
				}
				return step.obeyed(door, statuses)
			})
			t.Logf("%s: %s is in force %v after the command", door, step.command[0], took)
			if status, err := g.askDoor(door, "/search?q=other"); status != http.StatusOK {
				t.Errorf("%s: another value: %d, %v", door, status, err)
			}
		}
	}
}
