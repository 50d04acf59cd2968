package claims

import (
	"context"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// run is the state of a running case.
type run struct {
	Case
	stream     EventStream
	live       *live // nil if collectors are flushed at each cut
	judge      *judge
	net        *network
	clocks     *clocks
	collectors []*collector.Collector
	decoder    *decode.Decoder
	parts      []*aggregator.Detector

	keys map[uint64]int32 // counted keys, by rules.Hash of their texts

	now         int64 // time of the network and the detectors
	exact       bool  // no budget was reached so far, nothing was lost
	checkedTick int64
	counted     int64 // sum of the counts that the decoder found
	refused     int64 // number of packets
	events      []KeyEvent
	measure     measure
	lines       []int64 // lines sent so far by each collector
	// Keys that collectors were given: now, and at most since the last flush.
	steered, mostSteered int
	members              [][]byte // first part of a key's member, for each rule
	member               []byte
	sumOverRules         int64 // sum of all events times the number of rules
	sum                  int64 // sum of all events
}

// tick is the interval at which detectors advance when nothing arrives.
const tick = int64(50 * time.Millisecond)

// Run runs a case.
func Run(ctx context.Context, c Case) (Result, error) {
	r := &run{Case: c, keys: make(map[uint64]int32)}
	return r.run(ctx)
}

func (r *run) run(ctx context.Context) (Result, error) {
	began := time.Now()
	if err := r.assemble(); err != nil {
		return Result{}, fmt.Errorf("%s: %w", r.Name, err)
	}
	if err := r.playStream(ctx); err != nil {
		return Result{}, fmt.Errorf("%s: %w", r.Name, err)
	}
	r.checkSums()
	r.checkDeadline()
	result := r.result()
	result.Took = time.Since(began)
	return result, nil
}

func (r *run) assemble() (err error) {
	if r.stream, err = r.Case.Stream(r.Seed); err != nil {
		return err
	}
	ruleset := r.rules()
	if err := ruleset.Validate(); err != nil {
		return err
	}
	r.judge = newJudge(&r.Case, r.stream)
	r.exact = !r.hasDoubtfulClock()
	r.judge.exact, r.judge.floorOf = func() bool { return r.exact }, r.floor
	began, _ := r.stream.Span()
	r.judge.began, r.judge.slackClocks = began, r.slackClocks()
	r.clocks = newClocks(&r.Case, began)
	r.net = newNetwork(r.Network, r.Seed, r.Instances)
	r.judge.hiddenInMissing, r.judge.isCrowded = r.net.hiddenInMissing, r.isCrowded
	r.net.parse = func(packet []byte, sent int64) ([]content, int64) {
		return readPacket(packet, sent, r.stream.ID)
	}
	r.net.addAbsent = func(all []content, change gap) {
		for _, c := range all {
			r.judge.rules[c.rule].ref.addGap(c.key, c.from, c.to, gap{change.absent * c.n, change.secret * c.n})
		}
	}
	for i := range r.Instances {
		col, err := newCollector(i, statsdsink.Config{Sender: &tap{net: r.net, instance: i}}, collector.Config{Rules: ruleset, MaxKeys: r.Keys, Budget: r.Lines, Urgent: r.urgent()})
		if err != nil {
			return err
		}
		r.collectors = append(r.collectors, col)
	}
	r.lines = make([]int64, r.Instances)
	r.decoder = decode.NewDecoder(ruleset, wire.Plain)
	for part := range r.Parts {
		text := r.watched(part)
		r.parts = append(r.parts, aggregator.NewDetector(aggregator.DetectorConfig{
			Rules: ruleset, Publisher: r.judge, Memory: r.Memory, Grace: grace, Lag: lag, Part: part, Parts: r.Parts,
			Explain: rules.Key{Text: text}, OnAccount: func(a aggregator.Account) { r.judge.checkAccount(text, a) },
		}))
	}
	for i := range r.Rules {
		r.members = append(r.members, []byte(ruleID(i)+" "))
	}
	return nil
}

// newCollector returns the collector of an instance, with a sink. A budget of zero is as many lines as
// there are.
func newCollector(instance int, sink statsdsink.Config, c collector.Config) (col *collector.Collector, err error) {
	sink.Rules, sink.Instance = c.Rules, fmt.Sprintf("i%d", instance)
	if c.Sink, err = statsdsink.New(sink); err != nil {
		return nil, err
	}
	if c.Budget == 0 {
		c.Budget = -1
	}
	return collector.New(c)
}

// watched returns one of the first keys of a part. Its counts are judged at the end of each pane
// even while it is not hot.
func (r *run) watched(part int) string {
	for key := int32(r.Seed % 30); key < r.stream.Dense(); key++ {
		if r.part(key) == part {
			return string(r.stream.AppendText(nil, key))
		}
	}
	return ""
}

// playStream advances from flush to flush until the stream and a time of quiet after it end.
func (r *run) playStream(ctx context.Context) error {
	from, to := r.stream.Span()
	last := r.cutBefore(from)
	r.startAt(last)
	if r.live != nil {
		defer r.live.start(ctx, last, r.collectors)()
	}
	for last < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		cut := r.nextCut(last)
		r.deliverPackets(cut)
		r.countEvents(last, cut)
		r.flush(last, cut)
		last = cut
		if next := r.stream.Quiet(last); next-last > r.longestSilence()+4*int64(grace)+2*int64(r.Network.Most)+2*second {
			if last = r.advanceUntilQuiet(last); last < to && next-last > second {
				last = r.cutBefore(next)
				r.startAt(last)
			}
		}
	}
	r.advanceUntilQuiet(last)
	return nil
}

