package chaos

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// ruleKinds are changes of the rules. They are not faults, so they excuse nothing.
var ruleKinds = []eventKind{
	{name: "roll", weight: 3, scenarios: []string{"limits"}, exclusive: "rules", shortest: 2 * time.Second, longest: 5 * time.Second, begin: roll},
	{name: "split", weight: 3, scenarios: []string{"limits"}, exclusive: "rules", shortest: 4 * time.Second, longest: 6 * time.Second, begin: split},
	{name: "flip", weight: 3, scenarios: []string{"limits"}, exclusive: "rules", shortest: 2 * time.Second, longest: 3 * time.Second, begin: flip},
	{name: "queue", weight: 2, scenarios: []string{"limits"}, exclusive: "rules", shortest: 3 * time.Second, longest: 4 * time.Second, begin: queue},
}

// reload puts the limits of a variant in force at a running instance. [plan] changes rules before it
// stops instances. The limits take effect between the request and its answer. The judge allows the
// old and the new ones in between.
func (r *run) reload(a *api, variant int) {
	confirm := r.judge.beginSwitch(a, variant) // the instance also reads a file that changes
	a.writeConfig(variant)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := &http.Client{Transport: r.load.client[a.index].Transport} // without the load's time-out: a busy machine may need longer
	status, err := ask(ctx, client, http.MethodPost, "http://"+a.addr+"/chaos/reload")
	if err != nil || status != http.StatusOK {
		r.Fatalf("chaos: reload %s: status %d, %v", a.name, status, err)
	}
	confirm()
}

// roll puts other limits in force at one instance after the other, like a rolling deploy.
func roll(r *run, e *plannedFault) func() {
	rng := e.rng()
	variant := rng.IntN(variants)
	for i := range r.apis {
		r.reload(r.apis[(e.target+i)%instances], variant)
		r.sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
	}
	return nothing
}

// split gives each instance different limits for a while.
func split(r *run, e *plannedFault) func() {
	rng := e.rng()
	perm := rng.Perm(variants)
	for i, a := range r.apis {
		r.reload(a, perm[i])
	}
	return func() {
		for _, a := range r.apis {
			r.reload(a, perm[0])
		}
	}
}

// flip switches one instance back and forth between two files.
func flip(r *run, e *plannedFault) func() {
	rng := e.rng()
	perm := rng.Perm(variants)
	for i := range 6 {
		r.reload(r.apis[e.target], perm[i%2])
		r.sleep(time.Duration(50+rng.IntN(300)) * time.Millisecond)
	}
	return nothing
}

// queue fills the queue of waiting requests and reloads the rules while they wait.
func queue(r *run, e *plannedFault) func() {
	a, rng := r.apis[e.target], e.rng()
	var asking sync.WaitGroup
	for range 2 {
		for range 60 {
			asking.Go(func() { r.load.sendAndJudge(a, "wait", "line") })
		}
		r.sleep(400 * time.Millisecond)
		r.reload(a, rng.IntN(variants))
	}
	return asking.Wait
}
