package kafka

import (
	"errors"
	"fmt"

	"github.com/hotparam/hotparam/internal/base"
)

// Secret returns the password from its file, its variable or the field. A missing or empty
// password is an error, which never contains the password itself.
func (s *SASL) Secret() (string, error) {
	switch {
	case s.PasswordFile != "": // the file takes precedence over the variable
		password, err := base.ReadSecret(s.PasswordFile, "")
		if err != nil {
			return "", fmt.Errorf("sasl: password_file: %w; write the password of user %q to it", err, s.User)
		}
		return password, nil
	case s.PasswordEnv != "":
		password, err := base.ReadSecret("", s.PasswordEnv)
		if err != nil {
			return "", fmt.Errorf("sasl: password_env: %w; set it to the password of user %q", err, s.User)
		}
		return password, nil
	case s.Password != "":
		return s.Password, nil
	}
	return "", errors.New("sasl: no password; give password_file, password_env or password")
}
