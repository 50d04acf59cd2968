// Package blame finds the parameter values that slow a back end down for all others, such as a
// filter value that makes a database scan a table. It judges one pool: the rules that share a back
// end. It has no goroutine and no clock. A caller gives it the usage of each key, summed over all
// instances, each 100 ms.
//
// A key is blamed by experiment, not by its cost. A dear key is left alone if it slows no others down,
// or if it always was dear. A limit on the time or the rows of a query, such as a runaway query rule
// of TiDB, needs a number from a person, and also stops dear queries that slow no others down. The
// rules apply in this order:
//
// Usual costs. While nothing is slow, the judge measures the time of a request and the requests a
// second of each key. A key with few requests is expected to take as long as the dearest keys of
// its route. Before ten seconds of usage are known, no key is blamed.
//
// Overload. By Little's law, the time that requests are in flight divided by the requests that end
// is the time of a request, and it is known before slow requests end. The others are slow if its
// median over keys is at least 1.6 times the usual one in four of five steps of 100 ms, or in seven
// of twenty, with at least one more request in flight. The median is weighted by the usual requests
// of each key, so neither a slow key nor a change of the mix moves it.
//
// Suspects. Requests that end together have waited about as long, so what a key takes beyond that
// is its own. Its excess is this time beyond the usual time of its requests, times the factor by
// which dear keys became slower. A key is suspect if its excess is at least six times what nine of
// ten other keys stay below, and all suspects together explain 10 % of the pool's time. A key whose
// requests became three times as many, beyond the rise of the others, is suspect, too, if they make
// the work of the pool grow. Less is expected of a step in which everything stood still for a moment
// and requests that ended together had waited for different times. A key whose requests were clearly
// dear in several steps lately, and in nearly all of its own, is suspect whatever the others' spread.
//
// A key is dear in a step if its requests took more than four times the expected time beyond the
// wait, or have been running for that long.
//
// Early. One dear request on a shared processor delays few others, which no median shows. So the
// judge also watches the slowest 2 % of the others' requests. While clearly more than twice as many
// are that slow, keys that were dear in several steps, and in nearly all of their own, are suspect
// before an overload. Holding them must halve what is too many. A trial that fails delays early
// trials alone.
//
// Trial. All suspects are held together, with no permit, because only all causes together may show
// a gain. It has 3 s, after their running requests have ended, to halve the excess of the others'
// time. Otherwise all are released. They are not suspect again for 10 s, then 20 s, up to 5 minutes.
// While the number of requests in flight falls, the trial continues, for up to 30 s: a queue that
// grew before takes time to drain. A gain alone proves nothing, since most disturbances end without
// help.
//
// Proof. When the others are fast again, one request of the held keys is admitted at a time. A key
// is kept if its request takes at least four times the expected time even now, twice if it has a
// history, and is released if one does not. So the innocent among several suspects are released. A
// request that runs is proof after 1.5 s, since its instance may have paused.
//
// Kept. The permits rise by one as long as the others stay within 1.2 times their usual time, and
// no more of them than usual are slow. A step that hurts them is taken back, and the next one waits
// twice as long. A key is released when two requests in a row cost no more than usual, or when its
// requests have stopped.
//
// Relearning. If the others are slow for 20 s and no key is to blame, their present time becomes
// usual: the program or the back end has changed. Faster times become usual at once.
//
// In shadow no key is held. A suspect is reported as long as the others are slow by it.
//
// The files, in the order of a step:
//
//   - judge.go usage, and a step · subject.go recent usage of a key
//   - present.go the times of the others, tail.go the slowest of them · evidence.go suspects
//   - trial.go trials, and permits · hold.go keys that are kept or released · backoff.go pauses
//     between trials
//   - usual.go usual costs · state.go the state that others and a successor get
package blame
