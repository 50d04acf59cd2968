package limiter

// eachInTurn executes each of ops by do, which receives the op's index. An error concerns one
// op; the others are executed nevertheless. After a denial of an op with Together, later ops
// with Together are not asked.
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
