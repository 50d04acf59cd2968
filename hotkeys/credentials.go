package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// credentials gives user and password for each new connection: what the
// configuration names, else what stood in the URL. It is nil where the
// configuration names none. A password that cannot be read now is an error.
func (c ClientConfig) credentials(urlUser, urlPassword string) (func(context.Context) (string, string, error), error) {
	s := secret{user: c.Username, file: c.PasswordFile, env: c.PasswordEnv}
	if s == (secret{}) {
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
	s := secret{user: c.SentinelUsername, file: c.SentinelPasswordFile, env: c.SentinelPasswordEnv}
	var err error
	if o.SentinelUsername, o.SentinelPassword, err = s.read(o.SentinelUsername, o.SentinelPassword); err != nil {
		return fmt.Errorf("sentinel: %w", err)
	}
	return nil
}

// secret is where a user's password is.
type secret struct{ user, file, env string }

var errTwoPasswords = errors.New("password: from a file and from the environment: want one")

// read gives user and password, or those that are given where there are none.
func (s secret) read(user, password string) (string, string, error) {
	if s.user != "" {
		user = s.user
	}
	switch {
	case s.file != "" && s.env != "":
		return "", "", errTwoPasswords
	case s.file != "":
		text, err := os.ReadFile(s.file)
		if err != nil {
			return "", "", fmt.Errorf("password: %w", err)
		}
		if password = strings.TrimRight(string(text), "\r\n"); password == "" {
			return "", "", fmt.Errorf("password: %s is empty", s.file)
		}
	case s.env != "":
		if password = os.Getenv(s.env); password == "" {
			return "", "", fmt.Errorf("password: the environment variable %s is empty", s.env)
		}
	}
	return user, password, nil
}
