package hotkeys

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/base"
)

// credentials returns a function that returns user and password for each new connection: those of
// the configuration, or else those of the URL. The function is nil if the configuration has
// neither. It is an error if the password cannot be read now.
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

// sentinelCredentials sets user and password for the sentinels, which go-redis reads only once.
func (c ClientConfig) sentinelCredentials(o *redis.FailoverOptions) error {
	s := login{user: c.SentinelUsername, file: c.SentinelPasswordFile, env: c.SentinelPasswordEnv}
	var err error
	if o.SentinelUsername, o.SentinelPassword, err = s.read(o.SentinelUsername, o.SentinelPassword); err != nil {
		return fmt.Errorf("sentinel: %w", err)
	}
	return nil
}

// login is a user and the file or the environment variable of the password.
type login struct{ user, file, env string }

// read returns user and password. If s lacks one, read returns the given one.
func (s login) read(user, password string) (string, string, error) {
	if s.user != "" {
		user = s.user
	}
	secret, err := base.ReadSecret(s.file, s.env)
	if err != nil {
		return "", "", fmt.Errorf("password: %w", err)
	}
	if secret != "" {
		password = secret
	}
	return user, password, nil
}
