package kafka

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret is the password, from where it is. One that is missing or empty is an
// error, which never holds the password itself.
func (s *SASL) Secret() (string, error) {
	switch {
	case s.PasswordFile != "":
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("sasl: password_file: %w", err)
		}
		secret := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		if secret == "" {
			return "", fmt.Errorf("sasl: password_file: %s is empty; write the password of user %q to it", s.PasswordFile, s.User)
		}
		return secret, nil
	case s.PasswordEnv != "":
		secret := os.Getenv(s.PasswordEnv)
		if secret == "" {
			return "", fmt.Errorf("sasl: password_env: the environment has no %s, or it is empty; set it to the password of user %q", s.PasswordEnv, s.User)
		}
		return secret, nil
	case s.Password != "":
		return s.Password, nil
	}
	return "", errors.New("sasl: no password; give password_file, password_env or password")
}