// startAt sets the clock to an instant that nothing, or only silence, precedes.
func (r *run) startAt(start int64) {
	for _, rule := range r.judge.rules {
		rule.ref.advanceTo(start)
		rule.ref.closed = rule.ref.index(start-int64(lag)) - 1
	}
	r.advance(start)
}

// advanceUntilQuiet advances until no earlier count matters, and returns the time that it reached.
func (r *run) advanceUntilQuiet(last int64) int64 {
	for end := last + r.longestSilence() + 4*int64(grace) + 2*int64(r.Network.Most); last < end; {
		cut := r.nextCut(last)
		r.deliverPackets(cut)
		for _, rule := range r.judge.rules {
			rule.ref.advanceTo(last)
		}
		r.flush(last, cut)
		last = cut
	}
	r.judge.checkAllCool()
	return last
}

// longestSilence returns the time of silence after which all keys must be cool.
func (r *run) longestSilence() int64 {
	longest := time.Duration(0)
	for _, rule := range r.Rules {
		longest = max(longest, 3*rule.D+rule.Hold+rule.CoolDown)
	}
	return int64(longest)
}

// nextCut returns the time of the next flush after an instant: the next multiple of 100 ms or the
// end of a pane, whichever comes first.
func (r *run) nextCut(instant int64) int64 {
	cut := (instant/tenthSecond + 1) * tenthSecond
	for _, rule := range r.Rules {
		cut = min(cut, (instant/rule.width()+1)*rule.width())
	}
	if _, end := r.stream.Span(); r.live != nil && instant < end {
		cut = min(cut, instant+r.live.step)
	}
	return cut
}

const tenthSecond = second / 10

// cutBefore returns an earlier instant, where a flush is cut.
func (r *run) cutBefore(instant int64) int64 { return (instant/second - 1) * second }

// deliverPackets passes to the aggregator the packets that arrive before an instant.
func (r *run) deliverPackets(before int64) {
	for {
		tickAt := (r.now/tick + 1) * tick
		p, ok := r.net.next(min(before, tickAt+1))
		if ok {
			r.receivePacket(p)
			continue
		}
		if tickAt >= before {
			return
		}
		r.advance(tickAt)
		r.decoder.Advance(time.Unix(0, tickAt), r)
		if tickAt%second == 0 {
			for _, d := range r.parts {
				d.Refresh()
			}
		}
	}
}

func (r *run) receivePacket(p packet) {
	r.advance(max(p.arrives, r.now))
	before := r.decoder.Stats().Duplicates
	r.clocks.recordArrival(&p)
	r.decoder.Packet(r.clocks.withClockTimes(&p), time.Unix(0, p.arrives), r)
	stats := r.decoder.Stats()
	taken := stats.Duplicates == before
	r.exact = r.exact && stats.LostPackets == 0
	again := p.markArrived()
	switch {
	case again && taken:
		r.judge.recordViolation(Uncounted, nil, 0, "a packet that came twice was counted twice")
	case !again && !taken:
		r.refused++
		if p.arrives-p.sent < int64(grace) && r.net.overtakers(p) < rememberedPackets {
			r.judge.recordViolation(Refused, nil, 0, "packet %d of i%d was %v on its way, and taken for one that came twice", p.number, p.instance, time.Duration(p.arrives-p.sent))
		}
	}
	if !again {
		r.net.recordFirstArrival(p, taken)
	}
	r.net.recordDelivery(p)
}

func (r *run) advance(now int64) {
	r.now, r.judge.now = now, now
	if r.exact && now/tick != r.checkedTick {
		r.checkedTick = now / tick
		r.checkExact()
	}
	r.judge.blind = r.net.blind
	for _, d := range r.parts {
		d.Advance(time.Unix(0, now))
	}
	r.judge.judgeClosedWindows()
}

var _ decode.Handler = (*run)(nil)
var _ aggregator.Publisher = (*judge)(nil)
