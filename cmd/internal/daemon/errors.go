package daemon

// A ConfigError reports a setting that cannot be used, or a server that refuses access because of
// one.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// An UnreachableError reports a server that does not answer.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

func configError(err error) error      { return &ConfigError{err} }
func unreachableError(err error) error { return &UnreachableError{err} }
