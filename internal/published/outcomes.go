package published

// fleetOutcomes are the outcomes of a hot key's requests over all instances:
//
//	"outcomes":{"passed":50,"refused":162,"waited":0,"served":0,"gone":[10,30,0,0]}
type fleetOutcomes struct {
	Passed  int64    `json:"passed"`
	Refused int64    `json:"refused"`
	Waited  int64    `json:"waited"`
	Served  int64    `json:"served"`
	Gone    [4]int64 `json:"gone"`
}

func fleetOutcomesOf(o *FleetOutcomes) *fleetOutcomes {
	if o == nil {
		return nil
	}
	g := &o.Gone
	return &fleetOutcomes{o.Passed, o.Refused, o.Waited, o.Served, [4]int64{g.Passed, g.Refused, g.Waited, g.Served}}
}

// parse returns the outcomes, or nil if there are none. Outcomes out of their bounds are none: they
// are for people alone, and must not cost the limit.
func (o *fleetOutcomes) parse() *FleetOutcomes {
	if o == nil {
		return nil
	}
	g := o.Gone
	parsed := &FleetOutcomes{
		Outcomes: Outcomes{Passed: o.Passed, Refused: o.Refused, Waited: o.Waited, Served: o.Served},
		Gone:     Outcomes{Passed: g[0], Refused: g[1], Waited: g[2], Served: g[3]},
	}
	if !validOutcomes(parsed.Outcomes) || !validOutcomes(parsed.Gone) {
		return nil
	}
	return parsed
}
