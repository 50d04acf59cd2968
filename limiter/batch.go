package limiter

// eachInTurn executes each of ops by do, which gets its place. An error concerns one op; the
// others are executed all the same. After a denial the rest of what is Together is not asked.
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
