package aggregator

// markHot marks the key hot by t, whose required count is need. It reports whether the key was
// not hot before.
func (d *Detector) markHot(t *threshold, k *candidate, need int64) (first bool) {
	if !k.watch(t.view) {
		d.unnamed++
		return false
	}
	v, w := t.view, k.w
	w.setMark(t, mark{hot: true, need: need, over: v.Start(k.pane + 1), hold: k.when.Add(t.Hold)})
	first = w.hotMarks == 1
	if first {
		w.since, w.holder, w.meter, w.skews = k.when, t, newMeter(d.rateSpan, k.when), skews{}
		v.watch.hot = append(v.watch.hot, w)
		d.suspects.drop(w)
		w.listed = true
		if v.watch.overlaps {
			w.hotSince = k.when
			w.recallWindows(v, k.pane)
		}
	}
	d.report(w, t, Verdict{Kind: Entered, At: k.when, Low: k.low, Against: need}, k.pane)
	if !first {
		return false
	}
	if v.watch.combines {
		if explainer := v.watch.explainer(w); explainer != nil {
			w.listed = false
			d.report(w, t, Verdict{Kind: verdictExplained, At: k.when, Low: k.low, By: explainer.text}, k.pane)
		}
	}
	w.published = listing{listed: w.listed}
	return true
}

// addSuspect adds the key to the suspects, as it may have reached t.
func (d *Detector) addSuspect(t *threshold, k *candidate) {
	if d.suspects.full(t.view.watch) || k.w != nil && (k.w.hotMarks > 0 || k.w.suspect != nil) {
		return
	}
	if k.watch(t.view) {
		d.suspects.add(k.w, t, k.when)
	}
}
