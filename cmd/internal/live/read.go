package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

const (
	// maxKeys bounds the hot keys of a snapshot, by rate. Each owner publishes 1,000.
	maxKeys = 10_000
	// infosAtOnce is the number of keys whose details are read in one exchange. If more are hot,
	// the details are read by rotation; the rates are always current.
	infosAtOnce = 250
	// maxUnknown bounds the keys whose details are read because they have just become hot.
	maxUnknown = 2000
	// maxInstances bounds the instances that are listed.
	maxInstances = 1000
	// keepCooled is how long the points of a key are kept after it has cooled, so that a key
	// that becomes hot again has its history.
	keepCooled = 5 * time.Minute
)

// redisReader makes the exchanges with Redis. It is not safe for concurrent use.
type redisReader struct {
	cfg    Config
	client redis.UniversalClient
	layout published.Layout
	tail   *tail
	keys   map[string]*keyDetails // keys by member
	outage loglimit.Outage
}

// keyDetails holds the details of a key that is or recently was hot.
type keyDetails struct {
	hot     published.Hot
	read    time.Time // time of the last read of its details
	gone    time.Time // time at which it was found to have cooled; zero while it is hot
	history History
}

func newReader(client redis.UniversalClient, cfg Config) redisReader {
	return redisReader{
		cfg: cfg, client: client, layout: published.NewLayout(cfg.Namespace),
		tail: newTail(cfg.Namespace, position{}, Backlog), keys: make(map[string]*keyDetails),
	}
}

// read reads the state and the additions to the streams in one exchange. Controls and members
// are read by separate calls at the same time, since a user may have no right to read them.
func (r *redisReader) read(ctx context.Context) (*Snapshot, streamRead, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	s := &Snapshot{Namespace: r.cfg.Namespace}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { s.Controls, s.ControlsErr = hotkeys.ListControls(ctx, r.client, r.cfg.Namespace) })
	beside.Go(func() { s.Summary, _ = hotkeys.ReadSummary(ctx, r.client, r.cfg.Namespace) })
	beside.Go(func() { s.Members, s.MembersErr = hotkeys.ListMembers(ctx, r.client, r.cfg.Namespace) })
	var (
		beat                        *redis.DurationCmd
		scores, suspects, instances *redis.ZSliceCmd
		total                       *redis.IntCmd
		infos                       *redis.SliceCmd
	)
	due := r.due()
	err := hotkeys.Transact(ctx, r.client, func(tx redis.Pipeliner) {
		beat = tx.PTTL(ctx, r.layout.Beat)
		scores = tx.ZRangeWithScores(ctx, r.layout.Hot, -maxKeys, -1)
		suspects = tx.ZRangeWithScores(ctx, r.layout.Suspects, -published.MaxSuspects, -1)
		instances = tx.ZRangeWithScores(ctx, r.layout.Instances, -maxInstances, -1)
		total = tx.ZCard(ctx, r.layout.Instances)
		if len(due) > 0 {
			infos = tx.HMGet(ctx, r.layout.Info, due...)
		}
		r.tail.queue(ctx, tx)
	})
	if err != nil && !errors.Is(err, hotkeys.ErrForeign) { // the publisher repairs a key of another type
		return nil, streamRead{}, fmt.Errorf("read the state of namespace %s: %w", r.cfg.Namespace, err)
	}
	b, err := r.tail.newEvents(ctx, r.client)
	if err != nil {
		return nil, streamRead{}, err
	}
	s.Read, s.Clock, s.Published = time.Now(), b.now, beat.Val() > 0
	if infos != nil {
		r.learn(due, infos.Val(), s.Read)
	}
	if fresh := r.unknown(scores.Val()); len(fresh) > 0 {
		answer, err := r.client.HMGet(ctx, r.layout.Info, fresh...).Result()
		if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return nil, streamRead{}, fmt.Errorf("read hot keys: %w", err)
		}
		r.learn(fresh, answer, s.Read)
	}
	s.Instances, s.InstancesTotal = hotkeys.InstancesOf(instances.Val(), s.Clock, s.Read), int(total.Val())
	beside.Wait()
	var fleet *admitted.Admissions
	if s.MembersErr == nil {
		fleet = admitted.New(s.Members, s.Instances)
	}
	r.list(s, scores.Val(), fleet)
	s.Suspects = hotkeys.SuspectsOf(suspects.Val())
	return s, b, nil
}

