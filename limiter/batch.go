package limiter

// eachInTurn executes each of ops by do, which receives the op's index. An error concerns one
// op; the others are executed nevertheless.
//
// Ops with Together are the limits of one decision ([Request]). Once one of them is denied, the
// later ones are not asked, so that they take nothing. Permits that earlier ones took are the
// caller's to return. An error is no denial, since a limit that cannot be asked lets requests pass.
func eachInTurn(ops []Op, results []Result, do func(i int) (Result, error)) error {
	var errs OpErrors
	denied := false
	for i := range ops {
		together := ops[i].together()
		if together && denied {
			results[i] = notAsked
			continue
		}
		var err error
		results[i], err = do(i)
		errs = setError(errs, len(ops), i, err)
		denied = denied || together && err == nil && !results[i].Allowed
	}
	return errs.asError()
}
