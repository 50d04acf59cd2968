package hotkeys

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/secret"
)

// credentials gives user and password for each new connection: what the
// configuration names, else what stood in the URL. It is nil where the
// configuration names none. A password that cannot be read now is an error.
func (c ClientConfig) credentials(urlUser, urlPassword string) (func(context.Context) (string, string, error), error) {
	s := login{user: c.Username, file: c.PasswordFile, env: c.PasswordEnv}
	if s == (login{}) {
		return nil, nil
	}
	if _, _, err := s.read(urlUser, urlPassword); err != nil {
		return nil, err
	}
	return func(context.Context) (string, string, error) { return s.read(urlUser, urlPassword) }, nil
}

// sentinelCredentials is likewise for the sentinels, for which go-redis takes
// user and password as they are at the start.
func (c ClientConfig) sentinelCredentials(o *redis.FailoverOptions) error {
	s := login{user: c.SentinelUsername, file: c.SentinelPasswordFile, env: c.SentinelPasswordEnv}
	var err error
	if o.SentinelUsername, o.SentinelPassword, err = s.read(o.SentinelUsername, o.SentinelPassword); err != nil {
		return fmt.Errorf("sentinel: %w", err)
	}
	return nil
}

// login is a user and where the password is.
type login struct{ user, file, env string }

// read gives user and password, or those that are given where there are none.
func (s login) read(user, password string) (string, string, error) {
	if s.user != "" {
		user = s.user
	}
	own, err := secret.Read(s.file, s.env)
	if err != nil {
		return "", "", fmt.Errorf("password: %w", err)
	}
	if own != "" {
		password = own
	}
	return user, password, nil
}