// due returns the hot keys whose details are to be read again, the least recently read first.
func (r *redisReader) due() []string {
	members := make([]string, 0, len(r.keys))
	for member, k := range r.keys {
		if k.gone.IsZero() {
			members = append(members, member)
		}
	}
	if len(members) > infosAtOnce {
		slices.SortFunc(members, func(a, b string) int { return r.keys[a].read.Compare(r.keys[b].read) })
		members = members[:infosAtOnce]
	}
	return members
}

// unknown returns the hot keys whose details have not been read since they became hot.
func (r *redisReader) unknown(scores []redis.Z) []string {
	var members []string
	for _, z := range scores {
		member, _ := z.Member.(string)
		if k := r.keys[member]; (k == nil || !k.gone.IsZero()) && len(members) < maxUnknown {
			members = append(members, member)
		}
	}
	return members
}

// learn records the details of keys.
func (r *redisReader) learn(members []string, infos []any, now time.Time) {
	for i, member := range members {
		name, ok := rules.ParseKey(member)
		if !ok || i >= len(infos) {
			continue
		}
		h, err := published.ParseInfo([]byte(text(infos[i])))
		if err != nil {
			continue // it has just cooled, or its publisher repairs it
		}
		h.Key = name
		k := r.keys[member]
		if k == nil {
			k = &keyDetails{}
			r.keys[member] = k
		}
		k.hot, k.read, k.gone = h, now, time.Time{}
	}
}

// list adds the hot keys to the snapshot, each with one more point, and forgets the keys that
// cooled long ago.
func (r *redisReader) list(s *Snapshot, scores []redis.Z, fleet *admitted.Admissions) {
	hot := make(map[string]bool, len(scores))
	histories := 0
	var cooled []string // keys with a history, the last that cooled first
	for member, k := range r.keys {
		if k.history.Len() > 0 {
			histories++
			if !k.gone.IsZero() {
				cooled = append(cooled, member)
			}
		}
	}
	slices.SortFunc(cooled, func(a, b string) int { return r.keys[b].gone.Compare(r.keys[a].gone) })
	s.Hot = make([]HotKey, 0, len(scores))
	for _, z := range slices.Backward(scores) { // the highest rates first
		member, _ := z.Member.(string)
		k := r.keys[member]
		if k == nil || !k.gone.IsZero() || k.read.Equal(s.Read) && !k.hot.Until.After(s.Clock) {
			continue
		}
		hot[member] = true
		if k.hot.Rate = z.Score; !(z.Score >= 0) || math.IsInf(z.Score, 0) {
			k.hot.Rate = 0 // no publisher wrote it
		}
		if k.history.Len() == 0 && histories >= MaxHistories && len(cooled) > 0 {
			delete(r.keys, cooled[len(cooled)-1]) // evict the key that cooled first
			cooled = cooled[:len(cooled)-1]
			histories--
		}
		gauge := fleet.Gauge(&k.hot)
		if k.history.Len() > 0 || histories < MaxHistories {
			histories += 1 - min(1, k.history.Len())
			p := newPoint(s.Clock, &k.hot)
			p.refused = float32(gauge.Rates.RefusedShare())
			k.history = k.history.add(p)
		}
		if s.Published {
			s.Hot = append(s.Hot, HotKey{Hot: k.hot, History: k.history, Admitted: gauge})
		}
	}
	slices.SortFunc(s.Hot, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), a.Key.Compare(b.Key))
	})
	for member, k := range r.keys {
		if hot[member] {
			continue
		}
		if k.gone.IsZero() {
			k.gone = s.Read
		}
		if k.history.Len() == 0 || s.Read.Sub(k.gone) > keepCooled {
			delete(r.keys, member)
		}
	}
}
