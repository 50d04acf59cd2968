package daemon

// A ConfigError is of a setting that cannot be used, or of a server that refuses us for it.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// An UnreachableError is of a server that does not answer.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

func configError(err error) error      { return &ConfigError{err} }
func unreachableError(err error) error { return &UnreachableError{err} }
