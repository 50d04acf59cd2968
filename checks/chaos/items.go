package chaos

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The load of the route items, whose rule has on_hot.
const (
	itemRequests = 40             // per second to each instance
	itemsHost    = "shop.example" // of all instances, as behind a load balancer
	itemsKey     = "GET /items?k=a"
	changedItem  = "/items?k=a&page=1" // target that unsafe requests change; no other target is changed so
)

// drawItem draws a request of the route items. The users have a cookie, or Authorization.
func drawItem() oracle.Request {
	x := oracle.Request{
		Target: []string{changedItem, "/items?k=a&page=2"}[rand.IntN(2)],
		Vary:   []string{"", "de", "en"}[rand.IntN(3)],
	}
	switch rand.IntN(10) {
	case 0:
		x.User = "alice"
	case 1:
		x.User = "bob"
	case 2:
		x.User = "Bearer carol"
	}
	return x
}

// item is the answer of a handler, as cmd/instance writes it. The times are on the clock of all
// processes.
type item struct {
	oracle.Request
	Run          string
	Began, Ended time.Duration
}

// requestItem sends a request of the route items and passes the answer to the judge.
func (l *load) requestItem(a *api, asked oracle.Request) {
	life, sent := a.lives.Load(), l.f.now()
	status, made, err := l.sendItem(a, http.MethodGet, asked)
	if a.lives.Load() != life {
		return // either life may have answered
	}
	l.j.recordAnswer(reply{api: a, life: life, route: "items", key: "k=a", sent: sent, status: status, err: err})
	if err == nil && status == http.StatusOK {
		l.j.recordItem(a, asked, &made, oracle.Span{From: sent, To: l.f.now()}, l.f.origin)
	}
}

func (l *load) sendItem(a *api, method string, asked oracle.Request) (status int, made item, err error) {
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+a.addr+asked.Target, http.NoBody)
	if err != nil {
		return 0, made, err
	}
	req.Host = itemsHost
	if asked.Vary != "" {
		req.Header.Set("Accept-Language", asked.Vary)
	}
	if strings.HasPrefix(asked.User, "Bearer ") {
		req.Header.Set("Authorization", asked.User)
	} else if asked.User != "" {
		req.AddCookie(&http.Cookie{Name: "user", Value: asked.User})
	}
	res, err := l.client[a.index].Do(req)
	if err != nil {
		return 0, made, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && method == http.MethodGet && res.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &made)
	}
	return res.StatusCode, made, err
}

// changeItems sends unsafe requests to one instance after the other, until ctx ends. It sends two at
// a time, so that a run which the first has caused is often under way at the second.
func (l *load) changeItems(ctx context.Context) {
	testenv.Every(ctx, 3*time.Second, func(n int) {
		a := l.f.apis[n%instances]
		l.work.Go(func() {
			l.changeItem(a)
			time.Sleep(40 * time.Millisecond)
			l.changeItem(a)
		})
	})
}

func (l *load) changeItem(a *api) {
	life, sent := a.lives.Load(), l.f.now()
	status, _, err := l.sendItem(a, http.MethodPost, oracle.Request{Target: changedItem})
	if err == nil && status == http.StatusOK && a.lives.Load() == life {
		l.j.recordChange(a.name, changedItem, sent)
	}
}

// operatorConfig writes the file of an operator's commands, and returns its path.
func (f *processFleet) operatorConfig() (path string) {
	path = filepath.Join(f.dir, "operator.yaml")
	f.writeConfig(path, processConfig{relay: f.newRedisRelay(200), admin: "127.0.0.1:0"})
	return path
}

// releaseItems drops all answers of the route by an operator's command, again and again, until ctx
// ends. A command that fails has done nothing that is certain.
func (r *run) releaseItems(ctx context.Context, config string) {
	testenv.Every(ctx, 10*time.Second, func(int) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		sent := r.now()
		if exec.CommandContext(ctx, r.c.Programs.Hotparam, "release", itemsKey, "--cache", "--yes", "--config", config).Run() == nil {
			r.judge.recordChange("", "", sent)
		}
	})
}

// recordItem records an answer of the route items. origin is the beginning of the run on the clock of
// its times.
func (j *judge) recordItem(a *api, asked oracle.Request, made *item, span oracle.Span, origin time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.memory.Answered(oracle.Served{
		Process: a.name, Asked: asked, Span: span,
		Made: made.Request, Run: oracle.Span{From: made.Began - origin, To: made.Ended - origin},
	})
	hot := &j.hot["items"][a.index]
	if j.runs[made.Run] {
		j.shared++
		hot.Refused(span.From) // the key is hot there
		return
	}
	j.runs[made.Run] = true
	hot.Passed(span.From)
}

// recordChange records that a target was changed by a request, or that an operator has dropped all
// answers.
func (j *judge) recordChange(process, target string, sent time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.memory.Change(process, target, oracle.Span{From: sent, To: j.now()})
	j.changes++
}

// beginSwitch records that an instance is about to have the rules of a variant. confirm records that
// it has.
func (j *judge) beginSwitch(a *api, variant int) (confirm func()) {
	asked := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	held := j.memory.Hold(a.name, onHots[variant].keep, asked)
	return func() {
		now := j.now()
		j.recordSwitch(a, variant, asked, now)
		j.mu.Lock()
		defer j.mu.Unlock()
		held(now)
	}
}

// faultsOfMemory begins the faults that an effect is for answers in memory, and returns functions that
// end them.
func (j *judge) faultsOfMemory(e *effect, now time.Duration) (ends []func(time.Duration)) {
	name := j.decider[e.instance].Process
	if e.has(mayFailRequests) { // an instance that is killed sends nothing any more
		ends = append(ends, j.memory.Fault(name, e.has(mayStartFresh), now))
	}
	if e.has(mayMissChanges) {
		if e.alone != 1 {
			name = ""
		}
		ends = append(ends, j.memory.Fault(name, e.has(mayMixGrants|mayLoseWrites), now))
	}
	return ends
}
